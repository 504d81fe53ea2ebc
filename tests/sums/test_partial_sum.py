"""Partial sums: never beyond the truth on either side, and the truth itself where nothing is dropped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.look_up import Heuristic, heuristic_of
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.fates import Fates
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.sums.kernels import add_up, hand_over
from powersum.sums.partial_sum import PartialSum
from powersum.sums.wiring import Handover, SumBucket, buckets_of, key_of
from tests.cases import hard_case
from tests.oracle import assignment_value, exact_value, joint_log_table

SHARES = (0.9, 0.2, 0.05, 0.005, 0.0)


def bounds_of_tree(problem: Problem, ibound: int, rounds: int = 2) -> tuple[Heuristic, float]:
    """The heuristic of a small tree, for all variables."""
    order = elimination_order(problem.model, problem.tau)
    tree = CoveringTree(problem, order, ibound=ibound)
    for _ in range(rounds):
        tree.step(math.inf)
    return heuristic_of(tree.best_tree, problem, sums=True)


def a_sum(seed: int) -> Problem | None:
    """A random log partition function with or without zeros; None where simplification settles it."""
    question = hard_case(seed, zeros=[0.0, 0.2, 0.4, 0.6][seed % 4])
    problem = simplify(question.model, Query(np.ones(question.model.n_variables)), {})
    return problem if problem.feasible and problem.model.n_variables else None


def one_pass(partial: PartialSum, least_share: float) -> None:
    """A whole pass."""
    partial.begin(least_share)
    assert partial.run(math.inf) is Progress.DONE


@pytest.mark.parametrize("seed", range(200))
def test_bounds_hold_and_meet_where_nothing_is_dropped(seed: int) -> None:
    problem = a_sum(seed)
    if problem is None:
        return
    truth = exact_value(problem.model, problem.tau)
    heuristic, log_upper = bounds_of_tree(problem, ibound=1 + seed % 3)
    for least_share in SHARES:
        partial = PartialSum(problem.model, heuristic, log_upper)
        one_pass(partial, least_share)
        assert partial.log_lower <= truth + 1e-9
        assert truth - 1e-9 <= partial.log_upper <= log_upper + 1e-9
        if partial.exact:
            assert partial.log_lower == partial.log_upper == pytest.approx(truth, abs=1e-9)
    assert partial.exact


@pytest.mark.parametrize("seed", range(40))
def test_passes_keep_the_best_bounds(seed: int) -> None:
    problem = a_sum(seed)
    if problem is None:
        return
    heuristic, log_upper = bounds_of_tree(problem, ibound=2)
    partial = PartialSum(problem.model, heuristic, log_upper)
    lowers, uppers = [], []
    for least_share in (0.01, 0.5, 0.001):
        one_pass(partial, least_share)
        lowers.append(partial.log_lower)
        uppers.append(partial.log_upper)
    assert lowers == sorted(lowers)
    assert uppers == sorted(uppers, reverse=True)


@pytest.mark.parametrize("seed", range(60))
def test_value_of_an_assignment_of_the_max_variables(seed: int) -> None:
    problem = hard_case(seed, zeros=[0.0, 0.2][seed % 2]).problem()
    if not problem.feasible or not problem.model.n_variables:
        return
    heuristic, log_upper = bounds_of_tree(problem, ibound=2)
    rng = np.random.default_rng(seed)
    is_max = problem.tau == 0.0
    given = np.where(is_max, rng.integers(problem.model.cardinalities), -1)
    truth = assignment_value(problem.model, {int(v): int(given[v]) for v in np.flatnonzero(is_max)})
    for least_share in SHARES:
        partial = PartialSum(problem.model, heuristic, log_upper, given=given)
        one_pass(partial, least_share)
        assert partial.log_lower <= truth + 1e-9
        assert partial.log_upper >= truth - 1e-9
    assert partial.log_lower == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_an_anchor_is_always_part_of_the_sum(seed: int) -> None:
    problem = a_sum(seed)
    if problem is None:
        return
    joint = joint_log_table(problem.model)
    possible = np.argwhere(joint > -np.inf)
    if not len(possible):
        return
    anchor = possible[np.random.default_rng(seed).integers(len(possible))]
    heuristic, log_upper = bounds_of_tree(problem, ibound=1)
    partial = PartialSum(problem.model, heuristic, log_upper, anchor=anchor)
    # No share is 2: only the anchor is left, with all states of those variables that nothing depends on.
    one_pass(partial, 2.0)
    assert joint[tuple(anchor)] - 1e-9 <= partial.log_lower <= exact_value(problem.model, problem.tau) + 1e-9


def test_several_components_and_constants() -> None:
    rng = np.random.default_rng(1)
    pairs = [((0, 1), rng.random((2, 3))), ((2, 3), rng.random((2, 2))), ((), 0.25)]
    model = Model.from_factors([2, 3, 2, 2], pairs)
    problem = Problem(
        model, np.ones(4), 0.0, 0.0, np.arange(4), np.zeros(5, np.int64), np.zeros(0, np.int64), np.full(4, -1),
        np.array([0, 0, 1, 1]), np.ones(4), np.ones(9, np.bool_), Fates.of(model),
    )  # fmt: skip
    heuristic, log_upper = bounds_of_tree(problem, ibound=3)
    partial = PartialSum(model, heuristic, log_upper)
    one_pass(partial, 0.0)
    assert partial.log_lower == pytest.approx(exact_value(model, np.ones(4)), abs=1e-12)


def test_a_pass_is_taken_up_where_time_ended() -> None:
    problem = a_sum(0)
    assert problem is not None
    heuristic, log_upper = bounds_of_tree(problem, ibound=2)
    whole = PartialSum(problem.model, heuristic, log_upper)
    one_pass(whole, 0.01)
    piecewise = PartialSum(problem.model, heuristic, log_upper)
    piecewise.begin(0.01)
    assert piecewise.run(time.monotonic() - 1.0) is Progress.MORE
    assert piecewise.log_lower == -math.inf
    assert piecewise.run(math.inf) is Progress.DONE
    assert (piecewise.log_lower, piecewise.n_arcs) == (whole.log_lower, whole.n_arcs)


def star(n_leaves: int, rng: np.random.Generator) -> Problem:
    """A variable with very many neighbours: eliminated first, its bucket has contexts of many words."""
    cards = [3, *rng.integers(2, 6, n_leaves).tolist()]
    model = Model.from_factors(cards, [((0, k), rng.random((3, cards[k]))) for k in range(1, n_leaves + 1)])
    return simplify(model, Query(np.ones(n_leaves + 1)), {})


def test_keys_of_several_words() -> None:
    rng = np.random.default_rng(3)
    problem = star(90, rng)
    order = np.arange(problem.model.n_variables)
    tree = CoveringTree(problem, order, ibound=1)
    heuristic, log_upper = heuristic_of(tree.best_tree, problem, sums=True)
    buckets, _ = buckets_of(problem.model, heuristic)
    assert max(bucket.n_words for bucket in buckets) > 2
    for _ in range(5):
        states = rng.integers(problem.model.cardinalities)
        for bucket in buckets:
            for child in bucket.children:
                assert handed_over(bucket, child, states) == key_of(buckets[child.child], states).tolist()
    anchor: IntArray = np.zeros(problem.model.n_variables, dtype=np.int64)
    partial = PartialSum(problem.model, heuristic, log_upper, anchor=anchor)
    one_pass(partial, 0.1)
    leaves = [np.log(np.exp(log_table).sum(axis=1)) for _, log_table in problem.model.factors()]
    truth = float(np.log(np.exp(np.sum(leaves, axis=0)).sum()))
    assert -math.inf < partial.log_lower <= truth <= partial.log_upper


def handed_over(bucket: SumBucket, child: Handover, states: IntArray) -> list[int]:
    """Key of a child's context by way of the kernel."""
    found = np.zeros((2, child.n_words), dtype=np.int64)
    hand_over(
        key_of(bucket, states)[None, :],
        np.zeros(1, dtype=np.int32),
        states[[bucket.variable]].astype(np.int32),
        np.ones(1),
        child.runs,
        child.own_word,
        child.own_shift,
        np.full(4, -1, dtype=np.int32),
        found,
        np.empty(1),
        np.empty(1, dtype=np.int32),
    )
    return [int(word) for word in found[0]]


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_a_pass_that_is_too_slow_drops_more_and_stays_a_bound(seed: int) -> None:
    problem = a_sum(seed)
    assert problem is not None
    truth = exact_value(problem.model, problem.tau)
    heuristic, log_upper = bounds_of_tree(problem, ibound=1)
    shares = []
    for allowed in (math.inf, 1e-9):
        partial = PartialSum(problem.model, heuristic, log_upper)
        # Time counts work: it does not depend on the machine.
        with time.counted_by(time.Meter()):
            for least_share in (1e-2, 1e-5):
                partial.begin(least_share, seconds=allowed)
                assert partial.run(math.inf) is Progress.DONE
                assert partial.log_lower <= truth + 1e-9
                assert partial.log_upper >= truth - 1e-9
        shares.append(partial.least_share)
    assert shares[0] == 1e-5
    assert shares[1] > 1e-5


def test_the_rounding_of_a_sum_does_not_grow_with_its_arcs() -> None:
    """Elimination counts some units a state and bucket, but a context may have the arcs of many buckets."""
    values = np.concatenate([[0.0], np.full(2_000_000, math.log(2.0**-54))])
    log_sums, ratios = np.full(1, -math.inf), np.zeros(1)
    add_up(np.zeros(len(values), dtype=np.int32), values, np.zeros(len(values)), log_sums, ratios)
    truth = math.log1p(math.fsum(math.exp(v) for v in values[1:]))
    assert log_sums[0] == pytest.approx(truth, rel=0.0, abs=2.0**-51)
