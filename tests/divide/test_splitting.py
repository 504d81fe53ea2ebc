"""Splitting: the largest bound of all boxes holds at every moment, ends at the optimum, and can be proven."""

from __future__ import annotations

import math
import pickle
from functools import cache, partial
from itertools import count, islice
from typing import Any

import numpy as np
import pytest

import powersum as ps
import powersum_check as pc
from powersum.assign.evaluator import Evaluator
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.descent import Curvature
from powersum.bounds.tree.remnant import places_within, remnant_of, tree_at
from powersum.core import work_time as time
from powersum.core.progress import Progress
from powersum.divide.gains import MOST_GAIN, Gains
from powersum.divide.splitting import Splitting
from powersum.divide.tree_boxes import BoxTrees, TreeBox
from powersum.model.query import Query
from powersum.model.question import Question
from powersum.prepare.fewer_states import with_states
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.proof.certificate import certificate_of, ground_of
from powersum.run.lending import search_lent, split_lent
from powersum.run.proofs import by_splitting
from powersum.run.tuning import Schedule
from powersum.run.workers import splits
from powersum.run.workers.splits import Splits
from tests.cases import Case, bushy_case, case, hard_case
from tests.check.helpers import to_check
from tests.oracle import exact_value
from tests.proof.test_conditioning import saved

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


@cache
def cases() -> list[Case]:
    """Questions that there is something to split in."""
    hard = (hard_case(seed, zeros=0.15 * (seed % 3)) for seed in count())
    bushy = (bushy_case(seed) for seed in count())
    return [*islice(filter(splits_something, hard), 12), *islice(filter(splits_something, bushy), 6)]


def splits_something(asked: Case, ibound: int = 1) -> bool:
    problem = asked.problem()
    some = problem.feasible and problem.model.n_variables > 0
    return some and splitting_of(problem, ibound=ibound) is not None


def of(asked: Case, **options: Any) -> Splitting:
    """A splitting of a question that there is something to split in."""
    splitting = splitting_of(asked.problem(), **options)
    assert splitting is not None
    return splitting


@pytest.mark.parametrize("search", [0.0, 1e-4])
@pytest.mark.parametrize("number", range(18))
def test_every_bound_on_the_way_holds_and_the_end_is_the_optimum(number: int, search: float) -> None:
    """Also where two of three boxes are searched before they are split."""
    splitting = of(cases()[number])
    truth = exact_value(splitting.problem.model, splitting.problem.tau)
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
    places = places_within(left, len(best.best_point), problem.model.cardinalities, alive)
    small = tree_at(left, inside, best.best_point[places], threads=1)
    seen = best.curvature(3)
    if seen is not None:
        small.begin_with(Curvature(*(rows[:, places] for rows in seen)))
    assert small.log_upper <= best.log_upper + ROUNDING
    assert small.log_upper >= exact_value(inside.model, inside.tau) - ROUNDING
    for _ in range(3):
        small.step(np.inf)
    assert small.bound() >= exact_value(inside.model, inside.tau) - ROUNDING


def question_of(asked: Case) -> Question:
    return Question.of(asked.model, evidence=asked.evidence, weights=asked.query)


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
    splitting = of(asked, keeps_all=True)
    for _ in range(turns):
        splitting.run(-math.inf, math.inf)
    found, claimed = verified(asked, splitting)
    truth = exact_value(asked.model, asked.query.weights, evidence=asked.evidence)
    assert truth - ROUNDING <= found <= claimed + 1e-9


def test_no_memory_ends_it_with_a_bound() -> None:
    splitting = of(hard_case(1), memory=0.0)
    before = splitting.log_upper
    assert splitting.run(math.inf, math.inf) is Progress.DONE
    assert not splitting.done
    assert splitting.log_upper == before


def test_no_time_ends_it_with_a_bound() -> None:
    splitting = of(hard_case(1))
    assert splitting.run(math.inf, time.monotonic()) is Progress.OUT_OF_TIME
    assert not splitting.done


def test_a_value_from_elsewhere_closes_boxes() -> None:
    splitting = of(hard_case(2))
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

    # The corner bound is exact for so few variables: nothing would be left to split.
    monkeypatch.setattr("powersum.run.work.corner_of", lambda *_: None)
    monkeypatch.setattr(Splits, "begin", noted)
    monkeypatch.setattr(splits, "LEAST_BOXES", 0)
    for seed in range(6):
        asked = hard_case(seed)
        ps.solve(asked.model, maximize=np.flatnonzero(asked.query.weights == 0.0).tolist(), work=3.0, schedule=FORCED)
    assert len(began) >= 3


@cache
def any_cases() -> list[Case]:
    """Small ones of all kinds: few have something to split in."""
    return list(islice(filter(partial(splits_something, ibound=0), map(case, count())), 30))


@pytest.mark.parametrize("number", range(30))
def test_of_all_kinds_of_questions(number: int) -> None:
    splitting = of(any_cases()[number], ibound=0)
    assert splitting.run(time.monotonic() + 20.0, math.inf) is Progress.DONE
    assert splitting.log_upper == pytest.approx(exact_value(splitting.problem.model, splitting.problem.tau), abs=1e-8)


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


def bring_back(splitting: Splitting, box: TreeBox, *, lost: bool) -> None:
    """What another process would make of a box that was lent."""
    trees, there = pickle.loads(pickle.dumps((splitting.trees, box)))
    assert isinstance(trees, BoxTrees)
    if box.variable >= 0:
        splitting.take_parts(box, None if lost else split_lent(trees, there, math.inf))
        return
    known = splitting.log_lower, splitting.log_error
    splitting.take_search(box, search_lent(trees, there, *known, 1e-4, splitting.search_bytes))


