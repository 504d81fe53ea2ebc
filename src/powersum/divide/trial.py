"""A trial of trees by what their boxes take off the bound: of trees that look alike, the better half goes on.

Trees of one bound differ by a nat in what a minute of boxes takes off it, and by what nothing but boxes shows: after
some forty of them the ranks are mostly those of the end (dev/solve.md). What the best has done meanwhile is not
lost, for it goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable

from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core.heats import Heats
from powersum.divide.splitting import Splitting
from powersum.divide.tree_boxes import box_seconds

FINALISTS = 4
"""Trees that take part at most."""

HEAT = 0.04
"""Share of the time that each has in a heat."""

LEAST_BOXES = 25
"""Boxes that must fit that time for it to tell anything."""


def finalists_in(tree: FixedTree, entries: float, seconds: float) -> int:
    """How many trees like this one, with so many entries, shall have a trial where boxes have so many seconds."""
    return FINALISTS if LEAST_BOXES * box_seconds(tree, entries) <= HEAT * seconds else 1


class Trial:
    """Whose boxes are split now.

    Parameters
    ----------
    splittings
        One for each tree, the best first; there is no trial where there is only one.
    seconds
        For all of them, trial and all.
    memory
        Bytes for whoever is left in the end.

    Attributes
    ----------
    at
        The splitting at work.
    decided
        Whether it is the one that is left. It then has the smallest bound of all, for none went on that had not.
    """

    def __init__(self, splittings: list[Splitting], seconds: float, memory: float) -> None:
        self._heats = Heats[Splitting](lambda arrived: sorted(arrived, key=lambda one: one.log_upper))
        self.at, *self._first = splittings
        self._turn, self._memory = HEAT * seconds, memory
        self._spent = 0.0
        self.decided = not self._first

    @classmethod
    def of(
        cls,
        covering: CoveringTree,
        splitting: Callable[[FixedTree, float], Splitting],
        *,
        memory: float,
        seconds: float,
        processes: int = 1,
    ) -> Trial:
        """A trial of the trees that a covering tree has left.

        Parameters
        ----------
        covering
            Has the trees.
        splitting
            Makes the splitting of a tree, with so many bytes for its boxes.
        memory
            Bytes for all of them.
        seconds
            Until the end.
        processes
            How many split boxes.
        """
        trees = covering.finalists
        # A trial pays for trees as they have become, not only as they were planned.
        largest = max(tree.layout.n_entries for tree in trees)
        trees = trees[: finalists_in(trees[0], largest, processes * seconds)]
        return cls([splitting(tree, memory / len(trees)) for tree in trees], seconds, memory)

    def spend(self, seconds: float, *, stuck: bool = False) -> bool:
        """The splitting at work has worked for so long; True where it is another one's turn, or all is decided.

        One that is ``stuck`` for want of memory has had its turn.
        """
        self._spent += seconds
        if self.decided or (self._spent < self._turn and not stuck):
            return False
        self._spent = 0.0
        self._heats.arrive(self.at)
        following = self._first.pop(0) if self._first else self._heats.next()
        if following is None:
            # The others are let go of, and make room for boxes.
            (following,) = self._heats.left
            following.memory, self.decided = self._memory, True
        self.at = following
        return True
