"""Wiring of bucket elimination, built by compiled code: which tables, which axes, which strides, how large, where.

A *plan* fixes which variables are free (in elimination order) and which are given. Bucket ``b`` belongs to the ``b``-th
free variable; its axes are that variable, then the other free variables it meets, first eliminated outermost. Given
variables never become axes: they only move the place in a factor's table where reading starts (``bases``). States of
free variables may be restricted; the sizes of all tables then shrink with them, so the wiring stays and the work falls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import BoolArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.model.factors import Factors


class EliminationWiring(NamedTuple):
    """The buckets of a plan.

    Axes of bucket ``b``: ``axes[axis_starts[b]:axis_starts[b + 1]]``; inputs likewise, a factor ``f`` as ``f`` and the
    message of bucket ``c`` as ``-1 - c``. For input ``k`` and each axis of its bucket ``strides`` holds, from
    ``stride_starts[k]`` on, the stride in the factor's table, or 1 for an axis of a message; 0 where it has no such
    axis.
    """

    axis_starts: IntArray
    axes: IntArray
    input_starts: IntArray
    inputs: IntArray
    stride_starts: IntArray
    strides: IntArray
    parents: IntArray


@inner
def wire_strides(
    axis_starts: IntArray, axes: IntArray, input_starts: IntArray, inputs: IntArray, factors: Factors
) -> tuple[IntArray, IntArray]:
    """``stride_starts`` and ``strides`` of a :class:`EliminationWiring`."""
    n = len(axis_starts) - 1
    stride_starts = np.zeros(len(inputs) + 1, np.int64)
    for b in range(n):
        for k in range(input_starts[b], input_starts[b + 1]):
            stride_starts[k + 1] = stride_starts[k] + axis_starts[b + 1] - axis_starts[b]
    strides = np.zeros(stride_starts[len(inputs)], np.int64)
    for b in range(n):
        first, last = axis_starts[b], axis_starts[b + 1]
        for k in range(input_starts[b], input_starts[b + 1]):
            place = stride_starts[k]
            if inputs[k] >= 0:
                f = inputs[k]
                for i in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
                    for a in range(first, last):
                        if axes[a] == factors.scope_variables[i]:
                            strides[place + a - first] = factors.strides[i]
            else:
                # Both lists follow the elimination order: one walk along the two finds every match.
                a = first
                c = -1 - inputs[k]
                for i in range(axis_starts[c] + 1, axis_starts[c + 1]):
                    while axes[a] != axes[i]:
                        a += 1
                    strides[place + a - first] = 1
    return stride_starts, strides


@compiled
def wire(
    order: IntArray, position: IntArray, factor_ids: IntArray, factors: Factors
) -> tuple[EliminationWiring, IntArray]:
    """Buckets of a plan over the factors ``factor_ids``; ``position`` is -1 for variables that are not free.

    Also returns the bucket of each of the factors, -1 for one without free variables.
    """
    scope_starts, scope_variables = factors.scope_starts, factors.scope_variables
    n = len(order)
    n_factors = len(factor_ids)
    factor_buckets = np.full(n_factors, -1, np.int64)
    first_factor = np.full(n, -1, np.int64)
    next_factor = np.full(n_factors, -1, np.int64)
    for k in range(n_factors - 1, -1, -1):
        f = factor_ids[k]
        lowest = n
        for i in range(scope_starts[f], scope_starts[f + 1]):
            p = position[scope_variables[i]]
            if 0 <= p < lowest:
                lowest = p
        if lowest < n:
            factor_buckets[k] = lowest
            next_factor[k] = first_factor[lowest]
            first_factor[lowest] = k
    first_child = np.full(n, -1, np.int64)
    next_child = np.full(n, -1, np.int64)
    parents = np.full(n, -1, np.int64)
    axis_starts = np.zeros(n + 1, np.int64)
    axes = np.empty(max(16, 8 * n), np.int64)
    input_starts = np.zeros(n + 1, np.int64)
    inputs = np.empty(n_factors + n, np.int64)
    stamp = np.full(n, -1, np.int64)
    found = np.empty(n, np.int64)
    filled = 0
    for b in range(n):
        count = 0
        highest = b
        slot = input_starts[b]
        k = first_factor[b]
        while k >= 0:
            f = factor_ids[k]
            inputs[slot] = f
            slot += 1
            for i in range(scope_starts[f], scope_starts[f + 1]):
                p = position[scope_variables[i]]
                if p > b and stamp[p] != b:
                    stamp[p] = b
                    found[count] = p
                    count += 1
                    highest = max(highest, p)
            k = next_factor[k]
        c = first_child[b]
        while c >= 0:
            inputs[slot] = -1 - c
            slot += 1
            for i in range(axis_starts[c] + 2, axis_starts[c + 1]):
                p = position[axes[i]]
                if stamp[p] != b:
                    stamp[p] = b
                    found[count] = p
                    count += 1
                    highest = max(highest, p)
            c = next_child[c]
        input_starts[b + 1] = slot
        if filled + count + 1 > len(axes):
            longer = np.empty(2 * (filled + count + 1), np.int64)
            for i in range(filled):
                longer[i] = axes[i]
            axes = longer
        axes[filled] = order[b]
        filled += 1
        if count <= 32:
            for i in range(1, count):
                value = found[i]
                j = i - 1
                while j >= 0 and found[j] > value:
                    found[j + 1] = found[j]
                    j -= 1
                found[j + 1] = value
        else:
            count = 0
            for p in range(b + 1, highest + 1):
                if stamp[p] == b:
                    found[count] = p
                    count += 1
        for i in range(count):
            axes[filled] = order[found[i]]
            filled += 1
        axis_starts[b + 1] = filled
        if count:
            parents[b] = found[0]
            next_child[b] = first_child[found[0]]
            first_child[found[0]] = b
    inputs = inputs[: input_starts[n]].copy()
    stride_starts, strides = wire_strides(axis_starts, axes, input_starts, inputs, factors)
    wiring = EliminationWiring(axis_starts, axes[:filled].copy(), input_starts, inputs, stride_starts, strides, parents)
    return wiring, factor_buckets


@compiled
def message_sizes(wiring: EliminationWiring, sizes: IntArray, limit: float) -> tuple[IntArray, float]:
    """Entries of each bucket's message, and of all bucket tables together; a message over ``limit`` gets -1."""
    axis_starts, axes = wiring.axis_starts, wiring.axes
    n = len(axis_starts) - 1
    entries = np.empty(n, np.int64)
    total = 0.0
    for b in range(n):
        size = 1.0
        for a in range(axis_starts[b] + 1, axis_starts[b + 1]):
            size *= sizes[axes[a]]
        total += size * sizes[axes[axis_starts[b]]]
        entries[b] = np.int64(size) if size <= limit else -1
    return entries, total


