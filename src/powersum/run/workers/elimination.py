"""Exact elimination: at once where it is quick, or late, when nothing else has proven the answer by then."""

from __future__ import annotations

import math
from collections.abc import Iterator

from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.core.speed import ELIMINATION
from powersum.exact.elimination import SLICE_ENTRIES, Elimination, Exact
from powersum.exact.way_down import WayDown
from powersum.model.rounding import elimination_error
from powersum.prepare.problem import Problem
from powersum.run.board import Board
from powersum.run.proofs import by_elimination


class ExactElimination:
    """Elimination of a whole problem along one order.

    Parameters
    ----------
    problem, order
        The simplified problem and an elimination order of its variables.
    board
        Where the answer goes.
    cost
        Seconds for each entry of a table, at worst.
    memory
        Bytes for both ways, where distributions are wanted: with less, more is computed twice.

    Attributes
    ----------
    width, log2_entries
        Induced width of the order, and the entries of all its tables.
    bytes, seconds
        What it takes, at worst.
    share
        About what share of the work is done, where distributions are wanted.
    """

    def __init__(
        self, problem: Problem, order: IntArray, board: Board, *, cost: float, memory: float = math.inf
    ) -> None:
        self._problem, self._order, self._board = problem, order, board
        self._down = WayDown(problem.model, order, memory) if board.wants_distributions else None
        self._elimination = Elimination(problem.model, order, problem.tau) if self._down is None else self._down.up
        self._slices: Iterator[Exact | None] | None = None
        self.share = 0.0
        self.width = self._elimination.width
        self.log2_entries = self._elimination.log2_entries
        self.bytes, self.seconds = self._elimination.bytes, self._elimination.work * cost
        if self._down is not None:
            self.bytes, self.seconds = self._down.bytes, self._down.seconds * cost / ELIMINATION

    def run(self, deadline: float) -> Progress:
        """Go on until the deadline, some table entries at a time; the memory is taken at the first call."""
        if self._slices is None:
            self._slices = self._elimination.slices() if self._down is None else self._up_and_down(self._down)
        while True:
            exact = next(self._slices)
            if exact is not None:
                break
            if time.monotonic() >= deadline:
                return Progress.MORE
        error = elimination_error(self._problem.model)
        reason = f"Exact elimination, of constrained width {self.width}."
        self._board.offer_exact(
            self._problem,
            exact.log_value,
            error,
            exact.states,
            reason,
            lambda ground: by_elimination(ground, self._order, exact.log_value + self._problem.log_constant),
        )
        self._slices = None
        return Progress.DONE

    def give_up(self) -> None:
        """Give the memory back."""
        self._slices = None

    def _up_and_down(self, down: WayDown) -> Iterator[Exact | None]:
        """The same with the distributions of all variables, which are told to the board before the value is."""
        for found in down.slices():
            if found is None:
                entries = 2.0 * down.work + down.again
                self.share = min(self.share + SLICE_ENTRIES / max(entries, SLICE_ENTRIES), 1.0)
                yield None
                continue
            exact, beliefs = found
            known = self._board.distributions
            if known is not None and exact.log_value > -math.inf:
                known.exact(self._problem, beliefs, down.log_error)
            yield exact
