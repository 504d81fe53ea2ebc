"""Cubes: boxes of a question that is split by setting variables, and which of them is next."""

from __future__ import annotations

import math
from dataclasses import dataclass

from powersum.core.arrays import IntArray
from powersum.divide.box import StatesBox
from powersum.divide.frontier import Frontier
from powersum.run.board import Board
from powersum.run.box_run import CLOSE

YOUNG = 1.5
"""Seconds for which a worker has a cube to itself. After that an idle worker may split the cube meanwhile."""


@dataclass(slots=True, eq=False, kw_only=True)
class Cube(StatesBox):
    """A box with a single state of each variable that is set.

    Attributes
    ----------
    parted
        Whether somebody was told to split it while it is worked on.
    since
        Second of the run at which it was given to somebody last.
    seconds
        Seconds that it was given last.
    """

    parted: bool = False
    since: float = 0.0
    seconds: float = 0.0


class CubePolicy:
    """The cubes of a question.

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
    """

    def __init__(self, board: Board, n_states: IntArray, *, sums: bool) -> None:
        self.root = Cube()
        self._board, self._n_states, self._sums = board, n_states, sums
        self._frontier = Frontier[Cube](self._weight)
        self._frontier.open(self.root)

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
        """The open cube that keeps the bounds apart most: the largest bound, or the largest gap in a sum."""
        return self._frontier.top()

    def begin(self, node: Cube, now: float) -> None:
        """A worker, or this process, has the cube from this second of the run on."""
        node.since = now
        self._frontier.lend(node)

    def end(self, node: Cube) -> None:
        """Nobody works on the cube any more."""
        self._frontier.close(node)

    def to_part(self, now: float) -> Cube | None:
        """A cube that is worked on, for an idle worker to split meanwhile."""
        lent = [node for node in self._frontier.lent if not (node.parted or node.parts or now - node.since < YOUNG)]
        return max((node for node in lent if not self.closed(node)), key=self._weight, default=None)

    def left_of(self, node: Cube) -> Cube:
        """The smallest cube within a cube that has all that is not closed and that nobody works on."""
        while True:
            left = [part for part in node.parts if not self.closed(part)]
            if self._sums or len(left) != 1 or left[0] in self._frontier.lent:
                return node
            node = left[0]

    def again(self, node: Cube, seconds: float) -> None:
        """Open a cube once more that has a wide sum and nothing left to set, unless its run ended before its time."""
        if seconds >= 0.5 * node.seconds and not (node.parts or self.closed(node)):
            self._frontier.open(node)

    def split(self, node: Cube, variable: int) -> None:
        """Split a cube, unless it is; until its parts are bounded themselves they have the bound of the whole."""
        if node.parts:
            return
        node.variable = variable
        for state in range(int(self._n_states[variable])):
            allowed = {**node.allowed, variable: frozenset((state,))}
            part = Cube(log_upper=node.log_upper, allowed=allowed, around=node, log_proven=node.log_proven)
            node.parts.append(part)
            self._frontier.open(part)

    def _weight(self, node: Cube) -> float:
        """The upper bound, or the log of a sum's gap; minus infinity where nothing matters any more."""
        if self.closed(node):
            return -math.inf
        if not self._sums or node.log_lower == -math.inf or node.log_upper == math.inf:
            return node.log_upper
        return node.log_upper + math.log(max(-math.expm1(node.log_lower - node.log_upper), 1e-300))
