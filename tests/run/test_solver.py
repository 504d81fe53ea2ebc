"""``solve`` as a user calls it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

import powersum as ps
from powersum.api.bounding import bound
from powersum.assign.evaluator import Evaluator
from powersum.assign.regions import TOO_WIDE
from powersum.core.arrays import IntArray
from powersum.core.clock import Clock
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.result import Result, Snapshot, Status
from powersum.prepare.simplify import simplify
from powersum.run.board import Board
from powersum.run.solver import Solver, solve
from powersum.run.tuning import Schedule
from tests.cases import Case, case, hard_case
from tests.clock import Ticks
from tests.oracle import assignment_value, exact_value

ANYTIME = Schedule(elimination_cost=1e3)
"""No elimination is quick enough to be done at once."""

SHORT = replace(ANYTIME, slice=0.01)
"""The same, with short turns."""


def check(question: Case, result: Result) -> None:
    """Everything that must hold for any result of a question."""
    truth = exact_value(question.model, question.query.weights, evidence=question.evidence)
    uppers = [s.log_upper for s in result.history]
    lowers = [s.log_lower for s in result.history]
    assert all(u >= truth - 1e-9 for u in uppers)
    assert all(low <= truth + 1e-9 for low in lowers)
    assert uppers == sorted(uppers, reverse=True)
    assert lowers == sorted(lowers)
    assert (result.log_upper, result.log_lower) == (uppers[-1], lowers[-1])
    if truth == -math.inf:
        assert result.status is Status.INFEASIBLE
        assert not result.assignment
        return
    assert result.status is Status.OPTIMAL
    assert result.log_lower == pytest.approx(truth, abs=1e-6)
    chosen = {int(name): int(state) for name, state in result.assignment.items()}
    assert sorted(chosen) == question.query.max_variables.tolist()
    assert all(chosen[v] == s for v, s in question.evidence.items() if v in chosen)
    value = assignment_value(question.model, chosen, evidence=question.evidence)
    assert value == pytest.approx(result.log_lower, abs=1e-6)


@pytest.mark.parametrize("seed", range(200))
def test_agrees_with_brute_force(seed: int) -> None:
    question = case(seed)
    check(question, solve(question.model, weights=question.query, evidence=question.evidence))


@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_brute_force_without_the_exact_shortcut(seed: int) -> None:
    question = hard_case(seed, zeros=[0.0, 0.1, 0.3, 0.5][seed % 4])
    check(question, solve(question.model, weights=question.query, time_limit=600.0, schedule=SHORT))


@pytest.mark.parametrize("maximize", [None, "all"])
def test_no_query_and_full_query_without_the_exact_shortcut(maximize: str | None) -> None:
    model = hard_case(1).model
    result = solve(model, maximize, time_limit=600.0, schedule=ANYTIME)
    truth = exact_value(model, Query.of(model, maximize).weights)
    assert result.log_lower == pytest.approx(truth, abs=1e-6)
    assert result.log_upper >= truth - 1e-9


def test_where_sums_are_too_wide_the_lower_bound_is_one_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.assign.evaluator.Evaluator.value", _too_wide_at({0})[0])
    question = hard_case(4)
    schedule = replace(ANYTIME, held_table=8.0)
    result = solve(question.model, weights=question.query, work=4.0, schedule=schedule)
    truth = exact_value(question.model, question.query.weights)
    assert -math.inf < result.log_lower <= truth + 1e-9
    assert result.log_upper >= truth - 1e-9
    assert "lower bound" in result.notes[0]
    chosen = {int(name): int(state) for name, state in result.assignment.items()}
    assert assignment_value(question.model, chosen) >= result.log_lower - 1e-9


@pytest.mark.parametrize("first", [False, True])
def test_an_assignment_too_wide_to_evaluate_proves_nothing(first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    value, numbers = _too_wide_at({0, 1} if first else {1, 2})
    monkeypatch.setattr("powersum.assign.evaluator.Evaluator.value", value)
    # Local search takes such an assignment for better than anything.
    part, parts = Evaluator.component_value, iter(range(10**9))
    monkeypatch.setattr(
        "powersum.assign.evaluator.Evaluator.component_value",
        lambda self, *rest: TOO_WIDE if next(parts) % 50 == 49 else part(self, *rest),
    )
    question = hard_case(4)
    result = solve(question.model, weights=question.query, work=4.0, schedule=SHORT)
    truth = exact_value(question.model, question.query.weights)
    # Every call that shall be too wide was made.
    assert len(numbers) > (1 if first else 2)
    assert -math.inf < result.log_lower <= truth + 1e-9
    assert result.log_upper >= truth - 1e-9


def _too_wide_at(wide: set[int]) -> tuple[object, list[int]]:
    """The true evaluation, except that some calls find it too wide; and the numbers of the calls."""
    original = Evaluator.value
    numbers: list[int] = []

    def value(self: Evaluator, assignment: IntArray, work_limit: float = math.inf) -> float:
        numbers.append(len(numbers))
        return TOO_WIDE if numbers[-1] in wide else original(self, assignment, work_limit)

    return value, numbers


def test_snapshots_can_be_stopped_and_gone_on_with() -> None:
    question = hard_case(9)
    solver = Solver(question.model, weights=question.query, time_limit=600.0, schedule=ANYTIME)
    first = next(iter(solver))
    early = solver.result()
    assert early.log_upper == first.log_upper
    if early.status is not Status.OPTIMAL:
        assert early.status is Status.INTERRUPTED
    for _ in solver:
        pass
    check(question, solver.result())


def test_an_interruption_is_told() -> None:
    question = hard_case(9)
    solver = Solver(question.model, weights=question.query, schedule=ANYTIME)
    next(iter(solver))
    solver.interrupt("Stopped by the user.")
    assert list(solver) == []
    result = solver.result()
    assert result.status is Status.INTERRUPTED
    assert result.reason == "Stopped by the user."


def scripted(bounds: list[tuple[float, float]]) -> Callable[..., Generator[None]]:
    """Work that reports these bounds one after the other."""
    problem = replace(simplify(COIN, Query.of(COIN, "all"), {}), log_constant=0.0, log_error=0.0)
    states = np.zeros(0, dtype=np.int64)

    def work(*_: object, board: Board, **__: object) -> Generator[None]:
        for lower, upper in bounds:
            board.offer_upper(problem, upper, 0.0)
            board.offer_lower(problem, lower, 0.0, states)
            yield

    return work


COIN = Model.from_factors([2], [((0,), [0.3, 0.7])])
SCRIPTED = Schedule(look_first=False)
"""Nothing is known but what the script says."""


@pytest.mark.parametrize("slices", [1, 2, 7])
def test_no_slice_begins_after_the_time_limit(slices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A slice takes one look at the clock to begin and one to end.
    monkeypatch.setattr("powersum.run.work.work", scripted([(-9.0 + k, -1.0) for k in range(8)]))
    monkeypatch.setattr("powersum.run.solver.Clock", partial(Clock, monotonic=Ticks()))
    result = solve(COIN, "all", time_limit=slices, schedule=SCRIPTED)
    assert result.seconds == slices
    assert len(result.history) == slices
    assert (result.log_lower, result.log_upper) == (-10.0 + slices, -1.0)
    assert result.status is Status.BOUNDED
    assert result.reason == f"The time limit of {slices} s was reached."


def test_a_large_question_has_an_answer_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", Ticks(0.01))
    model, maximize = ps.generate.grid(40, 40, strength=3.0, seed=2)
    seen: list[Snapshot] = []
    # No time is enough for this one.
    result = solve(model, maximize, time_limit=1.5, callback=seen.append)
    assert tuple(seen) == result.history
    assert result.log_lower <= result.log_upper
    assert result.status is Status.BOUNDED
    assert result.reason == "The time limit of 1.5 s was reached."


def test_a_gap_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.run.work.work", scripted([(-10.0, -1.0), (-8.0, -2.0), (-8.0, -4.0), (-5.0, -5.0)]))
    for gap, gaps in [(9.0, [9.0]), (7.0, [9.0, 6.0]), (5.0, [9.0, 6.0, 4.0])]:
        result = solve(COIN, "all", gap=gap, schedule=SCRIPTED)
        assert [snapshot.log_upper - snapshot.log_lower for snapshot in result.history] == gaps
        assert result.status is Status.BOUNDED
        assert result.reason == f"The gap asked for, {gap:g}, was reached."
    assert solve(COIN, "all", gap=3.0, schedule=SCRIPTED).status is Status.OPTIMAL


def test_names_and_labels_come_back() -> None:
    model = Model.from_factors(
        [2, 2], [((0, 1), [[0.1, 0.2], [0.3, 0.4]])], names=["a", "b"], states=[["x", "y"], ["u", "v"]]
    )
    result = solve(model, ["a"], evidence={"b": "u"})
    assert dict(result.assignment) == {"a": "y"}
    assert result.log_lower == pytest.approx(math.log(0.3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": 0}, "time_limit is 0"),
        ({"memory": 5.0}, "memory is 5 bytes: the process .* takes"),
        ({"gap": -1.0}, "gap is -1"),
        ({"threads": 0}, "threads is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"weights": Query(np.array([0.5]))}, "weights 0 and 1"),
        ({"weights": Query(np.array([1.0, 1.0]))}, "2 numbers"),
        ({"weights": Query(np.array([1.0])), "maximize": "all"}, "not both"),
    ],
)
def test_bad_options_are_refused_in_one_line(options: dict[str, object], message: str) -> None:
    model = Model.from_factors([2], [((0,), [0.5, 0.5])])
    with pytest.raises(InputError, match=message):
        solve(model, **options)  # type: ignore[arg-type]


def test_a_budget_that_the_process_already_exceeds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.core.memory.bytes_held", lambda: 400_000_000)
    model = Model.from_factors([2], [((0,), [0.5, 0.5])])
    for answer in (solve, bound):
        with pytest.raises(InputError, match=r"memory is 410 MB: the process .* takes 400 MB, .* at least 420 MB"):
            answer(model, memory=4.1e8)


@pytest.mark.parametrize("seed", range(10))
def test_local_search_beside_the_rest(seed: int) -> None:
    question = hard_case(seed, zeros=[0.0, 0.2][seed % 2])
    check(question, solve(question.model, weights=question.query, time_limit=600.0, threads=2, schedule=SHORT))


def test_an_interrupted_history_ends_when_the_work_did() -> None:
    question = hard_case(9)
    solver = Solver(question.model, weights=question.query, schedule=ANYTIME)
    flag = Interrupt()
    solver.watch(flag)
    seen = []
    for snapshot in solver:
        seen.append(snapshot)
        flag.cause = "Ctrl-C"
    result = solver.result()
    assert result.status is Status.INTERRUPTED
    assert result.history == tuple(seen)
    assert seen[-1].seconds == result.seconds
    assert seen[-1].log_upper == seen[-2].log_upper
    solver.interrupt("again")
    assert solver.result() == result


def test_an_evaluation_beyond_the_work_allowed_is_not_begun() -> None:
    question = hard_case(9)
    problem = simplify(question.model, Query.of(question.model), {})
    evaluator = Evaluator(problem)
    nothing = np.full(problem.model.n_variables, -1, dtype=np.int64)
    assert evaluator.value(nothing) < TOO_WIDE
    assert evaluator.value(nothing, 10.0) == TOO_WIDE


def test_a_run_may_end_before_there_is_any_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    # Models that are too large for the first one.
    monkeypatch.setattr("powersum.bounds.quick.MOST_VARIABLES", 0)
    question = hard_case(9)
    late = solve(question.model, weights=question.query, time_limit=1e-9, schedule=Schedule(grace=0.0))
    assert (late.log_lower, late.log_upper) == (-math.inf, math.inf)
    assert late.status is Status.BOUNDED
    assert "time limit" in late.reason
    assert len(late.history) == 1
    assert '"log_upper": "inf"' in late.to_json()


def test_ctrl_c_during_preparation_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.bounds.quick.MOST_VARIABLES", 0)
    question = hard_case(9)
    solver = Solver(question.model, weights=question.query)
    flag = Interrupt()
    flag.cause = "Ctrl-C"
    solver.watch(flag)
    assert len(list(solver)) == 1
    assert solver.result().status is Status.INTERRUPTED
    assert solver.result().assignment == {}


def test_any_gap_still_means_a_bound() -> None:
    question = hard_case(9)
    assert math.isfinite(solve(question.model, weights=question.query, gap=math.inf).log_upper)


def test_bounds_that_contradict_each_other_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.run.work.work", scripted([(-2.0, -1.5), (-1.0, -1.5), (-1.0, -1.0)]))
    solver = Solver(COIN, maximize="all", schedule=SCRIPTED)
    with pytest.raises(RuntimeError, match="contradict"):
        list(solver)
    assert list(solver) == []
    with pytest.raises(RuntimeError, match="contradict"):
        solver.result()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), InputError("there is too little memory")])
@pytest.mark.parametrize("time_limit", [None, 60.0])
@pytest.mark.parametrize("when", [0, 1])
def test_an_exception_ends_the_run_and_says_so(
    error: BaseException, time_limit: float | None, when: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = scripted([(-3.0, -1.0)] * when)

    def work(**options: Any) -> Generator[None]:
        yield from before(**options)
        raise error

    monkeypatch.setattr("powersum.run.work.work", lambda *_, **options: work(**options))
    solver = Solver(COIN, maximize="all", time_limit=time_limit, schedule=SCRIPTED)
    with pytest.raises(type(error)):
        list(solver)
    assert list(solver) == []
    result = solver.result()
    assert result.status is Status.INTERRUPTED
    assert result.reason.startswith(f"Broken off by {type(error).__name__}")
    assert (result.log_lower, result.log_upper) == ((-3.0, -1.0) if when else (-math.inf, math.inf))
    assert (result.history[-1].log_lower, result.history[-1].log_upper) == (result.log_lower, result.log_upper)


def test_a_history_ends_with_the_answer_even_if_its_proof_was_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hard_case(1)
    solver = Solver(asked.model, weights=asked.query, evidence=asked.evidence, schedule=ANYTIME, time_limit=None)
    confirm = Board.confirm

    def broken(board: Board) -> None:
        # As if a better bound had come just before.
        board.log_upper -= 1e-9
        raise KeyboardInterrupt

    monkeypatch.setattr(Board, "confirm", broken)
    with pytest.raises(KeyboardInterrupt):
        list(solver)
    monkeypatch.setattr(Board, "confirm", confirm)
    result = solver.result()
    assert len(result.history) > 1
    assert result.history[-1].log_upper == result.log_upper
    assert result.history[-1].log_lower == result.log_lower


def test_elimination_is_done_late_where_nothing_else_proves_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.bounds.quick.MOST_VARIABLES", 0)
    monkeypatch.setattr("powersum.bounds.corner.GROUPS", (0,))
    model = hard_case(9).model
    # Every sum is too wide and partial sums are not allowed; elimination seems to take longer than "at once".
    schedule = Schedule(quick=0.0, slice=0.01, first_stage=0.01, evaluation_cost=math.inf, most_variables=0, ibound=0)
    result = solve(model, time_limit=600.0, schedule=schedule)
    assert result.status is Status.OPTIMAL
    assert result.reason.startswith("Exact elimination, of constrained width")
    assert result.notes == ()
    assert result.log_lower == pytest.approx(exact_value(model, np.ones(model.n_variables)), abs=1e-9)


def test_optimal_on_a_very_large_model_has_both_bounds() -> None:
    """Rounding is counted for the whole model, and once was too much for an upper bound beside «optimal»."""
    length = 20_000
    chain = [((0,), [0.3, 0.7]), *(((v - 1, v), [[0.9, 0.1], [0.4, 0.6]]) for v in range(1, length))]
    model = Model.from_factors([2] * length, chain, directed=True)
    result = solve(model, [1], evidence={0: 1})
    assert result.status is Status.OPTIMAL
    assert result.log_lower <= math.log(0.7 * 0.6) <= result.log_upper
    assert result.gap < 1e-4


def test_optimal_says_which_tolerance_it_keeps() -> None:
    """Rounding of 20,000 tables and values near 2e6 keep the bounds more than 1e-6 apart."""
    tables = 100.0 + 100.0 * np.random.default_rng(0).standard_normal((20_000, 3))
    model = ps.Model.from_factors([3], [((0,), table) for table in tables], log=True)
    truth = float(tables.astype(np.longdouble).sum(axis=0).max())
    for result in (ps.solve(model, "all"), ps.bound(model, "all"), ps.Engine(model).solve("all")):
        assert result.status is ps.Status.OPTIMAL
        assert result.log_lower <= truth <= result.log_upper
        assert 1e-6 < result.gap <= 1e-8 * truth
        said = re.search(r"Proven to (\S+), (\S+) of the log value: rounding", result.reason)
        assert said is not None
        assert float(said[1]) == pytest.approx(result.gap, rel=0.5)
        assert float(said[2]) == pytest.approx(result.gap / truth, rel=0.5)


@pytest.mark.parametrize("call", [ps.solve, ps.bound, lambda model, query: ps.Engine(model).solve(query)])
def test_an_exact_value_of_large_terms_is_no_proof(call: Callable[..., ps.Result]) -> None:
    """Terms of 1e12 cancel: what is left of them is known to 1e-3 only."""
    model = ps.Model.from_factors([2], [((0,), [2.0**40] * 2), ((0,), [0.5 - 2.0**40, -(2.0**40)])], log=True)
    result = call(model, "all")
    assert result.status is ps.Status.BOUNDED
    assert result.log_lower <= 0.5 <= result.log_upper
    assert result.gap > 1e-4
    assert "nothing is proven" in result.reason


def test_what_is_no_schedule_is_refused_in_one_line() -> None:
    with pytest.raises(ps.InputError, match="schedule is 3: give a"):
        ps.solve(ps.Model.from_tables({"a": [0.5, 0.5]}), ["a"], schedule=cast(Any, 3))
