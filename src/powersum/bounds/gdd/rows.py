"""The one operation every bound here is built from: the power sum of a table over its leading axis, and its beliefs.

Many tables of one shape lie side by side: tables of ``rest`` columns of ``lanes`` regions are a row of ``rest · lanes``
numbers for each state of its leading axis, and everything here runs along rows, eight columns at a time and without a
branch, whatever the size of a single table. Each column has its own weight; 1 sums, 0 maximises, for which the inverse
weight is so large that only the largest entries count. ``-inf`` entries are ordinary zeros of probability: a column
that is ``-inf`` throughout has power sum ``-inf`` and conditional beliefs 0, never NaN.

Who hands over an array has room for eight numbers from each of its places on: rows are short and many, and what is
left of the last eight is garbage that is written behind a row, where something else is written later or nothing lies.
Rows are named by where they start, not by slices: counting references to a slice takes as long as a short row.
"""

from __future__ import annotations

import numpy as np

from powersum.bounds.buckets.power_sums import last_eight
from powersum.core.arrays import FloatArray
from powersum.core.fastmath import LOWEST
from powersum.core.fastmath_single import exp_of_either, log1p_of_either, log_of_either
from powersum.core.jit import bare
from powersum.core.lanes import LANES, lanes_at, lanes_of, larger, put_lanes, smaller, where_above, where_least

SMALLEST_WEIGHT = 1e-300
"""Weights below this are maxima: the inverse is as large as a double may be here."""

_STEP, _DEAD = np.uint64(LANES), -np.inf


@bare
def spread(lane_weight: FloatArray, lanes: int, n: int, weight: FloatArray, inverse: FloatArray) -> None:
    """Repeat the weights of the lanes along a row of ``n``, and their inverses."""
    width, end = np.uint64(lanes), np.uint64(n)
    r = np.uint64(0)
    while r < width:
        own = lanes_at(lane_weight, r)
        put_lanes(weight, r, own)
        put_lanes(inverse, r, 1.0 / larger(own, SMALLEST_WEIGHT))
        r += _STEP
    done = width
    while done < end:
        # What is there is written once more: rows of a few lanes double quickly.
        more, r = min(done, end - done), np.uint64(0)
        while r < more:
            put_lanes(weight, done + r, lanes_at(weight, r))
            put_lanes(inverse, done + r, lanes_at(inverse, r))
            r += _STEP
        done += more


@bare
def power_sums(table: FloatArray, card: int, columns: int, weight: FloatArray, inverse: FloatArray) -> None:
    """Replace the first row of ``table`` by the log power sums over its ``card`` rows; spoils the others."""
    n, at = np.uint64(columns), np.uint64(0)
    # Eight by eight upwards: what a message spoils behind its row are columns that have been read.
    while at < n:
        if card == 2:
            a, b = lanes_at(table, at), lanes_at(table, n + at)
            top = larger(a, b)
            # Of a dead column both are -inf, and their difference would be no number.
            gap = larger((smaller(a, b) - where_above(top, _DEAD, top, 0.0)) * lanes_at(inverse, at), LOWEST)
            excess = where_above(gap, LOWEST, exp_of_either(gap), 0.0)
            put_lanes(table, at, top + lanes_at(weight, at) * log1p_of_either(excess))
        else:
            top = lanes_at(table, at)
            row = at
            for _ in range(1, card):
                row += n
                top = larger(top, lanes_at(table, row))
            base = where_above(top, _DEAD, top, 0.0)
            total = lanes_of(0.0)
            row = at
            for _ in range(card):
                gap = larger((lanes_at(table, row) - base) * lanes_at(inverse, at), LOWEST)
                total = total + where_above(gap, LOWEST, exp_of_either(gap), 0.0)
                row += n
            # The largest entry's share is 1; only a dead column has less.
            put_lanes(table, at, top + lanes_at(weight, at) * log_of_either(larger(total, 1.0)))
        at += _STEP


@bare
def power_sums_with_beliefs(
    table: FloatArray, beliefs: FloatArray, first: int, card: int, columns: int, weight: FloatArray, inverse: FloatArray
) -> None:
    """Log power sums over the ``card`` rows from ``first`` on, into the row after them, and the beliefs of the rows.

    A belief is the derivative of a column's power sum with respect to its entry (paper, Theorem 5.1). For a maximum it
    is spread evenly over the entries that attain it.
    """
    n, start = np.uint64(columns), np.uint64(first)
    message = start + np.uint64(card) * n
    # Where a row ends amid eight columns its last eight are done once more, for the next row of beliefs lies behind it.
    at, last = np.uint64(0), last_eight(columns)
    while True:
        if card == 2:
            a, b = lanes_at(table, start + at), lanes_at(table, start + n + at)
            top = larger(a, b)
            gap = larger((smaller(a, b) - where_above(top, _DEAD, top, 0.0)) * lanes_at(inverse, at), LOWEST)
            excess = where_above(gap, LOWEST, exp_of_either(gap), 0.0)
            put_lanes(table, message + at, top + lanes_at(weight, at) * log1p_of_either(excess))
            high = 1.0 / (1.0 + excess)
            low = excess * high
            high = where_above(top, _DEAD, high, 0.0)
            put_lanes(beliefs, start + at, where_least(a, b, high, low))
            put_lanes(beliefs, start + n + at, where_least(a, b, low, high))
        else:
            top = lanes_at(table, start + at)
            row = start + at
            for _ in range(1, card):
                row += n
                top = larger(top, lanes_at(table, row))
            base = where_above(top, _DEAD, top, 0.0)
            total = lanes_of(0.0)
            row = start + at
            for _ in range(card):
                gap = larger((lanes_at(table, row) - base) * lanes_at(inverse, at), LOWEST)
                total = total + where_above(gap, LOWEST, exp_of_either(gap), 0.0)
                row += n
            whole = larger(total, 1.0)
            put_lanes(table, message + at, top + lanes_at(weight, at) * log_of_either(whole))
            share = 1.0 / whole
            row = start + at
            for _ in range(card):
                gap = larger((lanes_at(table, row) - base) * lanes_at(inverse, at), LOWEST)
                put_lanes(beliefs, row, where_above(gap, LOWEST, exp_of_either(gap), 0.0) * share)
                row += n
        if at >= last:
            break
        at = min(at + _STEP, last)
