"""Shapes of tables: regions that differ only in their numbers are worked on side by side.

A *shape* is the number of states of each axis. Shapes are nodes of a tree: eliminating the first axis of a table leads
from its shape to the parent, ``rest``, and in the end to node 0, a single number. The *kind* of a block's member adds
which axes come before the block's own, and which ones a separator of several variables has.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, Int32Array, IntArray
from powersum.core.growing import grown
from powersum.core.jit import compiled

NO_MAP = -1
"""In ``kind_map``: the separator is the leading axis of the remaining table, no index map is needed."""


LEADING, ALONE = 0, -1
"""In ``kind_axes``: the separator is the leading axis; the block has no separator, only weights."""


class Shapes(NamedTuple):
    """All shapes of a wiring, and all kinds of members, sorted so that those with one remaining table are neighbours.

    The *remaining* table of a member is what is left of its region once the axes before the block's first variable are
    eliminated, which its shifts pass unchanged.
    """

    card: IntArray  # states of a shape's first axis
    rest: IntArray  # the shape without its first axis
    entries: IntArray
    depth: IntArray  # number of axes
    log_card: FloatArray
    kind_whole: IntArray  # the region's shape
    kind_left: IntArray  # the shape of the remaining table
    kind_axes: IntArray  # bit a: axis a of the remaining table belongs to a separator of several variables; or ALONE
    kind_shifts: IntArray  # number of entries of the block's separator
    kind_map: IntArray  # where the map from remaining entries to separator entries starts, or NO_MAP
    separator_map: Int32Array


def shapes_of(
    cardinalities: IntArray,
    axis_start: IntArray,
    axis_variable: IntArray,
    block_start: IntArray,
    member_region: IntArray,
    block_size: IntArray,
    block_variable: IntArray,
) -> tuple[Shapes, Int32Array, Int32Array]:
    """The shapes, the shape of every region, and the kind of every member."""
    region_shape, card, rest, depth = _find_shapes(cardinalities, axis_start, axis_variable)
    entries = np.ones(len(card), dtype=np.int64)
    for node in range(1, len(card)):
        entries[node] = card[node] * entries[rest[node]]
    member_kind, whole, left, axes = _find_kinds(
        axis_start, axis_variable, block_start, member_region, block_size, block_variable, region_shape, rest
    )
    by_left = np.lexsort((whole, axes, left))
    rank = np.empty(len(by_left), dtype=np.int32)
    rank[by_left] = np.arange(len(by_left))
    whole, left, axes = whole[by_left], left[by_left], axes[by_left]
    maps, kind_map, shifts = _separator_maps(card, rest, left, axes)
    shapes = Shapes(card, rest, entries, depth, np.log(card), whole, left, axes, shifts, kind_map, maps)
    return shapes, region_shape, rank[member_kind]


def _separator_maps(
    card: IntArray, rest: IntArray, left: IntArray, axes: IntArray
) -> tuple[Int32Array, IntArray, IntArray]:
    """For each kind with a wide separator the separator entry of every remaining entry; equal maps are kept once."""
    starts, shifts = np.full(len(left), NO_MAP, dtype=np.int64), np.where(axes == ALONE, 0, card[left])
    places: dict[tuple[int, int], tuple[int, int]] = {}
    maps, total = [np.zeros(0, dtype=np.int32)], 0
    for kind in np.flatnonzero(axes > 0).tolist():
        node, bits = key = int(left[kind]), int(axes[kind])
        if key not in places:
            sizes, inside = [], []
            while node:
                sizes.append(int(card[node]))
                inside.append(bool(bits & 1))
                node, bits = int(rest[node]), bits >> 1
            n_shifts = math.prod(size for size, own in zip(sizes, inside, strict=True) if own)
            stride, index = n_shifts, np.zeros(1, dtype=np.int32)
            for size, own in zip(sizes, inside, strict=True):
                stride //= size if own else 1
                index = np.add.outer(index, np.arange(size, dtype=np.int32) * (stride if own else 0)).ravel()
            places[key] = total, n_shifts
            maps.append(index.astype(np.int32))
            total += index.size
        starts[kind], shifts[kind] = places[key]
    return np.concatenate(maps), starts, shifts


@compiled
def _find_shapes(
    cardinalities: IntArray, axis_start: IntArray, axis_variable: IntArray
) -> tuple[Int32Array, IntArray, IntArray, IntArray]:
    n_regions = len(axis_start) - 1
    region_shape = np.zeros(n_regions, np.int32)
    card = np.ones(64, np.int64)
    rest = np.zeros(64, np.int64)
    depth = np.zeros(64, np.int64)
    child = np.full(64, -1, np.int64)
    sibling = np.full(64, -1, np.int64)
    n = 1
    for region in range(n_regions):
        node = 0
        for a in range(axis_start[region + 1] - 1, axis_start[region] - 1, -1):
            states = cardinalities[axis_variable[a]]
            found = child[node]
            while found >= 0 and card[found] != states:
                found = sibling[found]
            if found < 0:
                card, rest, depth = grown(card, n + 1), grown(rest, n + 1), grown(depth, n + 1)
                child, sibling = grown(child, n + 1), grown(sibling, n + 1)
                found = n
                n += 1
                card[found] = states
                rest[found] = node
                depth[found] = depth[node] + 1
                child[found] = -1
                sibling[found] = child[node]
                child[node] = found
            node = found
        region_shape[region] = node
    return region_shape, card[:n].copy(), rest[:n].copy(), depth[:n].copy()


@compiled
def _find_kinds(
    axis_start: IntArray,
    axis_variable: IntArray,
    block_start: IntArray,
    member_region: IntArray,
    block_size: IntArray,
    block_variable: IntArray,
    region_shape: Int32Array,
    rest: IntArray,
) -> tuple[Int32Array, IntArray, IntArray, IntArray]:
    member_kind = np.zeros(len(member_region), np.int32)
    newest = np.full(len(rest), -1, np.int64)
    whole = np.empty(64, np.int64)
    left = np.empty(64, np.int64)
    axes = np.empty(64, np.int64)
    older = np.empty(64, np.int64)
    n = 0
    for b in range(len(block_size)):
        separator = member_region[block_start[b]]
        shifts = block_size[b] > 0
        leading = axis_variable[axis_start[separator]] if shifts else block_variable[b]
        wide = shifts and axis_start[separator + 1] - axis_start[separator] > 1
        for m in range(block_start[b], block_start[b + 1]):
            region = member_region[m]
            a = axis_start[region]
            node = np.int64(region_shape[region])
            while axis_variable[a] != leading:
                a += 1
                node = rest[node]
            bits = LEADING if shifts else ALONE
            if wide:
                for at in range(a, axis_start[region + 1]):
                    for s in range(axis_start[separator], axis_start[separator + 1]):
                        if axis_variable[at] == axis_variable[s]:
                            bits |= 1 << (at - a)
            found = newest[region_shape[region]]
            while found >= 0 and not (left[found] == node and axes[found] == bits):
                found = older[found]
            if found < 0:
                whole, left = grown(whole, n + 1), grown(left, n + 1)
                axes, older = grown(axes, n + 1), grown(older, n + 1)
                found = n
                n += 1
                whole[found] = region_shape[region]
                left[found] = node
                axes[found] = bits
                older[found] = newest[region_shape[region]]
                newest[region_shape[region]] = found
            member_kind[m] = found
    return member_kind, whole[:n].copy(), left[:n].copy(), axes[:n].copy()