@pytest.mark.parametrize("search", [0.0, 1e-4])
@pytest.mark.parametrize("number", range(18))
def test_boxes_that_others_work_on(number: int, search: float) -> None:
    """Whenever they come back, and however many are out: every bound holds, and the end is the optimum."""
    splitting, rng = of(cases()[number]), np.random.default_rng(number)
    truth = exact_value(splitting.problem.model, splitting.problem.tau)
    before, turns, lent = math.inf, 0, []
    while not splitting.done and turns < 5000:
        if (box := splitting.lend(searches=search > 0.0)) is not None:
            lent.append(box)
        if lent and (splitting.waits or rng.random() < 0.5):
            bring_back(splitting, lent.pop(int(rng.integers(len(lent)))), lost=rng.random() < 0.2)
        else:
            splitting.run(-math.inf, math.inf, search=search)
        assert splitting.log_lower - ROUNDING <= truth <= splitting.log_upper + ROUNDING
        assert splitting.log_upper <= before
        before, turns = splitting.log_upper, turns + 1
    assert splitting.done
    assert not lent
    assert splitting.log_upper == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize("number", range(18))
def test_boxes_that_are_all_left_to_others(number: int) -> None:
    splitting, rng = of(cases()[number]), np.random.default_rng(number)
    truth = exact_value(splitting.problem.model, splitting.problem.tau)
    lent: list[TreeBox] = []
    while splitting.leave_to_others() is Progress.MORE:
        while (box := splitting.lend(searches=False, spared=False)) is not None:
            lent.append(box)
        bring_back(splitting, lent.pop(int(rng.integers(len(lent)))), lost=rng.random() < 0.2)
        assert splitting.log_lower - ROUNDING <= truth <= splitting.log_upper + ROUNDING
    assert splitting.done
    assert splitting.log_upper == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize("number", range(0, 18, 3))
def test_boxes_that_never_come_back_keep_the_bound_up(number: int) -> None:
    splitting = of(cases()[number], keeps_all=True)
    truth = exact_value(splitting.problem.model, splitting.problem.tau)
    while (gone := splitting.lend(searches=False)) is None and not splitting.done:
        splitting.run(-math.inf, math.inf)
    for _ in range(200):
        splitting.run(-math.inf, math.inf)
    assert gone is None or not splitting.done
    assert splitting.log_upper >= max(truth - ROUNDING, -math.inf if gone is None else gone.log_upper)
    found, claimed = verified(cases()[number], splitting)
    assert truth + splitting.problem.log_constant - ROUNDING <= found <= claimed + 1e-9


@pytest.mark.parametrize("number", range(18))
def test_what_others_have_split_can_be_proven(number: int) -> None:
    asked = cases()[number]
    splitting = of(asked, keeps_all=True)
    for turn in range(60):
        box = splitting.lend(searches=False)
        if box is not None:
            bring_back(splitting, box, lost=turn % 5 == 4)
        splitting.run(-math.inf, math.inf)
    found, claimed = verified(asked, splitting)
    truth = exact_value(asked.model, asked.query.weights, evidence=asked.evidence)
    assert truth - ROUNDING <= found <= claimed + 1e-9


def hidden_zero() -> Case:
    """With x0 = 1, three sum variables are to be equal and not equal: propagation does not see it."""
    alike, other = np.eye(2), 1.0 - np.eye(2)
    rng = np.random.default_rng(5)
    factors: list[tuple[list[int], Any]] = [
        ([0, 3, 4], np.stack([rng.random((2, 2)) + 0.1, alike])),
        ([0, 4, 5], np.stack([rng.random((2, 2)) + 0.1, alike])),
        ([0, 3, 5], np.stack([rng.random((2, 2)) + 0.1, other])),
    ]
    factors += [([a, b], rng.random((2, 2)) + 0.1) for a in (0, 1, 2) for b in (3, 4, 5)]
    factors += [([1, 2], rng.random((2, 2)) + 0.1), ([0], np.array([0.1, 0.9]))]
    return Case(ps.Model.from_factors([2] * 6, factors), Query(np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])), {})


def test_a_box_that_only_evaluation_shows_to_be_empty_is_proven() -> None:
    asked = hidden_zero()
    splitting = of(asked, ibound=0, keeps_all=True)
    splitting.run(math.inf, math.inf)
    assert splitting.done
    nothing = [box for box, _ in splitting.boxes() if not box.parts and box.log_upper == -math.inf]
    assert any(not splitting.is_empty(box) for box in nothing)
    found, claimed = verified(asked, splitting)
    truth = exact_value(asked.model, asked.query.weights)
    assert truth - ROUNDING <= found <= claimed + 1e-9
    assert found == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize(("memory", "without"), [(1e9, False), (3e4, True)])
def test_open_boxes_keep_their_curvature_as_long_as_there_is_room(memory: float, without: bool) -> None:
    """What open boxes hold is counted, also where some have had to do without; nobody else keeps any."""
    lacking = set()
    for number in range(12, 18):
        splitting = of(cases()[number], memory=memory)
        while splitting.run(-math.inf, math.inf) is Progress.MORE:
            held = [*splitting._frontier, *splitting._frontier.lent]
            assert splitting._held == sum(box.n_bytes for box in held)
            lacking |= {box.curvature is None for box in held if box is not splitting.root}
            for box, _ in splitting.boxes():
                assert box.curvature is None or any(box is one for one in held)
    assert lacking == ({False, True} if without else {False})
