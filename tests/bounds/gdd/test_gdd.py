"""Algorithm 1: validity, monotonicity, gradients and limiting cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from powersum.bounds.gdd import DIRECTIONS, GDD, STARTS
from powersum.bounds.gdd.regions import JunctionGraph, junction_graph
from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from tests.oracle import exact_value
from tests.strategies import random_model, weighted_models


def prepared(model: Model, weights: FloatArray) -> tuple[Problem, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    problem = simplify(model, Query(weights), {})
    return problem, elimination_order(problem.model, problem.tau)


@settings(max_examples=150, deadline=None)
@given(weighted_models())
def test_every_sweep_is_a_valid_bound_and_none_rises(case: tuple[Model, FloatArray]) -> None:
    model, weights = case
    exact = exact_value(model, weights)
    problem, order = prepared(model, weights)
    if not problem.feasible:
        assert exact == -math.inf
        return
    for start in STARTS:
        gdd = GDD(problem, order, start=start)
        last = gdd.log_upper
        for _ in range(4):
            assert gdd.bound() + problem.log_constant >= exact - 1e-9 * max(1.0, abs(exact))
            gdd.step(math.inf)
            assert gdd.log_upper <= last
            assert gdd.bound() <= last + 1e-9 * max(1.0, abs(last))
            last = gdd.log_upper


def test_weights_stay_on_their_simplex() -> None:
    rng = np.random.default_rng(5)
    model = random_model(rng, n_variables=7, n_factors=12, zeros=0.2)
    tau = np.array([1.0, 0.4, 1.0, 0.0, 1.6, 0.0, 1.0])
    problem, order = prepared(model, tau)
    for start in STARTS:
        gdd = GDD(problem, order, start=start)
        for _ in range(5):
            gdd.step(math.inf)
            weights, variable = gdd._state.weights, gdd._wiring.regions.axis_variable
            assert (weights >= 0).all()
            np.testing.assert_allclose(np.bincount(variable, weights, len(problem.tau)), problem.tau, atol=1e-12)


@pytest.mark.parametrize("wide", [False, True])
def test_gradients_equal_finite_differences(wide: bool) -> None:
    rng = np.random.default_rng(11)
    model = grid(rng, 3, 3, states=2)
    problem, order = prepared(model, np.array([1.0, 0.5, 1.0, 0.7, 1.0, 1.3, 1.0, 1.0, 0.5]))
    gdd = GDD(problem, order, start="uniform", wiring=pair_separators(problem, order) if wide else None)
    state = gdd._state
    state.delta[:] = rng.normal(0.0, 0.5, len(state.delta))
    gdd.bound()
    of_delta, of_weights = gdd.gradients()
    movable = np.bincount(gdd._wiring.regions.axis_variable, minlength=9)[gdd._wiring.regions.axis_variable] > 1
    for array, derivative in ((state.delta, of_delta), (state.weights, np.where(movable, of_weights, np.nan))):
        for j in rng.permutation(len(array))[:25]:
            if math.isnan(derivative[j]):
                continue
            kept, step = array[j], 1e-5
            array[j] = kept + step
            up = gdd.bound()
            array[j] = kept - step
            down = gdd.bound()
            array[j] = kept
            assert derivative[j] == pytest.approx((up - down) / (2 * step), abs=2e-6)


def grid(rng: np.random.Generator, rows: int, columns: int, states: int) -> Model:
    factors: list[tuple[tuple[int, ...], FloatArray]] = []
    for r in range(rows):
        for c in range(columns):
            v = r * columns + c
            factors.append(((v,), np.exp(rng.normal(0, 1, states))))
            if c + 1 < columns:
                factors.append(((v, v + 1), np.exp(rng.normal(0, 1, (states, states)))))
            if r + 1 < rows:
                factors.append(((v, v + columns), np.exp(rng.normal(0, 1, (states, states)))))
    return Model.from_factors([states] * rows * columns, factors)


def pair_separators(problem: Problem, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> JunctionGraph:
    """Squares of a 3×3 grid as clusters, the edges between them and its middle as separators."""
    squares = [(0, 1, 3, 4), (1, 2, 4, 5), (3, 4, 6, 7), (4, 5, 7, 8)]
    separators = [(1, 4), (3, 4), (4, 5), (4, 7), (4,)]
    edges = [(s, c) for s, scope in enumerate(separators) for c, square in enumerate(squares) if {*scope} <= {*square}]
    model = problem.model
    factor_cluster = [next(c for c, q in enumerate(squares) if {*scope} <= {*q}) for scope, _ in model.factors()]
    return junction_graph(
        problem,
        order,
        cluster_starts=np.arange(5) * 4,
        cluster_variables=np.array(squares).ravel(),
        factor_cluster=np.array(factor_cluster),
        separator_starts=np.array([0, 2, 4, 6, 8, 9]),
        separator_variables=np.array([v for s in separators for v in s]),
        edge_separator=np.array([s for s, _ in edges]),
        edge_cluster=np.array([c for _, c in edges]),
    )


@pytest.mark.parametrize("weights", [[1.0] * 9, [0.0] * 9, [1, 0, 1, 0, 0, 1, 1, 1, 0], [1, 1, 0, 1, 1, 0, 1, 0, 0]])
@pytest.mark.parametrize("zeros", [0.0, 0.15])
def test_junction_graph_is_valid_monotone_and_tighter(weights: list[float], zeros: float) -> None:
    rng = np.random.default_rng(2)
    model = grid(rng, 3, 3, states=3)
    if zeros:
        factors = [(s, np.where(rng.random(t.shape) < zeros * (len(s) - 1), -np.inf, t)) for s, t in model.factors()]
        model = Model.from_factors([3] * 9, factors, log=True)
    tau = np.array(weights, dtype=float)
    problem, order = prepared(model, tau)
    exact = exact_value(model, tau) - problem.log_constant
    assert problem.model.n_variables == 9
    values = {}
    for name, wiring in (("factors", None), ("squares", pair_separators(problem, order))):
        gdd = GDD(problem, order, wiring=wiring)
        last = gdd.log_upper
        for _ in range(60):
            gdd.step(math.inf)
            assert gdd.log_upper <= last
            assert gdd.bound() >= exact - 1e-9
            last = gdd.log_upper
        values[name] = gdd.bound()
    # Block descent may stick a little above the minimum where a separator mixes sum and max variables.
    assert values["squares"] <= values["factors"] + 0.02


def tree_model(rng: np.random.Generator, n: int = 8) -> Model:
    cardinalities = rng.integers(2, 4, n).tolist()
    factors = []
    for child in range(1, n):
        parent = int(rng.integers(0, child))
        factors.append(((parent, child), np.exp(rng.normal(0, 1, (cardinalities[parent], cardinalities[child])))))
    return Model.from_factors(cardinalities, factors)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("start", "sweeps", "slack"), [("wmb", 30, 1e-9), ("share", 300, 0.02)])
def test_trees_become_exact_at_convergence(weight: float, start: str, sweeps: int, slack: float) -> None:
    for seed in range(5):
        model = tree_model(np.random.default_rng(seed))
        problem, order = prepared(model, np.full(8, weight))
        gdd = GDD(problem, order, start=start)
        for _ in range(sweeps):
            gdd.step(math.inf)
        exact = exact_value(model, np.full(8, weight))
        assert gdd.bound() + problem.log_constant == pytest.approx(exact, abs=slack)


def test_residuals_vanish_at_the_minimum() -> None:
    model = tree_model(np.random.default_rng(0))
    problem, order = prepared(model, np.ones(8))
    gdd = GDD(problem, order)
    far = gdd.residuals()
    for _ in range(300):
        gdd.step(math.inf)
    near = gdd.residuals()
    assert near.moment < 1e-3 < far.moment
    assert near.entropy < 1e-3 < far.entropy


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_both_directions_descend(direction: str) -> None:
    rng = np.random.default_rng(4)
    model = grid(rng, 3, 4, states=2)
    problem, order = prepared(model, np.where(np.arange(12) % 3 == 0, 0.0, 1.0))
    gdd = GDD(problem, order, direction=direction)
    first = gdd.log_upper
    for _ in range(30):
        gdd.step(math.inf)
    assert gdd.log_upper < first - 0.1


def test_threads_do_not_change_a_bit() -> None:
    rng = np.random.default_rng(9)
    model = grid(rng, 20, 20, states=2)
    problem, order = prepared(model, (rng.random(400) < 0.5).astype(float))
    one, two = GDD(problem, order, threads=1), GDD(problem, order, threads=2)
    for _ in range(3):
        one.step(math.inf)
        two.step(math.inf)
        assert one.log_upper == two.log_upper
    assert (one._state.tables == two._state.tables).all()


@pytest.mark.parametrize("ibound", [None, 3])
def test_side_by_side_is_one_after_another(ibound: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of many blocks reach, to the last bit, the point that batches of one block reach."""
    rng = np.random.default_rng(3)
    for zeros in (0.0, 0.1):
        model = grid(rng, 5, 6, states=3)
        factors = [(s, np.where(rng.random(t.shape) < zeros * (len(s) - 1), -np.inf, t)) for s, t in model.factors()]
        model = Model.from_factors([3] * 30, factors, log=True)
        problem, order = prepared(model, np.where(rng.random(30) < 0.3, 0.0, 1.0))
        points = []
        for entries in (1, 16384):
            monkeypatch.setattr("powersum.bounds.gdd.regions.BATCH_ENTRIES", entries)
            gdd = GDD(problem, order, ibound=ibound)
            wiring = gdd._wiring
            assert (np.diff(wiring.batch_start).max() == 1) == (entries == 1)
            for _ in range(4):
                gdd.step(math.inf)
            points.append((gdd._state.tables, gdd._state.delta, gdd._state.weights, gdd.log_upper))
        for alone, together in zip(*points, strict=True):
            np.testing.assert_array_equal(alone, together)


