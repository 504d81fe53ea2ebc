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
from powersum.core.heats import Heats

Outlook = Callable[[FixedTree, float], float]
"""What a search of so many seconds takes off the bound of a tree."""

LAST_FEW = 4
"""Where no more than so many are left, each has a short search."""

LATER_SEARCH = 2.0
"""How many times what a short search takes off its bound a later one is taken to do."""

LEAST_RACERS, MOST_RACERS, MOST_ENTRIES = 4, 12, 1.8e6
"""Where new trees are made for a race: how many take part at least, which makes trees smaller in short runs, and at
most; and entries that trees begin with at most."""

ALMOST = 1.0 + 1e-9


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
        self._heats = Heats(self._ranked)

    def arrive(self, tree: FixedTree) -> None:
        """A tree has had its time in this step."""
        tree.rest()
        self._heats.arrive(tree)

    def next(self, left: int = 1) -> FixedTree | None:
        """Whose turn it is to grow; None once no more than so many are left."""
        return self._heats.next(left)

    def _ranked(self, arrived: list[FixedTree]) -> list[FixedTree]:
        """Those who have arrived, by the bound that each leads to."""
        outlook, seconds = self._outlook, self._seconds
        if outlook is None or len(arrived) > LAST_FEW:
            return sorted(arrived, key=lambda tree: tree.log_upper)
        return sorted(arrived, key=lambda tree: tree.log_upper - LATER_SEARCH * outlook(tree, seconds))

    @property
    def left(self) -> list[FixedTree]:
        """Those that are left in the end, the best first."""
        return self._heats.left


def race_cost(n: int, growth: float) -> float:
    """What a race of ``n`` trees costs, in first steps of one tree; each step costs ``growth`` times the one before."""
    total, step = float(n), growth
    while n > 1:
        n = (n + 1) // 2
        if n > 1:
            total, step = total + n * step, step * growth
    return total


def racers_of(
    n_orders: int, growth: float, *, small: float, time: float, room: float, largest: float
) -> tuple[int, float]:
    """How many of the best orders take part in a race, and with trees of how many entries.

    Parameters
    ----------
    n_orders
        How many orders are known.
    growth
        How much larger a tree grows in each step.
    small
        Entries of the trees that orders were judged by: with no fewer they begin.
    time, room
        Entries that all first steps together may have for the time and for the memory of the race.
    largest
        Entries of trees that are made for it at most; no more than ``small`` where those begin that are there already,
        however many.
    """
    entries, n = small, n_orders
    if largest > small:
        few = race_cost(LEAST_RACERS, growth)
        entries = max(min(time / few, room / LEAST_RACERS, largest, MOST_ENTRIES), small)
        n = min(n, MOST_RACERS)
    # What was divided before does not always fit again to the last bit.
    time, room = ALMOST * time, ALMOST * room
    while n > 1 and (race_cost(n, growth) * entries > time or n * entries > room):
        n -= 1
    return n, entries
