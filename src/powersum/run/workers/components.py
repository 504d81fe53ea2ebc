"""Easy components are eliminated before anything else, so that the others have only the hard ones left."""

from __future__ import annotations

from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.exact.components import settle_components
from powersum.prepare.problem import Problem
from powersum.run.board import Board
from powersum.run.proofs import by_easy_components


class Components:
    """Elimination of the components that are easy.

    Parameters
    ----------
    problem, order
        The simplified problem and an elimination order of its variables.
    board
        Told if a component is impossible.
    entries, size
        Table entries and bytes that the easy components together may take.

    Attributes
    ----------
    problem, order
        What is left, once it is done.
    """

    def __init__(self, problem: Problem, order: IntArray, board: Board, *, entries: float, size: float) -> None:
        self.problem, self.order = problem, order
        self._board, self._entries, self._size = board, entries, size

    def run(self, deadline: float) -> Progress:
        """Eliminate them, in one turn: what is easy is quick."""
        del deadline
        if self.problem.n_components > 1:
            known = self._board.distributions
            self.problem, self.order = settle_components(
                self.problem,
                self.order,
                work=self._entries,
                size=self._size,
                tell=None if known is None else known.exact,
            )
            if not self.problem.feasible:
                rest = self.problem
                self._board.impossible(lambda ground: by_easy_components(ground, rest))
        return Progress.DONE
