"""Forward and backward pass over the nodes of a covering tree: the bound, and all of its gradients.

The forward pass eliminates one variable from each node's table T with the node's weight w: column by column its
message is ``w log Σ exp(T / w)``, and the normalised exponentials p that it needs anyway are kept together with their
entropy. They are all the backward pass needs: the belief of a node is p times the belief that comes back from the
message, and the gradients of inputs are marginals of beliefs (paper, Thm 5.1). Tables and beliefs themselves are there
for a block at a time only, in the first-level cache.

Hard zeros: no column's largest entry is taken as less than ``NOTHING``, so that a column of ``-inf`` gives a message
of about ``NOTHING`` and some finite p, on which no belief ever falls. Nothing is ever ``-inf`` minus ``-inf``.

The kernels are compiled for the numbers they are given. Claims are made in double precision. A descent runs in single
precision, where messages are *centred*: their largest entry is taken off and kept in double, so that large constants
cost no digits. There p is *packed* as well: of a variable of two states that of the first is kept, the other is what
is left of 1. (In double precision small p keep all their digits.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.bounds.buckets.inputs import add_halved, add_number, add_row, add_runs, add_short_runs, clear
from powersum.bounds.buckets.marginals import (
    give_gathered,
    give_halved,
    give_runs,
    give_spread,
    product_of,
    set_beliefs,
    total_of_row,
)
from powersum.bounds.buckets.patterns import CONSTANT, GATHER, HALVED, RUNS, WHOLE, TreeWiring
from powersum.bounds.buckets.power_sums import centre, maximise, message_of_any, message_of_two, sum_any, sum_two
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.fastmath import LOWEST
from powersum.core.fastmath_single import LOWEST_SINGLE
from powersum.core.jit import bare, compiled, inlined, without_counting
from powersum.core.lanes import LANES

NOTHING = -1e300
"""Stands for the log of an impossible column: finite, yet far below any value that a real model can have."""

NOTHING_SINGLE = -1e30
"""The same in single precision, where the sum of all of a model's impossible columns must stay finite, too."""


@inlined
def _stride_of(rows: int, length: int, columns: int) -> int:
    """Distance between the rows of a block: whole lanes, unless the block is one row to those who fill it."""
    return (length + LANES - 1) // LANES * LANES if rows > 1 else columns


@inlined
def _block_of(states: int) -> int:
    """Where a block begins in a workspace: behind what short rows are put into, and eight numbers of each state."""
    return 2 * LANES * (states + 1)


def workspace_size(wiring: TreeWiring) -> int:
    """Numbers that a pass works on at a time."""
    rows, length = wiring.rows, wiring.row_length
    blocks = np.where(rows > 1, rows * (length + LANES), length)
    return int((2 * LANES * (wiring.states + 1) + blocks + length).max(initial=0)) + LANES


@bare
def _copy(source: FloatArray, start: int, target: FloatArray, to: int, length: int) -> None:
    """Copy a stretch."""
    at, by = np.uint64(to), np.uint64(start)
    for r in range(np.uint64(length)):
        target[at + r] = source[by + r]


@without_counting
def forward(
    wiring: TreeWiring,
    nodes: IntArray,
    weights: FloatArray,
    pool: FloatArray,
    tables: FloatArray | None,
    entropies: FloatArray,
    offsets: FloatArray,
    workspace: FloatArray,
) -> None:
    """Messages of the given nodes, whose children come before them.

    With ``tables`` (of full size) the conditionals p and the entropies are kept for :func:`backward`, or the table
    itself for a node of weight 0; with None only messages are made. With ``offsets`` (doubles, one for each
    node) messages are centred, and what is taken off them goes there. ``workspace`` has :func:`workspace_size`.
    """
    double = pool.itemsize == 8
    # Typed: for a literal number Numba would compile functions once more.
    none: Any = np.int64(0)
    second: Any = np.int64(LANES)
    nothing = pool.dtype.type(NOTHING if double else NOTHING_SINGLE)
    lowest = pool.dtype.type(LOWEST if double else LOWEST_SINGLE)
    for node in nodes:
        states, columns, weight = wiring.states[node], wiring.columns[node], pool.dtype.type(weights[node])
        rows, length = wiring.rows[node], wiring.row_length[node]
        width = length if rows > 1 else columns
        stride, start = _stride_of(rows, length, columns), _block_of(states)
        size = rows * stride if rows > 1 else length
        kept = wiring.entropy[node] >= 0
        across = columns if double or states != 2 else 0
        for block in range(wiring.blocks[node]):
            clear(workspace, start, size)
            for k in range(wiring.input_starts[node], wiring.input_starts[node + 1]):
                source = wiring.source[k] + wiring.bases[wiring.base_starts[k] + block]
                pattern = wiring.pattern[k]
                kind, run, places = wiring.kind[pattern], wiring.run[pattern], wiring.map_starts[pattern]
                sign = pool.dtype.type(wiring.sign[k])
                row = start
                for _ in range(rows):
                    if kind == WHOLE:
                        add_row(sign, pool, source, workspace, row, length)
                    elif kind == CONSTANT:
                        add_number(sign * pool[source], workspace, row, length)
                    elif kind > HALVED:
                        add_halved(sign, pool, source, wiring.maps, places, kind, workspace, row, length)
                    elif run < LANES:
                        add_short_runs(
                            sign, pool, source, wiring.maps, places, run, kind == GATHER, workspace, row, length,
                            start + size,
                        )  # fmt: skip
                    else:
                        add_runs(sign, pool, source, wiring.maps, places, run, kind == RUNS, workspace, row, length)
                    source += wiring.stride[k]
                    row += stride
            message, table = wiring.message[node] + block * width, block * width
            table += wiring.table[node] if double else wiring.packed[node]
            short = width < LANES
            # Short rows would be written beyond their end, where others begin: they take a way round.
            messages, to = (workspace, none) if short else (pool, message)
            if weight == 0.0:
                maximise(workspace, start, stride, states, width, messages, to, nothing)
                if tables is not None:
                    for a in range(states):
                        _copy(workspace, start + a * stride, tables, table + a * columns, width)
            elif tables is None:
                if states == 2:
                    message_of_two(workspace, start, stride, width, weight, messages, to, nothing, lowest)
                else:
                    message_of_any(workspace, start, stride, states, width, weight, messages, to, nothing, lowest)
            else:
                # Entropies that nobody asks for go behind the block.
                some, shown = workspace, start + size
                if kept:
                    some, shown = entropies, wiring.entropy[node] + block * width
                held, place, further = tables, table, across
                if short:
                    some, shown = workspace, LANES
                    held, place, further = workspace, 2 * LANES, LANES if across > 0 else 0
                spare = LANES * (states + 2)
                if states == 2:
                    sum_two(
                        workspace, start, stride, width, weight, messages, to, some, shown, held, place, further,
                        nothing, lowest,
                    )  # fmt: skip
                else:
                    sum_any(
                        workspace, start, stride, states, width, weight, messages, to, some, shown, held, place,
                        further, spare, nothing, lowest,
                    )  # fmt: skip
                if short:
                    if kept:
                        _copy(workspace, second, entropies, wiring.entropy[node] + block * width, width)
                    for a in range(states if across > 0 else 1):
                        _copy(workspace, 2 * LANES + a * further, tables, table + a * across, width)
            if short:
                _copy(workspace, none, pool, message, width)
        if offsets.size > 0:
            offsets[node] = centre(pool, wiring.message[node], columns, nothing)


