"""Updates of a batch of blocks: the closed form of eq. 11, or local descent on shifts and weights.

Within a block the change of each member's table is called its *move*; moves of a block add up to zero, which is what
keeps the bound valid. Blocks of a batch have nothing in common: each has its own steps, and its own end of every line
search.
"""

from __future__ import annotations

import numpy as np

from powersum.bounds.gdd.batch import arrange, find_beliefs, load, trial
from powersum.bounds.gdd.closed_form import close
from powersum.bounds.gdd.line_search import descend_shifts, descend_weights, total_of
from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.shapes import Shapes
from powersum.bounds.gdd.state import DescentState, Rules, Workspace
from powersum.core.arrays import FloatArray, Int32Array, IntArray
from powersum.core.jit import bare, compiled


@bare
def begin(n_groups: int, n_blocks: int, shapes: Shapes, work: Workspace) -> None:
    """Values and beliefs of all blocks at their present point."""
    for t in range(n_blocks):
        work.accepted[t] = True
    n_touched = trial(n_groups, n_blocks, n_blocks, np.bool_(False), work.weight, shapes, work)
    find_beliefs(n_touched, shapes, work)


@bare
def _descend(
    n_groups: int, blocks: Int32Array, tau: FloatArray, regions: Regions, shapes: Shapes, state: DescentState,
    work: Workspace, rules: Rules,
) -> None:  # fmt: skip
    """Local descent on the shifts and on the weights of all blocks, each with its own line search."""
    begin(n_groups, len(blocks), shapes, work)
    for slot in range(work.group_start[n_groups]):
        work.value[slot] = work.trial_value[slot]
    any_wide = False
    for g in range(n_groups):
        any_wide |= shapes.kind_map[work.group_kind[g]] >= 0
    for t in range(len(blocks)):
        work.going[t] = True
        work.changed[t] = False
        work.block_value[t] = total_of(work.block_slots, work.block_at[t], work.block_at[t + 1], work.trial_value)
        n_shifts = regions.block_size[blocks[t]]
        for at in range(work.block_at[t], work.block_at[t + 1]):
            slot = work.block_slots[at]
            for x in range(n_shifts):
                work.move[work.slot_shift[slot] + x * work.slot_stride[slot]] = 0.0
    for _ in range(rules.inner_steps):
        for t in range(len(blocks)):
            work.progress[t] = False
        for way in range(2 if any_wide and rules.gradient == 0 else 1):
            descend_shifts(way, n_groups, blocks, regions, shapes, state, work, rules)
        descend_weights(n_groups, blocks, tau, regions, shapes, state, work, rules)
        n_going = 0
        for t in range(len(blocks)):
            work.going[t] &= work.progress[t]
            work.changed[t] |= work.progress[t]
            n_going += work.going[t]
        if n_going == 0:
            break


@bare
def _store(blocks: Int32Array, regions: Regions, shapes: Shapes, state: DescentState, work: Workspace) -> None:
    """Carry the moves, weights and values of all changed blocks over to the state."""
    for t in range(len(blocks)):
        b = blocks[t]
        if not work.changed[t]:
            continue
        n_shifts = regions.block_size[b]
        for i in range(work.block_at[t + 1] - work.block_at[t]):
            slot = work.block_slots[work.block_at[t] + i]
            m = work.slot_member[slot]
            region = regions.member_region[m]
            kind = regions.member_kind[m]
            whole, left = shapes.kind_whole[kind], shapes.kind_left[kind]
            state.log_values[region] = work.value[slot]
            if regions.block_variable[b] >= 0:
                place = regions.axis_start[region] + shapes.depth[whole] - shapes.depth[left]
                state.weights[place] = work.weight[slot]
            if n_shifts == 0:
                continue
            size = shapes.entries[left]
            mapped = shapes.kind_map[kind]
            shift, stride = work.slot_shift[slot], work.slot_stride[slot]
            rest = size // n_shifts
            start = regions.table_start[region]
            while start < regions.table_start[region + 1]:
                if mapped < 0:
                    for x in range(n_shifts):
                        move = work.move[shift + x * stride]
                        for j in range(start + x * rest, start + (x + 1) * rest):
                            state.tables[j] += move
                else:
                    for j in range(size):
                        state.tables[start + j] += work.move[shift + shapes.separator_map[mapped + j] * stride]
                start += size
            if i > 0:
                delta = regions.block_delta[b] + (i - 1) * n_shifts
                for x in range(n_shifts):
                    state.delta[delta + x] -= work.move[shift + x * stride]


@compiled
def update_batches(
    first: int, last: int, batch_start: IntArray, sweep: Int32Array, tau: FloatArray, regions: Regions,
    shapes: Shapes, state: DescentState, work: Workspace, rules: Rules,
) -> None:  # fmt: skip
    """Update the given batches one after another; batches of one colour may be given to several threads."""
    for batch in range(first, last):
        blocks = sweep[batch_start[batch] : batch_start[batch + 1]]
        n_groups = arrange(blocks, regions, shapes, work)
        load(n_groups, regions, shapes, state, work)
        if regions.block_closed[blocks[0]] == 1:
            close(n_groups, blocks, regions, shapes, work)
        else:
            _descend(n_groups, blocks, tau, regions, shapes, state, work, rules)
        _store(blocks, regions, shapes, state, work)
