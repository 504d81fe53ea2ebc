"""Eq. 11 of the paper: the update of a block of maximised variables in closed form."""

from __future__ import annotations

import numpy as np

from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.shapes import Shapes
from powersum.bounds.gdd.state import Workspace
from powersum.core.arrays import Int32Array
from powersum.core.jit import bare


@bare
def _set_max_marginals(g: int, shapes: Shapes, work: Workspace) -> None:
    """The largest entries of all members of a group, for each entry of the separator."""
    kind = work.group_kind[g]
    lanes = work.group_start[g + 1] - work.group_start[g]
    entries = shapes.entries[shapes.kind_left[kind]]
    n_shifts = shapes.kind_shifts[kind]
    marginal = work.marginal[work.group_shift[g] : work.group_shift[g] + n_shifts * lanes]
    for r in range(marginal.size):
        marginal[r] = -np.inf
    mapped = shapes.kind_map[kind]
    rest = entries // n_shifts
    for e in range(entries):
        x = e // rest if mapped < 0 else np.int64(shapes.separator_map[mapped + e])
        row = marginal[x * lanes : (x + 1) * lanes]
        base = work.base[work.group_base[g] + e * lanes : work.group_base[g] + (e + 1) * lanes]
        for r in range(lanes):
            row[r] = max(row[r], base[r])


@bare
def close(n_groups: int, blocks: Int32Array, regions: Regions, shapes: Shapes, work: Workspace) -> None:
    """Eq. 11: every member of an all-max block gets an equal part of the sum of their max-marginals."""
    for g in range(n_groups):
        _set_max_marginals(g, shapes, work)
    for t in range(len(blocks)):
        first, last = work.block_at[t], work.block_at[t + 1]
        n_shifts = regions.block_size[blocks[t]]
        before = 0.0
        for at in range(first, last):
            slot = work.block_slots[at]
            top = -np.inf
            for x in range(n_shifts):
                top = max(top, work.marginal[work.slot_shift[slot] + x * work.slot_stride[slot]])
            before += top
        after = -np.inf
        for x in range(n_shifts):
            total = 0.0
            for at in range(first, last):
                slot = work.block_slots[at]
                total += work.marginal[work.slot_shift[slot] + x * work.slot_stride[slot]]
            for at in range(first, last):
                slot = work.block_slots[at]
                place = work.slot_shift[slot] + x * work.slot_stride[slot]
                share = total / (last - first) - work.marginal[place]
                work.move[place] = 0.0 if total == -np.inf else share
            after = max(after, total)
        for at in range(first, last):
            work.value[work.block_slots[at]] = after / (last - first)
        # Equality is kept too: an even split is where the neighbours make progress from.
        work.changed[t] = after <= before
