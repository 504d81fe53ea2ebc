"""Answers that are looked for while a page watches: each run has a thread and a flag that stops it."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from powersum.core.interrupt import Interrupt
from powersum.model.evidence import Evidence
from powersum.model.interval import Interval
from powersum.model.question import Question
from powersum.model.result import Result, Snapshot
from powersum.model.strict_json import strict
from powersum.run.probability import probability_of
from powersum.run.shares import sum_bounds
from powersum.run.solver import Run

MOST_SHOWN = 500
"""States of an answer that are sent; the report page has more."""
INTERVAL = 0.1
"""Seconds between two snapshots that are sent."""
SUM_SECONDS = 0.5
"""What the sum may take that probabilities are shares of, before the answer is looked for."""
MOST_KEPT = 30
"""Results that are kept for their report pages."""

Deliver = Callable[[str, dict[str, Any]], None]
"""Takes the name of an event and what it says."""


class WatchedRun:
    """One question being answered; ``stop`` ends it with the best answer until then.

    Parameters
    ----------
    question
        What is asked, with its limits.
    best
        How many of the best assignments to find.
    deliver
        Hears of everything, from the run's own thread.
    """

    def __init__(self, question: Question, best: int, deliver: Deliver) -> None:
        self.id = secrets.token_hex(8)
        self.question, self._best, self._deliver = question, best, deliver
        self._flag = Interrupt()
        self._log_sum: tuple[float, float] | None = None
        self.result: Result | None = None
        # A process that ends does not wait for answers that nobody will read.
        self.thread = threading.Thread(target=self._work, name=f"run {self.id}", daemon=True)

    def stop(self) -> None:
        """End after the present slice of work."""
        self._flag.cause = "the stop button"

    def _work(self) -> None:
        try:
            self.result = self._found()
        except Exception as error:
            self._deliver("failed", {"error": str(error) or type(error).__name__})
            return
        self._deliver("result", result_json(self.question, self.result, self._log_sum))

    def _found(self) -> Result:
        question, limits = self.question, self.question.limits
        assigns = question.query.task != "PR"
        # What is probable is a share: of the sum given the same evidence, and what is observed, of that of everything.
        given = question if assigns else replace(question, evidence=Evidence({}, {}))
        if assigns or (_only_observed(question) and not question.model.directed):
            seconds = min(SUM_SECONDS, 0.2 * limits.seconds)
            self._log_sum = sum_bounds(given, seconds=seconds, interrupt=self._flag)
        solver = Run(question)
        solver.watch(self._flag)
        shown = -math.inf

        def told(snapshot: Snapshot) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown >= INTERVAL:
                shown = now
                self._show(snapshot, solver)

        result = solver.answer(k=self._best if assigns else 1, callback=told)
        if assigns and result.probability is None and result.assignment and self._log_sum is not None:
            result = replace(result, probability=probability_of(result, self._log_sum))
        return result

    def _show(self, snapshot: Snapshot, solver: Run) -> None:
        """Send both bounds, and the best answer with its probability where there is one."""
        said: dict[str, Any] = {
            "seconds": snapshot.seconds,
            "log_lower": snapshot.log_lower,
            "log_upper": snapshot.log_upper,
        }
        states = solver.states()
        if snapshot.log_lower > -math.inf and (states >= 0).any():
            pairs = [(v, int(states[v])) for v in self.question.query.answered[:MOST_SHOWN]]
            said["assignment"] = _assignment(self.question, pairs)
            if self._log_sum is not None:
                said["probability"] = _share((snapshot.log_lower, snapshot.log_upper), self._log_sum)
        self._deliver("snapshot", strict(said))


class ExplorerRuns:
    """All runs of a page's server: those that work, and the results of the last ones."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, WatchedRun] = OrderedDict()

    def start(self, question: Question, best: int, deliver: Deliver) -> WatchedRun | None:
        """Begin to look for an answer; None where too many are looked for already."""
        with self._lock:
            if sum(run.thread.is_alive() for run in self._runs.values()) >= self._most:
                return None
            run = WatchedRun(question, best, deliver)
            self._runs[run.id] = run
            ended = [name for name, other in self._runs.items() if other is not run and not other.thread.is_alive()]
            for name in ended[: max(len(self._runs) - MOST_KEPT, 0)]:
                del self._runs[name]
            run.thread.start()
        return run

    def get(self, name: str) -> WatchedRun | None:
        """A run by its name."""
        with self._lock:
            return self._runs.get(name)

    def stop_all(self) -> None:
        """End all runs."""
        with self._lock:
            for run in self._runs.values():
                run.stop()


def result_json(question: Question, result: Result, log_sum: tuple[float, float] | None = None) -> dict[str, Any]:
    """What the page shows of an answer; ``log_sum`` has both bounds on what probabilities are shares of."""
    said: dict[str, Any] = {
        **_one(question, result),
        "task": question.query.task,
        "reason": result.reason,
        "notes": list(result.notes),
        "seconds": result.seconds,
        "best": [_one(question, one) for one in result.best],
        "log_upper_next": result.log_upper_next,
    }
    if len(result.assignment) > MOST_SHOWN:
        # The picture shows the answer wherever one looks: variable and state by turns.
        said["states"] = [number for pair in _pairs(question, result) for number in pair]
    if question.query.task == "PR" and _only_observed(question) and result.log_upper > -math.inf:
        if question.model.directed:
            said["probability"] = _probability(Interval(min(result.log_lower, 0.0), min(result.log_upper, 0.0)))
        elif log_sum is not None:
            said["probability"] = _share((result.log_lower, result.log_upper), log_sum)
    checked: dict[str, Any] = strict(said)
    return checked


def _one(question: Question, result: Result) -> dict[str, Any]:
    pairs = _pairs(question, result)[:MOST_SHOWN]
    return {
        "status": result.status.value,
        "log_lower": result.log_lower,
        "log_upper": result.log_upper,
        "assignment": _assignment(question, pairs),
        "assigned": len(result.assignment),
        "probability": None if result.probability is None else _probability(result.probability),
    }


def _pairs(question: Question, result: Result) -> list[tuple[int, int]]:
    """Variables and states of an answer by number; the assignment has them in the order of the question."""
    answered = zip(question.query.answered, result.assignment.values(), strict=False)
    return [(v, question.model.state(v, label)) for v, label in answered]


def _only_observed(question: Question) -> bool:
    """Whether states are observed, and nothing leans: then the sum with them is a share of the sum of everything."""
    return bool(question.evidence.states) and not question.evidence.likelihoods


def _share(own: tuple[float, float], whole: tuple[float, float]) -> dict[str, Any]:
    """What part of a sum a part of it is; the sum is at least that part."""
    log_lower = max(whole[0], own[0])
    return _probability(Interval.ratio(own, (log_lower, max(whole[1], log_lower))))


def _assignment(question: Question, pairs: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    model = question.model
    return [
        {"id": v, "name": model.name(v), "state": state, "label": str(model.label(v, state))}
        for v, state in pairs
        if state >= 0
    ]


def _probability(share: Interval) -> dict[str, Any]:
    return {"text": str(share), "lower": share.lower, "upper": share.upper}
