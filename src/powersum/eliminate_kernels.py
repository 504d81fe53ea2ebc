"""Compiled bucket elimination on flat arrays: wiring of the buckets, their reduction, and the way back to an argmax.

A *plan* fixes which variables are free (in elimination order) and which are given. Bucket ``b`` belongs to the ``b``-th
free variable; its axes are that variable, then the other free variables it meets, first eliminated outermost. Given
variables never become axes: they only move the place in a factor's table where reading starts (``bases``). States of
free variables may be restricted; the sizes of all tables then shrink with them, so the wiring stays and the work falls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.arrays import FloatArray, IntArray
from powersum.compiled import compiled
from powersum.fastmath import LOWEST, exp_of, log_of

ChoiceArray = NDArray[np.uint16]

BLOCK = 1024
"""Entries of a message that are computed together: small enough for the first-level cache, long enough to vectorise."""

WORK = 1 << 16
"""Entries of each scratch array of :func:`reduce_bucket`, unless a variable has more states than that."""


class Factors(NamedTuple):
    """The factors of a model as kernels read them; ``strides`` has one entry for each place of a scope. Read-only."""

    scope_starts: IntArray
    scope_variables: IntArray
    strides: IntArray
    log_values: FloatArray


class Wiring(NamedTuple):
    """The buckets of a plan.

    Axes of bucket ``b``: ``axes[axis_starts[b]:axis_starts[b + 1]]``; inputs likewise, a factor ``f`` as ``f`` and the
    message of bucket ``c`` as ``-1 - c``. For input ``k`` and each axis of its bucket ``strides`` holds, from
    ``stride_starts[k]`` on, the stride in the factor's table, or 1 for an axis of a message; 0 where it has no such axis.
    """

    axis_starts: IntArray
    axes: IntArray
    input_starts: IntArray
    inputs: IntArray
    stride_starts: IntArray
    strides: IntArray
    parents: IntArray


class Domains(NamedTuple):
    """The states that are alive: those of ``v`` are ``states[starts[v]:starts[v] + sizes[v]]``."""

    sizes: IntArray
    starts: IntArray
    states: IntArray


class Scratch(NamedTuple):
    """Working memory of :func:`reduce_bucket`."""

    index: IntArray
    rows: FloatArray
    top: FloatArray


@compiled
def wire_strides(
    axis_starts: IntArray, axes: IntArray, input_starts: IntArray, inputs: IntArray, factors: Factors
) -> tuple[IntArray, IntArray]:
    """``stride_starts`` and ``strides`` of a :class:`Wiring`."""
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
def wire(order: IntArray, position: IntArray, factor_ids: IntArray, factors: Factors) -> tuple[Wiring, IntArray]:
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
            longer[:filled] = axes[:filled]
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
    wiring = Wiring(axis_starts, axes[:filled].copy(), input_starts, inputs, stride_starts, strides, parents)
    return wiring, factor_buckets


@compiled
def message_sizes(wiring: Wiring, sizes: IntArray, limit: float) -> tuple[IntArray, float]:
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
def reduce_bucket(
    b: int,
    weight: float,
    wiring: Wiring,
    domains: Domains,
    bases: IntArray,
    log_values: FloatArray,
    buffer: FloatArray,
    places: IntArray,
    choices: ChoiceArray,
    choice_place: int,
    scratch: Scratch,
) -> None:
    """Power-sum one bucket over its own variable and write the message at ``places[b]`` of ``buffer``.

    ``bases[f]`` is where the slice of factor ``f`` starts in ``log_values``. Where ``choice_place`` ≥ 0 the best state of
    each entry, as its number among those alive, is kept from there on.
    """
    axis_starts, axes, input_starts, inputs = wiring.axis_starts, wiring.axes, wiring.input_starts, wiring.inputs
    stride_starts, strides = wiring.stride_starts, wiring.strides
    sizes, state_starts, states = domains.sizes, domains.starts, domains.states
    index, rows, top = scratch.index, scratch.rows, scratch.top
    first, last = axis_starts[b], axis_starts[b + 1]
    n_axes = last - first
    first_input, n_inputs = input_starts[b], input_starts[b + 1] - input_starts[b]
    own = axes[first]
    n_own = sizes[own]
    limit = max(1, min(BLOCK, WORK // max(n_own, n_inputs, 1)))
    # The last axes, up to the limit, form a block; the others are counted through one by one.
    split = n_axes
    block = 1
    while split > 1 and block * sizes[axes[first + split - 1]] <= limit:
        split -= 1
        block *= sizes[axes[first + split]]
    outer = 1
    for a in range(1, split):
        outer *= sizes[axes[first + a]]
    offset = np.empty((n_inputs, n_axes), np.int64)
    start = np.empty(n_inputs, np.int64)
    for k in range(n_inputs):
        source = inputs[first_input + k]
        place = stride_starts[first_input + k]
        if source >= 0:
            start[k] = bases[source]
            for a in range(n_axes):
                offset[k, a] = strides[place + a]
        else:
            start[k] = places[-1 - source]
            run = 1
            for a in range(n_axes - 1, -1, -1):
                offset[k, a] = run * strides[place + a]
                if strides[place + a]:
                    run *= sizes[axes[first + a]]
        # Where each entry of a block lies in this input, relative to the block's first entry.
        row = k * block
        index[row] = 0
        length = 1
        for a in range(n_axes - 1, split - 1, -1):
            v = axes[first + a]
            begin = state_starts[v]
            for s in range(1, sizes[v]):
                step = offset[k, a] * ((states[begin + s] - states[begin]) if source >= 0 else s)
                for j in range(length):
                    index[row + s * length + j] = index[row + j] + step
            length *= sizes[v]
        if source >= 0:
            for a in range(split, n_axes):
                start[k] += offset[k, a] * states[state_starts[axes[first + a]]]
    counter = np.zeros(n_axes, np.int64)
    inverse = 1.0 / weight if weight > 0.0 else 0.0
    out = places[b]
    for _ in range(outer):
        for s in range(n_own):
            row = s * block
            for j in range(block):
                rows[row + j] = 0.0
        for k in range(n_inputs):
            source = inputs[first_input + k]
            base = start[k]
            for a in range(1, split):
                if source >= 0:
                    base += offset[k, a] * states[state_starts[axes[first + a]] + counter[a]]
                else:
                    base += offset[k, a] * counter[a]
            where = k * block
            for s in range(n_own):
                row = s * block
                if source >= 0:
                    here = base + offset[k, 0] * states[state_starts[own] + s]
                    for j in range(block):
                        rows[row + j] += log_values[here + index[where + j]]
                else:
                    here = base + offset[k, 0] * s
                    for j in range(block):
                        rows[row + j] += buffer[here + index[where + j]]
        for j in range(block):
            top[j] = rows[j]
        for s in range(1, n_own):
            row = s * block
            for j in range(block):
                top[j] = max(top[j], rows[row + j])
        if weight > 0.0:
            for j in range(block):
                # Where all is impossible the sum below is of tiny numbers; the maximum then says what is right.
                shift = top[j] if top[j] > -np.inf else 0.0
                rows[j] = exp_of(max((rows[j] - shift) * inverse, LOWEST))
                buffer[out + j] = shift
            for s in range(1, n_own):
                row = s * block
                for j in range(block):
                    rows[j] += exp_of(max((rows[row + j] - buffer[out + j]) * inverse, LOWEST))
            for j in range(block):
                value = top[j] + weight * log_of(rows[j])
                buffer[out + j] = value if top[j] > -np.inf else -np.inf
        else:
            for j in range(block):
                buffer[out + j] = top[j]
            if choice_place >= 0:
                place = choice_place + out - places[b]
                for j in range(block):
                    best = 0
                    for s in range(1, n_own):
                        if rows[s * block + j] > rows[best * block + j]:
                            best = s
                    choices[place + j] = best
        out += block
        for a in range(split - 1, 0, -1):
            counter[a] += 1
            if counter[a] < sizes[axes[first + a]]:
                break
            counter[a] = 0


@compiled
def new_scratch(largest: int) -> Scratch:
    """Working memory for variables of up to ``largest`` states."""
    work = max(WORK, largest)
    return Scratch(np.empty(work, np.int64), np.empty(work), np.empty(BLOCK))


@compiled
def reduce_all(
    weights: FloatArray,
    wiring: Wiring,
    domains: Domains,
    bases: IntArray,
    log_values: FloatArray,
    buffer: FloatArray,
    places: IntArray,
    choices: ChoiceArray,
    choice_places: IntArray,
    scratch: Scratch,
) -> float:
    """Reduce all buckets in turn; returns the sum of the messages that go nowhere: the value of the plan's part."""
    total = 0.0
    for b in range(len(places)):
        weight = weights[wiring.axes[wiring.axis_starts[b]]]
        reduce_bucket(b, weight, wiring, domains, bases, log_values, buffer, places, choices, choice_places[b], scratch)
        if wiring.parents[b] < 0:
            total += buffer[places[b]]
    return total


