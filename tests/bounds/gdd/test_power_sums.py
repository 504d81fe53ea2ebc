"""Power sums and beliefs of single tables against plain NumPy, at every weight, with zeros."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.bounds.gdd.power_sums import power_sum, power_sum_with_beliefs
from powersum.core.arrays import FloatArray
from powersum.core.jit import compiled
from tests.oracle import power_sum as power_sum_by_numpy


@compiled
def _power_sum(table: FloatArray, card: int, rest: int, weight: float, target: FloatArray) -> None:
    power_sum(table, 0, card, rest, weight, target, 0)


@compiled
def _with_beliefs(table: FloatArray, beliefs: FloatArray, card: int, rest: int, weight: float) -> None:
    power_sum_with_beliefs(table, beliefs, 0, card, rest, weight, card * rest)


def _table(card: int, rest: int, zeros: float, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    table = rng.normal(0.0, 5.0, (card, rest))
    return np.where(rng.random(table.shape) < zeros, -np.inf, table)


@pytest.mark.parametrize("weight", [0.0, 1e-9, 1e-3, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("zeros", [0.0, 0.4, 1.0])
def test_power_sum_agrees_with_numpy(weight: float, zeros: float) -> None:
    for card, rest in [(1, 1), (2, 1), (2, 7), (5, 12)]:
        table = _table(card, rest, zeros, seed=card * rest)
        target = np.empty(rest)
        _power_sum(table.ravel(), card, rest, weight, target)
        np.testing.assert_allclose(target, power_sum_by_numpy(table, 0, weight), rtol=1e-12, atol=1e-12)


def test_in_place_reduction_gives_the_same() -> None:
    table = _table(4, 9, 0.2, seed=3)
    flat = table.ravel().copy()
    _power_sum(flat, 4, 9, 0.7, flat)
    np.testing.assert_allclose(flat[:9], power_sum_by_numpy(table, 0, 0.7), rtol=1e-12)


@pytest.mark.parametrize("weight", [0.0, 1e-9, 0.2, 1.0, 3.0])
def test_beliefs_are_the_derivative(weight: float) -> None:
    card, rest = 3, 5
    table = _table(card, rest, 0.3, seed=8)
    table[:, 0] = -np.inf
    work = np.concatenate([table.ravel(), np.empty(rest)])
    beliefs = np.full(card * rest, np.nan)
    _with_beliefs(work, beliefs, card, rest, weight)
    mu = beliefs.reshape(card, rest)
    np.testing.assert_allclose(work[card * rest :], power_sum_by_numpy(table, 0, weight), rtol=1e-12)
    assert (mu[:, 0] == 0).all()
    np.testing.assert_allclose(mu[:, 1:].sum(axis=0), 1.0, rtol=1e-12)
    assert (mu[np.isneginf(table)] == 0).all()
    if weight >= 0.2:
        step = 1e-6
        for k in range(card):
            up, down = table.copy(), table.copy()
            up[k] += step
            down[k] -= step
            rise = power_sum_by_numpy(up, 0, weight)[1:] - power_sum_by_numpy(down, 0, weight)[1:]
            np.testing.assert_allclose(mu[k, 1:], rise / (2 * step), atol=1e-6)


def test_ties_of_a_maximum_share_the_belief() -> None:
    work = np.array([1.0, 3.0, 3.0, 0.0])
    beliefs = np.empty(3)
    _with_beliefs(work, beliefs, 3, 1, 0.0)
    assert beliefs.tolist() == [0.0, 0.5, 0.5]
    assert work[3] == 3.0
