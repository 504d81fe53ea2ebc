"""Exact elimination against brute force, for any weights, and its estimate of what it costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from powersum.core.arrays import FloatArray
from powersum.exact.elimination import Elimination
from powersum.exact.kernels import BLOCK
from powersum.model.model import Model
from powersum.prepare.ordering import elimination_order
from tests.oracle import assignment_value, exact_value
from tests.strategies import random_model, weighted_models


@settings(max_examples=150, deadline=None)
@given(weighted_models())
def test_value_equals_brute_force_for_any_weights(case: tuple[Model, FloatArray]) -> None:
    model, tau = case
    order = np.argsort(-tau, kind="stable")
    found = Elimination(model, order, tau).run().log_value
    assert found == pytest.approx(exact_value(model, tau, order=order.tolist()), abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_traced_states_attain_the_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=7, n_factors=9, zeros=float(rng.choice([0.0, 0.2])))
    tau = (rng.random(7) < 0.5).astype(np.float64)
    exact = Elimination(model, elimination_order(model, tau), tau).run()
    assert ((exact.states >= 0) == (tau == 0.0)).all()
    if exact.log_value > -np.inf:
        chosen = {int(v): int(exact.states[v]) for v in np.flatnonzero(tau == 0.0)}
        assert assignment_value(model, chosen) == pytest.approx(exact.log_value, abs=1e-9)


def test_large_tables_are_worked_in_blocks() -> None:
    rng = np.random.default_rng(1)
    scopes = [(0, 1, 2, 3, 4, 5, 6, 7), (0, 8, 9, 10, 11, 12, 13), (3, 9, 14), (14, 15)]
    cards = [2, 3, 2, 2, 3, 2, 2, 2, 2, 3, 2, 2, 2, 2, 4, 5]
    model = Model.from_factors(cards, [(s, rng.random([cards[v] for v in s])) for s in scopes])
    tau = np.ones(16)
    # A poor order on purpose: variable 0 first joins the two large factors.
    elimination = Elimination(model, np.arange(16), tau)
    good = Elimination(model, elimination_order(model, tau), tau)
    assert elimination.bytes > good.bytes
    assert elimination.run().log_value == pytest.approx(good.run().log_value, abs=1e-10)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("entries", [1.0, 100.0, 3000.0])
def test_slices_give_the_same_as_one_run(seed: int, entries: float) -> None:
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, size=14).tolist()
    scopes = [tuple(rng.choice(14, size=3, replace=False).tolist()) for _ in range(16)]
    model = Model.from_factors(cards, [((), 3.0), *((s, rng.random([cards[v] for v in s])) for s in scopes)])
    tau = (rng.random(14) < 0.6).astype(np.float64)
    elimination = Elimination(model, elimination_order(model, tau), tau)
    whole = elimination.run()
    *waiting, last = elimination.slices(entries)
    assert all(step is None for step in waiting)
    # A slice may be longer by one block, of three states at most.
    assert len(waiting) + 1 >= elimination.work / (entries + 3 * BLOCK)
    assert last is not None
    assert last.log_value == pytest.approx(whole.log_value, abs=1e-12)
    assert (last.states == whole.states).all()


def test_one_large_bucket_is_cut_too() -> None:
    rng = np.random.default_rng(3)
    n = 14
    scopes = [(0, v) for v in range(1, n)]
    model = Model.from_factors([2] * n, [(s, rng.random((2, 2))) for s in scopes])
    # Variable 0 first joins all factors into one table of 2^14 entries.
    elimination = Elimination(model, np.arange(n), np.ones(n))
    *waiting, last = elimination.slices(2000.0)
    assert len(waiting) >= 2**14 // 2048 - 1
    assert last is not None
    assert last.log_value == pytest.approx(elimination.run().log_value, abs=1e-12)


def test_cost_is_known_before_running() -> None:
    n = 70
    clique = Model.from_factors([2] * n, [((i, j), np.ones((2, 2))) for i in range(n) for j in range(i)])
    elimination = Elimination(clique, np.arange(n), np.ones(n))
    assert elimination.width == n - 1
    assert elimination.bytes == np.inf
    chain = Model.from_factors([3] * 5, [((i, i + 1), np.ones((3, 3))) for i in range(4)])
    small = Elimination(chain, np.arange(5), np.ones(5))
    assert small.width == 1
    # Two messages of three entries are alive at a time; room is used again.
    assert small.bytes <= 8 * 6


def test_constants_and_lonely_variables_count() -> None:
    model = Model.from_factors([3, 2], [((), 5.0), ((1,), [1.0, 2.0])])
    assert Elimination(model, [0, 1], np.ones(2)).run().log_value == pytest.approx(np.log(5.0 * 3.0 * 3.0))
    assert Elimination(model, [0, 1], np.zeros(2)).run().log_value == pytest.approx(np.log(5.0 * 2.0))
