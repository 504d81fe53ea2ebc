"""How the rows of a node's table meet its inputs: blocks, bases and shared index patterns (compiled)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.core.lanes import LANES
from powersum.core.odometer import next_entry

Index32Array = NDArray[np.uint32]

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
def grown(array: NDArray[Any], needed: int) -> NDArray[Any]:
    """``array`` with room for ``needed`` entries."""
    if needed <= array.size:
        return array
    larger = np.empty(2 * needed, array.dtype)
    for i in range(array.size):
        larger[i] = array[i]
    return larger


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


class TreeWiring(NamedTuple):
    """Flat arrays that the kernels read: first what the caller of :func:`wire` knows, then what it finds out."""

    states: IntArray
    """States of the eliminated variable of each node."""
    columns: IntArray
    """States of all other variables of each node together: the size of its message."""
    table: IntArray
    """Start of each node's table among all tables."""
    packed: IntArray
    """The same among tables of which two states are one row: the conditionals of the first tell those of the other."""
    message: IntArray
    """Start of each node's message in the pool."""
    entropy: IntArray
    """Start of the conditional entropies of each node; -1 for a node that has its variable to itself."""
    input_starts: IntArray
    """Inputs of node n: ``input_starts[n]`` to ``input_starts[n + 1]``."""
    source: IntArray
    """Start of each input in the pool."""
    slope: IntArray
    """Start of its gradient in the gradient pool; -1 for a static table."""
    sign: FloatArray
    """-1 for a shift that is taken away, else 1."""
    rows: IntArray
    """A node's block is filled row by row: as many rows as states, or a single row where all of it is small."""
    row_length: IntArray
    blocks: IntArray
    """Number of blocks of columns."""
    stride: IntArray
    """Distance from row to row in each input."""
    base_starts: IntArray
    bases: IntArray
    """Where each block starts in each input."""
    pattern: IntArray
    """Pattern of each input."""
    kind: IntArray
    present: IntArray
    """Entries of an input that a row of a block meets."""
    run: IntArray
    """Entries of a row that are told by one entry of ``maps``."""
    map_starts: IntArray
    maps: Index32Array
    """For the first entry of each run of a row its place in the input."""
    place_starts: IntArray
    places: Index32Array
    """For each entry of the input its first place in a row."""
    gap_starts: IntArray
    gaps: Index32Array
    """Distances from the first place to all places: states of the axes that the input lacks."""


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
    sign: FloatArray,
) -> TreeWiring:
    """Blocks of each node, then stride, bases and pattern of each input, then the patterns.

    The scope of node n is ``positions[starts[n]:starts[n + 1]]``, that of input k
    ``own_positions[lows[k]:highs[k]]``.
    """
    n, found = _wire(starts, positions, cardinalities, input_starts, lows, highs, own_positions)
    roomy = TreeWiring(states, columns, table, packed, message, entropy, input_starts, source, slope, sign, *found)
    return roomy._replace(
        bases=roomy.bases[: roomy.base_starts[-1]].copy(),
        kind=roomy.kind[:n].copy(),
        present=roomy.present[:n].copy(),
        run=roomy.run[:n].copy(),
        map_starts=roomy.map_starts[: n + 1].copy(),
        maps=roomy.maps[: roomy.map_starts[n]].copy(),
        place_starts=roomy.place_starts[: n + 1].copy(),
        places=roomy.places[: roomy.place_starts[n]].copy(),
        gap_starts=roomy.gap_starts[: n + 1].copy(),
        gaps=roomy.gaps[: roomy.gap_starts[n]].copy(),
    )


