"""Compiled block updates of Algorithm 1 (GDD) over flat arrays; wiring in :mod:`powersum.regions`.

Every block works on *remaining tables*: a member region with the axes before the block's first variable eliminated
once, because the block's shifts pass unchanged through those eliminations. All inner steps then touch only these small
tables. Within a block the change of each member's table is called its *move*; moves of a block add up to zero, which
is what keeps the bound valid.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powersum.arrays import FloatArray, IntArray
from powersum.compiled import compiled, inner
from powersum.fastmath import exp_of, log_of
from powersum.kernels import power_sum, power_sum_with_beliefs
from powersum.regions import Regions

LOG_OF_NOTHING = -200.0
"""Stands in for log 0 in the matching direction of wide separators, and bounds it elsewhere."""

UNDERFLOW = 1e-80
"""Beliefs below this are too small for their logarithm to be trusted."""


class State(NamedTuple):
    """Everything that moves: one flat array each."""

    tables: FloatArray  # theta minus shifts in the clusters, the sum of shifts in the separators
    delta: FloatArray  # shifts of every separator-cluster pair
    weights: FloatArray  # one for each axis of each region
    log_values: FloatArray  # power sum of each region; they add up to the bound
    shift_step: FloatArray  # step size remembered for each block
    weight_step: FloatArray


class Workspace(NamedTuple):
    """Scratch memory of one thread, large enough for the largest block."""

    base: FloatArray  # remaining tables of all members
    table: FloatArray  # the same at a trial point, followed by its partial power sums
    belief: FloatArray  # conditional beliefs, then joint ones, in the layout of ``table``
    at: IntArray  # where each member starts in ``base``
    table_at: IntArray  # where each member starts in ``table`` and ``belief``
    entries: IntArray  # number of remaining entries of each member
    marginal: FloatArray  # beliefs on the separator, member by member
    scaled: FloatArray  # weight times log belief on a one-variable separator, exact also where beliefs underflow
    direction: FloatArray
    move: FloatArray  # accumulated change of each member's table
    entropy: FloatArray
    value: FloatArray
    trial_value: FloatArray
    weight: FloatArray
    trial_weight: FloatArray


class Rules(NamedTuple):
    """Numbers that steer the local descent."""

    inner_steps: int
    backtracks: int
    armijo: float
    gradient: int  # 1: the plain gradient of the paper; 0: the matching direction
    least_share: float  # no weight falls below this share of tau, so that it can come back


# The innermost functions take only the arrays they use: a call that hands over all of them costs more than its work.


@inner
def _eliminate(
    tables: FloatArray, start: int, size: int, first: int, last: int,
    axis_card: IntArray, weights: FloatArray, target: FloatArray, at: int,
) -> None:  # fmt: skip
    """Eliminate the axes ``first`` to ``last - 1`` of a table of ``size`` entries into ``target``; none: copy it."""
    if last == first:
        for j in range(size):
            target[at + j] = tables[start + j]
        return
    size //= axis_card[first]
    power_sum(tables, start, axis_card[first], size, weights[first], target, at)
    for a in range(first + 1, last):
        size //= axis_card[a]
        power_sum(target, at, axis_card[a], size, weights[a], target, at)


@inner
def _load(b: int, regions: Regions, state: State, work: Workspace) -> None:
    """Eliminate, in every member, the axes before the block's first variable."""
    at = 0
    table_at = 0
    for i in range(regions.block_start[b + 1] - regions.block_start[b]):
        m = regions.block_start[b] + i
        region = regions.member_region[m]
        first = regions.axis_start[region]
        start = regions.table_start[region]
        _eliminate(
            state.tables, start, regions.table_start[region + 1] - start, first, first + regions.member_first[m],
            regions.axis_card, state.weights, work.base, at,
        )  # fmt: skip
        work.at[i] = at
        work.table_at[i] = table_at
        work.entries[i] = regions.member_entries[m]
        at += work.entries[i]
        table_at += 2 * work.entries[i]
        work.weight[i] = state.weights[first + regions.member_first[m]]
        work.value[i] = state.log_values[region]


@inner
def _forward(
    table: FloatArray, belief: FloatArray, at: int, size: int,
    axis_card: IntArray, weights: FloatArray, first: int, last: int, weight: float,
) -> float:  # fmt: skip
    """Power sum of the table at ``at`` over all its axes, the first with ``weight``; leaves conditional beliefs."""
    for a in range(first, last):
        rest = size // axis_card[a]
        power_sum_with_beliefs(table, belief, at, axis_card[a], rest, weight if a == first else weights[a], at + size)
        at += size
        size = rest
    return float(table[at])


