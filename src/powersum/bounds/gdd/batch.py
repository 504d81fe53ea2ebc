"""Remaining tables, power sums, beliefs and entropies of all members of a batch of blocks, group by group.

Blocks of a batch touch no region in common, so that what is done for them side by side is what would be done one after
another, to the last bit: no number of one lane ever meets that of another.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from powersum.bounds.buckets.inputs import add_row, clear
from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.rows import power_sums, power_sums_with_beliefs, spread
from powersum.bounds.gdd.shapes import Shapes
from powersum.bounds.gdd.state import LOG_OF_NOTHING, UNDERFLOW, DescentState, Workspace
from powersum.core.arrays import FloatArray, Int32Array, IntArray
from powersum.core.fastmath_single import log_of_either
from powersum.core.jit import bare
from powersum.core.lanes import LANES, lanes_at, larger, put_lanes

_STEP, _ONE = np.uint64(LANES), np.uint64(1)


@bare
def arrange(blocks: Int32Array, regions: Regions, shapes: Shapes, work: Workspace) -> int:
    """Sort the members of a batch into slots and groups; returns the number of groups."""
    n_kinds = len(shapes.kind_left)
    for k in range(n_kinds + 1):
        work.kind_at[k] = 0
    work.block_at[0] = 0
    for t in range(len(blocks)):
        first, last = regions.block_start[blocks[t]], regions.block_start[blocks[t] + 1]
        work.block_at[t + 1] = work.block_at[t] + (last - first)
        for m in range(first, last):
            work.kind_at[regions.member_kind[m] + 1] += 1
    n_groups = 0
    base, shift, axis = 0, 0, 0
    before = -1
    for k in range(n_kinds):
        count = work.kind_at[k + 1]
        work.kind_at[k + 1] += work.kind_at[k]
        if count == 0:
            continue
        left = shapes.kind_left[k]
        if before < 0 or left != shapes.kind_left[before] or shapes.kind_axes[k] != shapes.kind_axes[before]:
            work.group_start[n_groups] = work.kind_at[k]
            work.group_kind[n_groups] = k
            n_groups += 1
        before = k
    work.group_start[n_groups] = work.kind_at[n_kinds]
    for g in range(n_groups):
        lanes = work.group_start[g + 1] - work.group_start[g]
        kind = work.group_kind[g]
        work.group_base[g] = base
        work.group_table[g] = 2 * base + LANES * g
        work.group_shift[g] = shift
        work.group_axis[g] = axis
        base += lanes * shapes.entries[shapes.kind_left[kind]]
        shift += lanes * shapes.kind_shifts[kind]
        axis += lanes * shapes.depth[shapes.kind_left[kind]]
    for t in range(len(blocks)):
        first = regions.block_start[blocks[t]]
        for i in range(work.block_at[t + 1] - work.block_at[t]):
            kind = regions.member_kind[first + i]
            slot = work.kind_at[kind]
            work.kind_at[kind] += 1
            work.slot_member[slot] = first + i
            work.slot_block[slot] = t
            work.block_slots[work.block_at[t] + i] = slot
    for g in range(n_groups):
        start = work.group_start[g]
        for slot in range(start, work.group_start[g + 1]):
            work.slot_group[slot] = g
            work.slot_stride[slot] = work.group_start[g + 1] - start
            work.slot_shift[slot] = work.group_shift[g] + slot - start
    return n_groups


@bare
def eliminate_leading(
    whole: Any, left: Any, lanes: Any, regions_of: IntArray, axis_start: Int32Array, weights: FloatArray,
    shapes: Shapes, work: Workspace,
) -> None:  # fmt: skip
    """Eliminate, in place, the axes of the tables in ``work.raw`` until shape ``left`` remains of shape ``whole``."""
    node = whole
    a = 0
    while node != left:
        for lane in range(lanes):
            work.lane_weight[lane] = weights[axis_start[regions_of[lane]] + a]
        n = shapes.entries[shapes.rest[node]] * lanes
        spread(work.lane_weight, lanes, n, work.row_weight, work.row_inverse)
        power_sums(work.raw, shapes.card[node], n, work.row_weight, work.row_inverse)
        node = shapes.rest[node]
        a += 1


@bare
def load(n_groups: int, regions: Regions, shapes: Shapes, state: DescentState, work: Workspace) -> None:
    """Bring in the remaining tables of all members, with the axes before their block's first variable eliminated."""
    for g in range(n_groups):
        slot = work.group_start[g]
        lanes = work.group_start[g + 1] - slot
        left = shapes.kind_left[work.group_kind[g]]
        while slot < work.group_start[g + 1]:
            kind = regions.member_kind[work.slot_member[slot]]
            # By now each kind's place is its end.
            n = work.kind_at[kind] - slot
            first_lane = slot - work.group_start[g]
            whole = shapes.kind_whole[kind]
            entries = shapes.entries[whole]
            leading = shapes.depth[whole] - shapes.depth[left]
            base = work.group_base[g] + first_lane
            axis = work.group_axis[g] + first_lane
            for lane in range(n):
                region = regions.member_region[work.slot_member[slot + lane]]
                # Which lanes are active is decided later: until then their place holds the regions.
                work.active[lane] = region
                start = regions.table_start[region]
                if leading == 0:
                    for e in range(entries):
                        work.base[base + e * lanes + lane] = state.tables[start + e]
                else:
                    for e in range(entries):
                        work.raw[e * n + lane] = state.tables[start + e]
                work.value[slot + lane] = state.log_values[region]
                first = regions.axis_start[region] + leading
                work.weight[slot + lane] = state.weights[first]
                for a in range(shapes.depth[left]):
                    work.axis_weight[axis + a * lanes + lane] = state.weights[first + a]
            if leading > 0:
                eliminate_leading(whole, left, n, work.active, regions.axis_start, state.weights, shapes, work)
                for e in range(shapes.entries[left]):
                    for lane in range(n):
                        work.base[base + e * lanes + lane] = work.raw[e * n + lane]
            slot += n


