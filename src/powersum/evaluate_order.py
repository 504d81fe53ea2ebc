"""Elimination orders of regions, and which of their max variables to hold where a region is too wide."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.arrays import BoolArray, FloatArray, IntArray
from powersum.compiled import inner
from powersum.eliminate_wiring import Factors
from powersum.ordering.min_fill import min_fill

ORDER_WORK = 50_000_000
"""Steps that ordering one region may take: a tenth of a second."""


@inner
def region_graph(
    n_active: int, position: IntArray, region_factors: IntArray, n_factors: int, factors: Factors
) -> tuple[IntArray, IntArray]:
    """Neighbours of each active variable by way of the region's factors; ``position`` numbers the active ones."""
    # Counted, then listed without repetition.
    counts = np.zeros(n_active + 1, np.int64)
    for k in range(n_factors):
        f = region_factors[k]
        inside = 0
        for i in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
            if position[factors.scope_variables[i]] >= 0:
                inside += 1
        for i in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
            p = position[factors.scope_variables[i]]
            if p >= 0:
                counts[p + 1] += inside - 1
    for p in range(n_active):
        counts[p + 1] += counts[p]
    listed = np.empty(counts[n_active], np.int64)
    fill = counts[:-1].copy()
    for k in range(n_factors):
        f = region_factors[k]
        for i in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
            p = position[factors.scope_variables[i]]
            if p < 0:
                continue
            for j in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
                q = position[factors.scope_variables[j]]
                if q >= 0 and q != p:
                    listed[fill[p]] = q
                    fill[p] += 1
    seen = np.full(n_active, -1, np.int64)
    starts = np.zeros(n_active + 1, np.int64)
    at = 0
    for p in range(n_active):
        for i in range(counts[p], counts[p + 1]):
            if seen[listed[i]] != p:
                seen[listed[i]] = p
                listed[at] = listed[i]
                at += 1
        starts[p + 1] = at
    return starts, listed


@inner
def order_region(
    active: IntArray,
    n_active: int,
    starts: IntArray,
    neighbours: IntArray,
    weights: FloatArray,
    sizes: IntArray,
    limit: float,
) -> tuple[IntArray, float]:
    """Elimination order of the active variables by min-fill, sum variables first, and log2 of its table entries.

    The order is empty where that is above ``limit`` or where min-fill itself would take too long.
    """
    group = np.empty(n_active, np.int64)
    by_group = np.empty(n_active, np.int64)
    log2_sizes = np.empty(n_active)
    weight = np.empty(n_active, np.int64)
    front, back = 0, n_active
    for p in range(n_active):
        v = active[p]
        group[p] = 0 if weights[v] > 0.0 else 1
        log2_sizes[p] = np.log2(sizes[v])
        weight[p] = sizes[v]
    for p in range(n_active):
        if group[p] == 0:
            by_group[front] = p
            front += 1
        else:
            back -= 1
            by_group[back] = p
    # Typed numbers, for Numba would compile min-fill anew for each literal one.
    seed: Any = np.int64(1)
    attempt: Any = np.int64(0)
    work: Any = np.int64(ORDER_WORK)
    # A table of d variables has at least 2^d entries.
    width: Any = np.int64(min(limit, n_active))
    order, _, log2_total, _ = min_fill(
        starts, neighbours, group, by_group, weight, log2_sizes, seed, attempt, width, limit, work
    )
    for p in range(len(order)):
        order[p] = active[order[p]]
    return order, log2_total


@inner
def thin_out(
    active: IntArray,
    n_active: int,
    starts: IntArray,
    neighbours: IntArray,
    weights: FloatArray,
    sizes: IntArray,
    limit: float,
    seed: int,
) -> BoolArray:
    """Max variables to hold so that the rest can be eliminated with tables of at most ``limit`` bits.

    Variables are eliminated, sum variables first, smallest table first. Where even that is too large, one of its max
    variables is held: one with many neighbours, or, so that every call gives another choice, with some luck. The result
    is empty where a table of sum variables alone is too large.
    """
    words = (n_active + 63) >> 6
    one = np.uint64(1)
    adjacent = np.zeros((n_active, words), np.uint64)
    bits = np.empty(n_active)
    load = np.empty(n_active)
    left = np.ones(n_active, np.bool_)
    fixed = np.zeros(n_active, np.bool_)
    n_sums: Any = np.int64(0)
    for p in range(n_active):
        bits[p] = np.log2(sizes[active[p]])
        if weights[active[p]] > 0.0:
            n_sums += 1
    for p in range(n_active):
        load[p] = bits[p]
        for at in range(starts[p], starts[p + 1]):
            q = neighbours[at]
            adjacent[p, q >> 6] |= one << np.uint64(q & 63)
            load[p] += bits[q]
    random = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | one
    members = np.empty(n_active, np.int64)
    for _ in range(n_active):
        chosen: Any = np.int64(-1)
        for p in range(n_active):
            if left[p] and (n_sums == 0 or weights[active[p]] > 0.0) and (chosen < 0 or load[p] < load[chosen]):
                chosen = p
        if chosen < 0:
            break
        count = 0
        for q in range(n_active):
            if adjacent[chosen, q >> 6] >> np.uint64(q & 63) & one:
                members[count] = q
                count += 1
        if load[chosen] <= limit:
            n_sums -= weights[active[chosen]] > 0.0
            for i in range(count):
                q = members[i]
                adjacent[q, chosen >> 6] &= ~(one << np.uint64(chosen & 63))
                load[q] -= bits[chosen]
                for j in range(count):
                    r = members[j]
                    if r != q and not adjacent[q, r >> 6] >> np.uint64(r & 63) & one:
                        adjacent[q, r >> 6] |= one << np.uint64(r & 63)
                        load[q] += bits[r]
            left[chosen] = False
            continue
        members[count] = chosen
        held: Any = np.int64(-1)
        most = 0.0
        for i in range(count + 1):
            q = members[i]
            if weights[active[q]] > 0.0:
                continue
            random ^= random << np.uint64(13)
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            luck = load[q] * (0.5 + float(random >> np.uint64(40)) / (1 << 24))
            if luck > most:
                held, most = q, luck
        if held < 0:
            return np.zeros(0, np.bool_)
        fixed[held] = True
        left[held] = False
        for q in range(n_active):
            if adjacent[held, q >> 6] >> np.uint64(q & 63) & one:
                adjacent[q, held >> 6] &= ~(one << np.uint64(held & 63))
                load[q] -= bits[held]
    return fixed