@compiled
def trace_back(
    wiring: Wiring, domains: Domains, choices: ChoiceArray, choice_places: IntArray, assignment: IntArray
) -> None:
    """Set the best state of each bucket's variable whose choices were kept, last eliminated first."""
    axis_starts, axes, sizes = wiring.axis_starts, wiring.axes, domains.sizes
    number = np.zeros(len(assignment), np.int64)
    for b in range(len(axis_starts) - 2, -1, -1):
        if choice_places[b] < 0:
            continue
        entry = 0
        for a in range(axis_starts[b] + 1, axis_starts[b + 1]):
            entry = entry * sizes[axes[a]] + number[axes[a]]
        v = axes[axis_starts[b]]
        number[v] = choices[choice_places[b] + entry]
        assignment[v] = domains.states[domains.starts[v] + number[v]]


@compiled
def place_messages(
    wiring: Wiring, entries: IntArray, keep_choices: NDArray[np.bool_]
) -> tuple[IntArray, int, IntArray, int]:
    """Where each message lies in one buffer, first fit, a message's room free again once its parent is reduced.

    Returns the places, the entries needed, and the same for the choices of the buckets in ``keep_choices``.
    """
    n = len(entries)
    places = np.empty(n, np.int64)
    # Free gaps as (start, end), ascending; the last one never ends.
    starts = np.zeros(n + 2, np.int64)
    ends = np.zeros(n + 2, np.int64)
    ends[0] = np.iinfo(np.int64).max
    n_gaps = 1
    needed = 0
    choice_places = np.full(n, -1, np.int64)
    choices_needed = 0
    for b in range(n):
        g = 0
        while ends[g] - starts[g] < entries[b]:
            g += 1
        places[b] = starts[g]
        starts[g] += entries[b]
        needed = max(needed, starts[g])
        if keep_choices[b]:
            choice_places[b] = choices_needed
            choices_needed += entries[b]
        for k in range(wiring.input_starts[b], wiring.input_starts[b + 1]):
            if wiring.inputs[k] >= 0:
                continue
            c = -1 - wiring.inputs[k]
            first, last = places[c], places[c] + entries[c]
            g = 0
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
    return places, needed, choice_places, choices_needed
