"""Boxes of a splitting under way, lent to other processes: the road goes on with its own, and takes what comes back.

A task has no state but the structure of the trees, which travels once. One that is lost, or comes too late, leaves the
bound of its box as it was.
"""

from __future__ import annotations

import math
from functools import partial
from weakref import WeakKeyDictionary

from powersum.cluster.executor import Shared, Workers
from powersum.core import work_time as time
from powersum.divide.box_search import Searched
from powersum.divide.splitting import Splitting
from powersum.divide.tree_boxes import BoxTrees, TreeBox, split
from powersum.run.division import BoxTask


class Lending:
    """Who asks for boxes finds them here, as long as there is a splitting that has some.

    Parameters
    ----------
    workers
        Who works on them.
    idle
        Whether whoever lends leaves all boxes to others.

    Attributes
    ----------
    begun
        Whether there was a splitting since this was set to False.
    """

    def __init__(self, workers: Workers, *, idle: bool = False) -> None:
        self._workers, self.idle, self.begun = workers, idle, False
        self._splitting: Splitting | None = None
        self._shared = WeakKeyDictionary[Splitting, Shared]()
        """What workers know of each; of one that nobody goes on with nothing is kept."""
        self._ends, self.search_seconds = math.inf, 0.0

    @property
    def processes(self) -> int:
        """How many work on boxes at the same time."""
        return self._workers.size + (0 if self.idle else 1)

    @property
    def open(self) -> bool:
        """Whether a splitting is under way."""
        return self._splitting is not None

    def begin(self, splitting: Splitting, ends: float) -> None:
        """A splitting begins or goes on, in place of another; it will end at a moment of ``time.monotonic()``."""
        self._splitting, self._ends, self.search_seconds = splitting, ends, 0.0
        self.begun = True

    def end(self) -> None:
        """All are over: what comes back from now on is too late."""
        self._splitting = None
        self._shared.clear()

    def task(self) -> BoxTask | None:
        """A box for a worker; None where there is none to spare."""
        splitting = self._splitting
        seconds = self._ends - time.monotonic()
        if splitting is None or seconds <= 0.0:
            return None
        box = splitting.lend(searches=self.search_seconds > 0.0, spared=not self.idle)
        if box is None:
            return None
        if splitting not in self._shared:
            self._shared[splitting] = self._workers.share(splitting.trees)
        # Until its result is heard the task keeps the splitting, and nothing else does.
        hear, shared = partial(self._take, splitting, box), self._shared[splitting]
        if box.variable >= 0:
            return BoxTask(hear, split_lent, shared, (box, seconds))
        seconds = min(seconds, self.search_seconds)
        known = splitting.log_lower, splitting.log_error
        return BoxTask(hear, search_lent, shared, (box, *known, seconds, splitting.search_bytes))

    def _take(self, splitting: Splitting, box: TreeBox, found: list[TreeBox] | Searched | None) -> None:
        """What has become of a box."""
        if splitting not in self._shared:
            return
        if isinstance(found, Searched):
            splitting.take_search(box, found)
        else:
            splitting.take_parts(box, found)


def split_lent(trees: BoxTrees, box: TreeBox, seconds: float) -> list[TreeBox] | None:
    """Split a box by its variable; None where that takes longer than so many seconds."""
    return split(trees, box, time.monotonic() + seconds)


def search_lent(
    trees: BoxTrees, box: TreeBox, log_lower: float, log_error: float, seconds: float, memory: float
) -> Searched:
    """Search a box for so many seconds, with a value known."""
    search = trees.search(box, log_lower=log_lower, log_error=log_error, seconds=seconds, memory=memory)
    while search.run(time.monotonic() + seconds):
        pass
    return search.found()
