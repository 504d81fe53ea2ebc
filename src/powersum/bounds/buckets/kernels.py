"""Forward and backward pass over the nodes of a covering tree: the bound, and all of its gradients.

The forward pass eliminates one variable from each node's table T with the node's weight w: column by column its
message is ``w log Σ exp(T / w)``, and the normalised exponentials p that it needs anyway are kept in the table's place
together with their entropy. They are all the backward pass needs: the belief of a node is p times the belief that
comes back from the message, and the gradients of inputs are marginals of beliefs (paper, Thm 5.1).

Hard zeros: no column's largest entry is taken as less than ``NOTHING``, so that a column of ``-inf`` gives a message
of about ``NOTHING`` and some finite p, on which no belief ever falls. Nothing is ever ``-inf`` minus ``-inf``.

The kernels are compiled for the numbers they are given. Claims are made in double precision. A descent runs in single
precision, where messages are *centred*: their largest entry is taken off and kept in double, so that large constants
cost no digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.bounds.buckets.patterns import CONSTANT, GATHER, RUNS, STEPS, WHOLE, Index32Array, TreeWiring
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.fastmath import LOWEST
from powersum.core.fastmath_single import LOWEST_SINGLE, exp_of_either, log1p_of_either, log_of_either
from powersum.core.jit import compiled, inlined, inner

NOTHING = -1e300
"""Stands for the log of an impossible column: finite, yet far below any value that a real model can have."""

NOTHING_SINGLE = -1e30
"""The same in single precision, where the sum of all of a model's impossible columns must stay finite, too."""


# Here places are unsigned, for which Numba needs no test whether they count from the end. Whole arrays are handed over
# with the places where to begin, for a slice counts references, which takes as long as the work on a short row; so do
# functions that end in more than one place.


@inlined
def _clear(values: FloatArray, start: int, length: int) -> None:
    """Write zeros."""
    none = values.dtype.type(0.0)
    for r in range(np.uint64(start), np.uint64(start + length)):
        values[r] = none


@inlined
def _add_whole(sign: float, pool: FloatArray, start: int, table: FloatArray, row: int, length: int) -> None:
    """Add an input that has all axes of a row, times its sign."""
    source, at = np.uint64(start), np.uint64(row)
    for r in range(np.uint64(length)):
        table[at + r] += sign * pool[source + r]


@inlined
def _add_constant(sign: float, pool: FloatArray, start: int, table: FloatArray, row: int, length: int) -> None:
    """Add an input that is one number for the whole row."""
    at, value = np.uint64(row), sign * pool[np.uint64(start)]
    for r in range(np.uint64(length)):
        table[at + r] += value


@inlined
def _add_gathered(
    sign: float, pool: FloatArray, start: int, maps: Index32Array, first: int, table: FloatArray, row: int, length: int
) -> None:
    """Add an input entry by entry."""
    source, place, at = np.uint64(start), np.uint64(first), np.uint64(row)
    for r in range(np.uint64(length)):
        table[at + r] += sign * pool[source + maps[place + r]]


@inlined
def _add_runs(
    sign: float,
    pool: FloatArray,
    start: int,
    maps: Index32Array,
    first: int,
    run: int,
    table: FloatArray,
    row: int,
    length: int,
) -> None:
    """Add an input by contiguous runs."""
    source, place, at = np.uint64(start), np.uint64(first), np.uint64(row)
    step, end = np.uint64(run), np.uint64(row + length)
    while at < end:
        begin = source + maps[place]
        for r in range(step):
            table[at + r] += sign * pool[begin + r]
        at += step
        place += np.uint64(1)


@inlined
def _add_steps(
    sign: float,
    pool: FloatArray,
    start: int,
    maps: Index32Array,
    first: int,
    run: int,
    table: FloatArray,
    row: int,
    length: int,
) -> None:
    """Add an input each entry of which stands for a run."""
    source, place, at = np.uint64(start), np.uint64(first), np.uint64(row)
    step, end = np.uint64(run), np.uint64(row + length)
    while at < end:
        value = sign * pool[source + maps[place]]
        for r in range(step):
            table[at + r] += value
        at += step
        place += np.uint64(1)


