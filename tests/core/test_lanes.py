"""Eight numbers at a time against one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powersum.core.arrays import FloatArray
from powersum.core.fastmath import exp_of, log_of
from powersum.core.fastmath_single import (
    exp_of_either,
    exp_single,
    log1p_of_either,
    log1p_single,
    log_of_either,
    log_single,
)
from powersum.core.jit import compiled
from powersum.core.lanes import (
    HALVES,
    LANES,
    add_half_lanes,
    half_lanes_at,
    half_places,
    lanes_at,
    larger,
    largest_of,
    put_lanes,
    smaller,
    sum_of,
    where_above,
    where_least,
)


@compiled
def functions(x: FloatArray, exps: FloatArray, logs: FloatArray, others: FloatArray) -> None:
    for i in range(np.uint64(0), np.uint64(x.size), np.uint64(LANES)):
        lanes = lanes_at(x, i)
        put_lanes(exps, i, exp_of_either(lanes))
        put_lanes(logs, i, log_of_either(exp_of_either(lanes)))
        put_lanes(others, i, log1p_of_either(exp_of_either(smaller(lanes, 0.0))))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_they_are_the_functions_of_single_numbers(kind: Any) -> None:
    x = np.linspace(-60.0, 60.0, 50 * LANES).astype(kind)
    exps, logs, others = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    functions(x, exps, logs, others)
    exp, log = (exp_of, log_of) if kind == np.float64 else (exp_single, log_single)
    np.testing.assert_array_equal(exps, [exp(v) for v in x])
    np.testing.assert_array_equal(logs, [log(v) for v in exps])
    below = exps * (x < 0) + (x >= 0)
    wanted = [log_of(1.0 + v) if kind == np.float64 else log1p_single(v) for v in below.astype(kind)]
    np.testing.assert_array_equal(others, wanted)


@compiled
def choices(a: FloatArray, b: FloatArray, out: FloatArray) -> Any:
    none = np.uint64(0)
    one, two = lanes_at(a, none), lanes_at(b, none)
    put_lanes(out, np.uint64(0), larger(one, two))
    put_lanes(out, np.uint64(8), smaller(one, two))
    put_lanes(out, np.uint64(16), where_above(one, two, 1.0, 2.0))
    put_lanes(out, np.uint64(24), where_least(one, two, one, 2.0))
    put_lanes(out, np.uint64(32), (one - two) / (one * two + 3.0))
    return sum_of(two), largest_of(two)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_choices_in_each_lane(kind: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 3, LANES).astype(kind), rng.integers(0, 3, LANES).astype(kind)
    a[5] = np.nan
    out = np.empty(5 * LANES, kind)
    total, largest = choices(a, b, out)
    least, above = np.where(b < a, b, a), np.where(a > b, kind(1), kind(2))
    wanted = [np.where(b > a, b, a), least, above, np.where(a >= b, a, kind(2)), (a - b) / (a * b + kind(3))]
    np.testing.assert_array_equal(out, np.concatenate(wanted))
    assert total == b.sum()
    assert largest == b.max()


@compiled
def halves(kind: int, numbers: FloatArray, spread: FloatArray, eight: FloatArray, target: FloatArray) -> None:
    put_lanes(spread, np.uint64(0), half_lanes_at(numbers, np.uint64(1), np.int64(kind)))
    add_half_lanes(target, np.uint64(1), lanes_at(eight, np.uint64(0)), np.int64(kind))


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tables_that_have_some_of_three_axes(kind: int, dtype: Any) -> None:
    axes = tuple(a for a in range(3) if not kind >> (2 - a) & 1)
    size = 2 ** (3 - len(axes))
    numbers, eight = np.arange(10.0).astype(dtype), (np.arange(8.0) ** 2).astype(dtype)
    spread, target = np.empty(LANES, dtype), np.ones(10, dtype)
    halves(kind, numbers, spread, eight, target)
    shape = [2 if kind >> (2 - a) & 1 else 1 for a in range(3)]
    wide = np.broadcast_to(numbers[1 : 1 + size].reshape(shape), (2, 2, 2)).ravel()
    np.testing.assert_array_equal(spread, wide)
    np.testing.assert_array_equal(numbers[1:][half_places(kind)], wide)
    summed = eight.reshape(2, 2, 2).sum(axis=axes).ravel()
    np.testing.assert_array_equal(target, np.concatenate(([1.0], 1.0 + summed, np.ones(9 - size))))
