"""Values of assignments, propagation of zeros, regions, held cutsets: all against brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from powersum.assign.cutset import hold_cutset
from powersum.assign.evaluator import Evaluator
from powersum.assign.kept_orders import KeptOrder
from powersum.assign.regions import TOO_WIDE
from powersum.assign.supports import Queue, Supports, new_queue, propagate, push
from powersum.core.arrays import IntArray
from powersum.core.jit import compiled
from powersum.generate import grid
from powersum.model.factors import Factors
from powersum.model.query import Query
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from tests.cases import case, hard_case
from tests.oracle import assignment_value, exact_value, joint_log_table


def values_are_right(problem: Problem, evaluator: Evaluator, count: int, seed: int) -> None:
    """Of so many random assignments, against brute force."""
    model, rng = problem.model, np.random.default_rng(seed)
    chosen = np.flatnonzero(evaluator.is_max)
    for _ in range(count):
        states = np.full(model.n_variables, -1)
        states[chosen] = rng.integers(model.cardinalities[chosen])
        truth = assignment_value(model, {int(v): int(states[v]) for v in chosen})
        assert evaluator.value(states) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("seed", range(120))
def test_value_of_random_assignments(seed: int) -> None:
    problem = case(seed).problem()
    values_are_right(problem, Evaluator(problem, memory=2e7), 5, seed)


@pytest.mark.parametrize("seed", range(60))
def test_orders_that_are_kept_change_no_value(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where zeros leave some variables no choice in some assignments, and an order cannot be used."""
    monkeypatch.setattr("powersum.assign.evaluator.LEAST_ENTRIES", 0.0)
    problem = hard_case(seed, zeros=0.1 * (seed % 3)).problem()
    evaluator = Evaluator(problem, memory=2e7)
    values_are_right(problem, evaluator, 8, seed)
    if seed % 3 == 0:
        assert evaluator.n_components == 0 or evaluator._orders


def test_a_kept_order_gets_better_with_use_and_is_too_wide_where_its_tables_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("powersum.assign.evaluator.LEAST_ENTRIES", 0.0)
    # Variables are summed but for one row across the grid.
    model = grid(14, 14, seed=1).model
    problem = simplify(model, Query.of(model, list(range(7 * 14, 8 * 14))))
    evaluator = Evaluator(problem, memory=2e8)
    states = np.where(evaluator.is_max, 0, -1)
    values = {round(evaluator.value(states), 7)}
    (first, second) = (evaluator._orders[c] for c in (0, 1))
    before = [order_cost_of(kept) for kept in (first, second)]
    for _ in range(200):
        values.add(round(evaluator.value(states), 7))
    after = [order_cost_of(kept) for kept in (first, second)]
    assert len(values) == 1
    assert all(now <= then for now, then in zip(after, before, strict=True))
    assert sum(after) < sum(before)
    assert evaluator.component_value(0, states, work_limit=10.0) == TOO_WIDE


def order_cost_of(kept: KeptOrder) -> float:
    """Log of the table entries that an order takes."""
    return kept._tries.log2_total


@pytest.mark.parametrize("seed", range(40))
def test_a_region_is_what_its_variables_reach_through_sum_variables(seed: int) -> None:
    problem = case(seed).problem()
    model = problem.model
    evaluator = Evaluator(problem, memory=2e7)
    chosen = np.flatnonzero(evaluator.is_max)
    if not len(chosen):
        return
    free = np.random.default_rng(seed).choice(chosen, 2)
    variables, factors, _ = evaluator.region(free)
    scopes = [set(model.factor(f)[0]) for f in range(model.n_factors)]
    reached, touched = set(free.tolist()), set[int]()
    while True:
        more = {f for f, scope in enumerate(scopes) if scope & reached} - touched
        if not more:
            break
        touched |= more
        reached |= {v for f in more for v in scopes[f] if not evaluator.is_max[v]}
    assert sorted(variables.tolist()) == sorted(reached)
    assert sorted(factors.tolist()) == sorted(touched)


