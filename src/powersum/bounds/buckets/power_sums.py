"""Power sums over the first axis of a block, eight columns at a time.

The rows of a block lie ``stride`` apart in ``block``, from ``start`` on. Where a row ends amid eight columns, its last
eight are done once more, which changes nothing, for results go elsewhere; rows of less than eight have garbage in the
lanes that are left, and room for it behind them.

No column's largest entry is taken as less than ``nothing``, so that a column of ``-inf`` gives a message of about
``nothing`` and some finite conditionals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.fastmath_single import exp_of_either, log1p_of_either, log_of_either
from powersum.core.jit import bare, inlined
from powersum.core.lanes import (
    LANES,
    lanes_at,
    lanes_of,
    larger,
    largest_of,
    put_lanes,
    smaller,
    where_above,
    where_least,
)

_STEP = np.uint64(LANES)


@inlined
def last_eight(columns: int) -> Any:
    """Where the last eight columns begin."""
    return np.uint64(max(columns - LANES, 0))


@bare
def maximise(
    block: FloatArray, start: int, stride: int, states: int, columns: int, messages: FloatArray, to: int, nothing: float
) -> None:
    """The largest entry of each column."""
    at, last = np.uint64(0), last_eight(columns)
    first, step, message = np.uint64(start), np.uint64(stride), np.uint64(to)
    while True:
        top = lanes_of(nothing)
        row = first + at
        for _ in range(states):
            top = larger(top, lanes_at(block, row))
            row += step
        put_lanes(messages, message + at, top)
        if at >= last:
            break
        at = min(at + _STEP, last)


@bare
def sum_two(
    block: FloatArray, start: int, stride: int, columns: int, weight: float, messages: FloatArray, to: int,
    entropies: FloatArray, entropy: int, tables: FloatArray, table: int, across: int, nothing: float, lowest: float,
) -> None:  # fmt: skip
    """Power sum over a variable of two states: one exponential and one logarithm a column.

    Conditionals of the first state go to ``tables``, those of the second ``across`` behind them; of these there are
    none where ``across`` is 0.
    """
    at, last = np.uint64(0), last_eight(columns)
    zero, one, message = np.uint64(start), np.uint64(start + stride), np.uint64(to)
    shown, kept, other = np.uint64(entropy), np.uint64(table), np.uint64(table + across)
    none, unit = messages.dtype.type(0.0), messages.dtype.type(1.0)
    scale = unit / weight
    while True:
        a, b = lanes_at(block, zero + at), lanes_at(block, one + at)
        top = larger(larger(a, b), nothing)
        gap = larger((smaller(a, b) - top) * scale, lowest)
        e = where_above(gap, lowest, exp_of_either(gap), none)
        high = unit / (unit + e)
        low = e * high
        log_total = log1p_of_either(e)
        put_lanes(messages, message + at, top + weight * log_total)
        put_lanes(entropies, shown + at, log_total - gap * low)
        if across > 0:
            put_lanes(tables, other + at, where_least(a, b, low, high))
        put_lanes(tables, kept + at, where_least(a, b, high, low))
        if at >= last:
            break
        at = min(at + _STEP, last)


@bare
def sum_any(
    block: FloatArray, start: int, stride: int, states: int, columns: int, weight: float, messages: FloatArray, to: int,
    entropies: FloatArray, entropy: int, tables: FloatArray, table: int, across: int, spare: int, nothing: float,
    lowest: float,
) -> None:  # fmt: skip
    """Power sum over a variable of any number of states.

    Conditionals go to ``tables``, state by state ``across`` apart; ``spare`` is where ``block`` has room for eight
    numbers of each state.
    """
    at, last = np.uint64(0), last_eight(columns)
    first, step, message = np.uint64(start), np.uint64(stride), np.uint64(to)
    shown, kept, further = np.uint64(entropy), np.uint64(table), np.uint64(across)
    none, unit = messages.dtype.type(0.0), messages.dtype.type(1.0)
    scale = unit / weight
    while True:
        top = lanes_of(nothing)
        row = first + at
        for _ in range(states):
            top = larger(top, lanes_at(block, row))
            row += step
        total, mean = lanes_of(none), lanes_of(none)
        row, held = first + at, np.uint64(spare)
        for _ in range(states):
            gap = larger((lanes_at(block, row) - top) * scale, lowest)
            e = where_above(gap, lowest, exp_of_either(gap), none)
            put_lanes(block, held, e)
            total = total + e
            mean = mean + e * gap
            row += step
            held += _STEP
        # A column of nothing has no exponential above 0; its conditionals shall be finite.
        whole = larger(total, unit)
        log_total = log_of_either(whole)
        inverse = unit / whole
        put_lanes(messages, message + at, top + weight * log_total)
        put_lanes(entropies, shown + at, log_total - mean * inverse)
        held, row = np.uint64(spare), kept + at
        for _ in range(states):
            put_lanes(tables, row, lanes_at(block, held) * inverse)
            row += further
            held += _STEP
        if at >= last:
            break
        at = min(at + _STEP, last)


@bare
def message_of_two(
    block: FloatArray, start: int, stride: int, columns: int, weight: float, messages: FloatArray, to: int,
    nothing: float, lowest: float,
) -> None:  # fmt: skip
    """As :func:`sum_two`, without conditionals and entropies."""
    at, last = np.uint64(0), last_eight(columns)
    zero, one, message = np.uint64(start), np.uint64(start + stride), np.uint64(to)
    none, unit = messages.dtype.type(0.0), messages.dtype.type(1.0)
    scale = unit / weight
    while True:
        a, b = lanes_at(block, zero + at), lanes_at(block, one + at)
        top = larger(larger(a, b), nothing)
        gap = larger((smaller(a, b) - top) * scale, lowest)
        e = where_above(gap, lowest, exp_of_either(gap), none)
        put_lanes(messages, message + at, top + weight * log1p_of_either(e))
        if at >= last:
            break
        at = min(at + _STEP, last)


@bare
def message_of_any(
    block: FloatArray, start: int, stride: int, states: int, columns: int, weight: float, messages: FloatArray, to: int,
    nothing: float, lowest: float,
) -> None:  # fmt: skip
    """As :func:`sum_any`, without conditionals and entropies."""
    at, last = np.uint64(0), last_eight(columns)
    first, step, message = np.uint64(start), np.uint64(stride), np.uint64(to)
    none, unit = messages.dtype.type(0.0), messages.dtype.type(1.0)
    scale = unit / weight
    while True:
        top = lanes_of(nothing)
        row = first + at
        for _ in range(states):
            top = larger(top, lanes_at(block, row))
            row += step
        total = lanes_of(none)
        row = first + at
        for _ in range(states):
            gap = larger((lanes_at(block, row) - top) * scale, lowest)
            total = total + where_above(gap, lowest, exp_of_either(gap), none)
            row += step
        put_lanes(messages, message + at, top + weight * log_of_either(larger(total, unit)))
        if at >= last:
            break
        at = min(at + _STEP, last)


@bare
def centre(pool: FloatArray, message: int, columns: int, nothing: float) -> Any:
    """Take the largest entry off a message, unless all of it is impossible; returns what was taken off."""
    at, end = np.uint64(message), np.uint64(message + columns)
    tops = lanes_of(nothing)
    while at + _STEP <= end:
        tops = larger(tops, lanes_at(pool, at))
        at += _STEP
    top = largest_of(tops)
    while at < end:
        top = max(top, pool[at])
        at += np.uint64(1)
    if top <= nothing / pool.dtype.type(2.0):
        top = pool.dtype.type(0.0)
    at = np.uint64(message)
    while at + _STEP <= end:
        put_lanes(pool, at, lanes_at(pool, at) - top)
        at += _STEP
    while at < end:
        pool[at] -= top
        at += np.uint64(1)
    return np.float64(top)
