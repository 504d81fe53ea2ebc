"""Boxes of max variables, and the trees that are tightened for each: all of one structure, each at its own point.

Nothing here has a memory of other boxes, so that any process can work on any of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from powersum.bounds.tree.covering_tree import pace_of
from powersum.bounds.tree.descent import Curvature
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.remnant import Remnant, places_within, tree_at
from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.core.speed import TREE_BOX
from powersum.divide.box import Box
from powersum.divide.box_search import BoxSearch
from powersum.prepare.fewer_states import with_states
from powersum.prepare.problem import Problem
from powersum.prepare.simplify.support import possible_states
from powersum.prepare.simplify.tables import Tables

PASSES = 40
"""Passes of descent for each box."""

FAR_BELOW, FEW_PASSES = 1.0, 10
"""A part that lies so far (natural logs) below the largest bound of all is not next soon, if ever: then so many
passes are enough."""

TEMPERATURE = 0.1
"""Where max variables begin to cool in each box: it begins near a good point, and colder ones get stuck there."""

STEPS_INHERITED = 4
"""Steps of the box around it whose curvature the descent of a box begins with: it would need most of its passes to
find as much. Three or sixteen are as good."""

SEARCHING, SEARCH_SECONDS = 0.4, 0.1
"""Share of the time in which boxes are searched at the end, and seconds for each: most of what a search takes off the
bound comes at once (0.5 nat on pedigrees)."""

LEAST_BOXES = 24
"""Boxes that must fit the time for splitting to be worth while."""


def box_seconds(tree: FixedTree, entries: float) -> float:
    """What a box takes, of a tree like this one with so many entries."""
    return PASSES * pace_of(tree) * entries + TREE_BOX * tree.layout.n_nodes


def box_entries(tree: FixedTree, seconds: float) -> float:
    """Entries of a tree like this one with which a box takes so long; below 0 where none does."""
    # What a box takes beside its passes does not depend on its entries.
    return (seconds - box_seconds(tree, 0.0)) / (PASSES * pace_of(tree))


@dataclass(slots=True, eq=False, kw_only=True)
class TreeBox(Box):
    """Some states of the max variables and all that zeros leave of the others, in the order of the variable's states.

    Its upper bound is without the problem's constant.

    Attributes
    ----------
    alive
        The states that are left.
    point
        Where its tree has this bound; None where it was split, where nothing is in it, and where it was evaluated.
    curvature
        What the descent to that point has seen of its surroundings, for those of its parts.
    searched
        Whether there was a search in it: then the point alone does not prove its bound.
    """

    alive: BoolArray
    point: FloatArray | None = None
    curvature: Curvature | None = None
    searched: bool = False

    @property
    def n_bytes(self) -> int:
        """What it holds."""
        arrays = [self.alive, self.point, *(self.curvature or ())]
        return sum(array.nbytes for array in arrays if array is not None)

    def forget(self) -> None:
        """Let go of what its tree would begin with."""
        self.point = self.curvature = None


class BoxTrees:
    """The trees of a problem's boxes.

    Parameters
    ----------
    problem
        The problem.
    remnant
        The structure of all trees.
    threads
        Of each tree.
    """

    def __init__(self, problem: Problem, remnant: Remnant, *, threads: int = 1) -> None:
        self.problem, self._remnant, self._threads = problem, remnant, threads
        self._tables = Tables.of(problem.model)
        self.starts = starts_of(problem.model.cardinalities)

    def choices(self, alive: BoolArray) -> BoolArray:
        """Which variables a box can be split by."""
        return np.asarray((self.problem.tau == 0.0) & (np.add.reduceat(alive.astype(np.int64), self.starts[:-1]) > 1))

    def is_empty(self, alive: BoolArray) -> bool:
        """Whether some variable has no state left."""
        return not np.logical_or.reduceat(alive, self.starts[:-1]).all()

    def states(self, alive: BoolArray, variable: int) -> IntArray:
        """The states of a variable that are left."""
        return np.flatnonzero(alive[self.starts[variable] : self.starts[variable + 1]])

    def part(self, box: TreeBox, state: int) -> PartTree:
        """Begin with the part of a box that has one state of its variable."""
        alive = box.alive.copy()
        alive[self.starts[box.variable] : self.starts[box.variable + 1]] = False
        alive[self.starts[box.variable] + state] = True
        alive = possible_states(self._tables, alive)
        if self.is_empty(alive):
            return PartTree(box, alive, None)
        assert box.point is not None
        before = np.add.reduceat(box.alive.astype(np.int64), self.starts[:-1])
        places = places_within(self._remnant, len(box.point), before, alive[box.alive])
        tree = tree_at(self._remnant, with_states(self.problem, alive), box.point[places], threads=self._threads)
        tree.cool_from(TEMPERATURE)
        if box.curvature is not None:
            tree.begin_with(Curvature(*(rows[:, places] for rows in box.curvature)))
        return PartTree(box, alive, tree)

    def search(self, box: TreeBox, *, log_lower: float, log_error: float, seconds: float, memory: float) -> BoxSearch:
        """A search in a box along its tree, for something better than a value that is known."""
        assert box.point is not None
        inside = with_states(self.problem, box.alive)
        tree = tree_at(self._remnant, inside, box.point, threads=self._threads)
        return BoxSearch(
            self.problem,
            box.alive,
            tree,
            inside,
            log_lower=log_lower,
            log_error=log_error,
            seconds=seconds,
            memory=memory,
        )


class PartTree:
    """A part of a box whose tree is being tightened.

    Parameters
    ----------
    box
        What it is a part of.
    alive
        The states that are left in it.
    tree
        Its tree; None where nothing is in it.
    """

    def __init__(self, box: TreeBox, alive: BoolArray, tree: FixedTree | None) -> None:
        self._box, self._alive, self._tree = box, alive, tree

    def step(self, ends: float) -> bool:
        """A little work, not beyond a moment of the clock; False once it has had all it was to have."""
        tree = self._tree
        if tree is None or tree.done:
            return False
        far = self._box.log_upper - tree.log_upper > FAR_BELOW
        return tree.passes_made < (FEW_PASSES if far else PASSES) and tree.step(ends)

    def finished(self) -> TreeBox:
        """The part, with a bound that is computed from scratch at its point."""
        if self._tree is None:
            return TreeBox(log_upper=-math.inf, alive=self._alive)
        # Before its best point is brought back, which ends the descent.
        curvature = self._tree.curvature(STEPS_INHERITED)
        part = TreeBox(
            log_upper=self._tree.bound(), alive=self._alive, point=self._tree.best_point, curvature=curvature
        )
        if self._box.searched:
            # A search has shown more of the whole box than its tree could.
            part.log_upper = min(part.log_upper, self._box.log_upper)
        return part


def split(trees: BoxTrees, box: TreeBox, ends: float) -> list[TreeBox] | None:
    """All parts of a box that says by which variable; None where they are not done by a moment of the clock."""
    parts = []
    for state in trees.states(box.alive, box.variable).tolist():
        part = trees.part(box, state)
        while part.step(ends):
            pass
        if time.monotonic() >= ends:
            return None
        parts.append(part.finished())
    return parts