@without_counting
def backward(
    wiring: TreeWiring,
    nodes: IntArray,
    offset: int,
    tables: FloatArray,
    entropies: FloatArray,
    slopes: FloatArray,
    weight_slopes: FloatArray,
    workspace: FloatArray,
) -> None:
    """Gradients of inputs and weights of the given nodes, last node first.

    ``offset`` is where messages start in the pool: their gradients start at 0 in ``slopes``.
    """
    double = tables.itemsize == 8
    unit = slopes.dtype.type(1.0)
    for index in range(nodes.size - 1, -1, -1):
        node = nodes[index]
        states, columns = wiring.states[node], wiring.columns[node]
        rows, length = wiring.rows[node], wiring.row_length[node]
        width = length if rows > 1 else columns
        stride, start = _stride_of(rows, length, columns), _block_of(states)
        spare = start + (rows * stride if rows > 1 else length)
        across = columns if double or states != 2 else 0
        incoming = wiring.message[node] - offset
        first, last = wiring.input_starts[node], wiring.input_starts[node + 1]
        for k in range(first, last):
            if wiring.slope[k] >= 0:
                size = wiring.stride[k] * states if rows > 1 else wiring.present[wiring.pattern[k]]
                clear(slopes, wiring.slope[k], size)
        if wiring.entropy[node] >= 0:
            weight_slopes[node] = product_of(entropies, wiring.entropy[node], slopes, incoming, columns)
        for block in range(wiring.blocks[node]):
            table = block * width + (wiring.table[node] if double else wiring.packed[node])
            set_beliefs(
                tables, table, across, slopes, incoming + block * width, states, width, workspace, start, stride
            )
            for k in range(first, last):
                if wiring.slope[k] < 0:
                    continue
                target = wiring.slope[k] + wiring.bases[wiring.base_starts[k] + block]
                pattern = wiring.pattern[k]
                kind, run, places = wiring.kind[pattern], wiring.run[pattern], wiring.map_starts[pattern]
                row = start
                for _ in range(rows):
                    if kind == WHOLE:
                        add_row(unit, workspace, row, slopes, target, length)
                    elif kind == CONSTANT:
                        slopes[target] += total_of_row(workspace, row, length)
                    elif kind > HALVED:
                        give_halved(wiring.maps, places, kind, workspace, row, length, slopes, target)
                    elif run < LANES:
                        given, gaps = wiring.place_starts[pattern], wiring.gap_starts[pattern]
                        present, n_gaps = wiring.present[pattern], wiring.gap_starts[pattern + 1] - gaps
                        if kind == GATHER:
                            give_gathered(
                                wiring.places, given, present, run, wiring.gaps, gaps, n_gaps, workspace, row,
                                slopes, target, spare,
                            )  # fmt: skip
                        else:
                            give_spread(
                                wiring.places, given, present, wiring.gaps, gaps, n_gaps, workspace, row, slopes, target
                            )
                    else:
                        give_runs(wiring.maps, places, run, kind == RUNS, workspace, row, length, slopes, target)
                    target += wiring.stride[k]
                    row += stride


@compiled
def beliefs_into(wiring: TreeWiring, offset: int, tables: FloatArray, slopes: FloatArray, beliefs: FloatArray) -> None:
    """Beliefs of all nodes at the latest gradient, one after the other, each laid out like its table."""
    for node in range(wiring.states.size):
        states, columns = wiring.states[node], wiring.columns[node]
        packed = tables.itemsize == 4 and states == 2
        kept = wiring.packed[node] if tables.itemsize == 4 else wiring.table[node]
        incoming, start = wiring.message[node] - offset, wiring.table[node]
        for a in range(states):
            for c in range(columns):
                share = tables[kept + c] if packed else tables[kept + a * columns + c]
                if packed and a == 1:
                    share = tables.dtype.type(1.0) - share
                beliefs[start + a * columns + c] = share * slopes[incoming + c]
