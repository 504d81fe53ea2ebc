"""Which max variables of a region to hold at their states, so that the rest is narrow enough for elimination."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.assign.supports import Queue, Supports, propagate, push, remove
from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import inner
from powersum.core.random import following, seeded
from powersum.model.factors import Factors
from powersum.prepare.ordering.fill import lowest_bit


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
) -> bool:
    """Hold max variables at their states until the rest can be eliminated with tables of at most ``limit`` bits.

    Variables are eliminated on trial, sum variables first, smallest table first. Where even that is too large, one of
    its max variables is held: one with many neighbours, or, so that every call gives another choice, with some luck.
    What zeros then fix or restrict counts at once: a variable held on a grid of nearly deterministic tables fixes many
    others, and holding those as well would leave almost nothing free.

    ``alive`` and ``sizes`` are changed accordingly; ``position`` numbers the active variables. False where sum
    variables alone are too many, or where the states to be held contradict each other.
    """
    words = (n_active + 63) >> 6
    one = np.uint64(1)
    adjacent = np.zeros((n_active, words), np.uint64)
    bits = np.empty(n_active)
    load = np.empty(n_active)
    left = np.ones(n_active, np.bool_)
    n_sums: Any = np.int64(0)
    for p in range(n_active):
        bits[p] = np.log2(sizes[active[p]])
        n_sums += weights[active[p]] > 0.0
    for p in range(n_active):
        load[p] = bits[p]
        for at in range(starts[p], starts[p + 1]):
            q = neighbours[at]
            adjacent[p, q >> 6] |= one << np.uint64(q & 63)
            load[p] += bits[q]
    random = seeded(seed, np.int64(0))
    members = np.empty(n_active, np.int64)
    while True:
        chosen: Any = np.int64(-1)
        for p in range(n_active):
            if left[p] and (n_sums == 0 or weights[active[p]] > 0.0) and (chosen < 0 or load[p] < load[chosen]):
                chosen = p
        if chosen < 0:
            return True
        count = _members(adjacent, chosen, members)
        if load[chosen] <= limit:
            n_sums -= weights[active[chosen]] > 0.0
            _leave(adjacent, chosen, members, count, bits[chosen], left, load)
            for i in range(count):
                q = members[i]
                for j in range(i + 1, count):
                    r = members[j]
                    if not adjacent[q, r >> 6] >> np.uint64(r & 63) & one:
                        adjacent[q, r >> 6] |= one << np.uint64(r & 63)
                        adjacent[r, q >> 6] |= one << np.uint64(q & 63)
                        load[q] += bits[r]
                        load[r] += bits[q]
            continue
        members[count] = chosen
        held: Any = np.int64(-1)
        most = 0.0
        for i in range(count + 1):
            q = members[i]
            if weights[active[q]] > 0.0:
                continue
            random = following(random)
            luck = load[q] * (0.5 + float(random >> np.uint64(40)) / (1 << 24))
            if luck > most:
                held, most = q, luck
        if held < 0 or not _hold(active[held], assignment, factors, supports, queue, alive, sizes):
            return False
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
