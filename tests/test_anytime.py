"""Anytime integrals: means over log time of how far values and bounds are from the best."""

from __future__ import annotations

import math

import pytest
from benchmarks.anytime import FIRST, distance, integral, primal_and_dual


def test_a_distance_counts_from_the_first_step_on() -> None:
    # From 10 ms to 1 s is two decades: nothing for one of them, half of the value away for the other.
    assert integral([(0.1, 0.5)], 1.0) == pytest.approx(0.5 * 1.0 + 0.5 * 0.5)
    assert integral([], 20.0) == pytest.approx(1.0)
    assert integral([(FIRST / 10.0, 0.0)], 20.0) == 0.0
    assert integral([(0.1, 0.5), (30.0, 0.0)], 1.0) == pytest.approx(0.75)


def test_distances_are_shares_of_the_best_value() -> None:
    assert distance(-110.0, -100.0) == pytest.approx(0.1)
    assert distance(-1e9, -100.0) == 1.0
    assert distance(-math.inf, -100.0) == 1.0
    assert distance(-math.inf, -math.inf) == 0.0


def test_both_sides_are_told_apart() -> None:
    moments = [(FIRST, -math.inf, 0.0), (0.1, -150.0, -50.0)]
    primal, dual = primal_and_dual(moments, -100.0, 1.0)
    assert primal == pytest.approx(0.5 * 1.0 + 0.5 * 0.5)
    assert dual == pytest.approx(0.5 * 1.0 + 0.5 * 0.5)
