"""Boxes of max variables, split where the bound is largest, and for each box a tree that is tightened for it alone.

Branch and bound reads all its costs off one tree, whose shifts are a compromise for all assignments at once. Setting
ten variables and tightening the same tree for that box takes off more than minutes of such a search: most of the
distance to the optimum is in sums that mini-buckets relax, and no choice of max variables mends these
(dev/solve.md).

A box has its own point on the structure that all of them share, and begins with that of the box around it
(:mod:`powersum.bounds.tree.remnant`). The largest bound of all boxes is a bound on the whole, at any moment. Each is
computed from scratch at the point of its box, in double precision, when the time of that box is over.

Boxes can be lent to whoever has time for them: what comes back takes the place of the box, and what never does leaves
its bound as it was.
"""

from __future__ import annotations

import math

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.assign.regions import TOO_WIDE
from powersum.bounds.buckets.proof import bucket_forest
from powersum.bounds.buckets.sweeps import shares_of
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.remnant import remnant_of
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.divide.box_search import BoxSearch, Searched
from powersum.divide.frontier import Frontier
from powersum.divide.gains import Gains
from powersum.divide.tree_boxes import BoxTrees, PartTree, TreeBox
from powersum.model.rounding import certain
from powersum.prepare.fewer_states import states_before, with_states
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.proof.elimination import elimination_forest
from powersum.proof.format import Forest

AIM = 1.5
"""Where no value is known, a search in a box aims at a bound lower by so much."""

SEARCHES = 0.3
"""Share of the memory for what a search in a box remembers; settling nodes takes half as much."""


CURVED = 0.5
"""Share of the memory for open boxes that may be taken before further ones do without their curvature, which takes
four times as much as their points."""


