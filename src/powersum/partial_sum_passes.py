"""Passes of partial sums, each larger than the one before, as far as time and memory allow."""

from __future__ import annotations

import math
import time

from powersum.arrays import IntArray
from powersum.partial_sums import PartialSum
from powersum.problem import Problem
from powersum.search.heuristic import heuristic_of
from powersum.tighten.tree.covering_tree import CoveringTree

FIRST_SHARE = 1e-3
"""Least share of the sum for a context to be kept in the first pass."""

STEP = 10.0
"""How many times smaller the least share of the next pass is at most."""

LEAST_STEP = 1.5
"""A smaller step than this is not worth a pass."""

SPARE = 0.8
"""Share of the time left that a pass is planned for."""

LITTLE = 0.1
"""Where fewer contexts than this share of the arcs were dropped, a pass that drops none is tried."""

BYTES_PER_ARC = 32.0
"""What an arc takes in memory at worst, about, with the working memory of the largest buckets."""

STEEPEST, FLATTEST = 1.0, 0.4
"""How the number of arcs follows the least share, at most and at least: the power of its inverse."""


class SumPasses:
    """Bounds on a sum too wide for elimination, from both sides, better with every pass.

    Parameters
    ----------
    problem, tree
        The simplified problem and a tightened covering tree of it.
    memory
        Bytes that passes may take.
    given, anchor
        As in :class:`~powersum.partial_sums.PartialSum`.

    Attributes
    ----------
    sum
        The partial sum with its bounds; they leave out the problem's constant.
    """

    def __init__(
        self,
        problem: Problem,
        tree: CoveringTree,
        *,
        memory: float,
        given: IntArray | None = None,
        anchor: IntArray | None = None,
    ) -> None:
        # What tightening needed beside the tables makes room for the copy of them that is made here.
        tree.best_tree.rest()
        heuristic, log_upper = heuristic_of(tree, problem, sums=True)
        self.sum = PartialSum(problem.model, heuristic, log_upper, given=given, anchor=anchor)
        self._most_arcs = max(int(memory / BYTES_PER_ARC), 1000)
        self._share = FIRST_SHARE
        self._power = STEEPEST
        self._under_way = False
        self._seconds = 0.0
        self._last: tuple[float, int] | None = None

    def run(self, deadline: float, end: float) -> bool:
        """A slice of work until ``deadline``; False when no further pass can end before ``end``."""
        if not self._under_way:
            if self.sum.exact or not self._plan(end):
                return False
            self.sum.begin(self._share, self._most_arcs)
            self._under_way, self._seconds = True, 0.0
        begun = time.monotonic()
        ended = self.sum.run(deadline)
        self._seconds += time.monotonic() - begun
        if ended:
            self._under_way = False
            self._learn()
        return ended or time.monotonic() < end

    def _learn(self) -> None:
        """What a pass tells about the size of the next."""
        arcs = max(self.sum.n_arcs, 1)
        if self._last is not None and self._share > 0.0:
            share, before = self._last
            power = math.log(arcs / before) / math.log(share / self._share)
            self._power = min(max(power, FLATTEST), STEEPEST)
        self._last = self._share, arcs

    def _plan(self, end: float) -> bool:
        """Choose the least share of the next pass; False where time or memory are not enough for one."""
        if self._last is None:
            return time.monotonic() < end
        share, arcs = self._last
        if share == 0.0:
            return False
        times = min(SPARE * (end - time.monotonic()) / max(self._seconds, 1e-3), SPARE * self._most_arcs / arcs)
        step = min(max(times, 0.0) ** (1.0 / self._power), STEP)
        if step < LEAST_STEP:
            return False
        # Where little was dropped, all of it may be within reach.
        within_reach = self.sum.n_dropped < LITTLE * arcs and times > 2.0
        self._share = 0.0 if within_reach else share / step
        return True
