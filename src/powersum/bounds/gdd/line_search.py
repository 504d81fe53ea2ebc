"""Line searches on the shifts and on the weights of all blocks of a batch, each with its own step and its own end.

Blocks that have ended a search wait for the others, and only those that have not are tried again.
"""

from __future__ import annotations

import numpy as np

from powersum.bounds.gdd.batch import find_beliefs, trial
from powersum.bounds.gdd.directions import scale_wide, set_gradient, set_matching, slope_of
from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.shapes import Shapes
from powersum.bounds.gdd.state import DescentState, Rules, Workspace
from powersum.core.arrays import FloatArray, Int32Array, IntArray
from powersum.core.fastmath import exp_of
from powersum.core.jit import bare

FLAT = -1e-13
"""A direction whose slope is not below this leads nowhere."""

SHORTEST, LONGEST = 0.1, 0.5
"""A failed step on the shifts is followed by one of at least and at most this share of it."""


@bare
def total_of(slots: IntArray, first: int, last: int, values: FloatArray) -> float:
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
def _shortened(step: float, slope: float, rise: float) -> float:
    """The step to try next: where the parabola through value, slope and the failed value is lowest, within reason."""
    excess = rise - step * slope
    shrink = -0.5 * step * slope / excess if 0.0 < excess < np.inf else SHORTEST
    return step * min(max(shrink, SHORTEST), LONGEST)


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
                work.base[work.group_base[g] + e * lanes + lane] = work.table[work.group_table[g] + e * n + c]
            work.value[slot] = work.trial_value[slot]
            for x in range(shapes.kind_shifts[kind]):
                place = work.slot_shift[slot] + x * lanes
                work.move[place] += work.step[t] * work.direction[place]


@bare
def descend_shifts(
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
            set_gradient(work.block_slots, first, last, n_shifts, work)
        elif wide:
            scale_wide(t, n_shifts, way == 1, regions, shapes, work)
            set_matching(
                work.block_slots, first, last, n_shifts, work.trial_weight, work.slot_shift, work.slot_stride,
                work.scaled, work.direction,
            )  # fmt: skip
        else:
            set_matching(
                work.block_slots, first, last, n_shifts, work.weight, work.slot_shift, work.slot_stride,
                work.scaled, work.direction,
            )  # fmt: skip
        work.slope[t] = slope_of(
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
            reached = total_of(work.block_slots, work.block_at[t], work.block_at[t + 1], work.trial_value)
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
                work.step[t] = _shortened(work.step[t], work.slope[t], reached - work.block_value[t])
        if n_left < n_tries:
            _accept_shifts(n_touched, shapes, work)
            find_beliefs(n_touched, shapes, work)
        n_tries = n_left
    for i in range(n_tries):
        if way == 0:
            state.shift_step[blocks[work.tries[i]]] = max(work.step[work.tries[i]], 1e-3)


@bare
def descend_weights(
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
            work.slope[t] = _try_weights(
                work.block_slots, work.block_at[t], work.block_at[t + 1], own, work.step[t], rules.least_share,
                work.weight, work.entropy, work.trial_weight,
            )  # fmt: skip
            if work.slope[t] <= FLAT:
                work.tries[n_left] = t
                n_left += 1
        n_tries = n_left
        if n_tries == 0:
            return
        n_touched = trial(n_groups, len(blocks), n_tries, np.bool_(False), work.trial_weight, shapes, work)
        n_left = 0
        for i in range(n_tries):
            t = work.tries[i]
            reached = total_of(work.block_slots, work.block_at[t], work.block_at[t + 1], work.trial_value)
            # A floor on the shares bends the path, so that only the fall itself is asked for.
            work.accepted[t] = reached < work.block_value[t]
            if not work.accepted[t]:
                work.tries[n_left] = t
                n_left += 1
                work.step[t] *= 0.25
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
        state.weight_step[blocks[work.tries[i]]] = max(work.step[work.tries[i]], 1e-3)