@bare
def _set_row(
    base: FloatArray, of_base: Any, direction: FloatArray, of_shift: Any, steps: FloatArray, table: FloatArray, at: Any,
    n: Any,
) -> None:  # fmt: skip
    """One row of a trial's tables, of all lanes: that of the base, and a step along the direction."""
    c = np.uint64(0)
    # What is written beyond the row's end is where the next row goes.
    while c < n:
        moved = lanes_at(base, of_base + c) + lanes_at(steps, c) * lanes_at(direction, of_shift + c)
        put_lanes(table, at + c, moved)
        c += _STEP


@bare
def _pick_row(
    base: FloatArray, of_base: Any, direction: FloatArray, of_shift: Any, steps: FloatArray, table: FloatArray, at: Any,
    active: IntArray, start: Any, n: Any,
) -> None:  # fmt: skip
    """The same of the active lanes."""
    for c in range(n):
        lane = np.uint64(active[start + c])
        table[at + c] = base[of_base + lane] + steps[c] * direction[of_shift + lane]


@bare
def _copy_rows(
    base: FloatArray, of_base: Any, table: FloatArray, at: Any, whole: bool, entries: int, lanes: Any, active: IntArray,
    start: Any, n: Any,
) -> None:  # fmt: skip
    """All rows of a trial's tables: those of the base."""
    if whole:
        r, end = np.uint64(0), n * np.uint64(entries)
        while r < end:
            put_lanes(table, at + r, lanes_at(base, of_base + r))
            r += _STEP
    else:
        for _ in range(entries):
            for c in range(n):
                table[at + c] = base[of_base + np.uint64(active[start + c])]
            at += n
            of_base += lanes


@bare
def _activate(n_groups: int, n_blocks: int, n_tries: int, work: Workspace) -> int:
    """List the lanes of the blocks to try, and the groups that have some; returns the number of these."""
    if n_tries == n_blocks:
        for g in range(n_groups):
            start = work.group_start[g]
            work.touched[g] = g
            work.n_active[g] = work.group_start[g + 1] - start
            for lane in range(work.n_active[g]):
                work.active[start + lane] = lane
        return n_groups
    for g in range(n_groups):
        work.n_active[g] = 0
    n_touched = 0
    for i in range(n_tries):
        t = work.tries[i]
        for at in range(work.block_at[t], work.block_at[t + 1]):
            slot = work.block_slots[at]
            g = work.slot_group[slot]
            if work.n_active[g] == 0:
                work.touched[n_touched] = g
                n_touched += 1
            work.active[work.group_start[g] + work.n_active[g]] = slot - work.group_start[g]
            work.n_active[g] += 1
    return n_touched


