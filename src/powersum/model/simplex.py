"""What intervals of probabilities that add up to 1 say of expected values and entropies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.model.rounding import UNIT


class Sides(NamedTuple):
    """A number from both sides."""

    lower: float
    upper: float


def expected(lower: FloatArray, upper: FloatArray, values: FloatArray) -> Sides:
    """The least and the largest expected value of numbers, one for each state."""
    error = UNIT * 8.0 * (len(values) + 4.0) * float(np.abs(values).max(initial=0.0))
    return Sides(float(_least(lower, upper, values) - error), float(error - _least(lower, upper, -values)))


def entropy(lower: FloatArray, upper: FloatArray) -> Sides:
    """The least and the largest entropy, in nats."""
    n = len(lower)
    error = UNIT * 64.0 * (n + 4.0) * (1.0 + float(np.log(max(n, 2))))
    # Between its ends a term -p log p lies above the chord.
    low, high = _terms(lower), _terms(upper)
    width = upper - lower
    slopes = np.divide(high - low, width, out=np.zeros(n), where=width > 0.0)
    least = float((low - slopes * lower).sum()) + _least(lower, upper, slopes)
    # For any price of probability the best of each term alone is a bound on the best of all together.
    price = -1.0 - np.log(_level(lower, upper))
    best = np.clip(np.exp(-1.0 - price), lower, upper)
    most = float((_terms(best) - price * best).sum()) + price
    most = min(most + error + UNIT * 8.0 * n * abs(price), float(np.log(n)) + error)
    return Sides(max(float(least - error), 0.0), float(most))


def _terms(p: FloatArray) -> FloatArray:
    """The terms of an entropy."""
    return np.asarray(-p * np.log(np.where(p > 0.0, p, 1.0)))


def _least(lower: FloatArray, upper: FloatArray, costs: FloatArray) -> float:
    """The least sum of costs times probabilities: what is left to give goes to the cheapest states."""
    order = np.argsort(costs, kind="stable")
    room = (upper - lower)[order]
    left = max(1.0 - float(lower.sum()), 0.0)
    given = np.clip(left - (np.cumsum(room) - room), 0.0, room)
    return float((costs * lower).sum() + (costs[order] * given).sum())


def _level(lower: FloatArray, upper: FloatArray) -> float:
    """The level to which probabilities are filled up, as far as their intervals allow, so that they add up to 1."""
    low, high = 1e-300, 1.0
    for _ in range(200):
        middle = np.sqrt(low * high) if high > 4.0 * low else 0.5 * (low + high)
        low, high = (middle, high) if np.clip(middle, lower, upper).sum() < 1.0 else (low, middle)
    return float(high)
