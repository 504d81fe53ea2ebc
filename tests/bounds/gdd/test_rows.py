"""Power sums and beliefs of single tables against plain NumPy, at every weight, with zeros."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.bounds.gdd.rows import power_sums, power_sums_with_beliefs, spread
from powersum.core.arrays import FloatArray
from powersum.core.jit import compiled
from powersum.core.lanes import LANES
from tests.oracle import power_sum as power_sum_by_numpy


@compiled
def _sums(table: FloatArray, card: int, n: int, weight: FloatArray, scratch: FloatArray) -> None:
    spread(weight, weight.size, n, scratch[0], scratch[1])
    power_sums(table, card, n, scratch[0], scratch[1])


@compiled
def _beliefs(
    table: FloatArray, beliefs: FloatArray, card: int, n: int, weight: FloatArray, scratch: FloatArray
) -> None:
    spread(weight, weight.size, n, scratch[0], scratch[1])
    power_sums_with_beliefs(table, beliefs, 0, card, n, scratch[0], scratch[1])


def _roomy(values: FloatArray) -> FloatArray:
    """The same numbers where there is room for eight from each place on; what is not theirs is no number."""
    whole = np.full(values.size + LANES, np.nan)
    whole[: values.size] = values.ravel()
    return whole[: values.size]


def _scratch(columns: int) -> FloatArray:
    return np.full((2, columns + LANES), np.nan)


def _power_sum(table: FloatArray, weight: float) -> FloatArray:
    card, rest = table.shape
    flat = _roomy(table)
    _sums(flat, card, rest, _roomy(np.array([weight])), _scratch(rest))
    return flat[:rest]


def _with_beliefs(table: FloatArray, weight: float) -> tuple[FloatArray, FloatArray]:
    """Power sums of the columns, and their conditional beliefs."""
    card, rest = table.shape
    work = _roomy(np.concatenate([table.ravel(), np.empty(rest)]))
    beliefs = _roomy(np.full(card * rest, np.nan))
    _beliefs(work, beliefs, card, rest, _roomy(np.array([weight])), _scratch(rest))
    return work[card * rest :], beliefs.reshape(card, rest)


def _table(card: int, rest: int, zeros: float, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    table = rng.normal(0.0, 5.0, (card, rest))
    return np.where(rng.random(table.shape) < zeros, -np.inf, table)


@pytest.mark.parametrize("weight", [0.0, 1e-9, 1e-3, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("zeros", [0.0, 0.4, 1.0])
def test_power_sum_agrees_with_numpy(weight: float, zeros: float) -> None:
    for card, rest in [(1, 1), (1, 9), (2, 1), (2, 7), (2, 8), (2, 19), (3, 2), (3, 21), (5, 12)]:
        table = _table(card, rest, zeros, seed=card * rest)
        expected = power_sum_by_numpy(table, 0, weight)
        np.testing.assert_allclose(_power_sum(table, weight), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("card", [2, 3])
@pytest.mark.parametrize("rest", [1, 3, 5])
def test_each_lane_has_its_own_weight_and_meets_no_other(card: int, rest: int) -> None:
    """Five tables of some columns side by side give, to the last bit, what each of them gives alone."""
    lanes = 5
    weights = np.array([0.0, 1e-9, 0.3, 1.0, 2.5])
    tables = [_table(card, rest, 0.2, seed=lane) for lane in range(lanes)]
    side_by_side = np.stack(tables, axis=-1).reshape(card, rest * lanes)
    flat = _roomy(np.concatenate([side_by_side.ravel(), np.empty(rest * lanes)]))
    beliefs = _roomy(np.empty(card * rest * lanes))
    _beliefs(flat, beliefs, card, rest * lanes, _roomy(weights), _scratch(rest * lanes))
    for lane in range(lanes):
        values, mu = _with_beliefs(tables[lane], weights[lane])
        assert (flat[card * rest * lanes :].reshape(rest, lanes)[:, lane] == values).all()
        assert (beliefs.reshape(card, rest, lanes)[:, :, lane] == mu).all()
        assert (_power_sum(tables[lane], weights[lane]) == values).all()


@pytest.mark.parametrize("weight", [0.0, 1e-9, 0.2, 1.0, 3.0])
def test_beliefs_are_the_derivative(weight: float) -> None:
    card, rest = 3, 5
    table = _table(card, rest, 0.3, seed=8)
    table[:, 0] = -np.inf
    values, mu = _with_beliefs(table, weight)
    np.testing.assert_allclose(values, power_sum_by_numpy(table, 0, weight), rtol=1e-12)
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
    for states, beliefs in [([1.0, 3.0, 3.0], [0.0, 0.5, 0.5]), ([3.0, 3.0], [0.5, 0.5])]:
        values, mu = _with_beliefs(np.array(states)[:, None], 0.0)
        assert mu.ravel().tolist() == beliefs
        assert values.tolist() == [3.0]
