"""Merging mini-buckets of a covering tree where its bound is loose.

Merging two mini-buckets k and l of one variable into one, with the sum of their tables and of their weights, can only
lower the bound if the merged message is received whole (Hölder). Its receiver is found by following both messages up
to where they meet: whichever node eliminates its variable first takes in the variables that travel with it, which
changes nothing because its table does not depend on them; nodes of one variable that are met at once are merged too.
So every pair can be merged, and what it costs in entries is known beforehand.

What a merge gains can be told locally. With the conditionals p of the variable given all others, and weights w,

    M_k + M_l − M_kl = −(w_k + w_l) log Σ_v p_k(v)^(w_k / (w_k + w_l)) p_l(v)^(w_l / (w_k + w_l)) ≥ 0:

how much the two disagree about their variable, once what they do not share is known. It is averaged over a sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.sweeps import Sweeps
from powersum.bounds.tree.forest import GrowingForest
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.prepare.ordering.bounded import members

SAMPLES, FEW_SAMPLES = 64, 16
"""States drawn for each pair to average its slack, and where many pairs are added up."""
MOST_PAIRS = 40_000
"""Pairs that are looked at, which takes about 0.1 ms each: instances seen have up to 3300; one variable with thousands
of mini-buckets would have millions."""
TINY = 1e-200
LEAST_AFFINITY = 1e-13
"""Two conditionals that exclude each other have no affinity; their slack is taken to be finite."""


def merge(
    forest: GrowingForest, parts: Partition, passes: Sweeps, cardinalities: IntArray, *, room: float, seed: int
) -> None:
    """Merge the pairs of largest slack for each entry added, as long as there is room for more entries.

    The beliefs of the latest pass must be there.
    """
    ranked = []
    found = slacks(forest, parts, passes, cardinalities, most=room, samples=SAMPLES, seed=seed)
    for added, one, two, slack in found:
        if slack > 0.0:
            ranked.append((slack / max(added, 1), one, two, added))
    ranked.sort(reverse=True)
    for _, one, two, added in ranked:
        one, two = forest.find(one), forest.find(two)
        # Earlier merges can have made this one dearer.
        plan = forest.plan(one, two, min(room, 2.0 * max(added, 1)))
        if one != two and plan is not None:
            forest.apply(plan)
            room -= plan.added


def slacks(
    forest: GrowingForest,
    parts: Partition,
    passes: Sweeps,
    cardinalities: IntArray,
    *,
    most: float,
    samples: int,
    seed: int,
) -> Iterator[tuple[int, int, int, float]]:
    """Merges that add at most so many entries: how many they add, the two mini-buckets, and what it would gain."""
    draws = np.random.default_rng(seed)
    work = np.empty(max(forest.size, default=0))
    states = np.zeros(len(cardinalities), dtype=np.int64)
    beliefs = passes.beliefs()
    for one, two in pairs_of(parts.bucket):
        plan = forest.plan(one, two, most)
        if plan is not None:
            slack = _slack(
                np.array(plan.members),
                plan.receiver,
                parts.bucket,
                parts.starts,
                parts.positions,
                cardinalities,
                passes.layout.wiring.table,
                beliefs,
                passes.weights,
                draws.random((samples, len(plan.members) + 1)),
                work,
                states,
            )
            yield plan.added, one, two, slack


def looseness(parts: Partition, passes: Sweeps, cardinalities: IntArray, *, seed: int) -> FloatArray:
    """How much of the slack of all pairs each variable has to do with, by its position in the order.

    Two mini-buckets of one variable disagree about it for want of what only one of them knows: were one of these
    variables set, or the variable itself, they would agree more. The beliefs of the latest pass must be there.
    """
    loose = np.zeros(len(cardinalities))
    forest = GrowingForest(parts, cardinalities)
    found = slacks(forest, parts, passes, cardinalities, most=math.inf, samples=FEW_SAMPLES, seed=seed)
    for _, one, two, slack in found:
        loose[members(forest.scope[one] ^ forest.scope[two])] += slack
        loose[parts.bucket[one]] += slack
    return loose


def pairs_of(bucket: IntArray) -> Iterator[tuple[int, int]]:
    """All pairs of nodes of one variable; where it has very many nodes, pairs of those near each other."""
    near = max(1, MOST_PAIRS // max(1, len(bucket)))
    _, firsts, counts = np.unique(bucket, return_index=True, return_counts=True)
    for first, count in zip(firsts.tolist(), counts.tolist(), strict=True):
        for one in range(first, first + count):
            for two in range(one + 1, min(one + near + 1, first + count)):
                yield one, two


@compiled
def _conditional(
    node: int,
    starts: IntArray,
    positions: IntArray,
    cardinalities: IntArray,
    table: IntArray,
    tables: FloatArray,
    states: IntArray,
    out: FloatArray,
) -> bool:
    """The conditional of a node's variable given the states of its others; False where these have no belief."""
    column, columns = 0, 1
    for i in range(starts[node] + 1, starts[node + 1]):
        card = cardinalities[positions[i]]
        column = column * card + states[positions[i]]
        columns *= card
    total = 0.0
    card = cardinalities[positions[starts[node]]]
    for a in range(card):
        out[a] = tables[table[node] + a * columns + column]
        total += out[a]
    for a in range(card):
        out[a] /= max(total, TINY)
    return total > TINY


