"""Mini-buckets while a covering tree grows: which are put together, and what they come to know."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.wiring import products
from powersum.core.arrays import IntArray, starts_of
from powersum.prepare.ordering.bounded import members


class MergePlan(NamedTuple):
    """A merge with all that it entails."""

    members: list[tuple[int, int]]
    """Nodes on the way of the merged message; the second is merged into the first, -1 where there is none."""
    scopes: list[int]
    """What the scopes of these nodes become."""
    receiver: int
    """Where the message goes in the end; -1 where it is a number."""
    added: int
    """Entries that this adds to the tree."""


class GrowingForest:
    """Mini-buckets while they are merged and extended; scopes are sets of positions as bits of an integer."""

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

    def plan(self, one: int, two: int, most: float) -> MergePlan | None:
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
        return MergePlan(members, scopes, max(one, two), added)

    def apply(self, plan: MergePlan) -> None:
        """Carry out a plan."""
        for (node, other), scope in zip(plan.members, plan.scopes, strict=True):
            self.size[node] = self._grown(node, scope)
            self.scope[node] = scope
            if other >= 0:
                self.heir[other] = node
        way = [node for node, _ in plan.members] + [plan.receiver]
        for node, following in pairwise(way):
            self.parent[node] = following

    def take_in(self, node: int, position: int) -> None:
        """Let a node know of one more variable, that of a later bucket; whoever receives its message has to know it."""
        scope = self.scope[node] | 1 << position
        self.size[node] = self._grown(node, scope)
        self.scope[node] = scope

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
