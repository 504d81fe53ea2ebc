"""How the rows of a node's table meet its inputs: blocks, bases and shared index patterns (compiled)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import IntArray
from powersum.core.jit import compiled, inner

Index32Array = NDArray[np.uint32]

BLOCK = 512
"""Most entries in a row of a block, unless one axis alone is longer: rows of a block stay in the first-level cache."""

GATHER, SAME, CONSTANT = 0, 1, 2
"""Kinds of pattern: some axes missing, all there, none there."""


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
def _fill_pattern(key: IntArray, maps: Index32Array, places: Index32Array, gaps: Index32Array) -> None:
    """Indices of one pattern; ``key`` holds for each axis twice its number of states, plus 1 where the input has it."""
    digits = np.zeros(key.size, np.int64)
    strides = np.zeros(key.size, np.int64)
    stride = 1
    for axis in range(key.size - 1, -1, -1):
        if key[axis] & 1:
            strides[axis] = stride
            stride *= key[axis] >> 1
    n_places, n_gaps = 0, 0
    for entry in range(maps.size):
        place = 0
        first, plain = True, True
        for axis in range(key.size):
            place += digits[axis] * strides[axis]
            if digits[axis] > 0:
                if key[axis] & 1:
                    plain = False
                else:
                    first = False
        maps[entry] = place
        # Entries rise through the input in its own order where all missing axes are 0, through the gaps where all
        # present ones are.
        if first:
            places[n_places] = entry
            n_places += 1
        if plain:
            gaps[n_gaps] = entry
            n_gaps += 1
        axis = key.size - 1
        while axis >= 0:
            digits[axis] += 1
            if digits[axis] < key[axis] >> 1:
                break
            digits[axis] = 0
            axis -= 1


class Patterns(NamedTuple):
    """What :func:`wire` finds out; the fields are those of :class:`~powersum.bounds.buckets.wiring.Wiring`."""

    rows: IntArray
    row_length: IntArray
    blocks: IntArray
    stride: IntArray
    base_starts: IntArray
    bases: IntArray
    pattern: IntArray
    kind: IntArray
    present: IntArray
    map_starts: IntArray
    maps: Index32Array
    place_starts: IntArray
    places: Index32Array
    gap_starts: IntArray
    gaps: Index32Array


def wire(
    starts: IntArray,
    positions: IntArray,
    cardinalities: IntArray,
    input_starts: IntArray,
    lows: IntArray,
    highs: IntArray,
    own_positions: IntArray,
) -> Patterns:
    """Blocks of each node, then stride, bases and pattern of each input, then the patterns.

    The scope of input k is ``own_positions[lows[k]:highs[k]]``.
    """
    n, found = _wire(starts, positions, cardinalities, input_starts, lows, highs, own_positions)
    roomy = Patterns(*found)
    return roomy._replace(
        bases=roomy.bases[: roomy.base_starts[-1]].copy(),
        kind=roomy.kind[:n].copy(),
        present=roomy.present[:n].copy(),
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
    """The number of patterns, and the fields of :class:`Patterns`, some with more room than is filled."""
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
        if size > BLOCK and width > 1:
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
        digits = np.empty(max(inner, 1), np.int64)
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
            for axis in range(digits.size):
                digits[axis] = 0
            for block in range(blocks[node]):
                base = 0
                for axis in range(1, inner):
                    base += digits[axis] * axis_stride[axis]
                bases[base_starts[k] + block] = base
                axis = inner - 1
                while axis >= 1:
                    digits[axis] += 1
                    if digits[axis] < cardinalities[scope[axis]]:
                        break
                    digits[axis] = 0
                    axis -= 1
            number, slot = _pattern_of(key, slots, key_starts, keys)
            if number < 0:
                number = n_patterns
                n_patterns += 1
                slots[slot] = number
                keys = grown(keys, key_starts[number] + key.size)
                for i in range(key.size):
                    keys[key_starts[number] + i] = key[i]
                key_starts[number + 1] = key_starts[number] + key.size
                kind[number] = SAME if missing == 1 else (CONSTANT if met == 1 else GATHER)
                present[number] = met
                filled = row_length[node] if kind[number] == GATHER else 0
                maps = grown(maps, map_starts[number] + filled)
                places = grown(places, place_starts[number] + (met if filled else 0))
                gaps = grown(gaps, gap_starts[number] + (missing if filled else 0))
                map_starts[number + 1] = map_starts[number] + filled
                place_starts[number + 1] = place_starts[number] + (met if filled else 0)
                gap_starts[number + 1] = gap_starts[number] + (missing if filled else 0)
                if filled:
                    _fill_pattern(
                        key,
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
        map_starts,
        maps,
        place_starts,
        places,
        gap_starts,
        gaps,
    )
