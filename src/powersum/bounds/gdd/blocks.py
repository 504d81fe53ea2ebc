"""Updates of one block: the closed form of eq. 11, or local descent on shifts and weights.

Within a block the change of each member's table is called its *move*; moves of a block add up to zero, which is what
keeps the bound valid.
"""

from __future__ import annotations

import numpy as np

from powersum.bounds.gdd.members import find_beliefs, load, trial
from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.state import LOG_OF_NOTHING, UNDERFLOW, DescentState, Rules, Workspace
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.fastmath import exp_of, log_of
from powersum.core.jit import compiled, inner


@inner
def _set_gradient(n_members: int, n_shifts: int, work: Workspace) -> None:
    """The plain gradient of the paper (eq. 8) as the direction of all members."""
    for x in range(n_shifts):
        total = 0.0
        for i in range(1, n_members):
            work.direction[i * n_shifts + x] = work.marginal[x] - work.marginal[i * n_shifts + x]
            total += work.direction[i * n_shifts + x]
        work.direction[x] = -total


@inner
def _set_matching(
    b: int, n_members: int, n_shifts: int, by_messages: bool, regions: Regions, state: DescentState, work: Workspace
) -> None:
    """A direction that would bring all members' beliefs together.

    Each member moves by −ω (log b − log q), where log q is the ω-average of the members' log beliefs. The slope
    −Σ ω KL(b‖q) is never positive, whatever the ω ≥ 0; with ω the member's weight of the variable the full step is
    exact when that variable is the last in every member. Where ω is 0 the move is the limit: the member's whole
    dependence on the variable goes to the others, as a message would carry it.

    A separator of several variables has several weights: ω is their mean. Where they vanish, beliefs show nothing; then
    ``by_messages`` takes the member's largest entries in their place, which is what a message carries of it.
    """
    sum_omega = 0.0
    for i in range(n_members):
        m = regions.block_start[b] + i
        omega = work.weight[i]
        mapped = regions.member_map[m]
        if mapped >= 0:
            omega = _mean_weight(m, regions, state, regions.member_region[regions.block_start[b]])
            d = i * n_shifts
            if by_messages:
                for x in range(n_shifts):
                    work.scaled[d + x] = LOG_OF_NOTHING
                for j in range(work.entries[i]):
                    excess = work.base[work.at[i] + j] - work.value[i]
                    x = regions.separator_map[mapped + j]
                    work.scaled[d + x] = max(work.scaled[d + x], excess)
            else:
                for x in range(n_shifts):
                    belief = work.marginal[d + x]
                    work.scaled[d + x] = omega * (log_of(belief) if belief > UNDERFLOW else LOG_OF_NOTHING)
        work.trial_weight[i] = omega
        sum_omega += omega
    for x in range(n_shifts):
        total = 0.0
        for i in range(n_members):
            total += work.scaled[i * n_shifts + x]
        for i in range(n_members):
            share = work.trial_weight[i] / sum_omega * total
            work.direction[i * n_shifts + x] = share - work.scaled[i * n_shifts + x]


@inner
def _slope(n_members: int, n_shifts: int, work: Workspace) -> float:
    """Derivative of the block's value along the direction."""
    slope = 0.0
    for j in range(n_members * n_shifts):
        slope += work.marginal[j] * work.direction[j]
    return slope


@inner
def _mean_weight(m: int, regions: Regions, state: DescentState, separator: int) -> float:
    """Mean over the separator's variables of the positive weights they have in member ``m``'s region."""
    total = 0.0
    count = 0
    region = regions.member_region[m]
    for a in range(regions.axis_start[region], regions.axis_start[region + 1]):
        for s in range(regions.axis_start[separator], regions.axis_start[separator + 1]):
            if regions.axis_variable[a] == regions.axis_variable[s] and state.weights[a] > 0.0:
                total += state.weights[a]
                count += 1
    return total / count if count > 0 else 0.0


@inner
def _accept_shift(b: int, step: float, n_members: int, n_shifts: int, regions: Regions, work: Workspace) -> None:
    """Make the last trial the block's point."""
    for i in range(n_members):
        at = work.at[i]
        table_at = work.table_at[i]
        for j in range(work.entries[i]):
            work.base[at + j] = work.table[table_at + j]
        work.value[i] = work.trial_value[i]
        for x in range(n_shifts):
            work.move[i * n_shifts + x] += step * work.direction[i * n_shifts + x]


@inner
def _try_weights(n_members: int, tau: float, step: float, least_share: float, work: Workspace) -> float:
    """The exponentiated update of eq. 12, times τ, into ``trial_weight``; returns the slope at step 0."""
    mean = 0.0
    for i in range(n_members):
        mean += work.weight[i] * work.entropy[i]
    mean /= tau
    total = 0.0
    slope = 0.0
    for i in range(n_members):
        share = work.weight[i] / tau
        pull = share * (work.entropy[i] - mean)
        slope -= tau * pull * pull
        # Bounded, so that a long step cannot overflow.
        share *= exp_of(min(max(-step * pull, -30.0), 30.0))
        work.trial_weight[i] = share
        total += share
    # The smallest share a weight may fall to keeps it able to grow again: at zero this update would freeze it.
    rest = 0.0
    for i in range(n_members):
        work.trial_weight[i] = max(work.trial_weight[i] / total, least_share)
        rest += work.trial_weight[i]
    for i in range(n_members):
        work.trial_weight[i] *= tau / rest
    return slope


