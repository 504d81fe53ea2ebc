"""Probabilities from both sides: outward rounding, and how they are read."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import powersum as ps
from powersum.model.interval import Interval

LOGS = st.floats(-1e6, 0.0) | st.floats(-40.0, 0.0)


@given(LOGS, st.floats(0.0, 50.0), st.floats(-1e6, 1e6), st.floats(0.0, 50.0))
def test_the_ratio_is_rounded_outward(log_share: float, width: float, below: float, wide: float) -> None:
    above = (below + log_share, below + log_share + width)
    interval = Interval.ratio(above, (below, below + wide))
    assert Fraction(interval.log_lower) <= Fraction(above[0]) - Fraction(below + wide)
    most = Fraction(above[1]) - Fraction(below)
    assert Fraction(interval.log_upper) >= min(most, Fraction(0))
    assert 0.0 <= interval.lower <= interval.upper <= 1.0
    assert interval.lower <= math.exp(interval.log_lower)
    assert interval.upper >= math.exp(interval.log_upper)


def test_what_is_not_known_is_no_claim() -> None:
    infinity = math.inf
    assert Interval.ratio((-1.0, -1.0), (-infinity, infinity)) == Interval(-infinity, 0.0)
    assert Interval.ratio((-infinity, infinity), (0.0, 0.0)) == Interval(-infinity, 0.0)
    assert Interval.ratio((-infinity, -infinity), (0.0, 1.0)).upper == 0.0


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.29612, 0.29612, "29.6 %"),
        (1.0, 1.0, "100 %"),
        (0.0, 0.0, "0 %"),
        (0.20049, 0.25001, "20 % to 25.1 %"),
        (0.0, 0.3, "at most 30 %"),
        (0.0, 1.0, "unknown"),
        (3.14159e-9, 3.14159e-9, "3.14e-9"),
        (9.99999e-9, 9.99999e-9, "1e-8"),
    ],
)
def test_read_by_people(lower: float, upper: float, text: str) -> None:
    assert str(Interval(*(math.log(side) if side else -math.inf for side in (lower, upper)))) == text


def test_too_small_for_a_float() -> None:
    assert str(Interval(-2000.0, -2000.0)) == "2.58e-869"
    assert Interval(-2000.0, -2000.0).lower == 0.0
    assert Interval(-2000.0, -2000.0).upper > 0.0


def test_a_number_only_where_it_is_one() -> None:
    assert float(Interval(math.log(0.25), math.log(0.25))) == pytest.approx(0.25)
    assert float(Interval(-math.inf, -math.inf)) == 0.0
    with pytest.raises(ps.InputError, match="is an interval, 20 % to 25 %"):
        float(Interval(math.log(0.2000001), math.log(0.2499999)))


NARROW = Interval(math.log(0.25), math.log(0.25))
WIDE = Interval(math.log(0.2), math.log(0.25))


def test_a_narrow_interval_is_a_number() -> None:
    assert f"{NARROW:.4f}" == "0.2500"
    assert f"{NARROW}" == "25 %"
    assert round(NARROW, 3) == 0.25
    added = [1 - NARROW, NARROW - 1, NARROW + 1, 1 + NARROW, NARROW + NARROW]
    assert added == pytest.approx([0.75, -0.75, 1.25, 1.25, 0.5])
    assert pytest.approx([0.5, 0.5, 0.125, 4.0]) == [2 * NARROW, NARROW * 2, NARROW / 2, 1 / NARROW]
    assert [NARROW > 0.2, NARROW >= 0.2, NARROW < 0.3, NARROW <= 0.3] == [True] * 4
    assert [NARROW > 0.3, NARROW >= 0.3, NARROW < 0.2, NARROW <= 0.2] == [False] * 4
    assert sorted([NARROW, Interval(math.log(0.1), math.log(0.1))])[1] is NARROW


def test_a_wide_interval_is_compared_where_its_sides_decide() -> None:
    assert [WIDE > 0.1, WIDE < 0.3, WIDE > 0.3, WIDE < 0.1] == [True, True, False, False]
    assert Interval(math.log(0.5), math.log(0.6)) > WIDE
    for wrong in (
        lambda: WIDE > 0.22,
        lambda: WIDE < 0.22,
        lambda: WIDE >= 0.22,
        lambda: WIDE > NARROW,
        lambda: 1 - WIDE,
        lambda: 2 * WIDE,
        lambda: round(WIDE, 3),
        lambda: f"{WIDE:.3f}",
        lambda: float(WIDE),
    ):
        with pytest.raises(ps.InputError, match=r"use \.lower and \.upper"):
            wrong()


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_no_comparison_is_wrong_for_any_number_within(one: float, two: float, other: float) -> None:
    low, high = sorted((one, two))
    interval = Interval(math.log(low) if low else -math.inf, math.log(high) if high else -math.inf)
    asks: list[Any] = [lambda p: p > other, lambda p: p < other, lambda p: p >= other, lambda p: p <= other]
    for ask in asks:
        try:
            found = ask(interval)
        except ps.InputError:
            continue
        if not interval.exact:
            assert [ask(interval.lower), ask(interval.upper)] == [found, found]


def test_words_for_what_is_hardly_known() -> None:
    assert str(Interval(-93.0, 0.0)) == "at least 4.07e-41"
    assert str(Interval(math.log(0.2), 0.0)) == "20 % to 100 %"
    assert str(Interval(-math.inf, 0.0)) == "unknown"
    assert not Interval(-93.0, 0.0).informative
    assert Interval(-93.0, -92.0).informative
