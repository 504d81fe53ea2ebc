"""``solve`` where the sum over what is not maximised is too wide: bounds hold, and sums without loss are proofs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from powersum.assign.cutset import hold_cutset
from powersum.assign.evaluator import Evaluator
from powersum.assign.regions import TOO_WIDE
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.model.query import Query
from powersum.model.result import Status
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.run.solver import Solver, solve
from powersum.run.tuning import Schedule
from powersum.sums.passes import SumPasses
from tests.cases import hard_case
from tests.oracle import assignment_value, exact_value

ANYTIME = Schedule(elimination_cost=1e3)
"""No elimination is quick enough."""


@pytest.fixture
def _nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sum is too wide, whatever the memory."""

    def value(self: Evaluator, assignment: IntArray, work_limit: float = np.inf) -> float:
        return TOO_WIDE

    monkeypatch.setattr("powersum.assign.evaluator.Evaluator.value", value)


@pytest.mark.usefixtures("_nothing_fits")
@pytest.mark.parametrize("seed", range(24))
def test_partition_functions(seed: int) -> None:
    model = hard_case(seed, zeros=[0.0, 0.2, 0.4, 0.6][seed % 4]).model
    result = solve(model, time_limit=300.0, schedule=replace(ANYTIME, slice=0.01))
    truth = exact_value(model, np.ones(model.n_variables))
    if truth == -math.inf:
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result.log_lower == pytest.approx(truth, abs=1e-6)
    assert result.log_upper == pytest.approx(truth, abs=1e-6)
    assert not result.assignment
    lowers = [snapshot.log_lower for snapshot in result.history]
    assert lowers == sorted(lowers)
    assert max(lowers) <= truth + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_what_is_too_wide_is_no_lower_bound(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Also with a cutset held some assignments may be too wide; their infinite value once was taken for a proof.
    original, calls = Evaluator.value, []

    def value(self: Evaluator, assignment: IntArray, work_limit: float = np.inf) -> float:
        calls.append(1)
        return TOO_WIDE if len(calls) <= 2 else original(self, assignment, work_limit)

    monkeypatch.setattr("powersum.assign.evaluator.Evaluator.value", value)
    question = hard_case(seed)
    result = solve(question.model, weights=question.query, work=5.0, schedule=ANYTIME)
    truth = exact_value(question.model, question.query.weights)
    assert -math.inf < result.log_lower <= truth + 1e-9
    assert result.log_upper >= truth - 1e-9
    chosen = {int(name): int(state) for name, state in result.assignment.items()}
    assert assignment_value(question.model, chosen) >= result.log_lower - 1e-9


@pytest.mark.usefixtures("_nothing_fits")
def test_the_result_says_when_terms_are_left_out() -> None:
    # A first pass over little more than one possible configuration.
    schedule = replace(ANYTIME, slice=0.01, first_share=0.9)
    solver = Solver(hard_case(4).model, time_limit=300.0, schedule=schedule)
    for snapshot in solver:
        if -math.inf < snapshot.log_lower < snapshot.log_upper - 1e-6:
            (note,) = solver.result().notes
            # What is known at first is one term.
            assert "largest terms" in note or "largest known term" in note
            if "largest terms" in note:
                break
    else:
        pytest.fail("the first pass was exact")


@pytest.mark.parametrize("seed", range(4))
def test_very_many_variables_have_a_cutset_held_instead(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original, problems = Evaluator.value, []

    def value(self: Evaluator, assignment: IntArray, work_limit: float = np.inf) -> float:
        # Nothing is maximised in the question itself, only in what holds some variables.
        return original(self, assignment, work_limit) if self.is_max.any() else TOO_WIDE

    def hold(problem: Problem, **options: Any) -> Problem:
        problems.append(hold_cutset(problem, **options))
        return problems[-1]

    monkeypatch.setattr("powersum.assign.evaluator.Evaluator.value", value)
    monkeypatch.setattr("powersum.run.workers.local_search.hold_cutset", hold)
    model = hard_case(seed).model
    solver = Solver(model, time_limit=600.0, schedule=replace(ANYTIME, most_variables=1, held_table=8.0))
    for _ in solver:
        if problems and solver.result().notes and "lower bound on the value" in solver.result().notes[0]:
            solver.interrupt("There is a lower bound.")
    result = solver.result()
    assert result.reason == "There is a lower bound."
    assert "lower bound on the value" in result.notes[0]
    # It is the sum with some variables held, which is less than the whole by the others' terms.
    held = problems[0]
    assert 0 < (held.tau == 0.0).sum() < len(held.tau)
    truth = exact_value(model, np.ones(model.n_variables))
    assert result.log_lower <= held.log_constant + exact_value(held.model, held.tau) + 1e-9
    assert result.log_lower < truth - 1e-3
    assert result.log_upper >= truth - 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_passes_stay_within_their_memory(seed: int) -> None:
    model = hard_case(seed, zeros=0.2 * (seed % 2)).model
    problem = simplify(model, Query(np.ones(model.n_variables)), {})
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    passes = SumPasses(problem, tree, memory=0.0, first_share=1e-9)
    while passes.run(math.inf, math.inf) is Progress.MORE:
        pass
    # The least that passes are given is a thousand arcs; what is under way when these are full is finished.
    assert passes.sum.n_arcs < 4000
    truth = exact_value(problem.model, problem.tau)
    assert passes.sum.log_lower <= truth + 1e-9
    assert passes.sum.log_upper >= truth - 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_variational_sums_alone_hold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums by Jensen's inequality beside a held cutset: below the truth, and below the value of their assignment."""
    original = Evaluator.value

    def value(self: Evaluator, assignment: IntArray, work_limit: float = np.inf) -> float:
        # A finite limit of work is asked for once, when it is judged whether sums are too wide.
        return TOO_WIDE if work_limit < np.inf else original(self, assignment, work_limit)

    monkeypatch.setattr("powersum.assign.evaluator.Evaluator.value", value)
    monkeypatch.setattr("powersum.run.workers.partial_sums.PartialSums.begin", lambda self, ends: False)
    question = hard_case(seed, zeros=0.2 * (seed % 2))
    schedule = replace(ANYTIME, held_table=2.0, tighten=False, variational_share=1.0, first_stage=0.05)
    result = solve(question.model, weights=question.query, work=0.5, schedule=schedule)
    truth = exact_value(question.model, question.query.weights)
    assert result.log_lower <= truth <= result.log_upper
    if result.assignment:
        chosen = {int(name): int(state) for name, state in result.assignment.items()}
        assert result.log_lower <= assignment_value(question.model, chosen) + 1e-12
