"""The open boxes of a question, the heaviest first, and those that somebody is at."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Generic, TypeVar

B = TypeVar("B")


class Frontier(Generic[B]):
    """Boxes are opened, lent to whoever works on them, and given back or closed.

    Parameters
    ----------
    weight
        What the heaviest box has most of, its upper bound for instance. It may fall while a box is open, and never
        rises. Boxes of minus infinity are dropped once they are looked at: nothing in them matters any more.

    Attributes
    ----------
    n_opened
        How many times a box was opened; of boxes that weigh alike the one opened first is next.
    """

    def __init__(self, weight: Callable[[B], float]) -> None:
        self._weight = weight
        self._open: list[tuple[float, int, B]] = []
        self._lent: dict[int, tuple[int, B]] = {}
        self._numbers = count()
        self.n_opened = 0

    def open(self, box: B) -> None:
        """A box that waits for somebody."""
        self.n_opened += 1
        heapq.heappush(self._open, (-self._weight(box), next(self._numbers), box))

    def top(self) -> B | None:
        """The heaviest open box; None where none is open."""
        while self._open:
            weight, number, box = self._open[0]
            now = -self._weight(box)
            if now == math.inf:
                heapq.heappop(self._open)
            elif now > weight:
                heapq.heapreplace(self._open, (now, number, box))
            else:
                return box
        return None

    def lend(self, box: B) -> None:
        """Somebody works on a box from now on: it is not open, if it was."""
        self._lent[id(box)] = self._removed(box), box

    def give_back(self, box: B) -> None:
        """Nobody works on a box any more: it is open again, in its place among those that weigh alike."""
        number, _ = self._lent.pop(id(box))
        heapq.heappush(self._open, (-self._weight(box), number, box))

    def close(self, box: B) -> None:
        """Nothing is to be done with a box any more, whether it was open or lent."""
        if self._lent.pop(id(box), None) is None:
            self._removed(box)

    @property
    def lent(self) -> list[B]:
        """The boxes that somebody works on, in the order in which they were lent."""
        return [box for _, box in self._lent.values()]

    @property
    def weight(self) -> float:
        """The largest weight of all boxes that are open or lent; minus infinity where there are none."""
        top = self.top()
        heaviest = -math.inf if top is None else self._weight(top)
        return max(heaviest, max(map(self._weight, self.lent), default=-math.inf))

    def __len__(self) -> int:
        """How many boxes are open."""
        return len(self._open)

    def __iter__(self) -> Iterator[B]:
        """The open boxes, in no order."""
        return (box for _, _, box in self._open)

    def _removed(self, box: B) -> int:
        """Take a box out if it is open; returns its number."""
        if self._open and self._open[0][2] is box:
            return heapq.heappop(self._open)[1]
        number = next((number for _, number, one in self._open if one is box), None)
        if number is None:
            return next(self._numbers)
        self._open = [entry for entry in self._open if entry[2] is not box]
        heapq.heapify(self._open)
        return number
