"""A race of covering trees along different orders: the better half grows, and again, until one is left.

Trees of equal size along orders that look equally good end up to two nats apart, and so do trees of unequal size along
one order: which variables are together in a mini-bucket is a matter of luck. Growth adds to where a tree stands, and
hardly changes ranks: what decides is with which tree it begins. Every step takes longer and half as many take part.
"""

from __future__ import annotations

from powersum.bounds.tree.fixed_tree import FixedTree


class Race:
    """Trees at rest, and how far the present step of the race has come."""

    def __init__(self) -> None:
        self._waiting: list[FixedTree] = []
        self._arrived: list[FixedTree] = []

    def arrive(self, tree: FixedTree) -> None:
        """A tree has had its time in this step."""
        tree.rest()
        self._arrived.append(tree)

    def next(self) -> FixedTree | None:
        """Whose turn it is to grow; None where only one is left."""
        if not self._waiting:
            ranked = sorted(self._arrived, key=_by_bound)
            self._waiting, self._arrived = ranked[: (len(ranked) + 1) // 2], []
        if len(self._waiting) + len(self._arrived) == 1:
            return None
        return self._waiting.pop(0)

    def winner(self) -> FixedTree:
        """The one that is left."""
        (tree,) = self._waiting + self._arrived
        return tree


def _by_bound(tree: FixedTree) -> float:
    return tree.log_upper


def race_cost(n: int, growth: float) -> float:
    """What a race of ``n`` trees costs, in first steps of one tree; each step costs ``growth`` times the one before."""
    total, step = float(n), growth
    while n > 1:
        n = (n + 1) // 2
        if n > 1:
            total, step = total + n * step, step * growth
    return total
