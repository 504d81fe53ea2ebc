"""Assignments drawn from a covering tree: possible where the tree is exact, near its best, others with other seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.bounds.tree import CoveringTree
from powersum.bounds.tree.draws import _insert, draw, steps_of
from powersum.core.arrays import IntArray
from powersum.core.jit import compiled
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from tests.cases import hard_case
from tests.oracle import assignment_value, exact_value

SEEDS = range(12)


def value_of(problem: Problem, states: IntArray) -> float:
    return assignment_value(problem.model, {v: int(s) for v, s in enumerate(states) if s >= 0})


def tree_of(problem: Problem, ibound: int | None, rounds: int = 4) -> CoveringTree:
    order = elimination_order(problem.model, problem.tau)
    tree = CoveringTree(problem, order, ibound=ibound)
    for _ in range(rounds):
        tree.step(math.inf)
    return tree


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_without_noise_an_exact_tree_gives_the_best_assignment(seed: int, zeros: float) -> None:
    problem = hard_case(seed, zeros=zeros).problem()
    tree = tree_of(problem, 30)
    assert tree.exact
    drawn = tree.draw(0.0, 1)
    assert ((drawn >= 0) == (problem.tau == 0.0)).all()
    best = exact_value(problem.model, problem.tau)
    assert value_of(problem, drawn) == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_repeat_by_their_seed_differ_by_it_and_disturb_nothing(seed: int) -> None:
    problem = hard_case(seed, zeros=0.2).problem()
    tree = tree_of(problem, 2)
    best, log_upper = tree.best_tree, tree.bound()
    pool, parameters = best.passes.pool.copy(), best.passes.parameters.copy()
    drawn = [tree.draw(3.0, number) for number in range(1, 30)]
    for number, states in enumerate(drawn, 1):
        assert ((states >= 0) == (problem.tau == 0.0)).all()
        assert (states < problem.model.cardinalities).all()
        assert np.array_equal(states, tree.draw(3.0, number))
    assert len({states.tobytes() for states in drawn}) > 1
    assert np.array_equal(best.passes.parameters, parameters)
    assert np.array_equal(best.passes.pool, pool)
    assert tree.bound() == log_upper


@pytest.mark.parametrize("seed", SEEDS)
def test_more_noise_draws_from_farther_away(seed: int) -> None:
    """On average: what is drawn with much noise is worth less by the tree's own tables, here exact ones."""
    problem = hard_case(seed).problem()
    tree = tree_of(problem, 30)

    def mean(noise: float) -> float:
        values = [value_of(problem, tree.draw(noise, n)) for n in range(1, 40)]
        return float(np.mean(np.maximum(values, -1e3)))

    assert mean(0.01) >= mean(30.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_states_that_nothing_later_depends_on_have_left_and_no_others(seed: int) -> None:
    """Against the definition: what can still be met after a step, by looking at all factors."""
    problem = hard_case(seed).problem()
    order = elimination_order(problem.model, problem.tau)
    steps = steps_of(problem, order)
    model = problem.model
    scopes = [
        set(model.scope_variables[model.scope_starts[f] : model.scope_starts[f + 1]].tolist())
        for f in range(model.n_factors)
    ]
    variables = order[steps.positions].tolist()
    assert sorted(variables) == np.flatnonzero(problem.tau == 0.0).tolist()
    gone: set[int] = set()
    for step in range(len(variables)):
        leaving = steps.leaving[steps.leaving_starts[step] : steps.leaving_starts[step + 1]]
        gone |= {variables[s] for s in leaving.tolist()}
        assert gone <= set(variables[: step + 1])
        later = set(variables[step + 1 :])
        for scope in scopes:
            # A factor with a variable still to be set has none that has left.
            assert not (scope & later and scope & gone)
    assert gone == set(variables)


@compiled
def _listed(costs: IntArray, keys: IntArray, width: int) -> IntArray:
    """The numbers of those that a list of limited length keeps, the cheapest first."""
    kept_costs, kept_keys = np.zeros(width), np.zeros(width, np.int64)
    origins, states = np.zeros(width, np.int64), np.zeros(width, np.int64)
    count = 0
    for i in range(len(costs)):
        count = _insert(float(costs[i]), keys[i], i, 0, count, kept_costs, kept_keys, origins, states)
    return origins[:count].copy()


@pytest.mark.parametrize("seed", range(40))
def test_the_list_keeps_the_cheapest_of_each_key(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(1, 60)), int(rng.integers(1, 12))
    costs, keys = rng.permutation(n), rng.integers(0, max(1, n // 2), n)
    cheapest = {key: min(costs[keys == key]) for key in set(keys.tolist())}
    wanted = sorted(cheapest.values())[:width]
    assert costs[_listed(costs, keys, width)].tolist() == wanted


def test_where_every_way_ends_at_a_zero_nothing_is_drawn() -> None:
    problem = hard_case(3).problem()
    tree = tree_of(problem, 2)
    steps = steps_of(problem, tree.best_tree.order)
    passes = tree.best_tree.passes
    # No state is worth what its messages promise.
    passes.pool[: passes.layout.n_static], passes.pool[passes.layout.n_static :] = -1e300, 0.0
    assert draw(passes, problem, steps, noise=0.1, seed=1) is None
