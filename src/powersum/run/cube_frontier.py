"""The cubes of a question that are open: which of them is next, which is split, and which is worked on for long."""

from __future__ import annotations

import math

from powersum.core.arrays import IntArray
from powersum.divide.frontier import Frontier
from powersum.run.board import Board
from powersum.run.cube import CLOSE, CubeReport
from powersum.run.cube_tree import Cube, split

HOPELESS_GAP, LEAST_HOPELESS, LEARNING = 0.5, 0.1, 1.25
"""Gap beyond which a cube is split after a while of its slice: at first, at least, and by how much cubes change it."""

LOOK_SECONDS = 1.5
"""Seconds after which a cube that is worked on would have been given up, start and way included. Until then nobody
without work splits it."""


class CubePolicy:
    """Cubes that wait, that somebody is at, and that were given up.

    Parameters
    ----------
    board
        Has the best value known.
    n_states
        States of each variable.
    sums
        Whether cubes add up; otherwise the largest counts.

    Attributes
    ----------
    root
        The whole question.
    hopeless
        Gap beyond which a cube is given up early.
    """

    def __init__(self, board: Board, n_states: IntArray, *, sums: bool) -> None:
        self.root = Cube()
        self.hopeless = HOPELESS_GAP
        self._board, self._n_states, self._sums = board, n_states, sums
        self._frontier = Frontier[Cube](self._weight)
        self._frontier.open(self.root)
        self._given_up: list[Cube] = []

    def closed(self, node: Cube) -> bool:
        """True where nothing in the cube, or in one around it, can matter any more."""
        around: Cube | None = node
        while around is not None:
            log_lower = around.log_lower if self._sums else self._board.log_lower
            if around.log_upper == -math.inf or around.log_upper <= log_lower + CLOSE:
                return True
            around = around.around
        return False

    def next(self) -> Cube | None:
        """The cube that keeps the bounds apart most: that of the largest bound, or of the largest gap in a sum."""
        return self._frontier.top()

    def begin(self, node: Cube, now: float) -> None:
        """Somebody works on a cube from this second of the run on."""
        node.asked = node.running = True
        node.since = now
        self._frontier.lend(node)

    def to_part(self, now: float) -> Cube | None:
        """A cube that is worked on and that somebody without work may split beforehand."""
        split = [node for node in self._frontier.lent if not (node.parted or node.parts or _young(node, now))]
        return max((node for node in split if not self.closed(node)), key=self._weight, default=None)

    def left_of(self, node: Cube, *, free: bool) -> Cube:
        """What is left of a cube once all that is closed is taken away; if ``free``, as long as nobody is at it."""
        while True:
            left = [part for part in node.parts if not self.closed(part)]
            if self._sums or len(left) != 1 or (free and left[0].running):
                return node
            node = left[0]

    def take(self, node: Cube, report: CubeReport) -> None:
        """What becomes of a cube after a slice: closed, split, or given up until its siblings have been looked at."""
        if report.given_up and not node.parts:
            node.variable = -1 if report.branch is None else report.branch
            self._given_up.append(node)
        elif report.branch is not None:
            self._split(node, report.branch)
        elif report.seconds is not None and not (node.parts or node.long or self.closed(node)):
            # A sum that is too wide for a slice, with nothing left to set.
            self._work_long(node)

    def settle(self, now: float) -> bool:
        """What becomes of cubes that were given up, once all that belong together have been looked at.

        Where one of them is left, splitting has closed all others, and goes on. Where several are, their number would
        grow with every split: each is worked on for long instead. Nobody says how a cube looks while it is worked on:
        who is not given up after a while goes on to the end of its slice.

        Returns whether there were such that splitting does not help.
        """
        self._given_up = [node for node in self._given_up if not self.closed(node)]
        stuck = False
        for node in list(self._given_up):
            assert node.around is not None
            siblings = [one for one in node.around.parts if one is not node and not self.closed(one)]
            if any(_young(one, now) or not one.asked for one in siblings):
                continue
            if not siblings and node.variable >= 0:
                self._split(node, node.variable)
            else:
                stuck = True
                self._work_long(node)
        return stuck

    def end(self, node: Cube, report: CubeReport) -> None:
        """Somebody has worked on a cube.

        Cubes that did not close although they looked like it are given up earlier, and the other way round.
        """
        node.running = False
        self._frontier.close(node)
        if report.log_gap_early < math.inf and not self._sums:
            if report.branch is None:
                self.hopeless = max(self.hopeless, LEARNING * report.log_gap_early)
            elif report.log_gap_early <= self.hopeless:
                self.hopeless = max(self.hopeless / LEARNING, LEAST_HOPELESS)

    def waiting_above(self, log_upper: float) -> int:
        """How many cubes that nobody is at have at least this bound."""
        waiting = [node for node in (*self._frontier, *self._given_up) if not (node.running or self.closed(node))]
        return sum(node.log_upper >= log_upper for node in waiting)

    def _split(self, node: Cube, variable: int) -> None:
        if node in self._given_up:
            self._given_up.remove(node)
        if not node.parts:
            split(node, variable, int(self._n_states[variable]))
            for part in node.parts:
                self._frontier.open(part)

    def _work_long(self, node: Cube) -> None:
        """A cube that splitting does not help."""
        if node in self._given_up:
            self._given_up.remove(node)
        node.long, node.asked = True, False
        self._frontier.open(node)

    def _weight(self, node: Cube) -> float:
        """The upper bound, or how far the bounds of a sum are apart; minus infinity where nothing matters any more."""
        if self.closed(node):
            return -math.inf
        if not self._sums or node.log_lower == -math.inf or node.log_upper == math.inf:
            return node.log_upper
        return node.log_upper + math.log(max(-math.expm1(node.log_lower - node.log_upper), 1e-300))


def _young(node: Cube, now: float) -> bool:
    """Whether a cube is worked on, and may be given up soon."""
    return node.running and now - node.since < LOOK_SECONDS
