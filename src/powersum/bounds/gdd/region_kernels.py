"""Compiled loops that build the wiring of :mod:`powersum.bounds.gdd.regions`; run once for each problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.core.odometer import next_entry, set_strides


@compiled
def fill_separator_maps(
    block_start: IntArray,
    member_region: IntArray,
    block_size: IntArray,
    block_variable: IntArray,
    cardinalities: IntArray,
    axis_start: IntArray,
    axis_variable: IntArray,
    axis_card: IntArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """For each member: first touched axis, entries from there on, and the separator entry each of them belongs to.

    One-variable separators need no map: they are the leading axis of what remains.
    """
    n_members = len(member_region)
    member_first = np.zeros(n_members, dtype=np.int64)
    member_entries = np.ones(n_members, dtype=np.int64)
    member_map = np.full(n_members, -1, dtype=np.int64)
    total = 0
    for b in range(len(block_start) - 1):
        separator = member_region[block_start[b]]
        shifts = block_size[b] > 0
        leading = axis_variable[axis_start[separator]] if shifts else block_variable[b]
        wide = shifts and axis_start[separator + 1] - axis_start[separator] > 1
        for m in range(block_start[b], block_start[b + 1]):
            region = member_region[m]
            for a in range(axis_start[region], axis_start[region + 1]):
                if axis_variable[a] == leading:
                    member_first[m] = a - axis_start[region]
            for a in range(axis_start[region] + member_first[m], axis_start[region + 1]):
                member_entries[m] *= axis_card[a]
            if wide:
                member_map[m] = total
                total += member_entries[m]
    separator_map = np.zeros(total, dtype=np.int64)
    widest = 0
    for region in range(len(axis_start) - 1):
        widest = max(widest, axis_start[region + 1] - axis_start[region])
    strides = np.empty(widest, dtype=np.int64)
    digits = np.empty(widest, dtype=np.int64)
    for b in range(len(block_start) - 1):
        separator = member_region[block_start[b]]
        for m in range(block_start[b], block_start[b + 1]):
            if member_map[m] < 0:
                continue
            region = member_region[m]
            first = axis_start[region] + member_first[m]
            n_axes = axis_start[region + 1] - first
            scope = axis_variable[axis_start[separator] : axis_start[separator + 1]]
            set_strides(scope, cardinalities, axis_variable[first : first + n_axes], strides)
            for a in range(n_axes):
                digits[a] = 0
            # Typed: for a literal 0 Numba would compile `next_entry` once more.
            index: Any = np.int64(0)
            for j in range(member_map[m], member_map[m] + member_entries[m]):
                separator_map[j] = index
                index = next_entry(index, digits[:n_axes], axis_card[first : first + n_axes], strides[:n_axes])
    return member_first, member_entries, member_map, separator_map


@compiled
def remove_impossible_tuples(
    block_start: IntArray,
    block_size: IntArray,
    member_region: IntArray,
    member_entries: IntArray,
    member_map: IntArray,
    separator_map: IntArray,
    table_start: IntArray,
    theta: FloatArray,
) -> None:
    """Make a separator's tuple ``-inf`` in all its regions once any of them excludes it, to a fixpoint.

    Afterwards every max-marginal and every belief of a block is either positive in all its members or in none, so
    that no shift is ever infinite. Tuples of one variable are states, which simplification has already removed.
    """
    largest = 1
    for b in range(len(block_size)):
        largest = max(largest, block_size[b])
    possible = np.empty(largest, dtype=np.bool_)
    supported = np.empty(largest, dtype=np.bool_)
    again = True
    while again:
        again = False
        for b in range(len(block_size)):
            if block_size[b] == 0 or member_map[block_start[b]] < 0:
                continue
            possible[: block_size[b]] = True
            for m in range(block_start[b], block_start[b + 1]):
                supported[: block_size[b]] = False
                start = table_start[member_region[m]]
                for j in range(table_start[member_region[m] + 1] - start):
                    if theta[start + j] > -np.inf:
                        supported[separator_map[member_map[m] + j % member_entries[m]]] = True
                for x in range(block_size[b]):
                    possible[x] &= supported[x]
            for m in range(block_start[b], block_start[b + 1]):
                start = table_start[member_region[m]]
                for j in range(table_start[member_region[m] + 1] - start):
                    supports = possible[separator_map[member_map[m] + j % member_entries[m]]]
                    if not supports and theta[start + j] > -np.inf:
                        theta[start + j] = -np.inf
                        again = True
