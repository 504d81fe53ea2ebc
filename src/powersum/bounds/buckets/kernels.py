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
from powersum.bounds.buckets.patterns import CONSTANT, GATHER, HALVED, RUNS, WHOLE
from powersum.bounds.buckets.power_sums import centre, maximise, message_of_any, message_of_two, sum_any, sum_two
from powersum.bounds.buckets.tree_wiring import (
    BLOCKS,
    COLUMNS,
    ENTROPY,
    FIRST_BASE,
    FIRST_GAP,
    FIRST_INPUT,
    FIRST_MAP,
    FIRST_PLACE,
    KIND,
    MESSAGE,
    PACKED,
    PATTERN,
    PRESENT,
    ROW_LENGTH,
    ROWS,
    RUN,
    SIGN,
    SLOPE,
    SOURCE,
    STATES,
    STRIDE,
    TABLE,
    TreeWiring,
)
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


@inlined
def _add_inputs(
    wiring: TreeWiring,
    node: int,
    block: int,
    pool: FloatArray,
    workspace: FloatArray,
    start: int,
    size: int,
    stride: int,
) -> None:
    """A block of a node's table, all its inputs added up, into the workspace."""
    clear(workspace, start, size)
    rows, length = wiring.nodes[node, ROWS], wiring.nodes[node, ROW_LENGTH]
    for k in range(wiring.nodes[node, FIRST_INPUT], wiring.nodes[node + 1, FIRST_INPUT]):
        source = wiring.inputs[k, SOURCE] + wiring.bases[wiring.inputs[k, FIRST_BASE] + block]
        further = wiring.inputs[k, STRIDE]
        pattern = wiring.inputs[k, PATTERN]
        kind, run = wiring.patterns[pattern, KIND], wiring.patterns[pattern, RUN]
        places = wiring.patterns[pattern, FIRST_MAP]
        sign = pool.dtype.type(wiring.inputs[k, SIGN])
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
                    sign, pool, source, wiring.maps, places, run, kind == GATHER, workspace, row, length, start + size
                )
            else:
                add_runs(sign, pool, source, wiring.maps, places, run, kind == RUNS, workspace, row, length)
            source += further
            row += stride


@without_counting
def send(wiring: TreeWiring, nodes: IntArray, weights: FloatArray, pool: FloatArray, workspace: FloatArray) -> None:
    """Messages of the given nodes, whose children come before them, and nothing else.

    ``workspace`` has :func:`workspace_size`. Messages are not centred: in double precision claims are made of them.
    """
    # Typed: for a literal number Numba would compile functions once more.
    none: Any = np.int64(0)
    double = pool.itemsize == 8
    nothing = pool.dtype.type(NOTHING if double else NOTHING_SINGLE)
    lowest = pool.dtype.type(LOWEST if double else LOWEST_SINGLE)
    for node in nodes:
        states, columns = wiring.nodes[node, STATES], wiring.nodes[node, COLUMNS]
        rows, length = wiring.nodes[node, ROWS], wiring.nodes[node, ROW_LENGTH]
        weight = pool.dtype.type(weights[node])
        width = length if rows > 1 else columns
        stride, start = _stride_of(rows, length, columns), _block_of(states)
        size = rows * stride if rows > 1 else length
        message = wiring.nodes[node, MESSAGE]
        for block in range(wiring.nodes[node, BLOCKS]):
            _add_inputs(wiring, node, block, pool, workspace, start, size, stride)
            # Short rows would be written beyond their end, where others begin: they take a way round.
            messages, to = (workspace, none) if width < LANES else (pool, message)
            if weight == 0.0:
                maximise(workspace, start, stride, states, width, messages, to, nothing)
            elif states == 2:
                message_of_two(workspace, start, stride, width, weight, messages, to, nothing, lowest)
            else:
                message_of_any(workspace, start, stride, states, width, weight, messages, to, nothing, lowest)
            if width < LANES:
                _copy(workspace, none, pool, message, width)
            message += width


@without_counting
def fill_tables(
    wiring: TreeWiring, nodes: IntArray, pool: FloatArray, tables: FloatArray, starts: IntArray, workspace: FloatArray
) -> None:
    """Write the whole tables of the given nodes, all inputs added up, each from its start on."""
    for i in range(len(nodes)):
        node = nodes[i]
        states, columns = wiring.nodes[node, STATES], wiring.nodes[node, COLUMNS]
        rows, length = wiring.nodes[node, ROWS], wiring.nodes[node, ROW_LENGTH]
        width = length if rows > 1 else columns
        stride, start = _stride_of(rows, length, columns), _block_of(states)
        size = rows * stride if rows > 1 else length
        to = starts[i]
        for block in range(wiring.nodes[node, BLOCKS]):
            _add_inputs(wiring, node, block, pool, workspace, start, size, stride)
            for a in range(states):
                _copy(workspace, start + a * stride, tables, to + a * columns, width)
            to += width


