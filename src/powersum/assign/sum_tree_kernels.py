"""Compiled steps of :mod:`powersum.assign.sum_tree`: which part a few max variables concern, and its reduction."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.exact.kernels import Buckets, ChoiceArray, Domains, Scratch, reduce_some
from powersum.exact.wiring import EliminationWiring, message_sizes, place_messages, wire
from powersum.model.factors import Factors


@compiled
def reduce_part(
    order: IntArray,
    n_reduced: int,
    part_factors: IntArray,
    weights: FloatArray,
    factors: Factors,
    bases: IntArray,
    domains: Domains,
    position: IntArray,
    buffer: FloatArray,
    no_choices: ChoiceArray,
    scratch: Scratch,
    work_limit: float,
    work: FloatArray,
) -> int:
    """Eliminate the first ``n_reduced`` variables of a part; where in ``buffer`` the last message lies, -1 if too wide.

    ``position`` must be -1 throughout; ``work`` receives the number of table entries.
    """
    n = len(order)
    for p in range(n):
        position[order[p]] = p
    wiring, _ = wire(order, position, part_factors, factors)
    for p in range(n):
        position[order[p]] = -1
    entries, total = message_sizes(wiring, domains.sizes, np.inf)
    work[0] = total
    if total > work_limit:
        return -1
    places, needed, _, _ = place_messages(wiring, entries, np.zeros(n, np.bool_))
    if needed > len(buffer):
        return -1
    reached = np.zeros(2, np.int64)
    buckets = Buckets(wiring, domains, bases, factors.log_values, scratch)
    reduce_some(weights, buckets, buffer, places[:n_reduced], no_choices, places[:0], reached, np.inf)
    return int(places[n_reduced - 1])


@compiled
def reduce_upwards(
    touched: BoolArray,
    wiring: EliminationWiring,
    weights: FloatArray,
    factors: Factors,
    bases: IntArray,
    domains: Domains,
    pool: FloatArray,
    places: IntArray,
    no_choices: ChoiceArray,
    none: IntArray,
    scratch: Scratch,
) -> float:
    """Compute the messages of the touched buckets and of all above them anew; the table entries that it took.

    ``touched`` then tells all of them.
    """
    work = 0.0
    reached = np.zeros(2, np.int64)
    buckets = Buckets(wiring, domains, bases, factors.log_values, scratch)
    for b in range(len(touched)):
        if touched[b]:
            reached[0] = b
            reached[1] = 0
            reduce_some(weights, buckets, pool, places[: b + 1], no_choices, none, reached, np.inf)
            size = 1.0
            for a in range(wiring.axis_starts[b], wiring.axis_starts[b + 1]):
                size *= domains.sizes[wiring.axes[a]]
            work += size
            if wiring.parents[b] >= 0:
                touched[wiring.parents[b]] = True
    return work


@compiled
def part_below(
    block: IntArray,
    root_of: IntArray,
    wiring: EliminationWiring,
    factor_buckets: IntArray,
    incident_starts: IntArray,
    incident: IntArray,
    n_factors: int,
    own: int,
) -> tuple[IntArray, IntArray, IntArray, int]:
    """What a block of max variables concerns: variables in order, factors, tops, and how many come before the block.

    In each tree these are the buckets that have a factor of the block, and those above them up to the first that has
    all of them below it or in it, the *top*. Messages into these buckets are among the factors, numbered from
    ``n_factors`` on, and what lies beyond each top, numbered after them. Variables are in elimination order, then
    ``own``, then the block.
    """
    n = len(root_of)
    parents, axis_starts, axes = wiring.parents, wiring.axis_starts, wiring.axes
    active = np.zeros(n, np.bool_)
    inside = np.zeros(n, np.bool_)
    fronts = np.zeros(n, np.int64)
    seen = np.zeros(n_factors, np.bool_)
    found = np.empty(n_factors + 2 * n, np.int64)
    n_found: Any = np.int64(0)
    left = 0
    lowest: Any = np.int64(n)
    for v in block:
        for at in range(incident_starts[v], incident_starts[v + 1]):
            f = incident[at]
            if seen[f]:
                continue
            home = factor_buckets[f]
            if home < 0:
                seen[f] = True
                found[n_found] = f
                n_found += 1
            elif not active[home]:
                active[home] = True
                fronts[root_of[home]] += 1
                left += 1
                lowest = min(lowest, home)
    tops = np.empty(n, np.int64)
    n_tops: Any = np.int64(0)
    b: Any = lowest
    while left > 0:
        if active[b]:
            inside[b] = True
            if fronts[root_of[b]] == 1:
                tops[n_tops] = b
                n_tops += 1
                left -= 1
            elif active[parents[b]]:
                fronts[root_of[b]] -= 1
                left -= 1
            else:
                active[parents[b]] = True
        b += 1
    last: Any = max(b, lowest)
    for b in range(lowest, last):
        if not inside[b]:
            continue
        for k in range(wiring.input_starts[b], wiring.input_starts[b + 1]):
            f = wiring.inputs[k]
            if f >= 0:
                found[n_found] = f
                n_found += 1
            elif not inside[-1 - f]:
                found[n_found] = n_factors - 1 - f
                n_found += 1
    # The variables of a top's message belong to buckets on the way up from it, and follow their order.
    for i in range(n_tops):
        b = tops[i]
        p = parents[b]
        if p >= 0:
            found[n_found] = n_factors + n + b
            n_found += 1
        a = axis_starts[b] + 1
        while a < axis_starts[b + 1]:
            if axes[a] == axes[axis_starts[p]]:
                inside[p] = True
                last = max(last, p + 1)
                a += 1
            p = parents[p]
    order = np.empty(last - lowest + 1 + len(block), np.int64)
    slot: Any = np.int64(0)
    for b in range(lowest, last):
        if inside[b]:
            order[slot] = axes[axis_starts[b]]
            slot += 1
    order[slot] = own
    slot += 1
    for i in range(len(block)):
        order[slot + i] = block[i]
    return order[: slot + len(block)].copy(), found[:n_found].copy(), tops[:n_tops].copy(), slot