@inner
def _trial(
    b: int, step: float, n_members: int, n_shifts: int, weights: FloatArray,
    regions: Regions, state: State, work: Workspace,
) -> float:  # fmt: skip
    """Value of the block at ``step`` along the direction, with the given weights of its variable."""
    total = 0.0
    for i in range(n_members):
        at = work.at[i]
        table_at = work.table_at[i]
        size = work.entries[i]
        if step == 0.0:
            for j in range(size):
                work.table[table_at + j] = work.base[at + j]
        else:
            mapped = regions.member_map[regions.block_start[b] + i]
            d = i * n_shifts
            if mapped < 0:
                rest = size // n_shifts
                for x in range(n_shifts):
                    move = step * work.direction[d + x]
                    for j in range(x * rest, (x + 1) * rest):
                        work.table[table_at + j] = work.base[at + j] + move
            else:
                for j in range(size):
                    move = step * work.direction[d + regions.separator_map[mapped + j]]
                    work.table[table_at + j] = work.base[at + j] + move
        m = regions.block_start[b] + i
        region = regions.member_region[m]
        work.trial_value[i] = _forward(
            work.table, work.belief, table_at, size, regions.axis_card, state.weights,
            regions.axis_start[region] + regions.member_first[m], regions.axis_start[region + 1], weights[i],
        )  # fmt: skip
        total += work.trial_value[i]
    return total


@inner
def _backward(
    table: FloatArray, belief: FloatArray, at: int, size: int,
    axis_card: IntArray, first: int, last: int, weight: float,
    separator_map: IntArray, mapped: int, n_shifts: int, marginal: FloatArray, scaled: FloatArray, d: int,
) -> float:  # fmt: skip
    """Beliefs of one member on the separator; returns the conditional entropy of its first axis.

    Works on what :func:`_forward` left of the same table and weight.
    """
    start = at
    entries = size
    for a in range(first, last - 1):
        at += size
        size //= axis_card[a]
    # Now at the partial power sum whose only axis is the last; walk back to the full table, turning conditional
    # beliefs into joint ones.
    for a in range(last - 2, first, -1):
        rest = size
        size *= axis_card[a]
        lower = at
        at -= size
        for k in range(axis_card[a]):
            for j in range(rest):
                belief[at + k * rest + j] *= belief[lower + j]
    card = axis_card[first]
    rest = entries // card
    below = start + entries
    alone = last == first + 1
    for x in range(n_shifts):
        marginal[d + x] = 0.0
    entropy = 0.0
    for k in range(card):
        for j in range(rest):
            entry = start + k * rest + j
            joint = belief[entry] if alone else belief[entry] * belief[below + j]
            if joint == 0.0:
                continue
            if weight > 0.0:
                entropy += joint * (table[below + j] - table[entry])
            if n_shifts > 0:
                x = k if mapped < 0 else separator_map[mapped + k * rest + j]
                marginal[d + x] += joint
    if mapped < 0:
        for x in range(n_shifts):
            if marginal[d + x] > UNDERFLOW:
                scaled[d + x] = weight * log_of(marginal[d + x])
                continue
            # w log Σ_j μ_j exp((t_j − m_j)/w) tends to the largest exponent as w → 0: this is the finite move that a
            # member of vanishing weight must make, and that its underflowed belief no longer shows.
            top = LOG_OF_NOTHING
            for j in range(rest):
                later = 1.0 if alone else belief[below + j]
                if later > 0.0:
                    excess = table[start + x * rest + j] - table[below + j]
                    top = max(top, excess + weight * math.log(later))
            scaled[d + x] = top
    return entropy / weight if weight > 0.0 else 0.0


@inner
def _beliefs(b: int, n_members: int, n_shifts: int, regions: Regions, work: Workspace) -> None:
    """Beliefs and entropies of all members at the last trial, which must have been at ``work.weight``."""
    for i in range(n_members):
        m = regions.block_start[b] + i
        region = regions.member_region[m]
        work.entropy[i] = _backward(
            work.table, work.belief, work.table_at[i], work.entries[i],
            regions.axis_card, regions.axis_start[region] + regions.member_first[m], regions.axis_start[region + 1],
            work.weight[i], regions.separator_map, regions.member_map[m], n_shifts, work.marginal, work.scaled,
            i * n_shifts,
        )  # fmt: skip


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
    b: int, n_members: int, n_shifts: int, by_messages: bool, regions: Regions, state: State, work: Workspace
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
def _mean_weight(m: int, regions: Regions, state: State, separator: int) -> float:
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
def _descend(b: int, tau: float, regions: Regions, state: State, work: Workspace, rules: Rules) -> bool:
    """Local descent on the shifts and on the weights of one block, each with its own line search."""
    n_members = regions.block_start[b + 1] - regions.block_start[b]
    n_shifts = regions.block_size[b]
    has_weights = regions.block_variable[b] >= 0
    for j in range(n_members * n_shifts):
        work.move[j] = 0.0
    value = _trial(b, 0.0, n_members, n_shifts, work.weight, regions, state, work)
    for i in range(n_members):
        work.value[i] = work.trial_value[i]
    _beliefs(b, n_members, n_shifts, regions, work)
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
                trial = _trial(b, step, n_members, n_shifts, work.weight, regions, state, work)
                if trial <= value + rules.armijo * step * slope:
                    _accept_shift(b, step, n_members, n_shifts, regions, work)
                    value = trial
                    progress = True
                    if way == 0:
                        state.shift_step[b] = min(2.0 * step, 1e6) if attempt == 0 else step
                    _beliefs(b, n_members, n_shifts, regions, work)
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
                trial = _trial(b, 0.0, n_members, n_shifts, work.trial_weight, regions, state, work)
                # A floor on the shares bends the path, so that only the fall itself is asked for.
                if trial < value:
                    value = trial
                    progress = True
                    for i in range(n_members):
                        work.weight[i] = work.trial_weight[i]
                        work.value[i] = work.trial_value[i]
                    _beliefs(b, n_members, n_shifts, regions, work)
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
def _store(b: int, regions: Regions, state: State, work: Workspace) -> None:
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
    blocks: IntArray, tau: FloatArray, regions: Regions, state: State, work: Workspace, rules: Rules
) -> None:
    """Update the given blocks one after another; blocks of one colour may be given to several threads."""
    for b in blocks:
        _load(b, regions, state, work)
        if regions.block_closed[b] == 1:
            changed = _close(b, regions, work)
        else:
            own = tau[regions.block_variable[b]] if regions.block_variable[b] >= 0 else 0.0
            changed = _descend(b, own, regions, state, work, rules)
        if changed:
            _store(b, regions, state, work)


