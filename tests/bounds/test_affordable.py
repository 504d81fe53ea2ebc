"""Bounds where memory is short: each is one, and there always is one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import powersum as ps
from powersum.bounds.affordable import NAMES, affordable, decomposed_bytes
from powersum.bounds.single import SingleFactors, single_bound
from powersum.core.arrays import FloatArray
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.simplify import simplify
from powersum.run.tuning import Schedule
from tests.oracle import exact_value
from tests.strategies import weighted_models


@settings(deadline=None)
@given(weighted_models())
def test_single_factors_are_a_bound(case: tuple[ps.Model, FloatArray]) -> None:
    model, weights = case
    problem = simplify(model, Query(weights))
    if not problem.feasible or not problem.model.n_variables:
        return
    single = SingleFactors(problem)
    assert single.log_upper + problem.log_constant >= exact_value(model, weights) - 1e-9
    assert not single.step(math.inf)
    decoded = single.decode()
    assert ((decoded >= 0) == (problem.tau == 0.0)).all()
    assert (decoded < problem.model.cardinalities).all()


@settings(deadline=None)
@given(weighted_models(), st.integers(0, 2**32 - 1))
def test_the_gradient_of_single_factors_supports_a_convex_bound(case: tuple[ps.Model, FloatArray], seed: int) -> None:
    model, weights = case
    problem = simplify(model, Query(weights))
    if not problem.feasible or not problem.model.n_variables:
        return
    reduced = problem.model
    gradient = np.full(reduced.log_values.size, math.nan)
    value = single_bound(reduced, problem.tau, gradient=gradient)
    assert value == SingleFactors(problem).log_upper
    assert (gradient >= 0.0).all()
    # Each factor's own part is a distribution over its entries, of which impossible ones have nothing.
    np.testing.assert_allclose(np.add.reduceat(gradient, reduced.table_starts[:-1]), 1.0)
    assert not gradient[reduced.log_values == -math.inf].any()
    steps = np.random.default_rng(seed).normal(size=gradient.size)
    other = single_bound(reduced.with_log_values(reduced.log_values + steps), problem.tau)
    assert other >= value + float(gradient @ steps) - 1e-9 * max(1.0, abs(value))


def test_guesses_of_single_factors_are_distributions() -> None:
    model = ps.generate.grid(5, 5, seed=3).model
    for belief in SingleFactors(simplify(model, Query.of(model))).beliefs():
        assert belief.min() >= 0.0
        assert belief.sum() == pytest.approx(1.0)


def test_less_memory_means_another_bound() -> None:
    model = ps.generate.grid(12, 12, seed=3).model
    problem = simplify(model, Query.of(model, list(range(0, 144, 2))))
    order = elimination_order(problem.model, problem.tau)
    found = []
    for memory in (10**9, int(decomposed_bytes(problem)) + 1, 1000):
        bound = affordable(problem, order, memory=memory)
        found.append(NAMES[type(bound)])
        assert bound.log_upper < math.inf
    assert found == ["tree", "gdd", "single"]


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_solve_never_refuses_for_want_of_a_tree(share: float) -> None:
    model = ps.generate.grid(30, 30, seed=3).model
    query = list(range(0, 900, 2))
    problem = simplify(model, Query.of(model, query))
    schedule = Schedule(most_bytes=5e5 + share * decomposed_bytes(problem), quick=0.0)
    result = ps.solve(model, query, time_limit=None, gap=1e6, schedule=schedule)
    assert -math.inf < result.log_lower <= result.log_upper < math.inf
