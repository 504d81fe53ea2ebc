"""``solve_many``: many questions about one model, side by side, with one progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from powersum.api.engine import Engine
from powersum.api.stream import check_question, solve_each
from powersum.cluster.executor import ExecutorLike, check_executor
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt, interruptible
from powersum.core.machine import budget_of
from powersum.core.memory import bytes_held
from powersum.model.keys import listed
from powersum.model.limits import Limits, whole_number
from powersum.model.model import Model
from powersum.model.question import ModelLike, Question, model_of
from powersum.model.result import Result
from powersum.run.probability import with_probability
from powersum.run.solver import DEFAULT_TIME, Solver
from powersum.run.tuning import DEFAULT_SCHEDULE, Schedule

# The main thread must wake up now and then to hear of Ctrl-C.
HEARTBEAT = 0.2


def solve_many(
    model: ModelLike,
    queries: Iterable[Mapping[str, Any]],
    *,
    n_jobs: int = 1,
    executor: ExecutorLike = None,
    checkpoint: str | os.PathLike[str] | None = None,
    time_limit: float | None = DEFAULT_TIME,
    memory: float | str | None = None,
    gap: float = 0.0,
    seed: int = 0,
    progress: bool | None = None,
    schedule: Schedule = DEFAULT_SCHEDULE,
) -> list[Result]:
    """Answer many questions about one model.

    All questions are checked before the first is answered, questions that are the same are answered once, and all jobs
    read the same arrays of the model: they are threads, and the compiled parts run outside the interpreter's lock.

    Parameters
    ----------
    model
        The model, which is not changed, or the path of its file.
    queries
        For each question a dictionary of what it asks: ``maximize``, ``evidence``, ``query``, as in
        :func:`powersum.solve`.
    n_jobs
        Questions answered at the same time, by threads.
    executor
        Who answers, in place of threads: a number of processes, a ``concurrent.futures.Executor``, or a
        ``dask.distributed.Client``. See ``docs/long-runs.md``; :func:`powersum.solve_each` takes more questions than
        fit into memory.
    checkpoint
        A file of JSON lines that is written as answers come, and gone on with after its last whole line.
    time_limit
        Seconds for each question.
    memory
        Bytes that all jobs together may use, or a size such as ``"2G"``; by default as in :func:`powersum.solve`.
    gap, seed, schedule
        As in :func:`powersum.solve`.
    progress
        Whether to show a progress bar on stderr; on a terminal only, if not given.

    Returns
    -------
    list of Result
        In the order of the questions. After Ctrl-C the questions that were not reached have status ``interrupted``, no
        assignment and an infinite ``log_upper``.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    >>> answers = ps.solve_many(rain, [{"maximize": ["rain"], "evidence": {"wet": state}} for state in (0, 1)])
    >>> [answer.assignment["rain"] for answer in answers]
    ['no', 'yes']
    """
    n_jobs = whole_number(n_jobs, "n_jobs", 1)
    check_executor(executor)
    # What is wrong with the limits is not the fault of the first question.
    limits = Limits(time_limit=time_limit, memory=budget_of(memory, measured=executor is None), gap=gap, seed=seed)
    model = model_of(model)
    if executor is not None or checkpoint is not None:
        for name, differs in (
            ("n_jobs", n_jobs > 1),
            ("gap", limits.gap > 0.0),
            ("schedule", schedule is not DEFAULT_SCHEDULE),
        ):
            if differs:
                raise InputError(f"give {name}, or executor and checkpoint, not both")
        return _streamed(
            model, listed(queries, "queries", "a list of dictionaries"), limits, executor, checkpoint, progress
        )
    if n_jobs > 1:
        # What the process holds already is held once, not by each; compiled modules take a good part of it.
        import powersum.run.work  # noqa: F401

    held = min(bytes_held(), limits.bytes)
    share = (limits.bytes - held) / n_jobs + held
    options = {
        "time_limit": limits.time_limit,
        "memory": share,
        "gap": limits.gap,
        "seed": limits.seed,
        "schedule": schedule,
    }
    solvers: dict[Any, Solver] = {}
    asked = []
    for number, question in enumerate(listed(queries, "queries", "a list of dictionaries")):
        solver = _solver(model, number, question, options)
        key = solver.question.key
        solvers.setdefault(key, solver)
        asked.append(key)
    engine = Engine(model, time_limit=limits.time_limit, memory=share, seed=limits.seed)

    def at_once(question: Question) -> Result | None:
        # Another schedule is asked for to see what it does.
        found = engine.at_once(question) if schedule is DEFAULT_SCHEDULE else None
        return None if found is None else replace(found, options={**found.options, "gap": limits.gap})

    with interruptible() as interrupt, _bar(len(solvers), progress) as advance:
        results = _run(solvers, at_once, n_jobs, interrupt, advance)
    return [results[key] for key in asked]


def _streamed(
    model: Model,
    questions: list[Mapping[str, Any]],
    limits: Limits,
    executor: ExecutorLike,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool | None,
) -> list[Result]:
    """All answers of the engine's stream; every question is checked before."""
    for number, question in enumerate(questions):
        try:
            check_question(question)
            Question.of(model, **question).only_sums_and_maxima("solve_many")
        except InputError as error:
            raise InputError(f"question {number}: {error}") from None
    options: dict[str, Any] = {"time_limit": limits.time_limit, "memory": limits.bytes, "seed": limits.seed}
    results = []
    with _bar(len(questions), progress) as advance:
        for answer in solve_each(model, questions, executor=executor, checkpoint=checkpoint, **options):
            if answer.result is None:
                raise InputError(f"question {answer.number}: {answer.error}")
            results.append(answer.result)
            advance()
    return results


def _solver(model: Model, number: int, question: Mapping[str, Any], options: Mapping[str, Any]) -> Solver:
    """The solver of one question; what is wrong with the question is told with its number."""
    try:
        check_question(question)
        return Solver(model, **question, **options)
    except InputError as error:
        raise InputError(f"question {number}: {error}") from None


def _run(
    solvers: dict[Any, Solver],
    at_once: Callable[[Question], Result | None],
    n_jobs: int,
    interrupt: Interrupt,
    advance: Callable[[], None],
) -> dict[Any, Result]:
    """Run all solvers and let go of them; the main thread only listens and counts."""
    with ThreadPoolExecutor(n_jobs, thread_name_prefix="powersum") as pool:
        futures: dict[Any, Future[Result]] = {}
        while solvers:
            key = next(iter(solvers))
            # From here on only the thread that works on it holds the solver.
            futures[key] = pool.submit(_exhaust, solvers.pop(key), at_once, interrupt)
        waiting = set(futures.values())
        while waiting:
            done, waiting = wait(waiting, timeout=HEARTBEAT, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
                advance()
    return {key: future.result() for key, future in futures.items()}


def _exhaust(solver: Solver, at_once: Callable[[Question], Result | None], interrupt: Interrupt) -> Result:
    """The answer that is to be had at once; where there is none, run one solver to its end or to the interruption."""
    found = at_once(solver.question) if interrupt.cause is None else None
    if found is not None:
        return found
    if interrupt.cause is not None:
        solver.interrupt(f"Not reached: stopped by {interrupt.cause}.")
    solver.spare_for_probability()
    for _ in solver:
        if interrupt.cause is not None:
            solver.interrupt(f"Stopped by {interrupt.cause}.")
    solver.watch(interrupt)
    return with_probability(solver)


@contextmanager
def _bar(total: int, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """A function that counts one more answer, on a bar where there is one."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("questions"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
