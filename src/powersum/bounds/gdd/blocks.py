"""Updates of a batch of blocks: the closed form of eq. 11, or local descent on shifts and weights.

Within a block the change of each member's table is called its *move*; moves of a block add up to zero, which is what
keeps the bound valid. Blocks of a batch have nothing in common: each has its own steps, and its own end of every line
search. Those that have ended one wait for the others, and only those that have not are tried again.
"""

from __future__ import annotations

import numpy as np

from powersum.bounds.gdd.batch import arrange, find_beliefs, load, trial
from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.shapes import Shapes
from powersum.bounds.gdd.state import LOG_OF_NOTHING, UNDERFLOW, DescentState, Rules, Workspace
from powersum.core.arrays import FloatArray, Int32Array, IntArray
from powersum.core.fastmath import exp_of, log_of
from powersum.core.jit import bare, compiled

FLAT = -1e-13
"""A direction whose slope is not below this leads nowhere."""


# A function that is called for every block takes the arrays it uses: handing over a whole workspace costs more.


@bare
def _set_gradient(slots: IntArray, first: int, last: int, n_shifts: int, work: Workspace) -> None:
    """The plain gradient of the paper (eq. 8) as the direction of all members of a block."""
    for x in range(n_shifts):
        own = work.slot_shift[slots[first]] + x * work.slot_stride[slots[first]]
        total = 0.0
        for at in range(first + 1, last):
            place = work.slot_shift[slots[at]] + x * work.slot_stride[slots[at]]
            work.direction[place] = work.marginal[own] - work.marginal[place]
            total += work.direction[place]
        work.direction[own] = -total


@bare
def _set_matching(
    slots: IntArray, first: int, last: int, n_shifts: int, weight: FloatArray, slot_shift: IntArray,
    slot_stride: IntArray, scaled: FloatArray, direction: FloatArray,
) -> None:  # fmt: skip
    """A direction that would bring the beliefs of all members of a block together.

    Each member moves by −ω (log b − log q), where log q is the ω-average of the members' log beliefs. The slope
    −Σ ω KL(b‖q) is never positive, whatever the ω ≥ 0; with ω the member's weight of the variable the full step is
    exact when that variable is the last in every member. Where ω is 0 the move is the limit: the member's whole
    dependence on the variable goes to the others, as a message would carry it.

    A separator of several variables has several weights: ω is their mean.
    """
    sum_omega = 0.0
    for at in range(first, last):
        sum_omega += weight[slots[at]]
    for x in range(n_shifts):
        total = 0.0
        for at in range(first, last):
            total += scaled[slot_shift[slots[at]] + x * slot_stride[slots[at]]]
        for at in range(first, last):
            place = slot_shift[slots[at]] + x * slot_stride[slots[at]]
            direction[place] = weight[slots[at]] / sum_omega * total - scaled[place]


@bare
def _scale_wide(t: int, n_shifts: int, by_messages: bool, regions: Regions, shapes: Shapes, work: Workspace) -> None:
    """Mean weights and weighted log beliefs of the members of a separator of several variables.

    Where the weights vanish, beliefs show nothing; then ``by_messages`` takes the member's largest entries in their
    place, which is what a message carries of it.
    """
    for at in range(work.block_at[t], work.block_at[t + 1]):
        slot = work.block_slots[at]
        lanes, shift = work.slot_stride[slot], work.slot_shift[slot]
        kind = regions.member_kind[work.slot_member[slot]]
        g = work.slot_group[slot]
        lane = slot - work.group_start[g]
        total = 0.0
        count = 0
        for a in range(shapes.depth[shapes.kind_left[kind]]):
            weight = work.axis_weight[work.group_axis[g] + a * lanes + lane]
            if (shapes.kind_axes[kind] >> a) & 1 and weight > 0.0:
                total += weight
                count += 1
        omega = total / count if count > 0 else 0.0
        work.trial_weight[slot] = omega
        if by_messages:
            for x in range(n_shifts):
                work.scaled[shift + x * lanes] = LOG_OF_NOTHING
            for e in range(shapes.entries[shapes.kind_left[kind]]):
                place = shift + shapes.separator_map[shapes.kind_map[kind] + e] * lanes
                excess = work.base[work.group_base[g] + e * lanes + lane] - work.value[slot]
                work.scaled[place] = max(work.scaled[place], excess)
        else:
            for x in range(n_shifts):
                belief = work.marginal[shift + x * lanes]
                work.scaled[shift + x * lanes] = omega * (log_of(belief) if belief > UNDERFLOW else LOG_OF_NOTHING)