def test_blocks_of_one_colour_share_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.bounds.gdd.regions.BATCH_ENTRIES", 20)
    rng = np.random.default_rng(1)
    model = random_model(rng, n_variables=12, n_factors=20, max_scope=4)
    problem, order = prepared(model, np.ones(12))
    gdd = GDD(problem, order)
    wiring = gdd._wiring
    assert sorted(wiring.sweep.tolist()) == list(range(len(wiring.regions.block_size)))
    assert len(wiring.batch_start) > len(wiring.colour_start) > 2
    for k in range(len(wiring.colour_start) - 1):
        first, last = wiring.batch_start[wiring.colour_start[k]], wiring.batch_start[wiring.colour_start[k + 1]]
        regions = [
            r
            for b in wiring.sweep[first:last]
            for r in wiring.regions.member_region[
                wiring.regions.block_start[b] : wiring.regions.block_start[b + 1]
            ].tolist()
        ]
        assert len(regions) == len(set(regions))


@settings(max_examples=60, deadline=None)
@given(weighted_models())
def test_join_graphs_are_valid_and_never_rise(case: tuple[Model, FloatArray]) -> None:
    model, weights = case
    exact = exact_value(model, weights)
    problem, order = prepared(model, weights)
    if not problem.feasible:
        return
    for ibound in (1, 3):
        gdd = GDD(problem, order, ibound=ibound)
        last = gdd.log_upper
        for _ in range(4):
            gdd.step(math.inf)
            assert gdd.log_upper <= last
            assert gdd.bound() + problem.log_constant >= exact - 1e-9 * max(1.0, abs(exact))
            last = gdd.log_upper


def test_larger_clusters_are_tighter_and_whole_buckets_nearly_exact() -> None:
    model = grid(np.random.default_rng(6), 4, 4, states=2)
    tau = np.where(np.arange(16) % 2 == 0, 0.0, 1.0)
    problem, order = prepared(model, tau)
    values = []
    for ibound in (None, 3, 12):
        gdd = GDD(problem, order, ibound=ibound)
        for _ in range(150):
            gdd.step(math.inf)
        values.append(gdd.bound() + problem.log_constant)
    assert values[2] < values[1] < values[0]
    assert values[2] == pytest.approx(exact_value(model, tau), abs=0.02)
