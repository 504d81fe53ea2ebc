"""Passes of partial sums, each larger than the one before, as far as time and memory allow."""

from __future__ import annotations

import math

from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.look_up import heuristic_of
from powersum.core.arrays import IntArray
from powersum.core.clock import working_time
from powersum.core.progress import Progress
from powersum.prepare.problem import Problem
from powersum.sums.partial_sum import PartialSum

FIRST_SHARE = 1e-3
"""Least share of the sum for a context to be kept in the very first pass."""

STEP = 20.0
"""How many times smaller the least share of the next pass is at most."""

LEAST_STEP = 1.5
"""A smaller step than this is not worth a pass."""

SPARE = 0.8
"""Share of the memory left that a pass is planned for."""

IN_TIME = 0.9
"""Share of the time left that a pass may take: where it is slower than planned it drops more."""

LITTLE = 0.1
"""Where fewer contexts than this share of the arcs were dropped, a pass that drops none is tried."""

BYTES_PER_ARC = 40.0
"""What a stored arc takes in memory, with the working memory of the largest buckets."""

BYTES_BY_STATE = 80.0
"""The same where sums by state are wanted: states of arcs and what their contexts stand for are kept to the end."""

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
    first_share
        Least share of the first pass.
    given, anchor, record, by_state
        As in :class:`~powersum.sums.partial_sum.PartialSum`.

    Attributes
    ----------
    sum
        The partial sum with its bounds; they leave out the problem's constant.
    share
        Least share of the latest pass that has ended.
    """

    def __init__(
        self,
        problem: Problem,
        tree: CoveringTree,
        *,
        memory: float,
        first_share: float = FIRST_SHARE,
        given: IntArray | None = None,
        anchor: IntArray | None = None,
        record: float = 0.0,
        by_state: bool = False,
    ) -> None:
        # What tightening needed beside the tables makes room for the copy of them that is made here.
        tree.best_tree.rest()
        heuristic, log_upper = heuristic_of(tree.best_tree, problem, sums=True)
        self.sum = PartialSum(
            problem.model, heuristic, log_upper, given=given, anchor=anchor, record=record, by_state=by_state
        )
        self.share = first_share
        self._most_stored = max(int((memory - self.sum.bytes) / (BYTES_BY_STATE if by_state else BYTES_PER_ARC)), 1000)
        self._next = first_share
        self._power = STEEPEST
        self._under_way = False
        self._seconds = 0.0
        # Of the latest pass that has ended.
        self._took, self._arcs, self._stored = 0.0, 0, 0

    @property
    def seconds(self) -> float:
        """What the largest passes that memory allows would take, about, all together; infinity before the first."""
        return 2.0 * self._took * self._most_stored / self._stored if self._arcs else math.inf

    def run(self, deadline: float, end: float) -> Progress:
        """Work until ``deadline``; out of time when no further pass can end before ``end``, a working time."""
        if not self._under_way:
            progress = self._plan(end)
            if progress is not Progress.MORE:
                return progress
            self.sum.begin(self._next, self._most_stored, IN_TIME * (end - working_time()))
            self._under_way, self._seconds = True, 0.0
        begun = working_time()
        ended = self.sum.run(deadline) is Progress.DONE
        self._seconds += working_time() - begun
        if ended:
            self._under_way = False
            self._learn()
        return Progress.MORE if ended or working_time() < end else Progress.OUT_OF_TIME

    def _learn(self) -> None:
        """What a pass tells about the size of the next."""
        arcs = max(self.sum.n_arcs, 1)
        if self._next > 0.0:
            if self._arcs:
                power = math.log(arcs / self._arcs) / math.log(self.share / self._next)
                self._power = min(max(power, FLATTEST), STEEPEST)
            self.share = max(self._next, self.sum.least_share)
        self._took, self._arcs, self._stored = self._seconds, arcs, max(self.sum.n_stored, 1)

    def _plan(self, end: float) -> Progress:
        """Choose the least share of the next pass; done where memory is not enough for one, or none is needed."""
        left = end - working_time()
        if not self._arcs:
            return Progress.MORE if left > 0.0 else Progress.OUT_OF_TIME
        # A pass that was to drop nothing and had to drop something was the largest there can be.
        if self.sum.exact or self._next == 0.0:
            return Progress.DONE
        in_time, in_memory = left / max(self._took, 1e-3), self._most_stored / self._stored
        times = min(IN_TIME * in_time, SPARE * in_memory)
        step = min(max(times, 0.0) ** (1.0 / self._power), STEP)
        if step < LEAST_STEP:
            return Progress.OUT_OF_TIME if in_time < in_memory else Progress.DONE
        # Where little was dropped, all of it may be within reach.
        within_reach = self.sum.n_dropped < LITTLE * self._arcs and times > 2.0
        self._next = 0.0 if within_reach else self.share / step
        return Progress.MORE