@bare
def trial(
    n_groups: int, n_blocks: int, n_tries: int, shifted: Any, weights: FloatArray, shapes: Shapes, work: Workspace
) -> int:
    """Values of the members of the first ``n_tries`` blocks of ``work.tries``, at these weights of their leading axes.

    ``shifted``: at ``work.step`` of their block along the direction; otherwise at the present shifts. Returns the
    number of groups that took part.
    """
    n_touched = _activate(n_groups, n_blocks, n_tries, work)
    # All lanes, in their order: rows are copied as they are.
    whole = n_tries == n_blocks
    for i in range(n_touched):
        g = work.touched[i]
        start, n = work.group_start[g], work.n_active[g]
        lanes = work.group_start[g + 1] - start
        kind = work.group_kind[g]
        node = shapes.kind_left[kind]
        for c in range(n):
            slot = start + work.active[start + c]
            work.lane_weight[c] = weights[slot]
            work.lane_step[c] = work.step[work.slot_block[slot]]
        entries = shapes.entries[node]
        at = work.group_table[g]
        row, of_base = np.uint64(at), np.uint64(work.group_base[g])
        n_row, lane_row, first = np.uint64(n), np.uint64(lanes), np.uint64(start)
        if shifted and shapes.kind_shifts[kind] > 0:
            rest = entries // shapes.kind_shifts[kind]
            mapped = shapes.kind_map[kind]
            of_state, left = np.uint64(work.group_shift[g]), rest
            for e in range(entries):
                if mapped >= 0:
                    x = np.int64(shapes.separator_map[mapped + e])
                    of_state = np.uint64(work.group_shift[g] + x * lanes)
                elif left == 0:
                    of_state, left = of_state + lane_row, rest
                left -= 1
                if whole:
                    _set_row(work.base, of_base, work.direction, of_state, work.lane_step, work.table, row, n_row)
                else:
                    _pick_row(
                        work.base, of_base, work.direction, of_state, work.lane_step, work.table, row, work.active,
                        first, n_row,
                    )  # fmt: skip
                row += n_row
                of_base += lane_row
        else:
            _copy_rows(work.base, of_base, work.table, row, whole, entries, lane_row, work.active, first, n_row)
        a = 0
        while node != 0:
            if a > 0:
                of_axis = work.group_axis[g] + a * lanes
                for c in range(n):
                    work.lane_weight[c] = work.axis_weight[of_axis + work.active[start + c]]
            card = shapes.card[node]
            node = shapes.rest[node]
            size = shapes.entries[node] * n
            spread(work.lane_weight, n, size, work.row_weight, work.row_inverse)
            power_sums_with_beliefs(work.table, work.belief, at, card, size, work.row_weight, work.row_inverse)
            at += card * size
            a += 1
        for c in range(n):
            work.trial_value[start + work.active[start + c]] = work.table[at + c]
    return n_touched


@bare
def _add_entropies(
    belief: FloatArray, table: FloatArray, first: int, below: int, card: int, rest: int, lanes: int, total: FloatArray
) -> None:
    """The conditional entropy of the first axis times its weight, for each lane."""
    n = np.uint64(lanes)
    for c in range(n):
        total[c] = 0.0
    at = np.uint64(first)
    for _ in range(card):
        under = np.uint64(below)
        for _ in range(rest):
            for c in range(n):
                joint = belief[at + c]
                total[c] += joint * (table[under + c] - table[at + c]) if joint > 0.0 else 0.0
            at += n
            under += n


@bare
def _multiply(belief: FloatArray, target: Any, other: Any, n: Any) -> None:
    at, by, end = target, other, target + n
    while at + _STEP <= end:
        put_lanes(belief, at, lanes_at(belief, at) * lanes_at(belief, by))
        at += _STEP
        by += _STEP
    while at < end:
        belief[at] *= belief[by]
        at += _ONE
        by += _ONE