@inner
def place_of(wiring: TreeWiring, node: int, k: int, state: int, column: int) -> Any:
    """Where in the pool the entry of input ``k`` lies that meets one entry of a node's table."""
    rows, columns = wiring.rows[node], wiring.columns[node]
    width = wiring.row_length[node] if rows > 1 else columns
    block, within = column // width, column % width
    entry = within if rows > 1 else state * columns + within
    number = wiring.pattern[k]
    start = wiring.source[k] + wiring.bases[wiring.base_starts[k] + block]
    if rows > 1:
        start += state * wiring.stride[k]
    if wiring.kind[number] == WHOLE:
        return start + entry
    if wiring.kind[number] == CONSTANT:
        return start
    run = wiring.run[number]
    start += np.int64(wiring.maps[wiring.map_starts[number] + entry // run])
    return start + entry % run if wiring.kind[number] == RUNS else start


@compiled
def fill_table(wiring: TreeWiring, node: int, pool: FloatArray, table: FloatArray) -> None:
    """Write the whole table of a node, all its inputs added up."""
    columns = wiring.columns[node]
    for entry in range(table.size):
        table[entry] = 0.0
    for k in range(wiring.input_starts[node], wiring.input_starts[node + 1]):
        for state in range(wiring.states[node]):
            for column in range(columns):
                table[state * columns + column] += wiring.sign[k] * pool[place_of(wiring, node, k, state, column)]


@inner
def _eliminate_two(
    table: FloatArray,
    zero: int,
    one: int,
    columns: int,
    weight: float,
    pool: FloatArray,
    message: int,
    entropies: FloatArray,
    entropy: int,
    nothing: float,
    lowest: float,
) -> None:
    """Power sum over a variable of two states: one exponential and one logarithm a column."""
    none, unit = pool.dtype.type(0.0), pool.dtype.type(1.0)
    scale = unit / weight
    at, low_at, high_at, shown = np.uint64(message), np.uint64(zero), np.uint64(one), np.uint64(entropy)
    for r in range(np.uint64(columns)):
        a, b = table[low_at + r], table[high_at + r]
        top = max(max(a, b), nothing)
        gap = max((min(a, b) - top) * scale, lowest)
        e = exp_of_either(gap) if gap > lowest else none
        high = unit / (unit + e)
        low = e * high
        log_total = log1p_of_either(e)
        pool[at + r] = top + weight * log_total
        entropies[shown + r] = log_total - gap * low
        table[low_at + r] = high if a >= b else low
        table[high_at + r] = low if a >= b else high


@inner
def _eliminate(
    table: FloatArray,
    start: int,
    stride: int,
    states: int,
    columns: int,
    weight: float,
    pool: FloatArray,
    message: int,
    entropies: FloatArray,
    entropy: int,
    total: FloatArray,
    nothing: float,
    lowest: float,
) -> None:
    """Power sum over a variable of any number of states, which lie ``stride`` apart in ``table``."""
    n, at, shown = np.uint64(columns), np.uint64(message), np.uint64(entropy)
    none, unit = pool.dtype.type(0.0), pool.dtype.type(1.0)
    scale = unit / weight
    # The largest entry of each column stands where its message will.
    _maximise(table, start, stride, states, columns, pool, message, nothing)
    for r in range(n):
        total[r] = none
        entropies[shown + r] = none
    for a in range(states):
        row = np.uint64(start + a * stride)
        for r in range(n):
            gap = max((table[row + r] - pool[at + r]) * scale, lowest)
            e = exp_of_either(gap) if gap > lowest else none
            table[row + r] = e
            total[r] += e
            entropies[shown + r] += e * gap
    for r in range(n):
        # A column of nothing has no exponential above 0; its p shall be finite.
        whole = max(total[r], unit)
        log_total = log_of_either(whole)
        inverse = unit / whole
        pool[at + r] += weight * log_total
        entropies[shown + r] = log_total - entropies[shown + r] * inverse
        total[r] = inverse
    for a in range(states):
        row = np.uint64(start + a * stride)
        for r in range(n):
            table[row + r] *= total[r]


@inner
def _maximise(
    table: FloatArray,
    start: int,
    stride: int,
    states: int,
    columns: int,
    pool: FloatArray,
    message: int,
    nothing: float,
) -> None:
    """The limit of weight 0."""
    n, at = np.uint64(columns), np.uint64(message)
    for r in range(n):
        pool[at + r] = nothing
    for a in range(states):
        row = np.uint64(start + a * stride)
        for r in range(n):
            pool[at + r] = max(pool[at + r], table[row + r])


@inner
def _centre(pool: FloatArray, message: int, columns: int, nothing: float) -> Any:
    """Take the largest entry off a message, unless all of it is impossible; returns what was taken off."""
    at, end = np.uint64(message), np.uint64(message + columns)
    # Strands that do not wait for each other.
    a, b, c, d = nothing, nothing, nothing, nothing
    while at + np.uint64(4) <= end:
        a = max(a, pool[at])
        b = max(b, pool[at + np.uint64(1)])
        c = max(c, pool[at + np.uint64(2)])
        d = max(d, pool[at + np.uint64(3)])
        at += np.uint64(4)
    while at < end:
        a = max(a, pool[at])
        at += np.uint64(1)
    top = max(max(a, b), max(c, d))
    if top <= nothing / pool.dtype.type(2.0):
        top = pool.dtype.type(0.0)
    for r in range(np.uint64(message), end):
        pool[r] -= top
    return np.float64(top)


@compiled
def forward(
    wiring: TreeWiring,
    nodes: IntArray,
    weights: FloatArray,
    pool: FloatArray,
    tables: FloatArray,
    entropies: FloatArray,
    offsets: FloatArray,
    workspace: FloatArray,
) -> None:
    """Messages of the given nodes, whose children come before them.

    With ``tables`` (of full size) the conditionals p and the entropies are kept for :func:`backward`; with an empty
    one only messages are made. With ``offsets`` (doubles, one for each node) messages are centred, and what is taken
    off them goes there. ``workspace`` holds two rows and a block.
    """
    keep = tables.size > 0
    longest = workspace.size // 3
    area = tables if keep else workspace[2 * longest :]
    total, spare = workspace[:longest], workspace[longest : 2 * longest]
    double = pool.itemsize == 8
    nothing = pool.dtype.type(NOTHING if double else NOTHING_SINGLE)
    lowest = pool.dtype.type(LOWEST if double else LOWEST_SINGLE)
    for node in nodes:
        states, columns, weight = wiring.states[node], wiring.columns[node], pool.dtype.type(weights[node])
        rows, length = wiring.rows[node], wiring.row_length[node]
        width = length if rows > 1 else columns
        stride = columns if keep else width
        for block in range(wiring.blocks[node]):
            start = wiring.table[node] + block * width if keep else 0
            for number in range(rows):
                _clear(area, start + number * stride, length)
            for k in range(wiring.input_starts[node], wiring.input_starts[node + 1]):
                source = wiring.source[k] + wiring.bases[wiring.base_starts[k] + block]
                pattern = wiring.pattern[k]
                kind, run, places = wiring.kind[pattern], wiring.run[pattern], wiring.map_starts[pattern]
                sign = pool.dtype.type(wiring.sign[k])
                for number in range(rows):
                    row = start + number * stride
                    if kind == WHOLE:
                        _add_whole(sign, pool, source, area, row, length)
                    elif kind == CONSTANT:
                        _add_constant(sign, pool, source, area, row, length)
                    elif kind == GATHER:
                        _add_gathered(sign, pool, source, wiring.maps, places, area, row, length)
                    elif kind == RUNS:
                        _add_runs(sign, pool, source, wiring.maps, places, run, area, row, length)
                    else:
                        _add_steps(sign, pool, source, wiring.maps, places, run, area, row, length)
                    source += wiring.stride[k]
            message = wiring.message[node] + block * width
            if weight == 0.0:
                _maximise(area, start, stride, states, width, pool, message, nothing)
                continue
            shown = wiring.entropy[node] + block * width
            kept = keep and wiring.entropy[node] >= 0
            if states == 2 and kept:
                _eliminate_two(
                    area, start, start + stride, width, weight, pool, message, entropies, shown, nothing, lowest
                )
            elif states == 2:
                _eliminate_two(area, start, start + stride, width, weight, pool, message, spare, 0, nothing, lowest)
            elif kept:
                _eliminate(
                    area, start, stride, states, width, weight, pool, message, entropies, shown, total, nothing, lowest
                )
            else:
                _eliminate(area, start, stride, states, width, weight, pool, message, spare, 0, total, nothing, lowest)
        if offsets.size > 0:
            offsets[node] = _centre(pool, wiring.message[node], columns, nothing)


@inlined
def _give_whole(tables: FloatArray, row: int, length: int, slopes: FloatArray, start: int) -> None:
    """Add a row of a belief to the gradient of an input that has all its axes."""
    at, target = np.uint64(row), np.uint64(start)
    for r in range(np.uint64(length)):
        slopes[target + r] += tables[at + r]


@inlined
def _give_runs(
    maps: Index32Array,
    first: int,
    run: int,
    tables: FloatArray,
    row: int,
    length: int,
    slopes: FloatArray,
    start: int,
) -> None:
    """Add a row of a belief to the gradient of an input by contiguous runs."""
    at, target, place = np.uint64(row), np.uint64(start), np.uint64(first)
    step, end = np.uint64(run), np.uint64(row + length)
    while at < end:
        begin = target + maps[place]
        for r in range(step):
            slopes[begin + r] += tables[at + r]
        at += step
        place += np.uint64(1)


@inlined
def _give_steps(
    maps: Index32Array,
    first: int,
    run: int,
    tables: FloatArray,
    row: int,
    length: int,
    slopes: FloatArray,
    start: int,
) -> None:
    """Add a row of a belief to the gradient of an input each entry of which stands for a run."""
    target, place = np.uint64(start), np.uint64(first)
    for at in range(row, row + length, run):
        slopes[target + maps[place]] += _sum(tables, at, run)
        place += np.uint64(1)


@inlined
def _give_by_gaps(
    places: Index32Array,
    first: int,
    present: int,
    gaps: Index32Array,
    first_gap: int,
    n_gaps: int,
    tables: FloatArray,
    row: int,
    slopes: FloatArray,
    start: int,
) -> None:
    """Add a row of a belief to the gradient of an input, all entries of the input at a time."""
    at, target, place, gap = np.uint64(row), np.uint64(start), np.uint64(first), np.uint64(first_gap)
    for g in range(np.uint64(n_gaps)):
        source = at + gaps[gap + g]
        for m in range(np.uint64(present)):
            slopes[target + m] += tables[source + places[place + m]]


@inlined
def _give_by_places(
    places: Index32Array,
    first: int,
    present: int,
    gaps: Index32Array,
    first_gap: int,
    n_gaps: int,
    tables: FloatArray,
    row: int,
    slopes: FloatArray,
    start: int,
) -> None:
    """The same entry by entry of the input."""
    at, target, place, gap = np.uint64(row), np.uint64(start), np.uint64(first), np.uint64(first_gap)
    none = slopes.dtype.type(0.0)
    for m in range(np.uint64(present)):
        source = at + places[place + m]
        one, two = none, none
        for g in range(np.uint64(n_gaps // 2)):
            one += tables[source + gaps[gap + g + g]]
            two += tables[source + gaps[gap + g + g + np.uint64(1)]]
        if n_gaps & 1:
            one += tables[source + gaps[gap + np.uint64(n_gaps - 1)]]
        slopes[target + m] += one + two


@inlined
def _sum(values: FloatArray, start: int, length: int) -> Any:
    """Sum of a stretch in four strands, which do not wait for each other."""
    none = values.dtype.type(0.0)
    a, b, c, d = none, none, none, none
    begin, end = np.uint64(start), np.uint64(start + length)
    while begin + np.uint64(4) <= end:
        a += values[begin]
        b += values[begin + np.uint64(1)]
        c += values[begin + np.uint64(2)]
        d += values[begin + np.uint64(3)]
        begin += np.uint64(4)
    while begin < end:
        a += values[begin]
        begin += np.uint64(1)
    return (a + b) + (c + d)


@inlined
def _multiply(values: FloatArray, start: int, factors: FloatArray, first: int, length: int) -> None:
    """Multiply a stretch by another one."""
    at, by = np.uint64(start), np.uint64(first)
    for r in range(np.uint64(length)):
        values[at + r] *= factors[by + r]


@compiled
def backward(
    wiring: TreeWiring,
    nodes: IntArray,
    offset: int,
    tables: FloatArray,
    entropies: FloatArray,
    slopes: FloatArray,
    weight_slopes: FloatArray,
) -> None:
    """Beliefs of the given nodes in place of their conditionals, last node first; gradients of inputs and weights.

    ``offset`` is where messages start in the pool: their gradients start at 0 in ``slopes``.
    """
    for index in range(nodes.size - 1, -1, -1):
        node = nodes[index]
        states, columns = wiring.states[node], wiring.columns[node]
        rows, length = wiring.rows[node], wiring.row_length[node]
        width = length if rows > 1 else columns
        incoming = wiring.message[node] - offset
        first, last = wiring.input_starts[node], wiring.input_starts[node + 1]
        for k in range(first, last):
            if wiring.slope[k] >= 0:
                size = wiring.stride[k] * states if rows > 1 else wiring.present[wiring.pattern[k]]
                _clear(slopes, wiring.slope[k], size)
        if wiring.entropy[node] >= 0:
            _multiply(entropies, wiring.entropy[node], slopes, incoming, columns)
            weight_slopes[node] = _sum(entropies, wiring.entropy[node], columns)
        for block in range(wiring.blocks[node]):
            start = wiring.table[node] + block * width
            for a in range(states):
                _multiply(tables, start + a * columns, slopes, incoming + block * width, width)
            for k in range(first, last):
                if wiring.slope[k] < 0:
                    continue
                target = wiring.slope[k] + wiring.bases[wiring.base_starts[k] + block]
                pattern = wiring.pattern[k]
                kind, run, present = wiring.kind[pattern], wiring.run[pattern], wiring.present[pattern]
                places, gaps = wiring.place_starts[pattern], wiring.gap_starts[pattern]
                n_gaps = wiring.gap_starts[pattern + 1] - gaps
                for number in range(rows):
                    row = start + number * columns
                    if kind == WHOLE:
                        _give_whole(tables, row, length, slopes, target)
                    elif kind == CONSTANT:
                        slopes[target] += _sum(tables, row, length)
                    elif kind == RUNS:
                        _give_runs(wiring.maps, wiring.map_starts[pattern], run, tables, row, length, slopes, target)
                    elif kind == STEPS:
                        _give_steps(wiring.maps, wiring.map_starts[pattern], run, tables, row, length, slopes, target)
                    elif present >= n_gaps:
                        _give_by_gaps(
                            wiring.places, places, present, wiring.gaps, gaps, n_gaps, tables, row, slopes, target
                        )
                    else:
                        _give_by_places(
                            wiring.places, places, present, wiring.gaps, gaps, n_gaps, tables, row, slopes, target
                        )
                    target += wiring.stride[k]