@compiled
def rebuild_tables(regions: Regions, theta: FloatArray, state: State) -> None:
    """Tables from scratch: the model's own numbers minus the shifts, without the rounding of many small updates."""
    for j in range(len(theta)):
        state.tables[j] = theta[j]
    for b in range(len(regions.block_start) - 1):
        n_shifts = regions.block_size[b]
        if n_shifts == 0:
            continue
        separator = regions.table_start[regions.member_region[regions.block_start[b]]]
        for m in range(regions.block_start[b] + 1, regions.block_start[b + 1]):
            region = regions.member_region[m]
            size = regions.member_entries[m]
            mapped = regions.member_map[m]
            rest = size // n_shifts
            delta = regions.member_delta[m]
            for x in range(n_shifts):
                state.tables[separator + x] += state.delta[delta + x]
            for start in range(regions.table_start[region], regions.table_start[region + 1], size):
                for j in range(size):
                    x = j // rest if mapped < 0 else regions.separator_map[mapped + j]
                    state.tables[start + j] -= state.delta[delta + x]


@compiled
def evaluate_regions(regions: Regions, state: State, scratch: FloatArray) -> None:
    """Power sum of every region from its current table and weights."""
    at = regions.table_start[0]
    for region in range(len(regions.table_start) - 1):
        start = regions.table_start[region]
        _eliminate(
            state.tables, start, regions.table_start[region + 1] - start,
            regions.axis_start[region], regions.axis_start[region + 1],
            regions.axis_card, state.weights, scratch, at,
        )  # fmt: skip
        state.log_values[region] = scratch[0]


@compiled
def gradients(regions: Regions, state: State, work: Workspace, of_delta: FloatArray, of_weights: FloatArray) -> None:
    """Derivatives of the bound with respect to every shift (eq. 8) and every weight (eq. 9).

    Weights of a variable that lies in a single region have no choice; their derivative is left as it is.
    """
    for b in range(len(regions.block_start) - 1):
        n_members = regions.block_start[b + 1] - regions.block_start[b]
        n_shifts = regions.block_size[b]
        _load(b, regions, state, work)
        _trial(b, 0.0, n_members, n_shifts, work.weight, regions, state, work)
        _beliefs(b, n_members, n_shifts, regions, work)
        for i in range(n_members):
            m = regions.block_start[b] + i
            if regions.block_variable[b] >= 0:
                of_weights[regions.axis_start[regions.member_region[m]] + regions.member_first[m]] = work.entropy[i]
            if regions.member_delta[m] >= 0:
                for x in range(n_shifts):
                    of_delta[regions.member_delta[m] + x] = work.marginal[x] - work.marginal[i * n_shifts + x]


@compiled
def max_marginals(
    n_variables: int, value_start: IntArray, tau: FloatArray, regions: Regions, state: State, scratch: FloatArray
) -> FloatArray:
    """For every max variable the sum over its regions of their max-marginals: what decoding rounds."""
    scores = np.zeros(value_start[n_variables])
    at = regions.table_start[0]
    for region in range(len(regions.table_start) - 1):
        n_sum = 0
        start = regions.table_start[region]
        whole = regions.table_start[region + 1] - start
        size = whole
        for a in range(regions.axis_start[region], regions.axis_start[region + 1]):
            if tau[regions.axis_variable[a]] > 0.0:
                n_sum += 1
                size //= regions.axis_card[a]
        first = regions.axis_start[region]
        _eliminate(state.tables, start, whole, first, first + n_sum, regions.axis_card, state.weights, scratch, at)
        rest = size
        for a in range(regions.axis_start[region] + n_sum, regions.axis_start[region + 1]):
            variable = regions.axis_variable[a]
            card = regions.axis_card[a]
            rest //= card
            for x in range(card):
                top = -np.inf
                for j in range(size):
                    if (j // rest) % card == x:
                        top = max(top, scratch[j])
                scores[value_start[variable] + x] += top
    return scores