class Splitting:
    """Best-first splitting of one problem, with one tree.

    Parameters
    ----------
    problem
        The problem.
    tree
        A tree of it, not exact, that is not moved while this goes on.
    evaluator
        Evaluates boxes with one assignment; without it these have the bounds of their trees.
    log_lower, assignment
        The best value known and its assignment; minus infinity where none is.
    log_error
        Rounding of an exact evaluation.
    memory
        Bytes for open boxes, and for the search in one of them; it may be set anew.
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
    trees
        What whoever works on a box needs besides the box.
    done
        True once no box is open: ``log_upper`` is then no higher than ``log_lower`` but for rounding, unless a sum was
        not evaluated.
    """

    def __init__(
        self,
        problem: Problem,
        tree: FixedTree,
        evaluator: Evaluator | None,
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
        self.log_error, self.tolerance = log_error, tolerance
        self._evaluator, self.memory, self._keeps_all = evaluator, memory, keeps_all
        self.trees = BoxTrees(problem, remnant_of(tree), threads=threads)
        everything = np.ones(len(problem.kept_states), dtype=np.bool_)
        self.root = TreeBox(log_upper=tree.bound(), alive=everything, point=tree.best_point)
        self.log_upper = self.root.log_upper
        self._gains = Gains(tree.looseness(seed))
        self._frontier = Frontier[TreeBox](lambda box: box.log_upper)
        self._held = 0
        self._closed = -math.inf
        """The largest bound of boxes that are neither open nor split."""
        self._box: TreeBox | None = None
        """The box that is being split here; its parts so far, and the states that wait."""
        self._parts: list[TreeBox] = []
        self._waiting: list[int] = []
        self._at: PartTree | None = None
        """The part that is being tightened."""
        self._search: tuple[TreeBox, BoxSearch] | None = None
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
                return Progress.MORE if self.waits else Progress.DONE
            if time.monotonic() >= deadline:
                return Progress.MORE
        return Progress.DONE

    def leave_to_others(self) -> Progress:
        """A turn without any work: all boxes are lent, and once none is left this is done."""
        if not self._worth_while() and not self._frontier.lent:
            self._close()
        return Progress.DONE if self.done or (self._is_full and not self._frontier.lent) else Progress.MORE

    @property
    def waits(self) -> bool:
        """Whether all that is left to do is in the hands of others."""
        return bool(self._frontier.lent) and not self._is_busy and not self._worth_while()

    @property
    def _is_busy(self) -> bool:
        """Whether a box is worked on here."""
        return self._box is not None or self._search is not None

    @property
    def n_boxes(self) -> int:
        """How many boxes there have been to split."""
        return self._frontier.n_opened

    def lend(self, *, searches: bool, spared: bool = True) -> TreeBox | None:
        """The open box that matters most, for somebody else to split by its variable, or to search where it has none.

        None where there is none; where one is to be ``spared``, also where the last one would be missed here.
        It is brought back by :meth:`take_parts` or :meth:`take_search`, or never.
        """
        box = self._worth_while()
        if self.done or box is None or (spared and len(self._frontier) == 1 and not self._is_busy):
            return None
        searched = not searches or box.searched
        if searched and self._is_full:
            return None
        self._frontier.lend(box)
        if searched:
            self._choose(box)
        return box

    def take_parts(self, box: TreeBox, parts: list[TreeBox] | None) -> None:
        """What a box that was lent has been split into; None where there was no time for it."""
        if parts is not None:
            self._replace(box, parts)
        else:
            box.variable = -1
            self._put_back(box)

    def take_search(self, box: TreeBox, found: Searched) -> None:
        """What a search in a box has shown."""
        if found.assignment is not None:
            self.offer(found.log_lower, found.assignment)
        box.searched = True
        box.log_upper = min(box.log_upper, found.log_upper)
        self._put_back(box)

    def is_empty(self, box: TreeBox) -> bool:
        """Whether propagation has shown that nothing is in a box: some variable has no state left."""
        return self.trees.is_empty(box.alive)

    def states_of(self, box: TreeBox) -> IntArray:
        """The states of a box's variable, one for each of its parts."""
        return self.trees.states(box.alive, box.variable)

    def boxes(self) -> list[tuple[TreeBox, list[tuple[int, int]]]]:
        """All boxes, parts before what they are parts of; each with the original variables and states set in it."""
        found: list[tuple[TreeBox, list[tuple[int, int]]]] = [(self.root, [])]
        for box, rows in found:
            if box.parts:
                v, first = int(self.problem.variables[box.variable]), int(self.trees.starts[box.variable])
                kept = self.problem.kept_states[first + self.states_of(box)].tolist()
                found += [(part, [*rows, (v, state)]) for part, state in zip(box.parts, kept, strict=True)]
        return found[::-1]

    def forest(self, box: TreeBox) -> Forest:
        """The mini-buckets that have the bound of a box that was not split; of one that was evaluated, elimination."""
        layout, point = self.tree.layout, box.point
        if point is None:
            inside = with_states(self.problem, box.alive)
            return elimination_forest(inside, elimination_order(inside.model, inside.tau))
        n_shifts = len(point) - len(layout.shared_nodes)
        weights = self.problem.tau[self.tree.order][layout.bucket].copy()
        weights[layout.shared_nodes] *= shares_of(point[n_shifts:], layout.shared_starts)
        return bucket_forest(self.problem, self.tree.order, self.tree.parts, layout, point[:n_shifts], weights)

    def _worth_while(self) -> TreeBox | None:
        """The open box with the largest bound; None where no open box may hold something better than what is known."""
        box = self._frontier.top()
        return None if box is None or box.log_upper <= self.log_lower + self.tolerance else box

    @property
    def search_bytes(self) -> float:
        """Bytes for the search in a box."""
        return SEARCHES * self.memory

    @property
    def _is_full(self) -> bool:
        """Whether there is no memory for more boxes."""
        return self._held > self._room

    @property
    def _room(self) -> float:
        """Bytes for open boxes."""
        return (1.0 - 1.5 * SEARCHES) * self.memory

    def _begin(self, search: float) -> bool:
        """Begin to split or to search the box with the largest bound; False where none is left, or no memory."""
        box = self._worth_while()
        if box is None:
            if not self._frontier.lent:
                self._close()
            return False
        if search and not box.searched:
            self._frontier.lend(box)
            # A search for something better than a value shows that there is nothing better, whoever has that value.
            floor = self.log_lower if self.log_lower > -math.inf else box.log_upper - AIM
            known = {"log_lower": floor, "log_error": self.log_error}
            self._search = box, self.trees.search(box, **known, seconds=search, memory=self.search_bytes)
            return True
        if self._is_full:
            return False
        self._frontier.lend(box)
        self._box = box
        self._choose(box)
        self._parts, self._waiting = [], self.states_of(box).tolist()
        return True

    def _close(self) -> None:
        """All that is left is closed by what is known."""
        self._closed = max(self._closed, self._frontier.weight)
        self.done = True
        self._note()

    def _choose(self, box: TreeBox) -> None:
        """What to split a box by."""
        box.variable = self._gains.best(self.trees.choices(box.alive))

    def _put_back(self, box: TreeBox) -> None:
        """A box that nobody works on any more, with another bound perhaps."""
        self._frontier.close(box)
        self._held -= box.n_bytes
        self._keep(box)
        self._note()

    def _go_on_searching(self, deadline: float) -> None:
        """Search in a box until the deadline; at its end put it back, with the bound that was found."""
        assert self._search is not None
        box, search = self._search
        if not search.run(deadline):
            self._search = None
            self.take_search(box, search.found())

    def _go_on(self, ends: float) -> bool:
        """A little work on the box that is being split; False where there is no time for it."""
        box = self._box
        assert box is not None
        if self._at is not None:
            if self._at.step(ends):
                return True
            if time.monotonic() >= ends:
                return False
            self._parts.append(self._at.finished())
            self._at = None
        elif self._waiting:
            self._at = self.trees.part(box, self._waiting.pop(0))
        else:
            self._box = None
            self._replace(box, self._parts)
        return True

    def _replace(self, box: TreeBox, parts: list[TreeBox]) -> None:
        """Put the parts of a box in its place."""
        box.parts = parts
        self._gains.learn(box.variable, [box.log_upper - part.log_upper for part in parts])
        self._frontier.close(box)
        self._held -= box.n_bytes
        box.forget()
        for part in parts:
            self._evaluate(part)
            self._keep(part)
        self._note()

    def _evaluate(self, box: TreeBox) -> None:
        """Where one assignment is left in a box, its value is the bound."""
        if self._evaluator is None or self.is_empty(box) or self.trees.choices(box.alive).any():
            return
        states = states_before(self.problem, box.alive, np.where(self.problem.tau == 0.0, 0, -1))
        value = self._evaluator.value(states)
        if value < TOO_WIDE:
            self.offer(value, states)
            box.log_upper = min(box.log_upper, certain(value, self.log_error))
            box.forget()

    def _keep(self, box: TreeBox) -> None:
        """Open a box that may hold something better than what is known, and can be split."""
        if box.log_upper > self.log_lower + self.tolerance and self.trees.choices(box.alive).any():
            if self._held > CURVED * self._room:
                box.curvature = None
            self._frontier.open(box)
            self._held += box.n_bytes
        else:
            self._closed = max(self._closed, box.log_upper)
            box.curvature = None
            if not self._keeps_all:
                box.point = None

    def _note(self) -> None:
        """The bound on the whole, now that boxes have changed."""
        self.log_upper = min(self.log_upper, max(self._frontier.weight, self._closed))
