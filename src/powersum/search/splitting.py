"""Boxes of max variables, split where the bound is largest, and for each box a tree that is tightened for it alone.

Branch and bound reads all its costs off one tree, whose shifts are a compromise for all assignments at once. Setting
ten variables and tightening the same tree for that box takes off more than minutes of such a search: most of the
distance to the optimum is in sums that mini-buckets relax, and no choice of max variables mends these
(docs/notes-solve.md).

A box has its own point on the structure that all of them share, and begins with that of the box around it
(:mod:`powersum.bounds.tree.remnant`). The largest bound of all boxes is a bound on the whole, at any moment. Each is
computed from scratch at the point of its box, in double precision, when the time of that box is over.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.assign.regions import TOO_WIDE
from powersum.bounds.buckets.proof import bucket_forest
from powersum.bounds.buckets.sweeps import shares_of
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.remnant import point_within, remnant_of, tree_at
from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.core.progress import Progress
from powersum.exact.proof import elimination_forest
from powersum.model.rounding import certain
from powersum.prepare.fewer_states import states_before, with_states
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.proof import Forest
from powersum.prepare.simplify.support import possible_states
from powersum.prepare.simplify.tables import Tables
from powersum.search.box_search import BoxSearch
from powersum.search.gains import Gains

PASSES = 40
"""Passes of descent for each box."""

FAR_BELOW, FEW_PASSES = 1.0, 10
"""A part that lies so far (natural logs) below the largest bound of all is not next soon, if ever: then so many
passes are enough."""

TEMPERATURE = 0.05
"""Where max variables begin to cool in each box: it begins near a good point, and colder ones get stuck there."""

SEARCHES = 0.3
"""Share of the memory for what a search in a box remembers; settling nodes takes half as much."""


@dataclass(slots=True, eq=False)
class Box:
    """Some states of the max variables and all that zeros leave of the others; an open box, or one that was split.

    Attributes
    ----------
    alive
        The states that are left.
    log_upper
        Bound on what is in it, without the problem's constant; minus infinity where nothing is.
    point
        Where its tree has this bound; None where it was split, where nothing is in it, and where it was evaluated.
    searched
        Whether there was a search in it: then the point alone does not prove its bound.
    variable, parts
        What it was split by, and into what, in the order of the variable's states; nobody where it was not.
    """

    alive: BoolArray
    log_upper: float
    point: FloatArray | None = None
    searched: bool = False
    variable: int = -1
    parts: list[Box] = field(default_factory=list)

    @property
    def n_bytes(self) -> int:
        """What it holds."""
        return self.alive.nbytes + (0 if self.point is None else self.point.nbytes)


class Splitting:
    """Best-first splitting of one problem, with one tree.

    Parameters
    ----------
    problem
        The problem.
    tree
        A tree of it, not exact, that is not moved while this goes on.
    evaluator
        Evaluates boxes with one assignment.
    log_lower, assignment
        The best value known, finite, and its assignment.
    log_error
        Rounding of an exact evaluation.
    memory
        Bytes for open boxes, and for the search in one of them.
    keeps_all
        Whether closed boxes keep what proves them.
    threads
        Of each tree.
    seed
        Of the samples that tell what to split by first.

    Attributes
    ----------
    log_upper
        Bound on the problem's value, rounding counted; never rises.
    log_lower, assignment
        The best known.
    root
        All boxes, by what they were split into.
    done
        True once no box is open: ``log_upper`` is then no higher than ``log_lower`` but for rounding, unless a sum was
        too wide to evaluate.
    """

    def __init__(
        self,
        problem: Problem,
        tree: FixedTree,
        evaluator: Evaluator,
        *,
        log_lower: float,
        assignment: IntArray,
        log_error: float = 0.0,
        memory: float = 1e9,
        keeps_all: bool = False,
        threads: int = 1,
        seed: int = 0,
        tolerance: float = 1e-9,
    ) -> None:
        self.problem, self.tree = problem, tree
        self.log_lower, self.assignment = log_lower, assignment.copy()
        self._evaluator, self._log_error, self.tolerance = evaluator, log_error, tolerance
        self._threads, self._memory, self._keeps_all = threads, memory, keeps_all
        self._tables = Tables.of(problem.model)
        self._starts = starts_of(problem.model.cardinalities)
        self._remnant = remnant_of(tree)
        everything = np.ones(int(self._starts[-1]), dtype=np.bool_)
        self.root = Box(everything, tree.bound(), tree.best_point)
        self.log_upper = self.root.log_upper
        self._gains = Gains(tree.looseness(seed))
        self._open: list[tuple[float, int, Box]] = []
        self._count = self._held = 0
        self._closed = -math.inf
        """The largest bound of boxes that are neither open nor split."""
        self._box: Box | None = None
        """The box that is being split; its parts so far, and the states that wait."""
        self._parts: list[Box] = []
        self._waiting: list[int] = []
        self._at: tuple[BoolArray, FixedTree] | None = None
        """The part that is being tightened."""
        self._search: tuple[Box, BoxSearch] | None = None
        """The box that is searched."""
        self.done = False
        self._keep(self.root)

    def offer(self, log_lower: float, assignment: IntArray) -> None:
        """A better assignment found elsewhere."""
        if log_lower > self.log_lower:
            self.log_lower, self.assignment = log_lower, assignment.copy()

    def run(self, deadline: float, ends: float, *, search: float = 0.0) -> Progress:
        """Split until the deadline, a little at least; ``ends`` is when all its time does.

        With ``search`` each box is searched for so many seconds before it is split: that takes more off its bound at
        once, but nothing that its parts would begin with.
        """
        while not self.done:
            if self._search is not None:
                self._go_on_searching(deadline)
            elif self._box is not None:
                if not self._go_on(ends):
                    return Progress.OUT_OF_TIME
            elif not self._begin(search):
                return Progress.DONE
            if time.monotonic() >= deadline:
                return Progress.MORE
        return Progress.DONE

    def is_empty(self, box: Box) -> bool:
        """Whether propagation has shown that nothing is in a box: some variable has no state left."""
        return not np.logical_or.reduceat(box.alive, self._starts[:-1]).all()

    def states_of(self, box: Box) -> IntArray:
        """The states of a box's variable, one for each of its parts."""
        return np.flatnonzero(box.alive[self._starts[box.variable] : self._starts[box.variable + 1]])

    def boxes(self) -> list[tuple[Box, list[tuple[int, int]]]]:
        """All boxes, parts before what they are parts of; each with the original variables and states set in it."""
        found: list[tuple[Box, list[tuple[int, int]]]] = [(self.root, [])]
        for box, rows in found:
            if box.parts:
                v, first = int(self.problem.variables[box.variable]), int(self._starts[box.variable])
                kept = self.problem.kept_states[first + self.states_of(box)].tolist()
                found += [(part, [*rows, (v, state)]) for part, state in zip(box.parts, kept, strict=True)]
        return found[::-1]

    def forest(self, box: Box) -> Forest:
        """The mini-buckets that have the bound of a box that was not split; of one that was evaluated, elimination."""
        layout, point = self.tree.layout, box.point
        if point is None:
            inside = with_states(self.problem, box.alive)
            return elimination_forest(inside, elimination_order(inside.model, inside.tau))
        n_shifts = len(point) - len(layout.shared_nodes)
        weights = self.problem.tau[self.tree.order][layout.bucket].copy()
        weights[layout.shared_nodes] *= shares_of(point[n_shifts:], layout.shared_starts)
        return bucket_forest(self.problem, self.tree.order, self.tree.parts, layout, point[:n_shifts], weights)

    def _begin(self, search: float) -> bool:
        """Begin to split or to search the box with the largest bound; False where none is left, or no memory."""
        if not self._open or -self._open[0][0] <= self.log_lower + self.tolerance:
            # All that is left is closed by what is known.
            self._closed = max(self._closed, -self._open[0][0] if self._open else -math.inf)
            self.done = True
            self._note()
            return False
        if search and not self._open[0][2].searched:
            self._begin_search(heapq.heappop(self._open)[2], search)
            return True
        if self._held > (1.0 - 1.5 * SEARCHES) * self._memory:
            return False
        box = heapq.heappop(self._open)[2]
        box.variable = self._gains.best(self._choices(box.alive))
        self._box, self._parts, self._waiting = box, [], self.states_of(box).tolist()
        return True

    def _begin_search(self, box: Box, seconds: float) -> None:
        assert box.point is not None
        inside = with_states(self.problem, box.alive)
        tree = tree_at(self._remnant, inside, box.point, threads=self._threads)
        search = BoxSearch(
            self.problem,
            box.alive,
            tree,
            inside,
            log_lower=self.log_lower,
            log_error=self._log_error,
            seconds=seconds,
            memory=SEARCHES * self._memory,
        )
        self._search = box, search

    def _go_on_searching(self, deadline: float) -> None:
        """Search in a box until the deadline; at its end put it back, with the bound that was found."""
        assert self._search is not None
        box, search = self._search
        if search.run(deadline):
            return
        self._search = None
        if search.assignment is not None:
            self.offer(search.log_lower, search.assignment)
        self._held -= box.n_bytes
        box.searched = True
        box.log_upper = min(box.log_upper, search.log_upper)
        self._keep(box)
        self._note()

    def _go_on(self, ends: float) -> bool:
        """A little work on the box that is being split; False where there is no time for it."""
        box = self._box
        assert box is not None
        if self._at is not None:
            alive, tree = self._at
            far = box.log_upper - tree.log_upper > FAR_BELOW
            if not tree.done and tree.passes_made < (FEW_PASSES if far else PASSES):
                if tree.step(ends):
                    return True
                if time.monotonic() >= ends:
                    return False
            self._at = None
            part = self._finished(alive, tree)
            if box.searched:
                # A search has shown more of the whole box than its tree could.
                part.log_upper = min(part.log_upper, box.log_upper)
            self._parts.append(part)
        elif self._waiting:
            self._set(box, self._waiting.pop(0))
        else:
            self._replace(box)
        return True

    def _set(self, box: Box, state: int) -> None:
        """Begin with the part of a box that has one state of its variable."""
        alive = box.alive.copy()
        alive[self._starts[box.variable] : self._starts[box.variable + 1]] = False
        alive[self._starts[box.variable] + state] = True
        alive = possible_states(self._tables, alive)
        part = Box(alive, -math.inf)
        if self.is_empty(part):
            self._parts.append(part)
            return
        assert box.point is not None
        before = np.add.reduceat(box.alive.astype(np.int64), self._starts[:-1])
        point = point_within(self._remnant, box.point, before, alive[box.alive])
        tree = tree_at(self._remnant, with_states(self.problem, alive), point, threads=self._threads)
        tree.cool_from(TEMPERATURE)
        self._at = alive, tree

    def _finished(self, alive: BoolArray, tree: FixedTree) -> Box:
        """A part whose tree has had its time; where one assignment is left, its value is the bound."""
        box = Box(alive, tree.bound(), tree.best_point)
        if not self._choices(alive).any():
            states = states_before(self.problem, alive, np.where(self.problem.tau == 0.0, 0, -1))
            value = self._evaluator.value(states)
            if value < TOO_WIDE:
                self.offer(value, states)
                box.log_upper, box.point = min(box.log_upper, certain(value, self._log_error)), None
        return box

    def _replace(self, box: Box) -> None:
        """Put the parts of a box in its place."""
        box.parts = self._parts
        self._gains.learn(box.variable, [box.log_upper - part.log_upper for part in self._parts])
        self._held -= box.n_bytes
        box.point = None
        for part in self._parts:
            self._keep(part)
        self._box, self._parts = None, []
        self._note()

    def _keep(self, box: Box) -> None:
        """Open a box that may hold something better than what is known, and can be split."""
        if box.log_upper > self.log_lower + self.tolerance and self._choices(box.alive).any():
            self._count += 1
            heapq.heappush(self._open, (-box.log_upper, self._count, box))
            self._held += box.n_bytes
        else:
            self._closed = max(self._closed, box.log_upper)
            if not self._keeps_all:
                box.point = None

    def _note(self) -> None:
        """The bound on the whole, now that boxes have changed."""
        largest = -self._open[0][0] if self._open and not self.done else -math.inf
        self.log_upper = min(self.log_upper, max(largest, self._closed))

    def _choices(self, alive: BoolArray) -> BoolArray:
        """Which variables can be split by."""
        return np.asarray((self.problem.tau == 0.0) & (np.add.reduceat(alive.astype(np.int64), self._starts[:-1]) > 1))