@without_counting
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
    """As :func:`send`, and what :func:`backward` needs: conditionals p and entropies.

    They go to ``tables`` (of full size, or packed) and ``entropies``; of a node of weight 0 it is the table itself.
    With ``offsets`` (doubles, one for each node) messages are centred, and what is taken off them goes there.
    """
    double = pool.itemsize == 8
    none: Any = np.int64(0)
    second: Any = np.int64(LANES)
    nothing = pool.dtype.type(NOTHING if double else NOTHING_SINGLE)
    lowest = pool.dtype.type(LOWEST if double else LOWEST_SINGLE)
    for node in nodes:
        states, columns = wiring.nodes[node, STATES], wiring.nodes[node, COLUMNS]
        rows, length = wiring.nodes[node, ROWS], wiring.nodes[node, ROW_LENGTH]
        weight = pool.dtype.type(weights[node])
        width = length if rows > 1 else columns
        stride, start = _stride_of(rows, length, columns), _block_of(states)
        size = rows * stride if rows > 1 else length
        across = columns if double or states != 2 else 0
        entropy = wiring.nodes[node, ENTROPY]
        message = wiring.nodes[node, MESSAGE]
        table = wiring.nodes[node, TABLE] if double else wiring.nodes[node, PACKED]
        short = width < LANES
        for block in range(wiring.nodes[node, BLOCKS]):
            _add_inputs(wiring, node, block, pool, workspace, start, size, stride)
            # Short rows would be written beyond their end, where others begin: they take a way round.
            messages, to = (workspace, none) if short else (pool, message)
            if weight == 0.0:
                maximise(workspace, start, stride, states, width, messages, to, nothing)
                for a in range(states):
                    _copy(workspace, start + a * stride, tables, table + a * columns, width)
            else:
                # Entropies that nobody asks for go behind the block.
                some, shown = workspace, start + size
                if entropy >= 0:
                    some, shown = entropies, entropy + block * width
                held, place, further = tables, table, across
                if short:
                    some, shown = workspace, LANES
                    held, place, further = workspace, 2 * LANES, LANES if across > 0 else 0
                if states == 2:
                    sum_two(
                        workspace, start, stride, width, weight, messages, to, some, shown, held, place, further,
                        nothing, lowest,
                    )  # fmt: skip
                else:
                    sum_any(
                        workspace, start, stride, states, width, weight, messages, to, some, shown, held, place,
                        further, LANES * (states + 2), nothing, lowest,
                    )  # fmt: skip
                if short:
                    if entropy >= 0:
                        _copy(workspace, second, entropies, entropy + block * width, width)
                    for a in range(states if across > 0 else 1):
                        _copy(workspace, 2 * LANES + a * further, tables, table + a * across, width)
            if short:
                _copy(workspace, none, pool, message, width)
            message += width
            table += width
        if offsets.size > 0:
            offsets[node] = centre(pool, wiring.nodes[node, MESSAGE], columns, nothing)


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
        states, columns = wiring.nodes[node, STATES], wiring.nodes[node, COLUMNS]
        rows, length = wiring.nodes[node, ROWS], wiring.nodes[node, ROW_LENGTH]
        width = length if rows > 1 else columns
        stride, start = _stride_of(rows, length, columns), _block_of(states)
        spare = start + (rows * stride if rows > 1 else length)
        across = columns if double or states != 2 else 0
        incoming = wiring.nodes[node, MESSAGE] - offset
        table = wiring.nodes[node, TABLE] if double else wiring.nodes[node, PACKED]
        entropy = wiring.nodes[node, ENTROPY]
        first, last = wiring.nodes[node, FIRST_INPUT], wiring.nodes[node + 1, FIRST_INPUT]
        for k in range(first, last):
            if wiring.inputs[k, SLOPE] >= 0:
                met = wiring.patterns[wiring.inputs[k, PATTERN], PRESENT]
                clear(slopes, wiring.inputs[k, SLOPE], wiring.inputs[k, STRIDE] * states if rows > 1 else met)
        if entropy >= 0:
            weight_slopes[node] = product_of(entropies, entropy, slopes, incoming, columns)
        for block in range(wiring.nodes[node, BLOCKS]):
            set_beliefs(tables, table, across, slopes, incoming, states, width, workspace, start, stride)
            table += width
            incoming += width
            for k in range(first, last):
                target = wiring.inputs[k, SLOPE]
                if target < 0:
                    continue
                target += wiring.bases[wiring.inputs[k, FIRST_BASE] + block]
                further = wiring.inputs[k, STRIDE]
                pattern = wiring.inputs[k, PATTERN]
                kind, run = wiring.patterns[pattern, KIND], wiring.patterns[pattern, RUN]
                places = wiring.patterns[pattern, FIRST_MAP]
                row = start
                for _ in range(rows):
                    if kind == WHOLE:
                        add_row(unit, workspace, row, slopes, target, length)
                    elif kind == CONSTANT:
                        slopes[target] += total_of_row(workspace, row, length)
                    elif kind > HALVED:
                        give_halved(wiring.maps, places, kind, workspace, row, length, slopes, target)
                    elif run < LANES:
                        given, gaps = wiring.patterns[pattern, FIRST_PLACE], wiring.patterns[pattern, FIRST_GAP]
                        present, n_gaps = (
                            wiring.patterns[pattern, PRESENT],
                            wiring.patterns[pattern + 1, FIRST_GAP] - gaps,
                        )
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
                    target += further
                    row += stride


@compiled
def beliefs_into(wiring: TreeWiring, offset: int, tables: FloatArray, slopes: FloatArray, beliefs: FloatArray) -> None:
    """Beliefs of all nodes at the latest gradient, one after the other, each laid out like its table."""
    for node in range(wiring.nodes.shape[0] - 1):
        states, columns = wiring.nodes[node, STATES], wiring.nodes[node, COLUMNS]
        packed = tables.itemsize == 4 and states == 2
        kept = wiring.nodes[node, PACKED] if tables.itemsize == 4 else wiring.nodes[node, TABLE]
        incoming, start = wiring.nodes[node, MESSAGE] - offset, wiring.nodes[node, TABLE]
        for a in range(states):
            for c in range(columns):
                share = tables[kept + c] if packed else tables[kept + a * columns + c]
                if packed and a == 1:
                    share = tables.dtype.type(1.0) - share
                beliefs[start + a * columns + c] = share * slopes[incoming + c]
