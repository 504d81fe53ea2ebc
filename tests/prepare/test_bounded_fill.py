"""Orders by min-fill among bounded tables: permutations in groups, and plain elimination where nothing bounds them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersum.core.arrays import FloatArray
from powersum.core.work_time import Meter, counted_by
from powersum.model.model import Model
from powersum.prepare.ordering import check_order
from powersum.prepare.ordering.bounded import _eliminate, _Scopes, bounded_fill, members
from tests.prepare.test_ordering import eliminate, graph_of, many, weighted_graphs

limits = st.sampled_from([0.0, 3.0, 8.0, math.inf])


@many
@given(weighted_graphs(), limits, st.integers(0, 5))
def test_an_order_is_a_permutation_in_groups(case: tuple[Model, FloatArray], limit: float, seed: int) -> None:
    model, tau = case
    order = bounded_fill(model, tau, limit, seed=seed)
    check_order(order, tau, model.n_variables)
    assert (np.diff(tau[order]) <= 0).all()
    assert np.array_equal(order, bounded_fill(model, tau, limit, seed=seed))


@many
@given(weighted_graphs(), limits, st.data())
def test_the_beginning_stays_and_the_end_is_drawn_anew(
    case: tuple[Model, FloatArray], limit: float, data: st.DataObject
) -> None:
    model, tau = case
    known = bounded_fill(model, tau, limit)
    kept = data.draw(st.integers(0, model.n_variables))
    order = bounded_fill(model, tau, limit, seed=1, begin=known[:kept])
    check_order(order, tau, model.n_variables)
    assert np.array_equal(order[:kept], known[:kept])
    assert (np.diff(tau[order]) <= 0).all()


@many
@given(weighted_graphs(), st.integers(0, 2**32 - 1))
def test_unbounded_tables_meet_as_in_plain_elimination(case: tuple[Model, FloatArray], seed: int) -> None:
    model, _ = case
    sets = graph_of(model)
    scopes = _Scopes(model)
    met = [scopes.meets(v) for v in range(model.n_variables)]
    for v in np.random.default_rng(seed).permutation(model.n_variables).tolist():
        assert set(members(met[v])) - {v} == sets[v]
        assert set(_eliminate(scopes, met, v, math.inf)) == eliminate(sets, v)


@many
@given(weighted_graphs(), st.integers(0, 2**32 - 1))
def test_tables_stay_within_the_limit_or_as_large_as_one_was(case: tuple[Model, FloatArray], seed: int) -> None:
    model, _ = case
    scopes, limit = _Scopes(model), 4.0
    largest = max((scopes.size(scope) for scope in scopes._scopes.values()), default=0.0)
    for v in np.random.default_rng(seed).permutation(model.n_variables).tolist():
        scopes.eliminate(v, limit)
        assert all(scopes.size(scope) <= max(limit, largest) + 1e-9 for scope in scopes._scopes.values())
        assert not scopes._at[v]


def test_the_first_variable_has_the_least_fill() -> None:
    # A star whose centre would join everybody, and a leaf that joins nobody.
    pair = np.zeros((2, 2))
    model = Model.from_factors([2] * 6, [((0, k), pair) for k in range(1, 6)])
    assert bounded_fill(model, np.ones(6), math.inf)[0] != 0


def test_work_is_counted() -> None:
    meter = Meter()
    model = Model.from_factors([2] * 6, [((k, k + 1), np.zeros((2, 2))) for k in range(5)])
    with counted_by(meter):
        bounded_fill(model, np.ones(6), 10.0)
    assert meter.seconds > 0.0


def test_nothing_to_eliminate() -> None:
    assert len(bounded_fill(Model.from_factors([], []), np.zeros(0), 10.0)) == 0


@pytest.mark.parametrize("seed", range(3))
def test_seeds_draw_different_orders(seed: int) -> None:
    cells = np.arange(36).reshape(6, 6)
    pairs = [*zip(cells[:, :-1].ravel(), cells[:, 1:].ravel(), strict=True)]
    pairs += [*zip(cells[:-1].ravel(), cells[1:].ravel(), strict=True)]
    model = Model.from_factors([2] * 36, [((int(a), int(b)), np.zeros((2, 2))) for a, b in pairs])
    orders = [bounded_fill(model, np.ones(36), 4.0, seed=s).tolist() for s in (seed, seed + 1)]
    assert orders[0] != orders[1]
