"""Ask a case's question and collect everything that is wrong with the answer."""

from __future__ import annotations

import math
import os
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import powersum as ps
from soak import answers, clusters, diagrams
from soak.asking import asked, prepared, way
from soak.boxes import boxes
from soak.cases import Case, Question, Trouble
from soak.claims import Wrong, truth_of, wrong_marginals, wrong_result, wrong_tables
from soak.files import read_file
from soak.roads import Injected, road

PACKAGE = Path(ps.__file__).parent

FILE_MEMORY = 3 << 30
"""Bytes that reading a file of a few kilobytes may take."""


@dataclass(frozen=True)
class Outcome:
    """What is wrong with the answers to a case, each beginning with one word for its kind; and how it ended."""

    wrong: tuple[str, ...]
    ended: str


def checked(case: Case) -> Outcome:
    """Ask, and hold the answer against the truth. Whatever powersum raises is wrong, but what it may refuse."""
    ends: list[str] = []
    handler = signal.getsignal(signal.SIGINT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            wrong = _ENTRIES[case.entry](case, ends)
        except Injected:
            wrong, ends = [], ["injected"]
        except ps.InputError as error:
            allowed = "memory" in str(error) and "memory" in case.road
            wrong, ends = [] if allowed else [f"refused: {error}"], ["refused"]
        except (Exception, KeyboardInterrupt) as error:
            wrong, ends = [_place(error)], ["error"]
    if signal.getsignal(signal.SIGINT) is not handler:
        wrong.append("signal: the handler that was there before is not there after")
    return Outcome(tuple(wrong), ends[-1] if ends else "done")


def _place(error: BaseException) -> str:
    """An exception and where in powersum it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)] or frames
    where = inside[-1]
    return f"{type(error).__name__} in {Path(where.filename).name}/{where.name}: {' '.join(str(error).split())[:300]}"


def _solve(case: Case, ends: list[str]) -> Wrong:
    def ask(model: ps.Model, question: Question, callback: Callable[[ps.Snapshot], None]) -> ps.Result:
        return ps.solve(model, **asked(case, question), callback=callback, **case.options, **way(case))

    return _answered(case, ends, ask)


def _bound(case: Case, ends: list[str]) -> Wrong:
    def ask(model: ps.Model, question: Question, callback: Callable[[ps.Snapshot], None]) -> ps.Result:
        given = {**asked(case, question), **case.options, "order": question.order}
        result = ps.bound(model, **given, callback=callback)
        # Nothing from outside has a part in it: the number of threads must not have one either.
        if case.options.get("threads", 1) > 1 and "time_limit" not in case.options and case.trouble == Trouble():
            alone = ps.bound(model, **{**given, "threads": 1})
            assert alone.log_upper == result.log_upper, f"with one thread it is {alone.log_upper!r}, not {result!r}"
        return result

    return _answered(case, ends, ask)


def _answered(case: Case, ends: list[str], ask: Callable[..., ps.Result]) -> Wrong:
    """One call that returns a result and shows its snapshots on the way."""
    model, question, truth = prepared(case)
    seen: list[ps.Snapshot] = []

    def callback(snapshot: ps.Snapshot) -> None:
        seen.append(snapshot)
        if len(seen) == case.trouble.callback_raises:
            raise Injected("in the callback")
        if len(seen) == case.trouble.signal_at:
            os.kill(os.getpid(), signal.SIGINT)

    wrong = wrong_tables(case, model)
    with road(case.road, case.trouble):
        result = ask(model, question, callback)
    ends.append(result.status.value)
    return wrong + wrong_result(case, model, question, result, truth, seen)


def _solver(case: Case, ends: list[str]) -> Wrong:
    """The iterator: left after some snapshots or by an exception, asked for its result, and gone on with."""
    model, question, truth = prepared(case)
    seen: list[ps.Snapshot] = []
    wrong: Wrong = []
    with road(case.road, case.trouble):
        solver = ps.Solver(model, **asked(case, question), **case.options, **way(case))
        for _ in range(3):
            try:
                for snapshot in solver:
                    seen.append(snapshot)
                    if len(seen) == case.trouble.stop_after:
                        break
                else:
                    break
            except Injected:
                pass
            wrong += wrong_result(case, model, question, solver.result(), truth, seen)
        result = solver.result()
    ends.append(result.status.value)
    return wrong + wrong_result(case, model, question, result, truth, seen)


def _many(case: Case, ends: list[str]) -> Wrong:
    model = case.model()
    with road(case.road, case.trouble):
        questions = [asked(case, question) for question in case.questions]
        items = list(ps.solve_each(model, questions, **case.options))
    results = [item.result for item in items if item.result is not None]
    wrong: Wrong = [f"refused: {item.error}" for item in items if item.result is None]
    for question, result in zip(case.questions, results, strict=not wrong):
        ends.append(result.status.value)
        wrong += wrong_result(case, model, question, result, truth_of(case, model, question), ())
    return wrong


def _engine(case: Case, ends: list[str]) -> Wrong:
    """One engine, asked three things about each evidence in turn: what it keeps must not spoil what follows."""
    model = case.model()
    wrong: Wrong = []
    with road(case.road, case.trouble):
        engine = ps.Engine(model, **case.options)
    for question in case.questions:
        summed = Question((1.0,) * len(question.weights), question.evidence)
        evidence, truth, total = case.evidence(question), truth_of(case, model, question), truth_of(case, model, summed)
        with road(case.road, case.trouble):
            result, log_z = engine.solve(**asked(case, question)), engine.log_z(evidence=evidence)
            try:
                beliefs = engine.marginals(evidence=evidence)
            except ps.InputError as error:
                beliefs = None
                if total.value > -math.inf:
                    wrong.append(f"refused: {error}")
        ends.append(result.status.value)
        wrong += wrong_result(case, model, question, result, truth, ())
        wrong += wrong_result(case, model, summed, log_z, total, ())
        wrong += wrong_marginals(beliefs, total) if beliefs is not None else []
    return wrong


def _marginals(case: Case, ends: list[str]) -> Wrong:
    """``MarginalSolver``: everything that it shows on the way holds, and tightens."""
    model, question, truth = prepared(case)
    shown: list[ps.Marginals] = []
    options = dict(case.options)
    asks, by_boxes = options.pop("asks"), options.pop("boxes")
    of = None if asks is None else range(min(asks, model.n_variables))
    try:
        with road(case.road, case.trouble), ThreadPoolExecutor(2) as pool:
            workers = pool if by_boxes else None
            solver = ps.MarginalSolver(
                model, evidence=case.evidence(question), of=of, workers=workers, **options, **way(case)
            )
            shown.extend(solver)
    except Injected:
        ends.append("injected")
        shown.append(solver.result())
    except ps.InputError as error:
        ends.append("refused")
        small = "memory" in str(error) and (case.options["memory"] or 4e9) < 4e9
        return [] if small or truth.value == -math.inf else [f"refused: {error}"]
    ends.append("exact" if shown[-1].exact else "approximate")
    wrong = [text for found in shown for text in wrong_marginals(found, truth)]
    for before, after in pairwise(shown):
        pairs = zip(before.log_lower + after.log_upper, after.log_lower + before.log_upper, strict=True)
        wrong += ["marginals: an interval got wider" for less, more in pairs if not (less <= more).all()]
    return wrong


def _file(case: Case, ends: list[str]) -> Wrong:
    del ends
    with _little_memory():
        return read_file(case)


@contextmanager
def _little_memory() -> Iterator[None]:
    """Some damaged files once took all memory of the machine."""
    now, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + FILE_MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (now, hard))


_ENTRIES: dict[str, Callable[[Case, list[str]], Wrong]] = {
    "solve": _solve,
    "solver": _solver,
    "bound": _bound,
    "many": _many,
    "engine": _engine,
    "marginals": _marginals,
    "file": _file,
    "boxes": boxes,
    "cubes": clusters.cubes,
    "each": clusters.each,
    "parts": clusters.parts,
    "best": answers.best,
    "gradient": answers.gradient,
    "resume": answers.resume,
    "explain": answers.explain,
    "blocks": diagrams.blocks,
    "decide": diagrams.decide,
}
