"""Sizes beyond those that scratch memory and narrow integers are made for: answers stay right, or words refuse them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import powersum as ps
from powersum.assign.evaluator import Evaluator
from powersum.bounds.buckets.sweeps import shares_of
from powersum.bounds.gdd.regions import factor_graph, own_tables
from powersum.bounds.registry import METHODS
from powersum.core.arrays import FloatArray
from powersum.exact.elimination import Elimination
from powersum.model.query import Query
from powersum.prepare.fates import Fates
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify

LEAVES = 70_000
"""Factors on one variable: more than the 65 536 entries of scratch memory that elimination has anyway."""


def hub(n_leaves: int) -> tuple[ps.Model, FloatArray]:
    """A variable of three states and binary leaves, with the logs of their tables."""
    logs = np.log(np.random.default_rng(0).uniform(0.5, 1.5, (n_leaves, 3, 2)))
    model = ps.Model(
        cardinalities=np.append(3, np.full(n_leaves, 2)),
        scope_starts=2 * np.arange(n_leaves + 1),
        scope_variables=np.stack([np.zeros(n_leaves, np.int64), np.arange(1, n_leaves + 1)], axis=1).ravel(),
        table_starts=6 * np.arange(n_leaves + 1),
        log_values=logs.ravel(),
    )
    return model, logs


@pytest.fixture(scope="module")
def large_hub() -> tuple[ps.Model, FloatArray]:
    return hub(LEAVES)


def hub_scores(logs: FloatArray, maximize: list[int] | str | None) -> FloatArray:
    """What each state of the hub has over all states of the leaves."""
    leaves = logs.max(axis=2) if maximize == "all" else np.logaddexp(logs[:, :, 0], logs[:, :, 1])
    return np.asarray(leaves.sum(axis=0))


@pytest.mark.parametrize("maximize", [None, [0], "all"])
def test_solve_with_more_factors_on_one_variable_than_scratch_memory(
    maximize: list[int] | str | None, large_hub: tuple[ps.Model, FloatArray]
) -> None:
    model, logs = large_hub
    result = ps.solve(model, maximize)
    scores = hub_scores(logs, maximize)
    exact = float(np.logaddexp.reduce(scores) if maximize is None else scores.max())
    # The truth here has rounding of its own; beside it both bounds count what adding 70 000 tables up may cost.
    assert result.log_lower <= exact * (1.0 + 1e-12)
    assert result.log_upper >= exact * (1.0 - 1e-12)
    assert result.status is ps.Status.OPTIMAL
    assert result.gap < 1e-4
    if maximize is not None:
        assert result.assignment["0"] == np.argmax(scores)


def test_marginals_with_more_factors_on_one_variable_than_scratch_memory(
    large_hub: tuple[ps.Model, FloatArray],
) -> None:
    model, logs = large_hub
    result = ps.marginals(model)
    scores = hub_scores(logs, None)
    of_hub = np.exp(scores - np.logaddexp.reduce(scores))
    np.testing.assert_allclose(result.beliefs[0], of_hub, atol=1e-9)
    given = np.exp(logs - np.logaddexp(logs[:, :, :1], logs[:, :, 1:]))
    for leaf in (0, LEAVES // 2, LEAVES - 1):
        np.testing.assert_allclose(result.beliefs[1 + leaf], of_hub @ given[leaf], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_bounds_with_more_factors_on_one_variable_than_scratch_memory(
    method: str, large_hub: tuple[ps.Model, FloatArray]
) -> None:
    model, logs = large_hub
    exact = float(hub_scores(logs, [0]).max())
    result = ps.bound(model, [0], method=method, sweeps=1)
    assert exact * (1.0 - 1e-12) <= result.log_upper < 2.0 * exact


def of_many_states(n_states: int) -> ps.Model:
    """Three variables in a chain, the middle one of many states; its best one is the last, given either end."""
    rng = np.random.default_rng(n_states)
    tables = [rng.uniform(0.1, 1.0, (2, n_states)) for _ in range(2)]
    for table in tables:
        table[:, -1] = 1.5
    return ps.Model.from_factors([2, n_states, 2], [((0, 1), tables[0]), ((2, 1), tables[1])])


@pytest.mark.parametrize("n_states", [1 << 16, (1 << 16) + 1, 70_000])
class TestManyStates:
    def test_elimination(self, n_states: int) -> None:
        model = of_many_states(n_states)
        exact = Elimination(model, [1, 0, 2], np.zeros(3)).run()
        assert exact.log_value == pytest.approx(2.0 * math.log(1.5), abs=1e-12)
        assert exact.states[1] == n_states - 1

    def test_maximisation_of_a_region(self, n_states: int) -> None:
        model = of_many_states(n_states)
        problem = simplify(model, Query.of(model, [0, 1]), {})
        evaluator = Evaluator(problem, memory=1e8)
        assignment = np.array([0, 0, -1])
        variables, factors, _ = evaluator.region(np.array([0, 1]))
        evaluator.maximise(assignment, variables, factors)
        assert assignment[1] == n_states - 1

    @pytest.mark.parametrize("maximize", [[1], "all"])
    def test_solve(self, n_states: int, maximize: list[int] | str) -> None:
        model = of_many_states(n_states)
        first, second = (table for _, table in model.factors())
        exact = 2.0 * math.log(1.5 if maximize == "all" else 3.0)
        result = ps.solve(model, maximize)
        assert result.assignment["1"] == n_states - 1
        assert result.log_lower == pytest.approx(exact, abs=1e-9)
        assert result.log_upper == pytest.approx(exact, abs=1e-9)
        sums = np.logaddexp.reduce(first, axis=0) + np.logaddexp.reduce(second, axis=0)
        assert ps.solve(model).log_upper == pytest.approx(float(np.logaddexp.reduce(sums)), abs=1e-9)

    @pytest.mark.parametrize("method", METHODS)
    def test_bound(self, n_states: int, method: str) -> None:
        result = ps.bound(of_many_states(n_states), [1], method=method, sweeps=2)
        assert result.log_upper >= 2.0 * math.log(3.0) - 1e-9


def test_more_axes_than_any_array_has() -> None:
    """A factor of many variables with one state each, as before simplification."""
    n = 100
    cardinalities = np.ones(n, np.int64)
    cardinalities[[3, 97]] = 2, 3
    logs = np.log(np.arange(1.0, 7.0))
    model = ps.Model(cardinalities, np.array([0, n]), np.arange(n), np.array([0, 6]), logs)
    none = np.zeros(0, np.int64)
    problem = Problem(
        model,
        np.ones(n),
        0.0,
        0.0,
        np.arange(n),
        none,
        none,
        np.full(n, -1),
        np.zeros(n, np.int64),
        np.ones(n),
        np.ones(int(cardinalities.sum()), np.bool_),
        Fates.of(model),
    )
    np.testing.assert_array_equal(own_tables(model, factor_graph(problem, np.arange(n))), logs)


def test_weights_of_millions_of_mini_buckets_are_positive() -> None:
    n = 20_000_000
    logits = np.zeros(n)
    logits[0] = 5.0
    shares = shares_of(logits, np.array([0, n]))
    assert shares.min() > 0.0
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] > shares[1]


@pytest.mark.parametrize("method", ["gdd", "tree", "mbe", "wmb", "reorder", "mas"])
@pytest.mark.parametrize(("n_variables", "n_states", "digits"), [(70, 2, "20"), (35, 4, "20"), (52, 3, "24")])
def test_an_ibound_that_no_memory_holds(method: str, n_variables: int, n_states: int, digits: str) -> None:
    table = np.random.default_rng(0).uniform(0.5, 1.5, (n_states, n_states))
    pairs = itertools.combinations(range(n_variables), 2)
    model = ps.Model.from_factors([n_states] * n_variables, [(pair, table) for pair in pairs])
    ibound = {70: 65, 35: 32, 52: 50}[n_variables]
    with pytest.raises(ps.InputError, match=rf"^ibound {ibound} makes a table of 10\^{digits} entries: no memory"):
        ps.bound(model, method=method, ibound=ibound, sweeps=1)


def test_tables_too_many_to_be_counted_are_not_placed() -> None:
    """Cliques of 47 variables: each alone is counted, but many places one after another would leave the integers."""
    n = 47
    pairs = [(first + a, first + b) for first in (0, n, 2 * n) for a, b in itertools.combinations(range(n), 2)]
    model = ps.Model.from_factors([2] * (3 * n), [(pair, np.ones((2, 2))) for pair in pairs])
    elimination = Elimination(model, np.arange(3 * n), np.ones(3 * n))
    assert (elimination.width, elimination.work, elimination.bytes) == (n - 1, math.inf, math.inf)
