"""Which max variables of a region to hold at their states, so that the rest is narrow enough for elimination."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.assign.supports import Queue, Supports, propagate, push, remove
from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import inner
from powersum.core.random import following, number_below, seeded, share_of_one
from powersum.model.factors import Factors
from powersum.prepare.ordering.fill import lowest_bit

SAME_SIZE = 1e-6
"""Tables count as equally large up to so many bits: the rounding of sums of logs."""


@inner
def thin_out(
    active: IntArray,
    n_active: int,
    position: IntArray,
    starts: IntArray,
    neighbours: IntArray,
    weights: FloatArray,
    assignment: IntArray,
    factors: Factors,
    supports: Supports,
    queue: Queue,
    alive: IntArray,
    sizes: IntArray,
    limit: float,
    seed: int,
) -> tuple[IntArray, float]:
    """Hold max variables at their states until the rest can be eliminated with tables of at most ``limit`` bits.

    Variables are eliminated on trial, sum variables first, smallest tables first. Where even those are too large, one
    of their max variables is held: one with many neighbours, or, so that every call gives another choice, with some
    luck. What zeros then fix or restrict counts at once: a variable held on a grid of nearly deterministic tables fixes
    many others, and holding those as well would leave almost nothing free.

    ``alive`` and ``sizes`` are changed accordingly; ``position`` numbers the active variables. Returns the order of
    elimination of the variables that are left free, and the entries of all their tables together: infinity where sum
    variables alone are too many, or where the states to be held contradict each other.
    """
    words = (n_active + 63) >> 6
    one = np.uint64(1)
    adjacent = np.zeros((n_active, words), np.uint64)
    bits = np.empty(n_active)
    load = np.zeros(n_active)
    left = np.zeros(n_active, np.bool_)
    listed = np.empty(n_active, np.int64)
    order = np.empty(n_active, np.int64)
    n_sums: Any = np.int64(0)
    n_listed: Any = np.int64(0)
    n_ordered: Any = np.int64(0)
    for p in range(n_active):
        bits[p] = np.log2(sizes[active[p]])
        if sizes[active[p]] > 1:
            left[p] = True
            listed[n_listed] = p
            n_listed += 1
            n_sums += weights[active[p]] > 0.0
    for i in range(n_listed):
        p = listed[i]
        load[p] = bits[p]
        for at in range(starts[p], starts[p + 1]):
            q = neighbours[at]
            if left[q]:
                adjacent[p, q >> 6] |= one << np.uint64(q & 63)
                load[p] += bits[q]
    random = seeded(seed, np.int64(0))
    # Ties fall at random where nothing is summed, so that each call frees another part. Of sums the order of the model
    # leaves less fill: pedigree7.I1 was 1 to 2 nats worse after 4 s of work with ties at random.
    if n_sums == 0:
        for i in range(n_listed - 1, 0, -1):
            random = following(random)
            other = number_below(random, i + 1)
            listed[i], listed[other] = listed[other], listed[i]
    members = np.empty(n_active, np.int64)
    entries = 0.0
    while True:
        chosen: Any = np.int64(-1)
        n_left: Any = np.int64(0)
        for i in range(n_listed):
            p = listed[i]
            if left[p]:
                listed[n_left] = p
                n_left += 1
                if (n_sums == 0 or weights[active[p]] > 0.0) and (chosen < 0 or load[p] < load[chosen]):
                    chosen = p
        n_listed = n_left
        if chosen < 0:
            return order[:n_ordered], entries
        if load[chosen] <= limit:
            # All of the smallest tables in one pass; what they leave may join it.
            most, sums = load[chosen] + SAME_SIZE, n_sums > 0
            for i in range(n_listed):
                p = listed[i]
                if not left[p] or load[p] > most or (sums and weights[active[p]] == 0.0):
                    continue
                order[n_ordered] = active[p]
                n_ordered += 1
                entries += 2.0 ** load[p]
                n_sums -= weights[active[p]] > 0.0
                count = _members(adjacent, p, members)
                _leave(adjacent, p, members, count, bits[p], left, load)
                _join(adjacent, members, count, bits, load)
            continue
        count = _members(adjacent, chosen, members)
        members[count] = chosen
        held: Any = np.int64(-1)
        heaviest = 0.0
        for i in range(count + 1):
            q = members[i]
            if weights[active[q]] > 0.0:
                continue
            random = following(random)
            luck = load[q] * (0.5 + share_of_one(random))
            if luck > heaviest:
                held, heaviest = q, luck
        if held < 0 or not _hold(active[held], assignment, factors, supports, queue, alive, sizes):
            return order[:0], np.inf
        for i in range(1, queue.trail[0] + 1):
            u = supports.owner[queue.trail[i]]
            p = position[u]
            if p < 0 or not left[p]:
                continue
            count = _members(adjacent, p, members)
            if sizes[u] == 1:
                n_sums -= weights[u] > 0.0
                _leave(adjacent, p, members, count, bits[p], left, load)
                continue
            fewer = bits[p] - np.log2(sizes[u])
            bits[p] -= fewer
            load[p] -= fewer
            for j in range(count):
                load[members[j]] -= fewer


@inner
def _join(adjacent: Any, members: IntArray, count: int, bits: FloatArray, load: FloatArray) -> None:
    """Make neighbours of all members of one table."""
    one = np.uint64(1)
    for i in range(count):
        q = members[i]
        for j in range(i + 1, count):
            r = members[j]
            if not adjacent[q, r >> 6] >> np.uint64(r & 63) & one:
                adjacent[q, r >> 6] |= one << np.uint64(r & 63)
                adjacent[r, q >> 6] |= one << np.uint64(q & 63)
                load[q] += bits[r]
                load[r] += bits[q]


@inner
def _members(adjacent: Any, p: int, members: IntArray) -> Any:
    """List the neighbours of ``p``; their number."""
    count: Any = np.int64(0)
    for w in range(adjacent.shape[1]):
        word = adjacent[p, w]
        while word:
            members[count] = (w << 6) + lowest_bit(word)
            count += 1
            word &= word - np.uint64(1)
    return count


@inner
def _leave(
    adjacent: Any, p: int, members: IntArray, count: int, bits: float, left: BoolArray, load: FloatArray
) -> None:
    """Take a variable out of the graph."""
    left[p] = False
    for i in range(count):
        q = members[i]
        adjacent[q, p >> 6] &= ~(np.uint64(1) << np.uint64(p & 63))
        load[q] -= bits


@inner
def _hold(
    v: int, assignment: IntArray, factors: Factors, supports: Supports, queue: Queue, alive: IntArray, sizes: IntArray
) -> bool:
    """Leave a variable its present state alone, and what follows; ``queue.trail`` then lists what was taken out."""
    first = supports.state_starts[v]
    kept = first + max(assignment[v], 0)
    if not alive[kept]:
        return False
    queue.trail[0] = 0
    for state in range(first, supports.state_starts[v + 1]):
        if alive[state] and state != kept:
            remove(state, supports, alive, sizes, queue)
    # Typed: for a literal 0 Numba would compile what it is passed to once more.
    height: Any = np.int64(0)
    for at in range(supports.factor_starts[v], supports.factor_starts[v + 1]):
        height = push(supports.factors[at], height, supports, queue)
    return propagate(height, factors, supports, alive, sizes, queue)
