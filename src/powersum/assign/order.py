"""Elimination orders of regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import inner
from powersum.core.speed import ELIMINATION, ORDERING_STEP
from powersum.model.factors import Factors
from powersum.prepare.ordering.fill import min_fill

ORDER_WORK = round(0.1 / ORDERING_STEP)
"""Steps that ordering one region may take: a tenth of a second."""

TRYING = 0.1 * ELIMINATION / ORDERING_STEP
"""Steps of further tries, as a share of the table entries of the best order so far: a tenth of the time."""

MOST_TRIES = 8
"""Tries at most."""


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
def hanging(
    active: IntArray, n_active: int, starts: IntArray, neighbours: IntArray, weights: FloatArray, sizes: IntArray
) -> tuple[IntArray, float]:
    """Sum variables with at most one neighbour once those before them are gone, by position; and their table entries.

    No order does better than to eliminate them first. Min-fill would find them too, but one variable that thousands of
    them hang on would take it longer than it may take.
    """
    degree = np.empty(n_active, np.int64)
    found = np.empty(n_active, np.int64)
    count = 0
    for p in range(n_active):
        degree[p] = starts[p + 1] - starts[p]
        if degree[p] <= 1 and weights[active[p]] > 0.0:
            found[count] = p
            count += 1
            # Listed: never again.
            degree[p] = -1
    entries = 0.0
    done = 0
    while done < count:
        p = found[done]
        done += 1
        table = float(sizes[active[p]])
        for at in range(starts[p], starts[p + 1]):
            q = neighbours[at]
            if degree[q] == -2:
                continue
            table *= sizes[active[q]]
            if degree[q] > 0:
                degree[q] -= 1
                if degree[q] <= 1 and weights[active[q]] > 0.0:
                    found[count] = q
                    count += 1
                    degree[q] = -1
        # Gone: no neighbour of those to come.
        degree[p] = -2
        entries += table
    return found[:count], entries


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
    order, width, log2_total, steps = min_fill(
        starts, neighbours, group, by_group, weight, log2_sizes, seed, attempt, width, limit, work
    )
    steps_in_all = steps
    # Where tables are large, better orders are worth looking for; whoever is no better is soon given up.
    while len(order) and attempt < MOST_TRIES and steps_in_all < TRYING * 2.0**log2_total:
        attempt += 1
        other, other_width, other_total, steps = min_fill(
            starts, neighbours, group, by_group, weight, log2_sizes, seed, attempt, width, log2_total, work
        )
        steps_in_all += steps
        if len(other):
            order, width, log2_total = other, other_width, other_total
    for p in range(len(order)):
        order[p] = active[order[p]]
    return order, log2_total