@bare
def find_beliefs(n_touched: int, shapes: Shapes, work: Workspace) -> None:
    """Beliefs and entropies of the members of all ``accepted`` blocks at the last trial, made at ``work.weight``."""
    # Typed: for a literal number Numba would compile `clear` once more.
    none: Any = np.int64(0)
    for i in range(n_touched):
        g = work.touched[i]
        n = work.n_active[g]
        start = work.group_start[g]
        any_accepted = False
        for c in range(n):
            any_accepted |= work.accepted[work.slot_block[start + work.active[start + c]]]
        if not any_accepted:
            continue
        lanes = work.group_start[g + 1] - start
        kind = work.group_kind[g]
        top = shapes.kind_left[kind]
        depth = shapes.depth[top]
        first_at = work.group_table[g]
        below_at = first_at + shapes.entries[top] * n
        rest = shapes.entries[shapes.rest[top]]
        # From the last axis back to the first, conditional beliefs become joint ones.
        for level in range(depth - 2, -1, -1):
            node = top
            at = first_at
            for _ in range(level):
                at += shapes.entries[node] * n
                node = shapes.rest[node]
            size = shapes.entries[shapes.rest[node]] * n
            lower = at + shapes.entries[node] * n
            for k in range(shapes.card[node]):
                _multiply(work.belief, np.uint64(at + k * size), np.uint64(lower), np.uint64(size))
        _add_entropies(work.belief, work.table, first_at, below_at, shapes.card[top], rest, n, work.lane_sum)
        for c in range(n):
            slot = start + work.active[start + c]
            if work.accepted[work.slot_block[slot]]:
                work.entropy[slot] = work.lane_sum[c] / work.weight[slot] if work.weight[slot] > 0.0 else 0.0
        mapped = shapes.kind_map[kind]
        n_shifts = shapes.kind_shifts[kind]
        if n_shifts == 0:
            continue
        clear(work.raw, none, n_shifts * n)
        of_state = shapes.entries[top] // n_shifts
        x, left = none, of_state
        for e in range(shapes.entries[top]):
            if mapped >= 0:
                x = np.int64(shapes.separator_map[mapped + e])
            elif left == 0:
                x, left = x + 1, of_state
            left -= 1
            add_row(1.0, work.belief, first_at + e * n, work.raw, x * n, n)
        _set_logs(work.raw, work.row_logs, np.uint64(n_shifts * n))
        for c in range(n):
            slot = start + work.active[start + c]
            if not work.accepted[work.slot_block[slot]]:
                continue
            place = work.slot_shift[slot]
            weight = work.weight[slot]
            for x in range(n_shifts):
                marginal = work.raw[x * n + c]
                work.marginal[place] = marginal
                if marginal > UNDERFLOW or mapped >= 0:
                    # Separators of several variables have no use for it, and scale their beliefs themselves.
                    work.scaled[place] = weight * work.row_logs[x * n + c]
                else:
                    at = first_at + x * rest * n + c
                    work.scaled[place] = _limit(work.table, work.belief, at, below_at + c, n, rest, weight, depth == 1)
                place += lanes


@bare
def _set_logs(values: FloatArray, logs: FloatArray, n: Any) -> None:
    r = np.uint64(0)
    while r < n:
        put_lanes(logs, r, log_of_either(larger(lanes_at(values, r), UNDERFLOW)))
        r += _STEP


@bare
def _limit(
    table: FloatArray, belief: FloatArray, at: int, below: int, lanes: int, rest: int, weight: float, alone: bool
) -> float:
    """Weight times log belief of one state where the belief has underflowed.

    w log Σ_j μ_j exp((t_j − m_j)/w) tends to the largest exponent as w → 0: this is the finite move that a member of
    vanishing weight must make, and that its underflowed belief no longer shows.
    """
    highest = LOG_OF_NOTHING
    for j in range(0, rest * lanes, lanes):
        later = 1.0 if alone else belief[below + j]
        if later > 0.0:
            highest = max(highest, table[at + j] - table[below + j] + weight * math.log(later))
    return highest