@inner
def _descend(b: int, tau: float, regions: Regions, state: DescentState, work: Workspace, rules: Rules) -> bool:
    """Local descent on the shifts and on the weights of one block, each with its own line search."""
    n_members = regions.block_start[b + 1] - regions.block_start[b]
    n_shifts = regions.block_size[b]
    has_weights = regions.block_variable[b] >= 0
    for j in range(n_members * n_shifts):
        work.move[j] = 0.0
    value = trial(b, 0.0, n_members, n_shifts, work.weight, regions, state, work)
    for i in range(n_members):
        work.value[i] = work.trial_value[i]
    find_beliefs(b, n_members, n_shifts, regions, work)
    changed = False
    wide = n_shifts > 0 and regions.member_map[regions.block_start[b]] >= 0
    for _ in range(rules.inner_steps):
        progress = False
        # Wide separators go both ways in turn: which one helps depends on how small their weights are.
        for way in range(2 if wide and rules.gradient == 0 else 1):
            if n_shifts == 0:
                break
            if rules.gradient == 1:
                _set_gradient(n_members, n_shifts, work)
            else:
                _set_matching(b, n_members, n_shifts, way == 1, regions, state, work)
            slope = _slope(n_members, n_shifts, work)
            step = state.shift_step[b] if way == 0 else 1.0
            if slope > -1e-13:
                continue
            for attempt in range(rules.backtracks):
                reached = trial(b, step, n_members, n_shifts, work.weight, regions, state, work)
                if reached <= value + rules.armijo * step * slope:
                    _accept_shift(b, step, n_members, n_shifts, regions, work)
                    value = reached
                    progress = True
                    if way == 0:
                        state.shift_step[b] = min(2.0 * step, 1e6) if attempt == 0 else step
                    find_beliefs(b, n_members, n_shifts, regions, work)
                    break
                step *= 0.5
            else:
                if way == 0:
                    state.shift_step[b] = max(step, 1e-3)
        if has_weights:
            step = state.weight_step[b]
            for attempt in range(rules.backtracks):
                slope = _try_weights(n_members, tau, step, rules.least_share, work)
                if slope > -1e-13:
                    break
                reached = trial(b, 0.0, n_members, n_shifts, work.trial_weight, regions, state, work)
                # A floor on the shares bends the path, so that only the fall itself is asked for.
                if reached < value:
                    value = reached
                    progress = True
                    for i in range(n_members):
                        work.weight[i] = work.trial_weight[i]
                        work.value[i] = work.trial_value[i]
                    find_beliefs(b, n_members, n_shifts, regions, work)
                    state.weight_step[b] = min(2.0 * step, 1e9) if attempt == 0 else step
                    break
                step *= 0.25
            else:
                state.weight_step[b] = max(step, 1e-3)
        if not progress:
            break
        changed = True
    return changed


@inner
def _close(b: int, regions: Regions, work: Workspace) -> bool:
    """Eq. 11: every member of an all-max block gets an equal part of the sum of their max-marginals."""
    n_members = regions.block_start[b + 1] - regions.block_start[b]
    n_shifts = regions.block_size[b]
    before = 0.0
    for i in range(n_members):
        m = regions.block_start[b] + i
        d = i * n_shifts
        at = work.at[i]
        for x in range(n_shifts):
            work.marginal[d + x] = -np.inf
        mapped = regions.member_map[m]
        rest = work.entries[i] // n_shifts
        for j in range(work.entries[i]):
            x = j // rest if mapped < 0 else regions.separator_map[mapped + j]
            work.marginal[d + x] = max(work.marginal[d + x], work.base[at + j])
        top = -np.inf
        for x in range(n_shifts):
            top = max(top, work.marginal[d + x])
        before += top
    after = -np.inf
    for x in range(n_shifts):
        total = 0.0
        for i in range(n_members):
            total += work.marginal[i * n_shifts + x]
        for i in range(n_members):
            work.move[i * n_shifts + x] = (
                0.0 if total == -np.inf else total / n_members - work.marginal[i * n_shifts + x]
            )
        after = max(after, total)
    for i in range(n_members):
        work.value[i] = after / n_members
    # Equality is kept too: an even split is where the neighbours make progress from.
    return after <= before


@inner
def _store(b: int, regions: Regions, state: DescentState, work: Workspace) -> None:
    """Carry the block's moves, weights and values over to the state."""
    n_shifts = regions.block_size[b]
    for i in range(regions.block_start[b + 1] - regions.block_start[b]):
        m = regions.block_start[b] + i
        region = regions.member_region[m]
        state.log_values[region] = work.value[i]
        if regions.block_variable[b] >= 0:
            state.weights[regions.axis_start[region] + regions.member_first[m]] = work.weight[i]
        if n_shifts == 0:
            continue
        size = work.entries[i]
        mapped = regions.member_map[m]
        d = i * n_shifts
        rest = size // n_shifts
        start = regions.table_start[region]
        while start < regions.table_start[region + 1]:
            if mapped < 0:
                for x in range(n_shifts):
                    move = work.move[d + x]
                    for j in range(x * rest, (x + 1) * rest):
                        state.tables[start + j] += move
            else:
                for j in range(size):
                    state.tables[start + j] += work.move[d + regions.separator_map[mapped + j]]
            start += size
        if regions.member_delta[m] >= 0:
            for x in range(n_shifts):
                state.delta[regions.member_delta[m] + x] -= work.move[d + x]


@compiled
def update_blocks(
    blocks: IntArray, tau: FloatArray, regions: Regions, state: DescentState, work: Workspace, rules: Rules
) -> None:
    """Update the given blocks one after another; blocks of one colour may be given to several threads."""
    for b in blocks:
        load(b, regions, state, work)
        if regions.block_closed[b] == 1:
            changed = _close(b, regions, work)
        else:
            own = tau[regions.block_variable[b]] if regions.block_variable[b] >= 0 else 0.0
            changed = _descend(b, own, regions, state, work, rules)
        if changed:
            _store(b, regions, state, work)
