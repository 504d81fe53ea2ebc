"""Weighted min-fill on bit sets: the good order for graphs of up to a few thousand variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.core.random import following, number_below, seeded

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_OF = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    _BIT_OF[((1 << _bit) * 0x03F79D71B4CB0A89 % 2**64) >> 58] = _bit


@inner
def lowest_bit(word: np.uint64) -> int:
    """Number of the lowest set bit, by de Bruijn's sequence: Numba offers no instruction for it."""
    return _BIT_OF[((word & (~word + np.uint64(1))) * _DE_BRUIJN) >> np.uint64(58)]  # type: ignore[no-any-return]


@inner
def _weight_beyond(adjacent: Any, weight: IntArray, a: int, b: int) -> int:
    """Weight of the neighbours of ``a`` that are no neighbours of ``b``; ``b`` itself counts."""
    total = 0
    for w in range(adjacent.shape[1]):
        word = adjacent[a, w] & ~adjacent[b, w]
        while word:
            total += weight[(w << 6) + lowest_bit(word)]
            word &= word - np.uint64(1)
    return total


@compiled
def min_fill(
    starts: IntArray,
    neighbours: IntArray,
    group: IntArray,
    by_group: IntArray,
    weight: IntArray,
    log2_cardinalities: FloatArray,
    seed: int,
    attempt: int,
    width_limit: int,
    log2_limit: float,
    work_limit: int,
) -> tuple[IntArray, int, float, int]:
    """Eliminate next, within the first group not yet empty, the variable whose new edges weigh least.

    An edge weighs the product of its ends' weights. Scores are kept up to date edge by edge, in exact integers;
    ties are broken at random.

    Returns
    -------
    order, width, log2_total, work
        The order is empty where it came out worse than the limits, or cost more, and was given up; ``work`` counts
        steps of about :data:`~powersum.core.speed.ORDERING_STEP` each.
    """
    n = len(group)
    words = (n + 63) >> 6
    one = np.uint64(1)
    adjacent = np.zeros((n, words), np.uint64)
    for v in range(n):
        for at in range(starts[v], starts[v + 1]):
            adjacent[v, neighbours[at] >> 6] |= one << np.uint64(neighbours[at] & 63)

    score = np.zeros(n, np.int64)
    degrees = np.empty(n, np.int64)
    work = 0
    for v in range(n):
        degrees[v] = starts[v + 1] - starts[v]
        total = 0
        for at in range(starts[v], starts[v + 1]):
            a = neighbours[at]
            total += weight[a] * (_weight_beyond(adjacent, weight, v, a) - weight[a])
        score[v] = total // 2
        work += degrees[v] * (words + degrees[v])
        if work > work_limit:
            return np.empty(0, np.int64), n, np.inf, work

    order = np.empty(n, np.int64)
    members = np.empty(n, np.int64)
    random = seeded(seed, attempt)
    width = 0
    log2_total = -np.inf
    opened = 0
    count = 0
    candidates = np.empty(n, np.int64)
    for step in range(n):
        if count == 0:
            current = group[by_group[opened]]
            while opened < n and group[by_group[opened]] == current:
                candidates[count] = by_group[opened]
                count += 1
                opened += 1
        best = score[candidates[0]]
        chosen = 0
        ties = 1
        for c in range(1, count):
            value = score[candidates[c]]
            if value < best:
                best = value
                chosen = c
                ties = 1
            elif value == best:
                # Each of the ties is kept with equal chance.
                ties += 1
                random = following(random)
                if number_below(random, ties) == 0:
                    chosen = c
        v = candidates[chosen]
        count -= 1
        candidates[chosen] = candidates[count]
        order[step] = v

        degree = 0
        log2_size = log2_cardinalities[v]
        for w in range(words):
            word = adjacent[v, w]
            while word:
                u = (w << 6) + lowest_bit(word)
                members[degree] = u
                log2_size += log2_cardinalities[u]
                degree += 1
                word &= word - one
        width = max(width, degree)
        high = max(log2_total, log2_size)
        log2_total = high + np.log2(2.0 ** (log2_total - high) + 2.0 ** (log2_size - high))
        if work > work_limit or width > width_limit or (width == width_limit and log2_total >= log2_limit):
            return order[:0], width, log2_total, work

        if score[v] > 0:
            for m in range(degree):
                a = members[m]
                for m2 in range(m + 1, degree):
                    b = members[m2]
                    if adjacent[a, b >> 6] >> np.uint64(b & 63) & one:
                        continue
                    edge = weight[a] * weight[b]
                    for w in range(words):
                        word = adjacent[a, w] & adjacent[b, w]
                        while word:
                            score[(w << 6) + lowest_bit(word)] -= edge
                            word &= word - one
                    score[a] += weight[b] * _weight_beyond(adjacent, weight, a, b)
                    score[b] += weight[a] * _weight_beyond(adjacent, weight, b, a)
                    degrees[a] += 1
                    degrees[b] += 1
                    work += words + (degrees[a] + degrees[b]) // 2 + 4
                    adjacent[a, b >> 6] |= one << np.uint64(b & 63)
                    adjacent[b, a >> 6] |= one << np.uint64(a & 63)
                # The neighbours of one variable alone can cost seconds.
                if work > work_limit:
                    return order[:0], width, log2_total, work
        for m in range(degree):
            a = members[m]
            adjacent[a, v >> 6] &= ~(one << np.uint64(v & 63))
            # Pairs of v and what only a sees were missing from a's neighbourhood; they end with v.
            score[a] -= weight[v] * _weight_beyond(adjacent, weight, a, v)
            degrees[a] -= 1
            work += words + degrees[a] // 2
        work += 3 * count
    return order, width, log2_total, work