@bare
def _slope(
    slots: IntArray, first: int, last: int, n_shifts: int, slot_shift: IntArray, slot_stride: IntArray,
    marginal: FloatArray, direction: FloatArray,
) -> float:  # fmt: skip
    """Derivative of a block's value along the direction."""
    slope = 0.0
    for at in range(first, last):
        place, stride = slot_shift[slots[at]], slot_stride[slots[at]]
        for _ in range(n_shifts):
            slope += marginal[place] * direction[place]
            place += stride
    return slope


@bare
def _total(slots: IntArray, first: int, last: int, values: FloatArray) -> float:
    """The sum over the members of a block."""
    total = 0.0
    for at in range(first, last):
        total += values[slots[at]]
    return total


@bare
def _try_weights(
    slots: IntArray, first: int, last: int, tau: float, step: float, least_share: float, weight: FloatArray,
    entropy: FloatArray, trial_weight: FloatArray,
) -> float:  # fmt: skip
    """The exponentiated update of eq. 12, times τ, into ``trial_weight``; returns the slope at step 0."""
    mean = 0.0
    for at in range(first, last):
        mean += weight[slots[at]] * entropy[slots[at]]
    mean /= tau
    total = 0.0
    slope = 0.0
    for at in range(first, last):
        share = weight[slots[at]] / tau
        pull = share * (entropy[slots[at]] - mean)
        slope -= tau * pull * pull
        # Bounded, so that a long step cannot overflow.
        share *= exp_of(min(max(-step * pull, -30.0), 30.0))
        trial_weight[slots[at]] = share
        total += share
    # The smallest share a weight may fall to keeps it able to grow again: at zero this update would freeze it.
    rest = 0.0
    for at in range(first, last):
        share = max(trial_weight[slots[at]] / total, least_share)
        trial_weight[slots[at]] = share
        rest += share
    for at in range(first, last):
        trial_weight[slots[at]] *= tau / rest
    return slope


@bare
def _accept_shifts(n_touched: int, shapes: Shapes, work: Workspace) -> None:
    """Make the last trial the point of all blocks that have accepted it."""
    for i in range(n_touched):
        g = work.touched[i]
        start, n = work.group_start[g], work.n_active[g]
        lanes = work.group_start[g + 1] - start
        kind = work.group_kind[g]
        for c in range(n):
            lane = work.active[start + c]
            slot = start + lane
            t = work.slot_block[slot]
            if not work.accepted[t]:
                continue
            for e in range(shapes.entries[shapes.kind_left[kind]]):
                work.base[work.group_base[g] + e * lanes + lane] = work.table[2 * work.group_base[g] + e * n + c]
            work.value[slot] = work.trial_value[slot]
            for x in range(shapes.kind_shifts[kind]):
                place = work.slot_shift[slot] + x * lanes
                work.move[place] += work.step[t] * work.direction[place]


@bare
def _descend_shifts(
    way: int, n_groups: int, blocks: Int32Array, regions: Regions, shapes: Shapes, state: DescentState,
    work: Workspace, rules: Rules,
) -> None:  # fmt: skip
    """One step on the shifts of every block that is still going.

    Wide separators go both ways in turn, first by beliefs, then by messages: which one helps depends on how small their
    weights are.
    """
    n_tries = 0
    for t in range(len(blocks)):
        n_shifts = regions.block_size[blocks[t]]
        wide = shapes.kind_map[regions.member_kind[regions.block_start[blocks[t]]]] >= 0
        if not work.going[t] or n_shifts == 0 or (way == 1 and not wide):
            continue
        first, last = work.block_at[t], work.block_at[t + 1]
        if rules.gradient == 1:
            _set_gradient(work.block_slots, first, last, n_shifts, work)
        elif wide:
            _scale_wide(t, n_shifts, way == 1, regions, shapes, work)
            _set_matching(
                work.block_slots, first, last, n_shifts, work.trial_weight, work.slot_shift, work.slot_stride,
                work.scaled, work.direction,
            )  # fmt: skip
        else:
            _set_matching(
                work.block_slots, first, last, n_shifts, work.weight, work.slot_shift, work.slot_stride,
                work.scaled, work.direction,
            )  # fmt: skip
        work.slope[t] = _slope(
            work.block_slots, first, last, n_shifts, work.slot_shift, work.slot_stride, work.marginal, work.direction
        )
        work.step[t] = state.shift_step[blocks[t]] if way == 0 else 1.0
        if work.slope[t] <= FLAT:
            work.tries[n_tries] = t
            n_tries += 1
    for attempt in range(rules.backtracks):
        if n_tries == 0:
            return
        n_touched = trial(n_groups, len(blocks), n_tries, np.bool_(True), work.weight, shapes, work)
        n_left = 0
        for i in range(n_tries):
            t = work.tries[i]
            reached = _total(work.block_slots, work.block_at[t], work.block_at[t + 1], work.trial_value)
            work.accepted[t] = reached <= work.block_value[t] + rules.armijo * work.step[t] * work.slope[t]
            if work.accepted[t]:
                work.block_value[t] = reached
                work.progress[t] = True
                if way == 0:
                    step = work.step[t]
                    state.shift_step[blocks[t]] = min(2.0 * step, 1e6) if attempt == 0 else step
            else:
                work.tries[n_left] = t
                n_left += 1
        if n_left < n_tries:
            _accept_shifts(n_touched, shapes, work)
            find_beliefs(n_touched, shapes, work)
        n_tries = n_left
        for i in range(n_tries):
            work.step[work.tries[i]] *= 0.5
    for i in range(n_tries):
        if way == 0:
            state.shift_step[blocks[work.tries[i]]] = max(work.step[work.tries[i]], 1e-3)


