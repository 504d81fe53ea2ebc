"""Descent in single precision: claims are double evaluations at the point held, and ends are as low as in double."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.patterns import GATHER, RUNS, STEPS, WHOLE
from powersum.bounds.buckets.single import SinglePasses
from powersum.bounds.tree import CoveringTree, fixed_tree
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.model.rounding import certain, magnitudes
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplify
from tests.bounds.tree.test_tree import passes_of
from tests.clock import Ticks
from tests.oracle import exact_value
from tests.strategies import models, random_model

SIZES = [0.0, 1e3, 1e4, 1e5]


def moved(model: Model, rng: np.random.Generator, size: float) -> Model:
    """The same model with a constant of about ``size`` added to each table, in logs."""
    constants = np.repeat(size * rng.uniform(-1.0, 1.0, model.n_factors), np.diff(model.table_starts))
    return Model(
        model.cardinalities,
        model.scope_starts,
        model.scope_variables,
        model.table_starts,
        model.log_values + constants,
    )


@settings(max_examples=60, deadline=None)
@given(models(max_variables=7), st.integers(0, 2**32 - 1), st.sampled_from(SIZES), st.integers(0, 2))
def test_what_is_claimed_is_a_double_evaluation_at_the_point_held(
    model: Model, seed: int, size: float, ibound: int
) -> None:
    rng = np.random.default_rng(seed)
    model = moved(model, rng, size)
    tau = rng.choice(rng.choice([[0.0, 1.0, 1.0], [0.0, 0.0, rng.random()], [1.0, 1.0, 1.0]]), model.n_variables)
    order = np.argsort(-tau, kind="stable").tolist()
    exact = exact_value(model, tau, order=order)
    problem = simplify(model, Query(tau), {})
    if not problem.feasible:
        assert exact == -math.inf
        return
    largest = float(magnitudes(model.log_values, model.table_starts[:-1]).sum()) if model.n_factors else 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", Ticks(0.01))
        tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=ibound)
        for _ in range(12):
            best = tree.best_tree
            passes = Passes(best.layout, problem.model, best.order, problem.tau)
            passes.parameters[:] = best._best
            value = passes.value()
            assert tree.log_upper == certain(value, passes.error())
            assert tree.log_upper + problem.log_constant >= exact - 1e-14 * (1.0 + largest) or exact == -math.inf
            if not tree.step(time.monotonic() + rng.choice([0.05, 0.3, math.inf])):
                break


def end_of(model: Model, tau: FloatArray, ibound: int, rounds: int = 600) -> float | None:
    """The bound after so many rounds of descent, whether or not it takes itself for done; None where it is exact."""
    problem = simplify(model, Query(tau), {})
    if not problem.feasible:
        return None
    tree = CoveringTree(problem, elimination_order(problem.model, problem.tau), ibound=ibound).best_tree
    if tree.exact or tree.log_upper == -math.inf:
        return None
    for _ in range(rounds):
        tree.step(math.inf)
    return tree.log_upper


@pytest.mark.parametrize("seed", range(24))
def test_it_ends_as_low_as_in_double_precision(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 30))
    model = random_model(rng, n_variables=n, n_factors=2 * n, zeros=float(rng.choice([0.0, 0.1])))
    model = moved(model, rng, SIZES[seed % 4])
    tau = rng.choice([[0.0, 1.0], [0.0, 0.4, 1.0], [1.0]][seed % 3], n)
    single = end_of(model, tau, 1 + seed % 2)
    monkeypatch.setattr(fixed_tree, "SinglePasses", Passes)
    double = end_of(model, tau, 1 + seed % 2)
    assert (single is None) == (double is None)
    if single is not None and double is not None:
        assert single <= double + 1e-3


def blocks_model(rng: np.random.Generator, zeros: float = 0.0) -> Model:
    """Tables larger than a block, which meet their inputs in every way there is."""
    cardinalities = [4, 3, 6, 3, 2, 5, 3, 2, 4]
    factors = []
    for scope in ([0, 1, 2, 3], [3, 4, 5, 6], [6, 0, 2], [5, 1, 0], [7, 8, 2], [1, 3, 7], [0, 5, 8], [4, 8], [1], []):
        table = np.exp(rng.normal(0, 1, [cardinalities[v] for v in scope]))
        factors.append((scope, np.where(rng.random(table.shape) < zeros, 0.0, table)))
    return Model.from_factors(cardinalities, factors)


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_tables_larger_than_a_block(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = blocks_model(rng)
    kinds, blocks = set(), 0
    for ibound in (3, 4, 5):
        tau = rng.choice([0.0, 1.0], model.n_variables)
        passes = passes_of(model, tau, ibound, seed=seed)
        wiring = passes.layout.wiring
        kinds |= set(wiring.kind[wiring.pattern[wiring.slope >= 0]].tolist())
        blocks = max(blocks, int(wiring.blocks.max()))
        passes.value_and_gradient(0.3)
        gradient = passes.gradient.copy()
        for i in np.random.default_rng(seed).permutation(gradient.size)[:60]:
            slopes = []
            old = passes.parameters[i]
            for change in (1e-5, -1e-5):
                passes.parameters[i] = old + change
                slopes.append(passes.value(0.3))
            passes.parameters[i] = old
            assert gradient[i] == pytest.approx((slopes[0] - slopes[1]) / 2e-5, abs=2e-6)
    assert kinds >= {GATHER, WHOLE, RUNS, STEPS}
    assert blocks > 1


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("zeros", [0.0, 0.1])
def test_the_guide_shows_the_bound_and_its_gradient(seed: int, zeros: float) -> None:
    rng = np.random.default_rng(seed)
    if seed % 2:
        model = blocks_model(rng, zeros)
    else:
        model = random_model(rng, n_variables=10, n_factors=18, zeros=zeros)
    model = moved(model, rng, SIZES[seed // 2 % 4])
    tau = rng.choice([0.0, 0.3, 1.0], model.n_variables)
    passes = passes_of(model, tau, 1 + seed % 3, seed=seed)
    guide = SinglePasses(passes.layout, model, np.argsort(-tau, kind="stable"), tau)
    guide.parameters[:] = passes.parameters
    passes.parameters[:] = guide.parameters
    for temperature in (0.5, 0.02):
        value = passes.value_and_gradient(temperature)
        shown = guide.guide(temperature)
        if value == -math.inf:
            assert shown == -math.inf
            continue
        assert shown == pytest.approx(value, abs=2e-5, rel=1e-14)
        np.testing.assert_allclose(guide.gradient, passes.gradient, atol=2e-4)
