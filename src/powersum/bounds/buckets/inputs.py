"""How the inputs of a node come into its table: adding up a block, and looking up single entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.bounds.buckets.patterns import CONSTANT, GATHER, HALVED, RUNS, WHOLE
from powersum.bounds.buckets.tree_wiring import (
    COLUMNS,
    FIRST_BASE,
    FIRST_MAP,
    KIND,
    PATTERN,
    ROW_LENGTH,
    ROWS,
    RUN,
    SOURCE,
    STRIDE,
    Index32Array,
    TreeWiring,
)
from powersum.core.arrays import FloatArray
from powersum.core.jit import bare, inner
from powersum.core.lanes import LANES, half_lanes_at, lanes_at, lanes_of, put_lanes

_STEP, _ONE = np.uint64(LANES), np.uint64(1)


# Here places are unsigned, for which Numba needs no test whether they count from the end. Whole arrays are handed over
# with the places where to begin, for a slice counts references, which takes as long as the work on a short row; so do
# functions that end in more than one place.


@bare
def clear(values: FloatArray, start: int, length: int) -> None:
    """Write zeros."""
    at, end = np.uint64(start), np.uint64(start + length)
    none = lanes_of(values.dtype.type(0.0))
    while at + _STEP <= end:
        put_lanes(values, at, none)
        at += _STEP
    while at < end:
        values[at] = values.dtype.type(0.0)
        at += _ONE


@bare
def add_row(sign: float, source: FloatArray, start: int, target: FloatArray, row: int, length: int) -> None:
    """Add a stretch to another one, times its sign."""
    at, by, end = np.uint64(row), np.uint64(start), np.uint64(row + length)
    while at + _STEP <= end:
        put_lanes(target, at, lanes_at(target, at) + sign * lanes_at(source, by))
        at += _STEP
        by += _STEP
    while at < end:
        target[at] += sign * source[by]
        at += _ONE
        by += _ONE


@bare
def add_number(value: float, target: FloatArray, row: int, length: int) -> None:
    """Add a number to all of a stretch."""
    at, end = np.uint64(row), np.uint64(row + length)
    while at + _STEP <= end:
        put_lanes(target, at, lanes_at(target, at) + value)
        at += _STEP
    while at < end:
        target[at] += value
        at += _ONE


@bare
def add_short_runs(
    sign: float, pool: FloatArray, start: int, maps: Index32Array, first: int, run: int, whole: bool,
    table: FloatArray, row: int, length: int, spare: int,
) -> None:  # fmt: skip
    """As :func:`add_runs`, for runs of less than eight, which are first put side by side from ``spare`` on.

    Eight entries are written for each, and the next run over those that are too many.
    """
    source, place, at, step = np.uint64(start), np.uint64(first), np.uint64(spare), np.uint64(run)
    end = np.uint64(spare + length)
    if whole:
        while at < end:
            put_lanes(table, at, lanes_at(pool, source + maps[place]))
            at += step
            place += _ONE
    else:
        while at < end:
            put_lanes(table, at, lanes_of(pool[source + maps[place]]))
            at += step
            place += _ONE
    add_row(sign, table, spare, table, row, length)


@bare
def add_runs(
    sign: float, pool: FloatArray, start: int, maps: Index32Array, first: int, run: int, whole: bool,
    table: FloatArray, row: int, length: int,
) -> None:  # fmt: skip
    """Add an input by runs: contiguous stretches of it, or (not ``whole``) one entry of it for each."""
    source, place = np.uint64(start), np.uint64(first)
    for at in range(row, row + length, run):
        begin: Any = np.int64(source + maps[place])
        if whole:
            add_row(sign, pool, begin, table, at, run)
        else:
            add_number(sign * pool[begin], table, at, run)
        place += _ONE


@bare
def add_halved(
    sign: float, pool: FloatArray, start: int, maps: Index32Array, first: int, kind: int,
    table: FloatArray, row: int, length: int,
) -> None:  # fmt: skip
    """Add an input that has some of the last three axes, of two states each."""
    source, place, at, end = np.uint64(start), np.uint64(first), np.uint64(row), np.uint64(row + length)
    axes = np.int64(kind - HALVED)
    while at < end:
        put_lanes(table, at, lanes_at(table, at) + sign * half_lanes_at(pool, source + maps[place], axes))
        at += _STEP
        place += _ONE


@inner
def place_of(wiring: TreeWiring, node: int, k: int, state: int, column: int) -> Any:
    """Where in the pool the entry of input ``k`` lies that meets one entry of a node's table."""
    rows, columns = wiring.nodes[node, ROWS], wiring.nodes[node, COLUMNS]
    width = wiring.nodes[node, ROW_LENGTH] if rows > 1 else columns
    block, within = column // width, column % width
    entry = within if rows > 1 else state * columns + within
    number = wiring.inputs[k, PATTERN]
    kind = wiring.patterns[number, KIND]
    start = wiring.inputs[k, SOURCE] + wiring.bases[wiring.inputs[k, FIRST_BASE] + block]
    if rows > 1:
        start += state * wiring.inputs[k, STRIDE]
    if kind == WHOLE:
        return start + entry
    if kind == CONSTANT:
        return start
    run = wiring.patterns[number, RUN]
    start += np.int64(wiring.maps[wiring.patterns[number, FIRST_MAP] + entry // run])
    if kind in (RUNS, GATHER):
        return start + entry % run
    if kind > HALVED:
        place = 0
        for bit in range(2, -1, -1):
            if (kind - HALVED) >> bit & 1:
                place = 2 * place + (entry >> bit & 1)
        return start + place
    return start
