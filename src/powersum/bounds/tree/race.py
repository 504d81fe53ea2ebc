"""A race of covering trees along different orders: the better half grows, and again, until one is left.

Trees of equal size along orders that look equally good end up to two nats apart, and so do trees of unequal size along
one order: which variables are together in a mini-bucket is a matter of luck. Growth adds to where a tree stands, and
hardly changes ranks: what decides is with which tree it begins. Every step takes longer and half as many take part.

Orders differ as much in what a search along them takes off the bound. Where one will follow, a short one tells: what
it takes off within 0.3 s is about half of what it does in 8 s, at whatever size the tree has.
"""

from __future__ import annotations

from collections.abc import Callable

from powersum.bounds.tree.fixed_tree import FixedTree

Outlook = Callable[[FixedTree, float], float]
"""What a search of so many seconds takes off the bound of a tree."""

LAST_FEW = 4
"""Where no more than so many are left, each has a short search."""

LATER_SEARCH = 2.0
"""How many times what a short search takes off its bound a later one is taken to do."""


class Race:
    """Trees at rest, and how far the present step of the race has come.

    Parameters
    ----------
    outlook
        Says what a search takes off the bound of a tree; without it only bounds count.
    seconds
        How long such a search is.
    """

    def __init__(self, outlook: Outlook | None = None, seconds: float = 0.0) -> None:
        self._outlook, self._seconds = outlook, seconds
        self._waiting: list[FixedTree] = []
        self._arrived: list[FixedTree] = []

    def arrive(self, tree: FixedTree) -> None:
        """A tree has had its time in this step."""
        tree.rest()
        self._arrived.append(tree)

    def next(self) -> FixedTree | None:
        """Whose turn it is to grow; None where only one is left."""
        if not self._waiting:
            ranked = sorted(self._arrived, key=self._expected())
            self._waiting, self._arrived = ranked[: (len(ranked) + 1) // 2], []
        if len(self._waiting) + len(self._arrived) == 1:
            return None
        return self._waiting.pop(0)

    def _expected(self) -> Callable[[FixedTree], float]:
        """The bound that each of those who have arrived leads to."""
        outlook, seconds = self._outlook, self._seconds
        if outlook is None or not 1 < len(self._arrived) <= LAST_FEW:
            return lambda tree: tree.log_upper
        return lambda tree: tree.log_upper - LATER_SEARCH * outlook(tree, seconds)

    def winner(self) -> FixedTree:
        """The one that is left."""
        (tree,) = self._waiting + self._arrived
        return tree


def race_cost(n: int, growth: float) -> float:
    """What a race of ``n`` trees costs, in first steps of one tree; each step costs ``growth`` times the one before."""
    total, step = float(n), growth
    while n > 1:
        n = (n + 1) // 2
        if n > 1:
            total, step = total + n * step, step * growth
    return total
