"""Power sums, beliefs and entropies of the members of one block.

Every block works on *remaining tables*: a member region with the axes before the block's first variable eliminated
once, because the block's shifts pass unchanged through those eliminations. All inner steps then touch only these small
tables.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from powersum.bounds.gdd.power_sums import power_sum, power_sum_with_beliefs
from powersum.bounds.gdd.regions import Regions
from powersum.bounds.gdd.state import LOG_OF_NOTHING, UNDERFLOW, DescentState, Workspace
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.fastmath import log_of
from powersum.core.jit import inner

# The innermost functions take only the arrays they use: a call that hands over all of them costs more than its work.


@inner
def eliminate_axes(
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
def load(b: int, regions: Regions, state: DescentState, work: Workspace) -> None:
    """Eliminate, in every member, the axes before the block's first variable."""
    # Typed: for a literal 0 Numba would compile `eliminate_axes` and all that it calls once more.
    at: Any = np.int64(0)
    table_at = 0
    for i in range(regions.block_start[b + 1] - regions.block_start[b]):
        m = regions.block_start[b] + i
        region = regions.member_region[m]
        first = regions.axis_start[region]
        start = regions.table_start[region]
        eliminate_axes(
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
def forward(
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
def trial(
    b: int, step: float, n_members: int, n_shifts: int, weights: FloatArray,
    regions: Regions, state: DescentState, work: Workspace,
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
        work.trial_value[i] = forward(
            work.table, work.belief, table_at, size, regions.axis_card, state.weights,
            regions.axis_start[region] + regions.member_first[m], regions.axis_start[region + 1], weights[i],
        )  # fmt: skip
        total += work.trial_value[i]
    return total


@inner
def backward(
    table: FloatArray, belief: FloatArray, at: int, size: int,
    axis_card: IntArray, first: int, last: int, weight: float,
    separator_map: IntArray, mapped: int, n_shifts: int, marginal: FloatArray, scaled: FloatArray, d: int,
) -> float:  # fmt: skip
    """Beliefs of one member on the separator; returns the conditional entropy of its first axis.

    Works on what :func:`forward` left of the same table and weight.
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
def find_beliefs(b: int, n_members: int, n_shifts: int, regions: Regions, work: Workspace) -> None:
    """Beliefs and entropies of all members at the last trial, which must have been at ``work.weight``."""
    for i in range(n_members):
        m = regions.block_start[b] + i
        region = regions.member_region[m]
        work.entropy[i] = backward(
            work.table, work.belief, work.table_at[i], work.entries[i],
            regions.axis_card, regions.axis_start[region] + regions.member_first[m], regions.axis_start[region + 1],
            work.weight[i], regions.separator_map, regions.member_map[m], n_shifts, work.marginal, work.scaled,
            i * n_shifts,
        )  # fmt: skip