@compiled
def place_messages(
    wiring: EliminationWiring, entries: IntArray, keep_choices: BoolArray
) -> tuple[IntArray, int, IntArray, int]:
    """Where each message lies in one buffer, first fit, a message's room free again once its parent is reduced.

    Returns the places, the entries needed, and the same for the choices of the buckets in ``keep_choices``.
    """
    n = len(entries)
    events = np.empty(2 * n, np.int64)
    filled = 0
    choice_places = np.full(n, -1, np.int64)
    choices_needed = 0
    for b in range(n):
        events[filled] = b
        filled += 1
        if keep_choices[b]:
            choice_places[b] = choices_needed
            choices_needed += entries[b]
        for k in range(wiring.input_starts[b], wiring.input_starts[b + 1]):
            if wiring.inputs[k] < 0:
                # The message of bucket c, which is the input -1 - c, ends: so says the event of the same number.
                events[filled] = wiring.inputs[k]
                filled += 1
    places, needed = first_fit(events[:filled], entries)
    return places, needed, choice_places, choices_needed


@compiled
def first_fit(events: IntArray, entries: IntArray) -> tuple[IntArray, int]:
    """Where arrays lie in one buffer, each in the first gap that holds it, and the entries needed.

    Event ``i`` begins the array with ``entries[i]`` numbers, and event ``-1 - i`` ends it. An array that never begins
    has the place -1.
    """
    places = np.full(len(entries), -1, np.int64)
    # Free gaps as (start, end), ascending; the last one never ends.
    starts = np.zeros(len(entries) + 2, np.int64)
    ends = np.zeros(len(entries) + 2, np.int64)
    ends[0] = np.iinfo(np.int64).max
    n_gaps = 1
    needed = 0
    for event in events:
        g = 0
        if event >= 0:
            while ends[g] - starts[g] < entries[event]:
                g += 1
            places[event] = starts[g]
            starts[g] += entries[event]
            needed = max(needed, starts[g])
            continue
        first = places[-1 - event]
        last = first + entries[-1 - event]
        while starts[g] < first:
            g += 1
        # Gap g is the first one after the freed room; join with its neighbours where they touch.
        joins_after = starts[g] == last
        joins_before = g > 0 and ends[g - 1] == first
        if joins_after and joins_before:
            ends[g - 1] = ends[g]
            for i in range(g, n_gaps - 1):
                starts[i], ends[i] = starts[i + 1], ends[i + 1]
            n_gaps -= 1
        elif joins_after:
            starts[g] = first
        elif joins_before:
            ends[g - 1] = last
        else:
            for i in range(n_gaps, g, -1):
                starts[i], ends[i] = starts[i - 1], ends[i - 1]
            starts[g], ends[g] = first, last
            n_gaps += 1
    return places, needed
