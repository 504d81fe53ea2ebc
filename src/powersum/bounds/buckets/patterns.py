"""How the rows of a node's table meet its inputs: blocks, bases and shared index patterns (compiled)."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    Index32Array,
    TreeWiring,
)
from powersum.core.arrays import IntArray
from powersum.core.growing import grown
from powersum.core.jit import compiled, inner
from powersum.core.lanes import LANES
from powersum.core.odometer import next_entry

BLOCK = 512
"""Most entries in a row of a block, unless one axis alone is longer: rows of a block stay in the first-level cache."""

GATHER, WHOLE, CONSTANT, RUNS, STEPS, SPREAD = 0, 1, 2, 3, 4, 5
"""Kinds of pattern. All axes are there, or none: WHOLE, CONSTANT. Some are missing, but none of the last ones, which
make long runs or short ones: RUNS, GATHER. Some are there, but none of the last ones: STEPS, SPREAD."""

HALVED = 8
"""Kinds above this: the last three axes have two states each (or fewer axes as many together), and the pattern some of
them: which ones is told by what is above, as in :data:`powersum.core.lanes.HALVES`."""

LEAST_RUN = 8
"""Where the axes that are all there, or all missing, at the end of a row have so many states together, the row is
worked on by runs of them: contiguous stretches of the input, or one entry of it."""


@inner
def _pattern_of(key: IntArray, slots: IntArray, key_starts: IntArray, keys: IntArray) -> tuple[Any, Any]:
    """Number of the pattern with this key, or -1, and the slot of the hash table where it is or belongs."""
    mask = slots.size - 1
    code = np.uint64(1469598103934665603)
    for value in key:
        code = (code ^ np.uint64(value)) * np.uint64(1099511628211)
    slot = np.int64((code ^ (code >> np.uint64(29))) & np.uint64(mask))
    while slots[slot] >= 0:
        start, end = key_starts[slots[slot]], key_starts[slots[slot] + 1]
        if end - start == key.size:
            equal = True
            for i in range(key.size):
                if keys[start + i] != key[i]:
                    equal = False
                    break
            if equal:
                return slots[slot], slot
        slot = (slot + 1) & mask
    return -1, slot


@inner
def _kind_of(key: IntArray, met: int, missing: int) -> tuple[int, int]:
    """Kind and run of a pattern; ``key`` holds for each axis twice its states, plus 1 where the input has it."""
    if missing == 1:
        return WHOLE, 1
    if met == 1:
        return CONSTANT, 1
    run, axis = 1, key.size - 1
    # Axes of a single state are there and missing at once.
    while key[axis] >> 1 == 1:
        axis -= 1
    has = key[axis] & 1
    while axis >= 0 and (key[axis] & 1 == has or key[axis] >> 1 == 1):
        run *= key[axis] >> 1
        axis -= 1
    if run >= LEAST_RUN:
        return (RUNS if has else STEPS), run
    # Eight entries, axis by axis from the last: an axis of four states is as good as two of two.
    entries, bits, halves, axis = 1, 0, 0, key.size - 1
    while axis >= 0 and entries < LANES:
        states = key[axis] >> 1
        entries *= states
        while states > 1:
            halves |= (key[axis] & 1) << bits
            bits += 1
            states >>= 1
        axis -= 1
    if entries == LANES:
        return HALVED + halves, LANES
    return (GATHER if has else SPREAD), run


@inner
def _fill_pattern(key: IntArray, run: int, maps: Index32Array, places: Index32Array, gaps: Index32Array) -> None:
    """Indices of one pattern; places and gaps where there is room for them."""
    digits = np.zeros(key.size, np.int64)
    sizes = np.empty(key.size, np.int64)
    strides = np.zeros(key.size, np.int64)
    stride = 1
    for axis in range(key.size - 1, -1, -1):
        sizes[axis] = key[axis] >> 1
        if key[axis] & 1:
            strides[axis] = stride
            stride *= key[axis] >> 1
    n_places, n_gaps = 0, 0
    # Typed: for a literal 0 Numba would compile `next_entry` once more.
    place: Any = np.int64(0)
    for entry in range(maps.size * run):
        first, plain = places.size > 0, gaps.size > 0
        for axis in range(key.size):
            if digits[axis] > 0:
                if key[axis] & 1:
                    plain = False
                else:
                    first = False
        if entry % run == 0:
            maps[entry // run] = place
        # Entries rise through the input in its own order where all missing axes are 0, through the gaps where all
        # present ones are.
        if first:
            places[n_places] = entry
            n_places += 1
        if plain:
            gaps[n_gaps] = entry
            n_gaps += 1
        place = next_entry(place, digits, sizes, strides)


def wire(
    starts: IntArray,
    positions: IntArray,
    cardinalities: IntArray,
    lows: IntArray,
    highs: IntArray,
    own_positions: IntArray,
    *,
    states: IntArray,
    columns: IntArray,
    table: IntArray,
    packed: IntArray,
    message: IntArray,
    entropy: IntArray,
    input_starts: IntArray,
    source: IntArray,
    slope: IntArray,
    sign: IntArray,
) -> TreeWiring:
    """Blocks of each node, then stride, bases and pattern of each input, then the patterns.

    The scope of node n is ``positions[starts[n]:starts[n + 1]]``, that of input k
    ``own_positions[lows[k]:highs[k]]``; ``sign`` is -1 for a shift that is taken away, else 1.
    """
    n_nodes, n_inputs = len(states), len(source)
    nodes = np.zeros((n_nodes + 1, 10), dtype=np.int64)
    for column, per_node in ((STATES, states), (COLUMNS, columns), (ENTROPY, entropy)):
        nodes[:-1, column] = per_node
    for column, per_node in ((TABLE, table), (PACKED, packed), (MESSAGE, message), (FIRST_INPUT, input_starts)):
        nodes[: len(per_node), column] = per_node
    inputs = np.zeros((n_inputs + 1, 6), dtype=np.int64)
    for column, per_input in ((SOURCE, source), (SLOPE, slope), (SIGN, sign)):
        inputs[:-1, column] = per_input
    # Room for as many patterns as inputs; for finding one by its key, twice that and a power of two.
    patterns = np.zeros((n_inputs + 1, 6), dtype=np.int64)
    slots = np.full(1 << max(6, (2 * n_inputs).bit_length()), -1, dtype=np.int64)
    key_starts = np.zeros(n_inputs + 1, dtype=np.int64)
    n, bases, maps, places, gaps = _wire(
        starts, positions, cardinalities, lows, highs, own_positions, nodes, inputs, patterns, slots, key_starts,
        np.empty(2 * n_inputs + 1, dtype=np.int64), np.empty(256, dtype=np.int64), np.empty(1024, dtype=np.uint32),
    )  # fmt: skip
    ends = patterns[n]
    return TreeWiring(
        nodes,
        inputs,
        patterns[: n + 1].copy(),
        bases[: inputs[-1, FIRST_BASE]].copy(),
        maps[: ends[FIRST_MAP]].copy(),
        places[: ends[FIRST_PLACE]].copy(),
        gaps[: ends[FIRST_GAP]].copy(),
    )


@compiled
def _wire(
    starts: IntArray,
    positions: IntArray,
    cardinalities: IntArray,
    lows: IntArray,
    highs: IntArray,
    own_positions: IntArray,
    nodes: IntArray,
    inputs: IntArray,
    patterns: IntArray,
    slots: IntArray,
    key_starts: IntArray,
    bases: IntArray,
    keys: IntArray,
    maps: Index32Array,
) -> tuple[int, IntArray, Index32Array, Index32Array, Index32Array]:
    """Fills what is left of nodes, inputs and patterns; returns the number of patterns, and the last four fields of
    :class:`TreeWiring`, with more room than is filled.

    Arrays come from outside, for one that is made here takes longer to compile than the loop that fills it.
    """
    places, gaps = maps.copy(), maps.copy()
    # One array for the axes of a node: distances in an input, a pattern's key, digits and sizes of an odometer.
    work = np.empty((4, cardinalities.size), np.int64)
    n_patterns = 0
    for node in range(nodes.shape[0] - 1):
        scope = positions[starts[node] : starts[node + 1]]
        width = scope.size
        size = 1
        for p in scope:
            size *= cardinalities[p]
        inner = 0
        nodes[node, ROWS] = 1
        nodes[node, BLOCKS] = 1
        length = size
        # A variable of a single state has a single row, however long it is.
        if size > BLOCK and width > 1 and cardinalities[scope[0]] > 1:
            inner = width - 1
            length = cardinalities[scope[inner]]
            while inner > 1 and length * cardinalities[scope[inner - 1]] <= BLOCK:
                inner -= 1
                length *= cardinalities[scope[inner]]
            nodes[node, ROWS] = cardinalities[scope[0]]
            nodes[node, BLOCKS] = size // (nodes[node, ROWS] * length)
        nodes[node, ROW_LENGTH] = length
        blocks = nodes[node, BLOCKS]
        # The axes that are counted through from block to block: all between the first one and those of a block.
        n_outer = max(inner - 1, 0)
        axis_stride, key = work[0][:width], work[1][: width - inner]
        digits, sizes = work[2][:n_outer], work[3][:n_outer]
        for axis in range(n_outer):
            sizes[axis] = cardinalities[scope[axis + 1]]
        for k in range(nodes[node, FIRST_INPUT], nodes[node + 1, FIRST_INPUT]):
            own = own_positions[lows[k] : highs[k]]
            j = own.size - 1
            # Typed: for literal numbers Numba would compile functions once more.
            step: Any = np.int64(1)
            missing: Any = np.int64(1)
            met: Any = np.int64(1)
            for axis in range(width - 1, -1, -1):
                states = cardinalities[scope[axis]]
                has = j >= 0 and own[j] == scope[axis]
                axis_stride[axis] = step if has else 0
                if axis >= inner:
                    key[axis - inner] = 2 * states + has
                    if has:
                        met *= states
                    else:
                        missing *= states
                if has:
                    step *= states
                    j -= 1
            inputs[k, STRIDE] = axis_stride[0] if inner > 0 else 0
            first_base = inputs[k, FIRST_BASE]
            bases = grown(bases, first_base + blocks)
            inputs[k + 1, FIRST_BASE] = first_base + blocks
            for axis in range(n_outer):
                digits[axis] = 0
            base: Any = np.int64(0)
            for block in range(blocks):
                bases[first_base + block] = base
                base = next_entry(base, digits, sizes, axis_stride[1 : 1 + n_outer])
            number, slot = _pattern_of(key, slots, key_starts, keys)
            if number < 0:
                number = n_patterns
                n_patterns += 1
                slots[slot] = number
                keys = grown(keys, key_starts[number] + key.size)
                for i in range(key.size):
                    keys[key_starts[number] + i] = key[i]
                key_starts[number + 1] = key_starts[number] + key.size
                kind, run = _kind_of(key, met, missing)
                patterns[number, KIND], patterns[number, PRESENT], patterns[number, RUN] = kind, met, run
                filled = 0 if kind in (WHOLE, CONSTANT) else length // run
                placed = kind in (GATHER, SPREAD)
                first_map, first_place = patterns[number, FIRST_MAP], patterns[number, FIRST_PLACE]
                first_gap = patterns[number, FIRST_GAP]
                end_map, end_place = first_map + filled, first_place + (met if placed else 0)
                end_gap = first_gap + (missing if placed else 0)
                maps, places, gaps = grown(maps, end_map), grown(places, end_place), grown(gaps, end_gap)
                patterns[number + 1, FIRST_MAP] = end_map
                patterns[number + 1, FIRST_PLACE] = end_place
                patterns[number + 1, FIRST_GAP] = end_gap
                if filled:
                    _fill_pattern(
                        key, run, maps[first_map:end_map], places[first_place:end_place], gaps[first_gap:end_gap]
                    )
            inputs[k, PATTERN] = number
    return n_patterns, bases, maps, places, gaps
