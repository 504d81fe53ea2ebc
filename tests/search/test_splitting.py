"""Splitting: the largest bound of all boxes holds at every moment, ends at the optimum, and can be proven."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.answer.certificate import certificate_of, ground_of
from powersum.answer.proofs import by_splitting
from powersum.answer.tuning import Schedule
from powersum.answer.workers import splits
from powersum.answer.workers.splits import Splits
from powersum.assign.evaluator import Evaluator
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.remnant import point_within, remnant_of, tree_at
from powersum.core import work_time as time
from powersum.core.progress import Progress
from powersum.model.query import Query
from powersum.model.question import Question
from powersum.prepare.fewer_states import with_states
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.search.gains import MOST_GAIN, Gains
from powersum.search.splitting import Splitting
from tests.cases import Case, bushy_case, case, hard_case
from tests.check.helpers import to_check
from tests.exact.test_count_proof import saved
from tests.oracle import exact_value

ROUNDING = 1e-10
"""The oracle has a rounding of its own."""


def splitting_of(problem: Problem, *, rounds: int = 1, ibound: int = 1, **options: Any) -> Splitting | None:
    """A splitting that knows a poor assignment; None where the tree is exact or there is nothing to split by."""
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=ibound)
    for _ in range(rounds):
        tree.step(np.inf)
    evaluator = Evaluator(problem, memory=2e7)
    start, value, rng = np.zeros(0, dtype=np.int64), -math.inf, np.random.default_rng(0)
    for _ in range(100):
        if value == -math.inf:
            start = np.where(evaluator.is_max, rng.integers(problem.model.cardinalities), -1)
            value = evaluator.value(start)
    if tree.exact or not evaluator.is_max.any() or not math.isfinite(value):
        return None
    return Splitting(problem, tree.best_tree, evaluator, log_lower=value, assignment=start, **options)


def cases() -> list[Case]:
    return [hard_case(seed, zeros=0.15 * (seed % 3)) for seed in range(12)] + [bushy_case(seed) for seed in range(6)]


@pytest.mark.parametrize("search", [0.0, 1e-4])
@pytest.mark.parametrize("number", range(18))
def test_every_bound_on_the_way_holds_and_the_end_is_the_optimum(number: int, search: float) -> None:
    """Also where two of three boxes are searched before they are split."""
    asked = cases()[number]
    problem = asked.problem()
    splitting = splitting_of(problem)
    if splitting is None:
        pytest.skip("exact at once")
    truth = exact_value(problem.model, problem.tau)
    before, turns = math.inf, 0
    while not splitting.done and turns < 5000:
        # A deadline that is over: one piece of work at a time.
        splitting.run(-math.inf, math.inf, search=search if turns % 3 else 0.0)
        assert splitting.log_lower - ROUNDING <= truth <= splitting.log_upper + ROUNDING
        assert splitting.log_upper <= before
        before, turns = splitting.log_upper, turns + 1
    assert splitting.done
    assert splitting.log_upper == pytest.approx(truth, abs=1e-8)
    assert splitting.log_lower == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize("number", range(18))
def test_a_tree_over_fewer_states_begins_below_the_whole(number: int) -> None:
    """Each bound at the inherited point is at most that of the box around, and bounds what is left."""
    problem = cases()[number].problem()
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=1)
    tree.step(np.inf)
    left, best = remnant_of(tree.best_tree), tree.best_tree
    rng = np.random.default_rng(number)
    alive = rng.random(int(problem.model.cardinalities.sum())) < 0.7
    starts = np.concatenate([[0], np.cumsum(problem.model.cardinalities)])
    alive[starts[:-1] + rng.integers(problem.model.cardinalities)] = True
    inside = with_states(problem, alive)
    point = point_within(left, best.best_point, problem.model.cardinalities, alive)
    small = tree_at(left, inside, point, threads=1)
    assert small.log_upper <= best.log_upper + ROUNDING
    assert small.log_upper >= exact_value(inside.model, inside.tau) - ROUNDING
    for _ in range(3):
        small.step(np.inf)
    assert small.bound() >= exact_value(inside.model, inside.tau) - ROUNDING


def question_of(asked: Case) -> Question:
    return Question.of(asked.model, evidence=asked.evidence, query=asked.query)


def verified(asked: Case, splitting: Splitting) -> tuple[float, float]:
    """The bound that the checker finds in the proof of a splitting, and the one that the proof claims."""
    question = question_of(asked)
    ground = ground_of(question, asked.problem())
    proof = by_splitting(ground, splitting)
    bound = certificate_of(question, ground, proof, log_lower=-math.inf, log_upper=proof.log_upper)
    again = pc.Question(tuple(asked.query.weights.tolist()), asked.evidence)
    found = saved(bound, lambda path: pc.check(to_check(asked.model), again, path))
    return found.log_upper, proof.log_upper


@pytest.mark.parametrize("turns", [3, 40, 5000])
@pytest.mark.parametrize("number", range(18))
def test_what_was_split_so_far_can_be_proven(number: int, turns: int) -> None:
    asked = cases()[number]
    splitting = splitting_of(asked.problem(), keeps_all=True)
    if splitting is None:
        pytest.skip("exact at once")
    for _ in range(turns):
        splitting.run(-math.inf, math.inf)
    found, claimed = verified(asked, splitting)
    truth = exact_value(asked.model, asked.query.weights, evidence=asked.evidence)
    assert truth - ROUNDING <= found <= claimed + 1e-9


def test_no_memory_ends_it_with_a_bound() -> None:
    splitting = splitting_of(hard_case(1).problem(), memory=0.0)
    assert splitting is not None
    before = splitting.log_upper
    assert splitting.run(math.inf, math.inf) is Progress.DONE
    assert not splitting.done
    assert splitting.log_upper == before


def test_no_time_ends_it_with_a_bound() -> None:
    splitting = splitting_of(hard_case(1).problem())
    assert splitting is not None
    assert splitting.run(math.inf, time.monotonic()) is Progress.OUT_OF_TIME
    assert not splitting.done


def test_a_value_from_elsewhere_closes_boxes() -> None:
    problem = hard_case(2).problem()
    splitting = splitting_of(problem)
    assert splitting is not None
    splitting.offer(splitting.log_upper + 1.0, splitting.assignment)
    assert splitting.run(math.inf, math.inf) is Progress.DONE
    assert splitting.done


def test_variables_are_judged_by_what_they_have_gained() -> None:
    gains = Gains(np.array([3.0, 2.0, 1.0, 9.0]))
    eligible = np.array([True, True, True, False])
    assert gains.best(eligible) == 0
    gains.learn(0, [0.0, 0.0])
    gains.learn(1, [1.0, math.inf])
    assert gains.best(eligible) == 1
    gains.learn(2, [MOST_GAIN, math.inf])
    assert gains.best(eligible) == 2


FORCED = Schedule(
    elimination_cost=1e3, look_first=False, ibound=0, search_trial=0.0, nearly=0.0, last_stage=0.0, last_tightening=1e-4
)
"""Nothing is eliminated at once, trees are loose, and search splits from the beginning, in one stage."""


@pytest.mark.parametrize("seed", range(20))
def test_solve_by_splitting_proves_what_brute_force_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hard_case(seed, zeros=0.1 * (seed % 3))
    maximize = np.flatnonzero(asked.query.weights == 0.0).tolist()
    monkeypatch.setattr(splits, "LEAST_BOXES", 0)
    result = ps.solve(asked.model, maximize=maximize, work=3.0, certificate=True, schedule=FORCED)
    truth = exact_value(asked.model, asked.query.weights)
    assert result.log_lower - ROUNDING <= truth <= result.log_upper + ROUNDING
    assert result.certificate is not None
    assert result.status == ("optimal" if truth > -math.inf else "infeasible")
    proven = saved(result.certificate, lambda path: pc.check(to_check(asked.model), None, path))
    assert proven.log_upper == pytest.approx(result.log_upper, abs=1e-6)
    assert proven.log_upper >= truth - ROUNDING


def test_that_solve_by_splitting_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would say nothing."""
    began: list[float] = []
    begin = Splits.begin

    def noted(worker: Splits, ends: float) -> None:
        began.append(ends)
        begin(worker, ends)

    monkeypatch.setattr(Splits, "begin", noted)
    monkeypatch.setattr(splits, "LEAST_BOXES", 0)
    for seed in range(6):
        asked = hard_case(seed)
        ps.solve(asked.model, maximize=np.flatnonzero(asked.query.weights == 0.0).tolist(), work=3.0, schedule=FORCED)
    assert len(began) >= 3


@pytest.mark.parametrize("seed", range(30))
def test_of_all_kinds_of_questions(seed: int) -> None:
    asked = case(seed)
    problem = asked.problem()
    if not problem.feasible or problem.model.n_variables == 0:
        pytest.skip("nothing is left")
    splitting = splitting_of(problem, ibound=0)
    if splitting is None:
        pytest.skip("exact at once")
    assert splitting.run(time.monotonic() + 20.0, math.inf) is Progress.DONE
    assert splitting.log_upper == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-8)


def test_weights_between_stay_what_they_are() -> None:
    """Only max variables are split, whatever the weights of the others."""
    asked = hard_case(3)
    weights = np.where(asked.query.weights > 0.0, 0.5, 0.0)
    problem = Case(asked.model, Query(weights), {}).problem()
    splitting = splitting_of(problem)
    assert splitting is not None
    splitting.run(time.monotonic() + 20.0, math.inf)
    order = elimination_order(problem.model, problem.tau)
    assert splitting.log_upper >= exact_value(problem.model, problem.tau, order=order.tolist()) - ROUNDING