@compiled
def _slack(
    members: IntArray,
    receiver: int,
    bucket: IntArray,
    starts: IntArray,
    positions: IntArray,
    cardinalities: IntArray,
    table: IntArray,
    tables: FloatArray,
    weights: FloatArray,
    draws: FloatArray,
    work: FloatArray,
    states: IntArray,
) -> float:
    """What a merge gains where its message is received: minus the log of the mean of exp(-gain) over a sample.

    States are drawn from the belief of the receiver, then for each node on the way down from its conditional. ``work``
    has room for the largest table, ``states`` for a state of each variable.
    """
    most = cardinalities.max()
    first, second = np.empty(most), np.empty(most)
    size = 0
    if receiver >= 0:
        size = table[receiver + 1] - table[receiver]
        total = 0.0
        for i in range(size):
            total += tables[table[receiver] + i]
            work[i] = total
    kept = 0.0
    for sample in range(draws.shape[0]):
        if receiver >= 0:
            target = draws[sample, 0] * work[size - 1]
            low, high = 0, size - 1
            while low < high:
                middle = (low + high) // 2
                if work[middle] <= target:
                    low = middle + 1
                else:
                    high = middle
            for i in range(starts[receiver + 1] - 1, starts[receiver] - 1, -1):
                card = cardinalities[positions[i]]
                states[positions[i]] = low % card
                low //= card
        gain = 0.0
        for link in range(members.shape[0] - 1, -1, -1):
            one, two = members[link, 0], members[link, 1]
            card = cardinalities[bucket[one]]
            own = _conditional(one, starts, positions, cardinalities, table, tables, states, first)
            other = own
            share = 1.0
            if two >= 0:
                other = _conditional(two, starts, positions, cardinalities, table, tables, states, second)
                share = weights[one] / (weights[one] + weights[two])
            if not own or not other:
                # Merging has already led to states of which a table knows nothing.
                break
            total = 0.0
            for a in range(card):
                if two >= 0:
                    first[a] = first[a] ** share * second[a] ** (1.0 - share)
                total += first[a]
            if two >= 0:
                gain -= (weights[one] + weights[two]) * math.log(max(total, LEAST_AFFINITY))
            target = draws[sample, link + 1] * total
            state = 0
            while state < card - 1 and target >= first[state]:
                target -= first[state]
                state += 1
            states[bucket[one]] = state
        kept += math.exp(-gain)
    return -math.log(max(kept / draws.shape[0], LEAST_AFFINITY))
