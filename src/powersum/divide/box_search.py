"""Branch and bound in one box, along the tree that was tightened for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.losses import losses_of
from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, IntArray
from powersum.model.rounding import certain
from powersum.prepare.fewer_states import states_before
from powersum.prepare.problem import Problem
from powersum.search.and_or import AndOr

MOST_BYTES = 2.0**26
"""Bytes for what a search remembers, at most: it is a short one."""

EVALUATION = 0.5
"""What settling nodes, which are small, may take as a share of that."""


class Searched(NamedTuple):
    """What a search in a box has shown."""

    log_upper: float
    """Bound on what is in the box, rounding counted; where it is closed, not below the value that was known."""
    log_lower: float
    assignment: IntArray | None
    """The best value found and its assignment in the problem's own states; None where it is not from here."""


class BoxSearch:
    """A search of some seconds.

    Parameters
    ----------
    problem
        What the box is a part of.
    alive
        The states that are left in it.
    tree, inside
        Its tree at its best point, and the problem over these states that the tree is of.
    log_lower
        The best value known, of any box; finite.
    log_error
        Rounding of an exact evaluation.
    seconds
        How long it may take.
    memory
        Bytes that are left for it.
    """

    def __init__(
        self,
        problem: Problem,
        alive: BoolArray,
        tree: FixedTree,
        inside: Problem,
        *,
        log_lower: float,
        log_error: float,
        seconds: float,
        memory: float,
    ) -> None:
        memory = min(memory, MOST_BYTES)
        self._problem, self._alive = problem, alive
        tree.rest()
        losses, log_upper = losses_of(tree, inside)
        evaluator = Evaluator(inside, memory=EVALUATION * memory)
        nothing = np.where(inside.tau == 0.0, 0, -1)
        self._search = AndOr(
            losses,
            tree,
            evaluator,
            log_upper=log_upper,
            log_lower=log_lower,
            assignment=nothing,
            log_error=log_error,
            memory=memory,
        )
        self._floor = log_lower
        self._left = seconds

    def run(self, deadline: float) -> bool:
        """Search until the deadline or the end of its time; False once nothing more will come of it."""
        begun = time.monotonic()
        self._search.run(min(deadline, begun + self._left), reads=False)
        self._left -= time.monotonic() - begun
        return self._left > 0.0 and not self._search.done

    def found(self) -> Searched:
        """What there is to say of the box."""
        search, assignment = self._search, None
        if search.log_lower > self._floor:
            assignment = states_before(self._problem, self._alive, search.assignment)
        return Searched(certain(search.log_upper, search.log_error), search.log_lower, assignment)
