"""What a run may begin with: what another one has left. Nothing of it is believed; it only saves time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.rebuilding import Saved, rebuilt
from powersum.core.arrays import IntArray
from powersum.prepare.problem import Problem
from powersum.run.board import Board
from powersum.search.recall import ListedContexts


class Legacy(Protocol):
    """What is left of an earlier run, or of a run on a question that this one is a part of."""

    @property
    def proves_more(self) -> bool:
        """True where :meth:`verify` may find better bounds than the tree and the assignment give."""
        ...

    def verify(self, board: Board, problem: Problem) -> None:
        """Report the bounds that are proven."""
        ...

    def tree(self, problem: Problem, *, threads: int, memory: float) -> FixedTree | None:
        """A tree for a problem; None where there is none, or none that fits."""
        ...

    def states(self, problem: Problem) -> IntArray | None:
        """An assignment in the problem's variables, -1 where it says nothing; None where there is none."""
        ...

    def listed(self) -> ListedContexts | None:
        """Contexts at which a search may look first."""
        ...


class Inherited:
    """What the parts of a question have from the whole: its tree, at the point where that was left, and an assignment.

    Parameters
    ----------
    saved
        The tree; None where there is none.
    states
        Pairs of a variable and its state, which a part may forbid.
    """

    proves_more = False

    def __init__(self, saved: Saved | None, states: Sequence[tuple[int, int]]) -> None:
        self._saved, self._states = saved, states

    def verify(self, board: Board, problem: Problem) -> None:
        """Nothing is proven."""

    def tree(self, problem: Problem, *, threads: int, memory: float) -> FixedTree | None:
        """The tree for a problem; None where it does not fit."""
        return None if self._saved is None else rebuilt(self._saved, problem, threads=threads, memory=memory)

    def states(self, problem: Problem) -> IntArray | None:
        """The assignment, as far as a problem allows it."""
        return states_within(problem, self._states)

    def listed(self) -> ListedContexts | None:
        """Nothing."""
        return None


def states_within(problem: Problem, pairs: Sequence[tuple[int, int]]) -> IntArray | None:
    """States of max variables in a problem's own numbers, -1 where it has others; None where none is left."""
    stated = np.full(len(problem.original_tau), -1, dtype=np.int64)
    for v, state in pairs:
        if 0 <= v < len(stated) and 0 <= state < 2**62:
            stated[v] = state
    found = problem.reduced_states(stated)
    return found if (found >= 0).any() else None
