"""Marginals of a block of beliefs, added to the gradients of a node's inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.bounds.buckets.inputs import add_row
from powersum.bounds.buckets.patterns import HALVED
from powersum.bounds.buckets.power_sums import last_eight
from powersum.bounds.buckets.tree_wiring import (
    Index32Array,
)
from powersum.core.arrays import FloatArray
from powersum.core.jit import bare
from powersum.core.lanes import LANES, add_half_lanes, lanes_at, lanes_of, put_lanes, sum_of

_STEP, _ONE = np.uint64(LANES), np.uint64(1)


@bare
def set_beliefs(
    tables: FloatArray, table: int, across: int, slopes: FloatArray, incoming: int, states: int, columns: int,
    block: FloatArray, start: int, stride: int,
) -> None:  # fmt: skip
    """Beliefs of a block: conditionals times the belief that comes back from the message.

    Conditionals of the states lie ``across`` apart; where that is 0, there are those of the first of two states only.
    """
    back, last = np.uint64(incoming), last_eight(columns)
    kept, row = np.uint64(table), np.uint64(start)
    if across == 0:
        at, other = np.uint64(0), np.uint64(start + stride)
        while True:
            belief = lanes_at(slopes, back + at)
            first = lanes_at(tables, kept + at) * belief
            put_lanes(block, row + at, first)
            put_lanes(block, other + at, belief - first)
            if at >= last:
                break
            at = min(at + _STEP, last)
    else:
        # Row by row, for what a short one writes beyond its end is where the next one goes.
        for _ in range(states):
            at = np.uint64(0)
            while True:
                put_lanes(block, row + at, lanes_at(tables, kept + at) * lanes_at(slopes, back + at))
                if at >= last:
                    break
                at = min(at + _STEP, last)
            row += np.uint64(stride)
            kept += np.uint64(across)


@bare
def product_of(one: FloatArray, first: int, two: FloatArray, second: int, length: int) -> Any:
    """Sum of the products of two stretches."""
    a, b, end = np.uint64(first), np.uint64(second), np.uint64(first + length)
    sums = lanes_of(one.dtype.type(0.0))
    while a + _STEP <= end:
        sums = sums + lanes_at(one, a) * lanes_at(two, b)
        a += _STEP
        b += _STEP
    total = sum_of(sums)
    while a < end:
        total += one[a] * two[b]
        a += _ONE
        b += _ONE
    return total


@bare
def total_of_row(values: FloatArray, start: int, length: int) -> Any:
    """Sum of a stretch."""
    at, end = np.uint64(start), np.uint64(start + length)
    sums = lanes_of(values.dtype.type(0.0))
    while at + _STEP <= end:
        sums = sums + lanes_at(values, at)
        at += _STEP
    total = sum_of(sums)
    while at < end:
        total += values[at]
        at += _ONE
    return total


@bare
def give_runs(
    maps: Index32Array, first: int, run: int, whole: bool, block: FloatArray, row: int, length: int,
    slopes: FloatArray, start: int,
) -> None:  # fmt: skip
    """Add a row to the gradient of an input by runs: contiguous stretches, or (not ``whole``) one entry for each."""
    target, place = np.uint64(start), np.uint64(first)
    unit = slopes.dtype.type(1.0)
    for at in range(row, row + length, run):
        to: Any = np.int64(target + maps[place])
        if whole:
            add_row(unit, block, at, slopes, to, run)
        else:
            slopes[to] += total_of_row(block, at, run)
        place += _ONE


@bare
def give_halved(
    maps: Index32Array, first: int, kind: int, block: FloatArray, row: int, length: int, slopes: FloatArray, start: int
) -> None:
    """Add a row to the gradient of an input that has some of the last three axes, of two states each."""
    target, place, at, end = np.uint64(start), np.uint64(first), np.uint64(row), np.uint64(row + length)
    axes = np.int64(kind - HALVED)
    while at < end:
        add_half_lanes(slopes, target + maps[place], lanes_at(block, at), axes)
        at += _STEP
        place += _ONE


@bare
def give_gathered(
    places: Index32Array, first: int, present: int, run: int, gaps: Index32Array, first_gap: int, n_gaps: int,
    block: FloatArray, row: int, slopes: FloatArray, start: int, spare: int,
) -> None:  # fmt: skip
    """Add a row to the gradient of an input by short runs of the input, which come together from ``spare`` on."""
    place, gap, at, step = np.uint64(first), np.uint64(first_gap), np.uint64(row), np.uint64(run)
    end, last_gap = np.uint64(first + present), np.uint64(first_gap + n_gaps)
    to = np.uint64(spare)
    while place < end:
        source = at + places[place]
        sums = lanes_at(block, source + gaps[gap])
        for g in range(gap + _ONE, last_gap):
            sums = sums + lanes_at(block, source + gaps[g])
        # Eight numbers, of which the next run takes the place of those that are too many.
        put_lanes(block, to, sums)
        to += step
        place += step
    add_row(slopes.dtype.type(1.0), block, spare, slopes, start, present)


@bare
def give_spread(
    places: Index32Array, first: int, present: int, gaps: Index32Array, first_gap: int, n_gaps: int,
    block: FloatArray, row: int, slopes: FloatArray, start: int,
) -> None:  # fmt: skip
    """Add a row to the gradient of an input entry by entry of the input."""
    at, target, place, gap = np.uint64(row), np.uint64(start), np.uint64(first), np.uint64(first_gap)
    for m in range(np.uint64(present)):
        source = at + places[place + m]
        # Two strands, which do not wait for each other.
        one, two = slopes.dtype.type(0.0), slopes.dtype.type(0.0)
        for g in range(np.uint64(n_gaps // 2)):
            one += block[source + gaps[gap + g + g]]
            two += block[source + gaps[gap + g + g + _ONE]]
        if n_gaps & 1:
            one += block[source + gaps[gap + np.uint64(n_gaps - 1)]]
        slopes[target + m] += one + two
