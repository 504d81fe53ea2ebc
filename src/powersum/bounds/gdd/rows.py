"""The one operation every bound here is built from: the power sum of a table over its leading axis, and its beliefs.

Many tables of one shape lie side by side: tables of ``rest`` columns of ``lanes`` regions are a row of ``rest · lanes``
numbers for each state of its leading axis, and every loop here runs along rows, without a branch, so that it is
vectorised whatever the size of a single table. Each column has its own weight; 1 sums, 0 maximises, for which the
inverse weight is so large that only the largest entries count. ``-inf`` entries are ordinary zeros of probability: a
column that is ``-inf`` throughout has power sum ``-inf`` and conditional beliefs 0, never NaN.

Loops are short and many because LLVM gives up on those that touch more than a few arrays. Rows are named by where they
start, not by slices: counting references to a slice takes as long as a short row. Places are unsigned inside, for Numba
makes a signed one count from the end where it is negative, and such a loop stays scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.fastmath import LOWEST, exp_of, log_of
from powersum.core.jit import bare

SMALLEST_WEIGHT = 1e-300
"""Weights below this are maxima: the inverse is as large as a double may be here."""


@bare
def spread(lane_weight: FloatArray, lanes: int, n: int, weight: FloatArray, inverse: FloatArray) -> None:
    """Repeat the weights of the lanes along a row of ``n``, and their inverses."""
    width, end = np.uint64(lanes), np.uint64(n)
    for r in range(width):
        weight[r] = lane_weight[r]
        inverse[r] = 1.0 / max(lane_weight[r], SMALLEST_WEIGHT)
    done = width
    while done < end:
        # What is there is written once more: rows of a few lanes double quickly.
        more = min(done, end - done)
        for r in range(more):
            weight[done + r] = weight[r]
        for r in range(more):
            inverse[done + r] = inverse[r]
        done += more


@bare
def _excess_of_two(table: FloatArray, zero: Any, n: Any, inverse: FloatArray, excess: FloatArray, to: Any) -> None:
    """``exp((smaller − larger) / weight)`` of two entries."""
    one = zero + n
    for r in range(n):
        a, b = table[zero + r], table[one + r]
        top, low = max(a, b), min(a, b)
        # Of a dead column both are -inf, and their difference would be no number.
        gap = max((low - (top if top > -np.inf else 0.0)) * inverse[r], LOWEST)
        excess[to + r] = exp_of(gap) if gap > LOWEST else 0.0


@bare
def _message_of_two(
    table: FloatArray, zero: Any, n: Any, excess: FloatArray, at: Any, weight: FloatArray, message: Any
) -> None:
    one = zero + n
    for r in range(n):
        table[message + r] = max(table[zero + r], table[one + r]) + weight[r] * log_of(1.0 + excess[at + r])


@bare
def _beliefs_of_two(table: FloatArray, beliefs: FloatArray, at: Any, n: Any) -> None:
    """Conditional beliefs of two entries; the second comes in as the excess."""
    other = at + n
    for r in range(n):
        a, b = table[at + r], table[other + r]
        excess = beliefs[other + r]
        high = 1.0 / (1.0 + excess)
        low = excess * high
        high = high if max(a, b) > -np.inf else 0.0
        beliefs[at + r] = high if a >= b else low
        beliefs[other + r] = low if a >= b else high


@bare
def _set_top(table: FloatArray, at: Any, card: int, n: Any, top: FloatArray, total: FloatArray) -> None:
    for r in range(n):
        top[r] = table[at + r]
        total[r] = 0.0
    for _ in range(1, card):
        at += n
        for r in range(n):
            top[r] = max(top[r], table[at + r])


@bare
def _add_excess(
    table: FloatArray, at: Any, n: Any, top: FloatArray, inverse: FloatArray, excess: FloatArray, to: Any,
    total: FloatArray,
) -> None:  # fmt: skip
    for r in range(n):
        gap = max((table[at + r] - (top[r] if top[r] > -np.inf else 0.0)) * inverse[r], LOWEST)
        share = exp_of(gap) if gap > LOWEST else 0.0
        excess[to + r] = share
        total[r] += share


@bare
def _set_message(
    top: FloatArray, total: FloatArray, weight: FloatArray, n: Any, table: FloatArray, message: Any
) -> None:
    # The largest entry's share is 1; only a dead column has less.
    for r in range(n):
        table[message + r] = top[r] + weight[r] * log_of(max(total[r], 1.0))


@bare
def power_sums(
    table: FloatArray, card: int, columns: int, weight: FloatArray, inverse: FloatArray, top: FloatArray,
    excess: FloatArray, total: FloatArray,
) -> None:  # fmt: skip
    """Replace the first row of ``table`` by the log power sums over its ``card`` rows; spoils the scratch rows."""
    n, start = np.uint64(columns), np.uint64(0)
    if card == 2:
        _excess_of_two(table, start, n, inverse, excess, start)
        _message_of_two(table, start, n, excess, start, weight, start)
        return
    _set_top(table, start, card, n, top, total)
    at = start
    for _ in range(card):
        _add_excess(table, at, n, top, inverse, excess, start, total)
        at += n
    _set_message(top, total, weight, n, table, start)


@bare
def power_sums_with_beliefs(
    table: FloatArray, beliefs: FloatArray, first: int, card: int, columns: int, weight: FloatArray,
    inverse: FloatArray, top: FloatArray, total: FloatArray,
) -> None:  # fmt: skip
    """Log power sums over the ``card`` rows from ``first`` on, into the row after them, and the beliefs of the rows.

    A belief is the derivative of a column's power sum with respect to its entry (paper, Theorem 5.1). For a maximum it
    is spread evenly over the entries that attain it.
    """
    n, start = np.uint64(columns), np.uint64(first)
    message = start + np.uint64(card) * n
    if card == 2:
        _excess_of_two(table, start, n, inverse, beliefs, start + n)
        _message_of_two(table, start, n, beliefs, start + n, weight, message)
        _beliefs_of_two(table, beliefs, start, n)
        return
    _set_top(table, start, card, n, top, total)
    at = start
    for _ in range(card):
        _add_excess(table, at, n, top, inverse, beliefs, at, total)
        at += n
    _set_message(top, total, weight, n, table, message)
    for r in range(n):
        total[r] = 1.0 / max(total[r], 1.0)
    at = start
    for _ in range(card):
        for r in range(n):
            beliefs[at + r] *= total[r]
        at += n
