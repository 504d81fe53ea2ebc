"""Many questions: the same answers as one by one, none lost to Ctrl-C, nothing held when one is answered."""

from __future__ import annotations

import gc
import math
import signal
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import powersum as ps
from powersum import Status
from powersum.api import engine
from powersum.assign.evaluator import Evaluator
from powersum.run.solver import Solver
from powersum.run.tuning import Schedule
from tests.batch import results_of
from tests.interop.networks import CLINIC

QUESTIONS: list[dict[str, Any]] = [
    {"maximize": ["cancer", "bronchitis"], "evidence": {"dyspnoea": "much"}},
    {"maximize": ["cancer"], "evidence": {"dyspnoea": {"none": 0.1, "some": 0.2, "much": 0.7}}},
    {"maximize": ["cancer"], "evidence": {"dyspnoea": [0.7, 0.2, 0.1]}},
    {"evidence": {"xray": "shadow"}},
    {"maximize": "all"},
    {},
]


@pytest.mark.parametrize("threads", [1, 2])
def test_same_as_one_by_one(threads: int) -> None:
    results = results_of(CLINIC, QUESTIONS, threads=threads)
    for question, result in zip(QUESTIONS, results, strict=True):
        alone = ps.solve(CLINIC, **question)
        # Plans and solvers count another rounding, both on the safe side.
        assert result.log_upper == pytest.approx(alone.log_upper, abs=1e-12)
        assert max(result.log_lower, alone.log_lower) <= min(result.log_upper, alone.log_upper)
        assert dict(result.assignment) == dict(alone.assignment)


def test_many_small_questions_are_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """With likelihoods, too: no solver runs, and answers and options are those that it would give."""
    monkeypatch.setattr(engine, "PATIENCE", 0)
    expected = [ps.solve(CLINIC, **question, gap=0.1, memory=4e9, time_limit=900.0) for question in QUESTIONS]
    monkeypatch.setattr(Solver, "__iter__", lambda self: pytest.fail("a solver ran"))
    results = results_of(CLINIC, QUESTIONS, gap=0.1, memory=4e9, time_limit=900.0)
    for alone, result in zip(expected, results, strict=True):
        assert result.log_upper == pytest.approx(alone.log_upper)
        assert result.log_lower <= alone.log_upper
        assert dict(result.assignment) == dict(alone.assignment)
        assert (result.question, result.options, result.status) == (alone.question, alone.options, alone.status)
        assert (result.probability is None) == (alone.probability is None)


def test_ctrl_c_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model, query = ps.generate.grid(12, 12, strength=3.0, seed=2)
    advance = Solver._advance

    def interrupted(self: Solver) -> Any:
        snapshot = advance(self)
        # As if the user pressed Ctrl-C while the first question was being answered.
        handler: Any = signal.getsignal(signal.SIGINT)
        if handler.__self__.cause is None:
            handler(signal.SIGINT, None)
        return snapshot

    monkeypatch.setattr(Solver, "_advance", interrupted)
    items = ps.solve_each(model, [{"maximize": query}, {"maximize": query[1:]}], time_limit=30.0)
    first = next(items).result
    assert first is not None
    assert first.status is Status.INTERRUPTED
    assert first.log_upper < math.inf
    with pytest.raises(KeyboardInterrupt):
        next(items)


NOT_QUICK = Schedule(elimination_cost=1e3)
"""Nothing is quick enough to be eliminated at once."""


@pytest.fixture
def _no_collector() -> Iterator[None]:
    # Whatever has to be compiled is compiled before: the compiler keeps the frames that called it in cycles. What
    # waits for the compiler goes another way than what does not, so everything is asked twice.
    model, query = ps.generate.grid(4, 4, seed=1)
    for _ in range(2):
        for k in range(4):
            ps.solve(model, query[k:], schedule=NOT_QUICK)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Remembered:
    """Weak references to all evaluators, which stand for the arrays of a question at work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[weakref.ref[Evaluator]] = []
        self.alive_when_one_began: list[int] = []
        begin = Evaluator.__init__

        def noted(evaluator: Evaluator, *arguments: Any, **options: Any) -> None:
            self.alive_when_one_began.append(self.alive)
            self.begun.append(weakref.ref(evaluator))
            begin(evaluator, *arguments, **options)

        monkeypatch.setattr(Evaluator, "__init__", noted)

    @property
    def alive(self) -> int:
        """How many there are; the collector of cycles is off, for nothing may wait for it."""
        return sum(one() is not None for one in self.begun)


@pytest.mark.usefixtures("_no_collector")
def test_what_a_finished_question_took_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = Remembered(monkeypatch)
    solvers: list[weakref.ref[Solver]] = []
    create = Solver.__init__

    def noted(self: Solver, *arguments: Any, **options: Any) -> None:
        create(self, *arguments, **options)
        solvers.append(weakref.ref(self))

    monkeypatch.setattr(Solver, "__init__", noted)
    model, query = ps.generate.grid(4, 4, seed=1)
    results = [ps.solve(model, query[k:], schedule=NOT_QUICK) for k in range(4)]
    assert all(result.status is Status.OPTIMAL for result in results)
    # One for each question, and one for the sum that its answer is a share of.
    assert remembered.alive_when_one_began == [0] * 8
    assert remembered.alive == 0
    assert all(solver() is None for solver in solvers)


@pytest.mark.usefixtures("_no_collector")
def test_a_finished_solver_holds_its_answer_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without first bounds, which are there before anything that is to be held.
    monkeypatch.setattr("powersum.bounds.quick.MOST_VARIABLES", 0)
    monkeypatch.setattr("powersum.run.work.QUICK_SHARE", 0.0)
    monkeypatch.setattr("powersum.run.work.corner_of", lambda *_: None)
    remembered = Remembered(monkeypatch)
    model, query = ps.generate.grid(4, 4, seed=1)
    ended, stopped = Solver(model, query, schedule=NOT_QUICK), Solver(model, query[1:], schedule=NOT_QUICK)
    snapshots = list(ended)
    assert remembered.alive == 0
    for _ in stopped:
        assert remembered.alive == 1
        stopped.interrupt("Enough.")
    assert len(remembered.begun) == 2
    assert remembered.alive == 0
    assert ended.result().log_lower == snapshots[-1].log_lower
    assert stopped.result().reason == "Enough."
    assert list(ended) == list(stopped) == []
