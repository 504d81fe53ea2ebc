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

from powersum.bounds.buckets.patterns import CONSTANT, WHOLE, Index32Array, TreeWiring
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.fastmath import LOWEST
from powersum.core.fastmath_single import LOWEST_SINGLE, exp_of_either, log1p_of_either, log_of_either
from powersum.core.jit import compiled, inner

NOTHING = -1e300
"""Stands for the log of an impossible column: finite, yet far below any value that a real model can have."""

NOTHING_SINGLE = -1e30
"""The same in single precision, where the sum of all of a model's impossible columns must stay finite, too."""


@inner
def _add_input(
    kind: int, first: bool, factor: float, values: FloatArray, places: Index32Array, row: FloatArray
) -> None:
    """Add (or, for the first input, write) one input to a row of a node's table."""
    sign = row.dtype.type(factor)
    if kind == WHOLE:
        if first:
            for r in range(row.size):
                row[r] = sign * values[r]
        else:
            for r in range(row.size):
                row[r] += sign * values[r]
    elif kind == CONSTANT:
        value = sign * values[0]
        if first:
            for r in range(row.size):
                row[r] = value
        else:
            for r in range(row.size):
                row[r] += value
    elif first:
        for r in range(row.size):
            row[r] = sign * values[places[r]]
    else:
        for r in range(row.size):
            row[r] += sign * values[places[r]]


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
    return start + np.int64(wiring.maps[wiring.map_starts[number] + entry])


@compiled
def fill_table(wiring: TreeWiring, node: int, pool: FloatArray, table: FloatArray) -> None:
    """Write the whole table of a node, all its inputs added up."""
    columns = wiring.columns[node]
    for entry in range(table.size):
        table[entry] = 0.0
    for k in range(wiring.input_starts[node], wiring.input_starts[node + 1]):
        for column in range(columns):
            for state in range(wiring.states[node]):
                table[state * columns + column] += wiring.sign[k] * pool[place_of(wiring, node, k, state, column)]


@inner
def _eliminate_two(
    zero: FloatArray,
    one: FloatArray,
    weight: float,
    message: FloatArray,
    entropy: FloatArray,
    nothing: float,
    lowest: float,
) -> None:
    """Power sum over a variable of two states: one exponential and one logarithm a column."""
    none, unit = message.dtype.type(0.0), message.dtype.type(1.0)
    scale = unit / weight
    for r in range(message.size):
        a, b = zero[r], one[r]
        top = max(max(a, b), nothing)
        gap = max((min(a, b) - top) * scale, lowest)
        e = exp_of_either(gap) if gap > lowest else none
        high = unit / (unit + e)
        low = e * high
        log_total = log1p_of_either(e)
        message[r] = top + weight * log_total
        entropy[r] = log_total - gap * low
        zero[r] = high if a >= b else low
        one[r] = low if a >= b else high


@inner
def _eliminate(
    table: FloatArray,
    stride: int,
    states: int,
    weight: float,
    message: FloatArray,
    entropy: FloatArray,
    top: FloatArray,
    total: FloatArray,
    nothing: float,
    lowest: float,
) -> None:
    """Power sum over a variable of any number of states, which lie ``stride`` apart in ``table``."""
    n = message.size
    none, unit = message.dtype.type(0.0), message.dtype.type(1.0)
    scale = unit / weight
    for r in range(n):
        top[r] = nothing
        total[r] = none
        entropy[r] = none
    for a in range(states):
        row = table[a * stride : a * stride + n]
        for r in range(n):
            top[r] = max(top[r], row[r])
    for a in range(states):
        row = table[a * stride : a * stride + n]
        for r in range(n):
            gap = max((row[r] - top[r]) * scale, lowest)
            e = exp_of_either(gap) if gap > lowest else none
            row[r] = e
            total[r] += e
            entropy[r] += e * gap
    for r in range(n):
        # A column of nothing has no exponential above 0; its p shall be finite.
        whole = max(total[r], unit)
        log_total = log_of_either(whole)
        inverse = unit / whole
        message[r] = top[r] + weight * log_total
        entropy[r] = log_total - entropy[r] * inverse
        total[r] = inverse
    for a in range(states):
        row = table[a * stride : a * stride + n]
        for r in range(n):
            row[r] *= total[r]


@inner
def _maximise(table: FloatArray, stride: int, states: int, message: FloatArray, nothing: float) -> None:
    """The limit of weight 0."""
    n = message.size
    for r in range(n):
        message[r] = nothing
    for a in range(states):
        row = table[a * stride : a * stride + n]
        for r in range(n):
            message[r] = max(message[r], row[r])