@pytest.mark.parametrize("seed", range(40))
def test_a_region_is_maximised_exactly(seed: int) -> None:
    problem = hard_case(seed, zeros=0.15 * (seed % 2)).problem()
    model = problem.model
    evaluator = Evaluator(problem, memory=2e7)
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(evaluator.is_max)
    states = np.full(model.n_variables, -1)
    states[chosen] = rng.integers(model.cardinalities[chosen])
    free = rng.permutation(chosen)[:3]
    variables, factors, parts = evaluator.region(free)
    best = -np.inf
    for values in itertools.product(*(range(int(model.cardinalities[v])) for v in free)):
        trial = states.copy()
        trial[free] = values
        best = max(best, assignment_value(model, {int(v): int(trial[v]) for v in chosen}))
    outside = [c for c in range(evaluator.n_components) if c not in parts.tolist()]
    rest = sum(evaluator.component_value(c, states) for c in outside)
    untouched = np.setdiff1d(np.arange(model.n_factors), factors)
    rest += evaluator.plain_value(states, untouched)
    before = states.copy()
    value = evaluator.maximise(states, variables, factors)
    assert value + rest == pytest.approx(best, abs=1e-9)
    if np.isfinite(value):
        assert evaluator.value(states) == pytest.approx(best, abs=1e-9)
    else:
        assert (states == before).all()


def test_too_wide_leaves_the_assignment_alone() -> None:
    problem = hard_case(3).problem()
    evaluator = Evaluator(problem, memory=2e7)
    states = np.where(evaluator.is_max, 0, -1)
    before = states.copy()
    variables, factors, _ = evaluator.region(np.flatnonzero(evaluator.is_max))
    assert evaluator.maximise(states, variables, factors, 2.0) == TOO_WIDE
    assert (states == before).all()
    assert np.isfinite(evaluator.maximise(states, variables, factors))


@compiled
def _propagate_all(factors: Factors, supports: Supports, alive: IntArray, sizes: IntArray, queue: Queue) -> bool:
    height: Any = np.int64(0)
    for f in range(len(supports.counts)):
        height = push(f, height, supports, queue)
    return propagate(height, factors, supports, alive, sizes, queue)


@pytest.mark.parametrize("seed", range(60))
def test_propagation_removes_no_possible_state(seed: int) -> None:
    problem = case(seed).problem()
    model = problem.model
    if not model.n_variables:
        return
    evaluator = Evaluator(problem, memory=2e7)
    rng = np.random.default_rng(seed)
    v = int(rng.integers(model.n_variables))
    s = int(rng.integers(model.cardinalities[v]))
    starts = evaluator.supports.state_starts
    alive = np.ones(int(starts[-1]), dtype=np.int64)
    alive[starts[v] : starts[v + 1]] = 0
    alive[starts[v] + s] = 1
    sizes = model.cardinalities.copy()
    sizes[v] = 1
    queue = new_queue(model)
    consistent = _propagate_all(evaluator.factors, evaluator.supports, alive, sizes, queue)
    joint = joint_log_table(model, {v: s})
    if not consistent:
        assert np.isneginf(joint).all()
        return
    assert (sizes == np.add.reduceat(alive, starts[:-1])).all()
    for u in range(model.n_variables):
        possible = np.isfinite(joint).any(axis=tuple(a for a in range(joint.ndim) if a != u))
        assert (alive[starts[u] : starts[u + 1]].astype(bool) | ~possible).all()


@pytest.mark.parametrize("seed", range(15))
def test_a_held_cutset_bounds_from_below(seed: int) -> None:
    problem = hard_case(seed).problem()
    held = hold_cutset(problem, entries=4.0)
    assert (held.tau <= problem.tau).all()
    assert (held.tau < problem.tau).any()
    assert exact_value(held.model, held.tau) <= exact_value(problem.model, problem.tau) + 1e-12
    assert hold_cutset(problem, entries=1e9).tau.tolist() == problem.tau.tolist()
