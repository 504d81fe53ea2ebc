"""Growing a covering tree where its bound is loose, from a point that never loosens.

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
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.sweeps import LEAST_WEIGHT_SHARE, Sweeps, shares_of
from powersum.bounds.buckets.wiring import Layout, intersections, products
from powersum.core.arrays import FloatArray, IntArray, starts_of
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


class Plan(NamedTuple):
    """A merge with all that it entails."""

    members: list[tuple[int, int]]
    """Nodes on the way of the merged message; the second is merged into the first, -1 where there is none."""
    scopes: list[int]
    """What the scopes of these nodes become."""
    receiver: int
    """Where the message goes in the end; -1 where it is a number."""
    added: int
    """Entries that this adds to the tree."""


class Forest:
    """Mini-buckets while they are merged; scopes are sets of positions as bits of an integer."""

    def __init__(self, parts: Partition, cardinalities: IntArray) -> None:
        self._cards = cardinalities.tolist()
        self.bucket: list[int] = parts.bucket.tolist()
        self.parent: list[int] = parts.parent.tolist()
        starts, positions = parts.starts.tolist(), parts.positions.tolist()
        self.scope = [sum(1 << p for p in positions[a:b]) for a, b in pairwise(starts)]
        self.size: list[int] = products(parts.starts, parts.positions, cardinalities).tolist()
        self.heir = list(range(len(self.bucket)))
        """The node that each node has been merged into: itself, where it has not."""

    def find(self, node: int) -> int:
        """The node that a node has become; -1 stays what it is."""
        if node < 0:
            return node
        while self.heir[node] != node:
            # Ways are halved on the way, so that none grows long.
            self.heir[node] = self.heir[self.heir[node]]
            node = self.heir[node]
        return node

    def above(self, node: int) -> int:
        """The node that receives a node's message now."""
        return self.find(self.parent[node])

    def plan(self, one: int, two: int, most: float) -> Plan | None:
        """What merging two nodes of one variable takes; None if it adds more entries than ``most``."""
        members: list[tuple[int, int]] = []
        scopes: list[int] = []
        carried, added = 0, 0
        # The end is where they meet, or where one of them is a number, which can go along with the other.
        while one != two and one >= 0 and two >= 0:
            if self.bucket[one] == self.bucket[two]:
                node, other = min(one, two), max(one, two)
                scope = self.scope[one] | self.scope[two] | carried
                added -= self.size[other]
                one, two = self.above(one), self.above(two)
            elif self.bucket[one] < self.bucket[two]:
                node, other, scope = one, -1, self.scope[one] | carried
                one = self.above(one)
            else:
                node, other, scope = two, -1, self.scope[two] | carried
                two = self.above(two)
            added += self._grown(node, scope) - self.size[node]
            if added > most:
                return None
            members.append((node, other))
            scopes.append(scope)
            carried = scope & ~(1 << self.bucket[node])
        return Plan(members, scopes, max(one, two), added)

    def apply(self, plan: Plan) -> None:
        """Carry out a plan."""
        for (node, other), scope in zip(plan.members, plan.scopes, strict=True):
            self.size[node] = self._grown(node, scope)
            self.scope[node] = scope
            if other >= 0:
                self.heir[other] = node
        way = [node for node, _ in plan.members] + [plan.receiver]
        for node, following in pairwise(way):
            self.parent[node] = following

    def _grown(self, node: int, scope: int) -> int:
        """Entries of a node with a larger scope."""
        size, more = self.size[node], scope & ~self.scope[node]
        while more:
            bit = more & -more
            size *= self._cards[bit.bit_length() - 1]
            more ^= bit
        return size

    def partition(self, old: Partition) -> tuple[Partition, IntArray]:
        """What the forest has become, and the new number of each old node."""
        heirs = np.array([self.find(node) for node in range(len(self.bucket))], dtype=np.int64)
        kept = np.unique(heirs)
        # The last entry, found under -1, stands for no node.
        number = np.full(len(heirs) + 1, -1, dtype=np.int64)
        number[:-1] = np.searchsorted(kept, heirs)
        scopes = [members(self.scope[node]) for node in kept.tolist()]
        ends = np.sort(number[old.edges], axis=1)
        edges = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
        parts = Partition(
            bucket=old.bucket[kept],
            starts=starts_of(np.array([len(s) for s in scopes], dtype=np.int64)),
            positions=np.array([p for s in scopes for p in s], dtype=np.int64),
            parent=number[np.array([self.above(node) for node in kept.tolist()], dtype=np.int64)],
            factor_home=number[old.factor_home],
            edges=np.ascontiguousarray(edges),
        )
        return parts, number[:-1]


def grow(
    parts: Partition, passes: Sweeps, cardinalities: IntArray, *, entries: float, seed: int
) -> tuple[Partition, IntArray]:
    """Merge the pairs of largest slack for each entry added until the tree has so many entries.

    The beliefs of the latest pass must be there. Returns the new partition and the new number of each old node.
    """
    forest = Forest(parts, cardinalities)
    room = entries - sum(forest.size)
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
    return forest.partition(parts)


def slacks(
    forest: Forest,
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
    forest = Forest(parts, cardinalities)
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


def carry(
    old: Layout,
    old_edges: IntArray,
    point: FloatArray,
    new: Layout,
    new_edges: IntArray,
    number: IntArray,
    cards: IntArray,
) -> FloatArray:
    """Parameters of the new tree at which it has the tables of the old one, and its bound is no higher."""
    result = np.zeros(new.n_parameters)
    old_starts, old_scopes = intersections(old_edges, old.scope_starts, old.scope_positions)
    new_starts, new_scopes = intersections(new_edges, new.scope_starts, new.scope_positions)
    source = starts_of(products(old_starts, old_scopes, cards))
    target = starts_of(products(new_starts, new_scopes, cards))
    place = {(a, b): e for e, (a, b) in enumerate(new_edges.tolist())}
    for e, (one, two) in enumerate(number[old_edges].tolist()):
        if one == two:
            continue
        f = place[min(one, two), max(one, two)]
        axes = new_scopes[new_starts[f] : new_starts[f + 1]]
        held = np.isin(axes, old_scopes[old_starts[e] : old_starts[e + 1]])
        shift = point[source[e] : source[e + 1]].reshape(np.where(held, cards[axes], 1))
        whole = result[target[f] : target[f + 1]].reshape(cards[axes])
        whole += shift if one < two else -shift
    shares = np.zeros(new.n_nodes)
    np.add.at(shares, number[old.shared_nodes], shares_of(point[old.n_shifts :], old.shared_starts))
    result[new.n_shifts :] = np.log(
        np.maximum(shares[new.shared_nodes] - LEAST_WEIGHT_SHARE, 1e-3 * LEAST_WEIGHT_SHARE)
    )
    return result