@compiled
def _wire(
    starts: IntArray,
    positions: IntArray,
    cardinalities: IntArray,
    input_starts: IntArray,
    lows: IntArray,
    highs: IntArray,
    own_positions: IntArray,
) -> tuple[int, tuple[Any, ...]]:
    """The number of patterns, and the last fields of :class:`TreeWiring`, some with more room than is filled."""
    n_nodes, n_inputs = starts.size - 1, lows.size
    rows = np.ones(n_nodes, np.int64)
    row_length = np.ones(n_nodes, np.int64)
    blocks = np.ones(n_nodes, np.int64)
    stride = np.zeros(n_inputs, np.int64)
    base_starts = np.zeros(n_inputs + 1, np.int64)
    bases = np.empty(2 * n_inputs + 1, np.int64)
    pattern = np.empty(n_inputs, np.int64)
    capacity = 64
    while capacity < 2 * n_inputs:
        capacity *= 2
    slots = np.empty(capacity, np.int64)
    for slot in range(capacity):
        slots[slot] = -1
    n_patterns = 0
    key_starts = np.zeros(n_inputs + 1, np.int64)
    keys = np.empty(256, np.int64)
    kind = np.empty(n_inputs, np.int64)
    present = np.empty(n_inputs, np.int64)
    run = np.ones(n_inputs, np.int64)
    map_starts = np.zeros(n_inputs + 1, np.int64)
    place_starts = np.zeros(n_inputs + 1, np.int64)
    gap_starts = np.zeros(n_inputs + 1, np.int64)
    maps = np.empty(1024, np.uint32)
    places = np.empty(1024, np.uint32)
    gaps = np.empty(1024, np.uint32)
    for node in range(n_nodes):
        scope = positions[starts[node] : starts[node + 1]]
        width = scope.size
        size = 1
        for p in scope:
            size *= cardinalities[p]
        inner = 0
        # A variable of a single state has a single row, however long it is.
        if size > BLOCK and width > 1 and cardinalities[scope[0]] > 1:
            inner = width - 1
            length = cardinalities[scope[inner]]
            while inner > 1 and length * cardinalities[scope[inner - 1]] <= BLOCK:
                inner -= 1
                length *= cardinalities[scope[inner]]
            rows[node], row_length[node] = cardinalities[scope[0]], length
            blocks[node] = size // (rows[node] * length)
        else:
            row_length[node] = size
        axis_stride = np.empty(width, np.int64)
        key = np.empty(width - inner, np.int64)
        # The axes that are counted through from block to block: all between the first one and those of a block.
        n_outer = max(inner - 1, 0)
        digits = np.empty(n_outer, np.int64)
        sizes = np.empty(n_outer, np.int64)
        for axis in range(n_outer):
            sizes[axis] = cardinalities[scope[axis + 1]]
        for k in range(input_starts[node], input_starts[node + 1]):
            own = own_positions[lows[k] : highs[k]]
            j, step, missing, met = own.size - 1, 1, 1, 1
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
            stride[k] = axis_stride[0] if inner > 0 else 0
            bases = grown(bases, base_starts[k] + blocks[node])
            base_starts[k + 1] = base_starts[k] + blocks[node]
            for axis in range(n_outer):
                digits[axis] = 0
            base: Any = np.int64(0)
            for block in range(blocks[node]):
                bases[base_starts[k] + block] = base
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
                kind[number], run[number] = _kind_of(key, met, missing)
                present[number] = met
                filled = row_length[node] // run[number] if kind[number] != WHOLE and kind[number] != CONSTANT else 0
                placed = kind[number] == GATHER or kind[number] == SPREAD
                maps = grown(maps, map_starts[number] + filled)
                places = grown(places, place_starts[number] + (met if placed else 0))
                gaps = grown(gaps, gap_starts[number] + (missing if placed else 0))
                map_starts[number + 1] = map_starts[number] + filled
                place_starts[number + 1] = place_starts[number] + (met if placed else 0)
                gap_starts[number + 1] = gap_starts[number] + (missing if placed else 0)
                if filled:
                    _fill_pattern(
                        key,
                        run[number],
                        maps[map_starts[number] : map_starts[number + 1]],
                        places[place_starts[number] : place_starts[number + 1]],
                        gaps[gap_starts[number] : gap_starts[number + 1]],
                    )
            pattern[k] = number
    return n_patterns, (
        rows,
        row_length,
        blocks,
        stride,
        base_starts,
        bases,
        pattern,
        kind,
        present,
        run,
        map_starts,
        maps,
        place_starts,
        places,
        gap_starts,
        gaps,
    )
