"""What is done with a block of a bucket's table: inputs are added up, and the first axis is reduced, by eight columns.

On the way down a row is divided: each column's share of what lies above it, which inputs are given back.

Rows of a block, one for each state of the bucket's own variable, lie one behind the other in ``rows``. Results go to
``message``, another array: where a row ends amid eight columns, its last eight are done once more, which changes
nothing. Rows of less than eight have garbage in the lanes that are left, and both arrays have room for it.
"""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.fastmath import LOWEST, exp_of, log_of
from powersum.core.jit import bare
from powersum.core.lanes import LANES, lanes_at, lanes_of, larger, put_lanes, smaller, sum_of, where_above

_STEP = np.uint64(LANES)
_FAR_BELOW = -1e300


@bare
def _add(target: FloatArray, at: np.uint64, end: np.uint64, source: FloatArray, begin: np.uint64) -> None:
    """Add numbers of ``source`` that follow each other, from ``begin`` on, to those of ``target`` up to ``end``."""
    while at + _STEP <= end:
        put_lanes(target, at, lanes_at(target, at) + lanes_at(source, begin))
        at += _STEP
        begin += _STEP
    while at < end:
        target[at] += source[begin]
        at += np.uint64(1)
        begin += np.uint64(1)


@bare
def add_input(
    rows: FloatArray, row: int, columns: int, source: FloatArray, here: int, gather: IntArray, where: int,
    stretch: int, follows: bool,
) -> None:  # fmt: skip
    """Add an input to a row, a stretch of columns at a time: of each it has one number or, if it ``follows``, all.

    They lie in ``source``, as far from ``here`` as ``gather`` says from ``where`` on.
    """
    if stretch == 1:
        for j in range(columns):
            rows[row + j] += source[here + gather[where + j]]
        return
    at, place = np.uint64(row), np.uint64(where)
    while at < np.uint64(row + columns):
        end = at + np.uint64(stretch)
        begin = np.uint64(here + gather[place])
        place += np.uint64(1)
        if follows:
            _add(rows, at, end, source, begin)
            at = end
        else:
            number = source[begin]
            while at + _STEP <= end:
                put_lanes(rows, at, lanes_at(rows, at) + number)
                at += _STEP
            while at < end:
                rows[at] += number
                at += np.uint64(1)


@bare
def maximise(rows: FloatArray, states: int, columns: int, message: FloatArray) -> None:
    """The largest entry of each column."""
    at, last, width = np.uint64(0), np.uint64(max(columns - LANES, 0)), np.uint64(columns)
    while True:
        row = at
        top = lanes_at(rows, row)
        for _ in range(1, states):
            row += width
            top = larger(top, lanes_at(rows, row))
        put_lanes(message, at, top)
        if at >= last:
            break
        at = min(at + _STEP, last)


@bare
def sum_two(rows: FloatArray, columns: int, weight: float, message: FloatArray) -> None:
    """Power sum of each column of two entries, of which one exponential is known: that of the larger one."""
    at, last, width = np.uint64(0), np.uint64(max(columns - LANES, 0)), np.uint64(columns)
    inverse = 1.0 / weight
    while True:
        a, b = lanes_at(rows, at), lanes_at(rows, at + width)
        top = larger(a, b)
        # Where both are impossible the difference would be no number; the top then says what is right.
        gap = larger((smaller(a, b) - larger(top, _FAR_BELOW)) * inverse, LOWEST)
        put_lanes(message, at, top + log_of(exp_of(gap) + 1.0) * weight)
        if at >= last:
            break
        at = min(at + _STEP, last)


@bare
def sum_any(rows: FloatArray, states: int, columns: int, weight: float, message: FloatArray) -> None:
    """Power sum of each column."""
    at, last, width = np.uint64(0), np.uint64(max(columns - LANES, 0)), np.uint64(columns)
    inverse = 1.0 / weight
    while True:
        row = at
        top = lanes_at(rows, row)
        for _ in range(1, states):
            row += width
            top = larger(top, lanes_at(rows, row))
        shift = larger(top, _FAR_BELOW)
        total = lanes_of(0.0)
        row = at
        for _ in range(states):
            total = total + exp_of(larger((lanes_at(rows, row) - shift) * inverse, LOWEST))
            row += width
        put_lanes(message, at, top + log_of(total) * weight)
        if at >= last:
            break
        at = min(at + _STEP, last)


@bare
def divide(
    rows: FloatArray, row: int, columns: int, message: FloatArray, place: int, above: FloatArray, above_place: int
) -> float:
    """Turn a row of logs into shares of what lies above each column, by its message; their sum."""
    at, end = np.uint64(row), np.uint64(row + columns)
    here, over = np.uint64(place), np.uint64(above_place)
    total = lanes_of(0.0)
    while at + _STEP <= end:
        gap = lanes_at(rows, at) - larger(lanes_at(message, here), _FAR_BELOW)
        # Less than that is taken for nothing, so that no probability comes out too large.
        share = lanes_at(above, over) * where_above(gap, LOWEST, exp_of(larger(gap, LOWEST)), 0.0)
        put_lanes(rows, at, share)
        total = total + share
        at += _STEP
        here += _STEP
        over += _STEP
    rest: float = sum_of(total)
    while at < end:
        single = rows[at] - max(message[here], _FAR_BELOW)
        rows[at] = above[over] * exp_of(single) if single > LOWEST else 0.0
        rest += rows[at]
        at += np.uint64(1)
        here += np.uint64(1)
        over += np.uint64(1)
    return rest


@bare
def give_input(
    rows: FloatArray, row: int, columns: int, target: FloatArray, here: int, gather: IntArray, where: int,
    stretch: int, follows: bool,
) -> None:  # fmt: skip
    """The other way round than :func:`add_input`: add a row to what is given back to an input."""
    if stretch == 1:
        for j in range(columns):
            target[here + gather[where + j]] += rows[row + j]
        return
    at, place = np.uint64(row), np.uint64(where)
    while at < np.uint64(row + columns):
        end = at + np.uint64(stretch)
        begin = np.uint64(here + gather[place])
        place += np.uint64(1)
        if follows:
            _add(target, begin, begin + np.uint64(stretch), rows, at)
            at = end
        else:
            total, rest = lanes_of(0.0), 0.0
            while at + _STEP <= end:
                total = total + lanes_at(rows, at)
                at += _STEP
            while at < end:
                rest += rows[at]
                at += np.uint64(1)
            target[begin] += rest + sum_of(total)