@inner
def _centre(message: FloatArray, nothing: float) -> float:
    """Take the largest entry off a message, unless all of it is impossible; returns what was taken off."""
    top = message[0]
    for r in range(1, message.size):
        top = max(top, message[r])
    if top <= nothing / 2:
        return 0.0
    for r in range(message.size):
        message[r] -= top
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
    off them goes there. ``workspace`` holds a block and three rows.
    """
    keep = tables.size > 0
    double = pool.itemsize == 8
    nothing = pool.dtype.type(NOTHING if double else NOTHING_SINGLE)
    lowest = pool.dtype.type(LOWEST if double else LOWEST_SINGLE)
    longest = workspace.size // 4
    top = workspace[longest : 2 * longest]
    total = workspace[2 * longest : 3 * longest]
    spare = workspace[3 * longest :]
    for node in nodes:
        states, columns, weight = wiring.states[node], wiring.columns[node], pool.dtype.type(weights[node])
        rows, length = wiring.rows[node], wiring.row_length[node]
        width = length if rows > 1 else columns
        for block in range(wiring.blocks[node]):
            if keep:
                begin = wiring.table[node] + block * width
                stride = columns
                area = tables[begin : begin + (states - 1) * stride + width]
            else:
                stride = width
                area = workspace[: states * width]
            for number in range(rows):
                row = area[number * stride : number * stride + length]
                first = wiring.input_starts[node]
                for k in range(first, wiring.input_starts[node + 1]):
                    start = wiring.source[k] + wiring.bases[wiring.base_starts[k] + block] + number * wiring.stride[k]
                    pattern = wiring.pattern[k]
                    values = pool[start : start + wiring.present[pattern]]
                    places = wiring.maps[wiring.map_starts[pattern] : wiring.map_starts[pattern + 1]]
                    _add_input(wiring.kind[pattern], k == first, pool.dtype.type(wiring.sign[k]), values, places, row)
            begin = wiring.message[node] + block * width
            message = pool[begin : begin + width]
            if weight == 0.0:
                _maximise(area, stride, states, message, nothing)
                continue
            if keep and wiring.entropy[node] >= 0:
                begin = wiring.entropy[node] + block * width
                entropy = entropies[begin : begin + width]
            else:
                entropy = spare[:width]
            if states == 2:
                zero, one = area[:width], area[stride : stride + width]
                _eliminate_two(zero, one, weight, message, entropy, nothing, lowest)
            else:
                _eliminate(area, stride, states, weight, message, entropy, top, total, nothing, lowest)
        if offsets.size > 0:
            offsets[node] = _centre(pool[wiring.message[node] : wiring.message[node] + columns], nothing)


@inner
def _marginal(kind: int, places: Index32Array, gaps: Index32Array, row: FloatArray, out: FloatArray) -> None:
    """Add a row of a belief to the gradient of one input."""
    if kind == WHOLE:
        for r in range(row.size):
            out[r] += row[r]
    elif kind == CONSTANT:
        out[0] += _sum(row)
    elif out.size >= gaps.size:
        for g in range(gaps.size):
            gap = gaps[g]
            for m in range(out.size):
                out[m] += row[places[m] + gap]
    else:
        for m in range(out.size):
            place = places[m]
            one, two = row.dtype.type(0.0), row.dtype.type(0.0)
            for g in range(0, gaps.size - 1, 2):
                one += row[place + gaps[g]]
                two += row[place + gaps[g + 1]]
            if gaps.size & 1:
                one += row[place + gaps[gaps.size - 1]]
            out[m] += one + two


@inner
def _sum(row: FloatArray) -> float:
    """Sum in four strands, which do not wait for each other."""
    none = row.dtype.type(0.0)
    a, b, c, d = none, none, none, none
    whole = row.size - row.size % 4
    for r in range(0, whole, 4):
        a += row[r]
        b += row[r + 1]
        c += row[r + 2]
        d += row[r + 3]
    for r in range(whole, row.size):
        a += row[r]
    return (a + b) + (c + d)


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
        begin = wiring.message[node] - offset
        incoming = slopes[begin : begin + columns]
        first, last = wiring.input_starts[node], wiring.input_starts[node + 1]
        for k in range(first, last):
            if wiring.slope[k] >= 0:
                size = wiring.stride[k] * states if rows > 1 else wiring.present[wiring.pattern[k]]
                fresh = slopes[wiring.slope[k] : wiring.slope[k] + size]
                for i in range(size):
                    fresh[i] = slopes.dtype.type(0.0)
        if wiring.entropy[node] >= 0:
            begin = wiring.entropy[node]
            entropy = entropies[begin : begin + columns]
            for r in range(columns):
                entropy[r] *= incoming[r]
            weight_slopes[node] = _sum(entropy)
        begin = wiring.table[node]
        for block in range(wiring.blocks[node]):
            belief = incoming[block * width : block * width + width]
            for a in range(states):
                start = begin + a * columns + block * width
                row = tables[start : start + width]
                for r in range(width):
                    row[r] *= belief[r]
            for number in range(rows):
                start = begin + number * columns + block * width
                row = tables[start : start + length]
                for k in range(first, last):
                    if wiring.slope[k] < 0:
                        continue
                    start = wiring.slope[k] + wiring.bases[wiring.base_starts[k] + block] + number * wiring.stride[k]
                    pattern = wiring.pattern[k]
                    out = slopes[start : start + wiring.present[pattern]]
                    places = wiring.places[wiring.place_starts[pattern] : wiring.place_starts[pattern + 1]]
                    gaps = wiring.gaps[wiring.gap_starts[pattern] : wiring.gap_starts[pattern + 1]]
                    _marginal(wiring.kind[pattern], places, gaps, row, out)