@bare
def _descend_weights(
    n_groups: int, blocks: Int32Array, tau: FloatArray, regions: Regions, shapes: Shapes, state: DescentState,
    work: Workspace, rules: Rules,
) -> None:  # fmt: skip
    """One step on the weights of every block that is still going."""
    n_tries = 0
    for t in range(len(blocks)):
        work.step[t] = state.weight_step[blocks[t]]
        if work.going[t] and regions.block_variable[blocks[t]] >= 0:
            work.tries[n_tries] = t
            n_tries += 1
    for attempt in range(rules.backtracks):
        n_left = 0
        for i in range(n_tries):
            t = work.tries[i]
            own = tau[regions.block_variable[blocks[t]]]
            slope = _try_weights(
                work.block_slots, work.block_at[t], work.block_at[t + 1], own, work.step[t], rules.least_share,
                work.weight, work.entropy, work.trial_weight,
            )  # fmt: skip
            if slope <= FLAT:
                work.tries[n_left] = t
                n_left += 1
        n_tries = n_left
        if n_tries == 0:
            return
        n_touched = trial(n_groups, len(blocks), n_tries, np.bool_(False), work.trial_weight, shapes, work)
        n_left = 0
        for i in range(n_tries):
            t = work.tries[i]
            reached = _total(work.block_slots, work.block_at[t], work.block_at[t + 1], work.trial_value)
            # A floor on the shares bends the path, so that only the fall itself is asked for.
            work.accepted[t] = reached < work.block_value[t]
            if not work.accepted[t]:
                work.tries[n_left] = t
                n_left += 1
                continue
            work.block_value[t] = reached
            work.progress[t] = True
            for at in range(work.block_at[t], work.block_at[t + 1]):
                slot = work.block_slots[at]
                work.weight[slot] = work.trial_weight[slot]
                work.value[slot] = work.trial_value[slot]
            step = work.step[t]
            state.weight_step[blocks[t]] = min(2.0 * step, 1e9) if attempt == 0 else step
        if n_left < n_tries:
            find_beliefs(n_touched, shapes, work)
        n_tries = n_left
        for i in range(n_tries):
            work.step[work.tries[i]] *= 0.25
    for i in range(n_tries):
        state.weight_step[blocks[work.tries[i]]] = max(work.step[work.tries[i]], 1e-3)


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
        work.block_value[t] = _total(work.block_slots, work.block_at[t], work.block_at[t + 1], work.trial_value)
        n_shifts = regions.block_size[blocks[t]]
        for at in range(work.block_at[t], work.block_at[t + 1]):
            slot = work.block_slots[at]
            for x in range(n_shifts):
                work.move[work.slot_shift[slot] + x * work.slot_stride[slot]] = 0.0
    for _ in range(rules.inner_steps):
        for t in range(len(blocks)):
            work.progress[t] = False
        for way in range(2 if any_wide and rules.gradient == 0 else 1):
            _descend_shifts(way, n_groups, blocks, regions, shapes, state, work, rules)
        _descend_weights(n_groups, blocks, tau, regions, shapes, state, work, rules)
        n_going = 0
        for t in range(len(blocks)):
            work.going[t] &= work.progress[t]
            work.changed[t] |= work.progress[t]
            n_going += work.going[t]
        if n_going == 0:
            break


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
def _close(n_groups: int, blocks: Int32Array, regions: Regions, shapes: Shapes, work: Workspace) -> None:
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
            _close(n_groups, blocks, regions, shapes, work)
        else:
            _descend(n_groups, blocks, tau, regions, shapes, state, work, rules)
        _store(blocks, regions, shapes, state, work)
