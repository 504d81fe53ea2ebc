"""The cubes of a question that are open: which of them is next, which is split, and which is worked on for long."""

from __future__ import annotations

import math

from powersum.answer.board import Board
from powersum.answer.cube import CLOSE, Report
from powersum.answer.cube_tree import Node
from powersum.core.arrays import IntArray

HOPELESS_GAP, LEAST_HOPELESS, LEARNING = 0.5, 0.1, 1.25
"""Gap beyond which a cube is split after a while of its slice: at first, at least, and by how much cubes change it."""

LOOK_SECONDS = 1.5
"""Seconds after which a cube that is worked on would have been given up, start and way included. Until then nobody
without work splits it."""


class Frontier:
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
        self.root = Node({})
        self.hopeless = HOPELESS_GAP
        self._board, self._n_states, self._sums = board, n_states, sums
        self._open = [self.root]
        self._running: list[Node] = []
        self._given_up: list[Node] = []

    def closed(self, node: Node) -> bool:
        """True where nothing in the cube, or in one around it, can matter any more."""
        around: Node | None = node
        while around is not None:
            log_lower = around.log_lower if self._sums else self._board.log_lower
            if around.log_upper == -math.inf or around.log_upper <= log_lower + CLOSE:
                return True
            around = around.parent
        return False

    def next(self) -> Node | None:
        """The cube that keeps the bounds apart most: that of the largest bound, or of the largest gap in a sum."""
        self._open = [node for node in self._open if not (node.asked or self.closed(node))]
        return self._heaviest(self._open)

    def begin(self, node: Node, now: float) -> None:
        """Somebody works on a cube from this second of the run on."""
        node.asked = node.running = True
        node.since = now
        self._running.append(node)

    def to_part(self, now: float) -> Node | None:
        """A cube that is worked on and that somebody without work may split beforehand."""
        self._running = [node for node in self._running if node.running]
        return self._heaviest(
            [node for node in self._running if not (node.parted or node.children or _young(node, now))]
        )

    def left_of(self, node: Node, *, free: bool) -> Node:
        """What is left of a cube once all that is closed is taken away; if ``free``, as long as nobody is at it."""
        while True:
            left = [part for part in node.children if not self.closed(part)]
            if self._sums or len(left) != 1 or (free and left[0].running):
                return node
            node = left[0]

    def take(self, node: Node, report: Report) -> None:
        """What becomes of a cube after a slice: closed, split, or given up until its siblings have been looked at."""
        if report.given_up and not node.children:
            node.branch = report.branch
            self._given_up.append(node)
        elif report.branch is not None:
            self._split(node, report.branch)
        elif report.seconds is not None and not (node.children or node.long or self.closed(node)):
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
            assert node.parent is not None
            siblings = [one for one in node.parent.children if one is not node and not self.closed(one)]
            if any(_young(one, now) or not one.asked for one in siblings):
                continue
            if not siblings and node.branch is not None:
                self._split(node, node.branch)
            else:
                stuck = True
                self._work_long(node)
        return stuck

    def learn(self, report: Report) -> None:
        """Cubes that did not close although they looked like it are given up earlier, and the other way round."""
        if report.log_gap_early < math.inf and not self._sums:
            if report.branch is None:
                self.hopeless = max(self.hopeless, LEARNING * report.log_gap_early)
            elif report.log_gap_early <= self.hopeless:
                self.hopeless = max(self.hopeless / LEARNING, LEAST_HOPELESS)

    def waiting_above(self, log_upper: float) -> int:
        """How many cubes that nobody is at have at least this bound."""
        waiting = [node for node in (*self._open, *self._given_up) if not node.running and node.log_upper >= log_upper]
        return sum(not self.closed(node) for node in waiting)

    def _split(self, node: Node, variable: int) -> None:
        if node in self._given_up:
            self._given_up.remove(node)
        if not node.children:
            node.split(variable, int(self._n_states[variable]))
            self._open += node.children

    def _work_long(self, node: Node) -> None:
        """A cube that splitting does not help."""
        if node in self._given_up:
            self._given_up.remove(node)
        node.long, node.asked = True, False
        self._open.append(node)

    def _heaviest(self, nodes: list[Node]) -> Node | None:
        return max((node for node in nodes if not self.closed(node)), key=self._weight, default=None)

    def _weight(self, node: Node) -> float:
        if not self._sums or node.log_lower == -math.inf or node.log_upper == math.inf:
            return node.log_upper
        return node.log_upper + math.log(max(-math.expm1(node.log_lower - node.log_upper), 1e-300))


def _young(node: Node, now: float) -> bool:
    """Whether a cube is worked on, and may be given up soon."""
    return node.running and now - node.since < LOOK_SECONDS
