"""Branch and bound over the max variables: best-first while memory lasts, depth-first below single nodes after that.

The frontier always covers every assignment not yet settled, so the largest bound on it, together with the best value
found, bounds the answer from above at any moment. Nodes are settled exactly, by elimination of what is left free, as
soon as that is narrow; how deep a node must be for this is learned on the way.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.arrays import FloatArray, IntArray
from powersum.compiled import compiled
from powersum.evaluate import Evaluator
from powersum.evaluate_regions import TOO_WIDE
from powersum.search.heuristic import Heuristic, branch

BYTES_PER_NODE = 24
EXPANSIONS = 20000
"""Nodes expanded between two looks at the clock."""

SETTLE_WORK = 2e5
"""Table entries that settling one node exactly may take: about a millisecond."""


class Frontier(NamedTuple):
    """All nodes ever made, and a heap of those that are open. ``counts`` holds their numbers: nodes, open ones."""

    bounds: FloatArray
    parents: NDArray[np.int32]
    depths: NDArray[np.int32]
    states: NDArray[np.int32]
    heap: NDArray[np.int32]
    counts: IntArray


class BestFirst:
    """Search with one heuristic.

    Parameters
    ----------
    heuristic
        Bounds of partial assignments.
    evaluator
        Settles nodes.
    log_upper
        Bound of the root, without the problem's constant.
    log_lower, assignment
        The best value known and its assignment.
    memory
        Bytes for nodes.

    Attributes
    ----------
    log_upper
        Valid upper bound; never rises.
    log_lower, assignment
        Best value found; never falls.
    done
        True once nothing above ``log_lower`` is left.
    """

    def __init__(
        self,
        heuristic: Heuristic,
        evaluator: Evaluator,
        *,
        log_upper: float,
        log_lower: float,
        assignment: IntArray,
        memory: float = 2e8,
        tolerance: float = 1e-9,
    ) -> None:
        self._heuristic = heuristic
        self._evaluator = evaluator
        self.log_upper, self.log_lower = log_upper, log_lower
        self.assignment: IntArray = assignment.copy()
        self.done = False
        self.expanded = 0
        self.settled = 0
        self._tolerance = tolerance
        capacity = max(1024, int(memory / BYTES_PER_NODE))
        self._frontier = Frontier(
            np.empty(capacity),
            np.empty(capacity, dtype=np.int32),
            np.empty(capacity, dtype=np.int32),
            np.empty(capacity, dtype=np.int32),
            np.empty(capacity, dtype=np.int32),
            np.array([1, 1]),
        )
        self._frontier.bounds[0] = log_upper
        self._frontier.parents[0] = -1
        self._frontier.depths[0] = 0
        self._frontier.states[0] = -1
        self._frontier.heap[0] = 0
        n_levels = len(heuristic.variables)
        self._path = np.zeros(n_levels, dtype=np.int64)
        self._children = np.empty(int(heuristic.cardinalities.max(initial=1)))
        self._settle_depth = n_levels
        self._successes, self._patience = 0, 1
        self._dive: _Dive | None = None
        sums = np.flatnonzero(~evaluator.is_max)
        self._sums, self._all_factors = sums, np.arange(evaluator.problem.model.n_factors)

    def offer(self, log_lower: float, assignment: IntArray) -> None:
        """A better assignment found elsewhere."""
        if log_lower > self.log_lower:
            self.log_lower, self.assignment = log_lower, assignment.copy()

    def run(self, deadline: float) -> bool:
        """Search until the deadline; True when done."""
        while not self.done and time.monotonic() < deadline:
            if self._dive is not None:
                self._go_on_diving()
            else:
                node = expand(
                    self._heuristic,
                    self._frontier,
                    self.log_lower + self._tolerance,
                    self._settle_depth,
                    EXPANSIONS,
                    self._path,
                    self._children,
                )
                self.expanded += EXPANSIONS if node == GO_ON else 0
                if node >= 0:
                    self._settle(int(self._frontier.depths[node]), float(self._frontier.bounds[node]), node)
                elif node == NO_ROOM:
                    self._begin_dive()
            self._update()
        return self.done

    def _update(self) -> None:
        """The upper bound from what is open."""
        n_open = int(self._frontier.counts[1])
        top = float(self._frontier.bounds[self._frontier.heap[0]]) if n_open else -np.inf
        if self._dive is not None:
            top = max(top, self._dive.bound)
        self.log_upper = min(self.log_upper, max(top, self.log_lower))
        self.done = top <= self.log_lower + self._tolerance
        if self.done:
            self.log_upper = min(self.log_upper, self.log_lower + self._tolerance)

    def _settle(self, depth: int, bound: float, node: int) -> None:
        """Try to settle the node whose states are on the path; expand it where it is too wide."""
        if self._exact(depth):
            return
        self._too_wide(depth)
        make_children(
            self._heuristic, self._frontier, node, self.log_lower + self._tolerance, self._path, self._children
        )

    def _exact(self, depth: int) -> bool:
        """Maximise over all that the path leaves free; False where that is too wide."""
        heuristic, evaluator = self._heuristic, self._evaluator
        assignment = np.full(len(evaluator.is_max), -1, dtype=np.int64)
        assignment[heuristic.variables[:depth]] = self._path[:depth]
        free = np.concatenate([heuristic.variables[depth:], self._sums])
        at_leaf = depth == len(self._path)
        value = evaluator.maximise(assignment, free, self._all_factors, np.inf if at_leaf else SETTLE_WORK)
        if value == TOO_WIDE:
            if at_leaf:
                raise MemoryError("an assignment is too wide to evaluate in the memory given")
            return False
        self.settled += 1
        self._successes += 1
        if self._successes >= self._patience:
            # What was narrow enough here may be narrow enough one variable earlier.
            self._successes = 0
            self._settle_depth = max(0, self._settle_depth - 1)
        if value > self.log_lower:
            self.log_lower, self.assignment = value, assignment
        return True

    def _too_wide(self, depth: int) -> None:
        """Settle only deeper nodes from now on, and be slower to try again at this depth."""
        self._settle_depth = min(depth + 1, len(self._path))
        self._successes = 0
        self._patience = min(2 * self._patience, 1024)

    def _begin_dive(self) -> None:
        """Memory is full: take the best open node and search below it without storing anything."""
        node = pop(self._frontier)
        read_path(self._frontier, node, self._path)
        depth, bound = int(self._frontier.depths[node]), float(self._frontier.bounds[node])
        n_levels = len(self._path)
        widest = len(self._children)
        self._dive = _Dive(bound, depth, np.full((n_levels + 1, widest), -np.inf), np.array([depth]))
        if depth >= self._settle_depth and self._exact(depth):
            self._dive = None
        else:
            enter(self._heuristic, self._dive.open, depth, bound, self._path)

    def _go_on_diving(self) -> None:
        """Depth-first steps below the node of the dive, until a node to settle, the end, or a look at the clock."""
        dive = self._dive
        assert dive is not None
        depth = descend(
            self._heuristic,
            dive.open,
            dive.level,
            dive.depth,
            self.log_lower + self._tolerance,
            self._settle_depth,
            EXPANSIONS,
            self._path,
        )
        if depth == ENDED:
            self._dive = None
        elif depth >= 0:
            if self._exact(depth):
                dive.level[0] = depth - 1
            else:
                self._too_wide(depth)
                # The last row, which no level uses, holds the bound of the node returned.
                enter(self._heuristic, dive.open, depth, float(dive.open[-1, 0]), self._path)
                dive.level[0] = depth


class _Dive(NamedTuple):
    """A depth-first search below one node: bounds of the children not yet visited, by level; the present level."""

    bound: float
    depth: int
    open: FloatArray
    level: IntArray


GO_ON, NO_ROOM, ENDED = -1, -2, -3


@compiled
def pop(frontier: Frontier) -> int:
    """Take the open node of the largest bound."""
    heap, bounds, counts = frontier.heap, frontier.bounds, frontier.counts
    top = heap[0]
    counts[1] -= 1
    n = counts[1]
    last = heap[n]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and bounds[heap[child + 1]] > bounds[heap[child]]:
            child += 1
        if bounds[heap[child]] <= bounds[last]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return int(top)


@compiled
def read_path(frontier: Frontier, node: int, path: IntArray) -> None:
    """States set at a node, by depth."""
    while frontier.parents[node] >= 0:
        path[frontier.depths[node] - 1] = frontier.states[node]
        node = frontier.parents[node]


@compiled
def make_children(
    heuristic: Heuristic, frontier: Frontier, node: int, floor: float, path: IntArray, children: FloatArray
) -> None:
    """Open all children of a node above ``floor``; ``path`` holds its states."""
    depth = frontier.depths[node]
    branch(heuristic, depth, frontier.bounds[node], path, children)
    bounds, heap, counts = frontier.bounds, frontier.heap, frontier.counts
    for s in range(heuristic.cardinalities[depth]):
        bound = min(children[s], bounds[node])
        if bound <= floor:
            continue
        new = counts[0]
        counts[0] += 1
        bounds[new] = bound
        frontier.parents[new] = node
        frontier.depths[new] = depth + 1
        frontier.states[new] = s
        at = counts[1]
        counts[1] += 1
        while at > 0:
            above = (at - 1) // 2
            if bounds[heap[above]] >= bound:
                break
            heap[at] = heap[above]
            at = above
        heap[at] = new


@compiled
def expand(
    heuristic: Heuristic,
    frontier: Frontier,
    floor: float,
    settle_depth: int,
    expansions: int,
    path: IntArray,
    children: FloatArray,
) -> int:
    """Expand the best open nodes; returns a node to settle, or why it stopped."""
    widest = len(children)
    for _ in range(expansions):
        if frontier.counts[1] == 0 or frontier.bounds[frontier.heap[0]] <= floor:
            return GO_ON
        if frontier.counts[0] + widest > len(frontier.bounds):
            return NO_ROOM
        node = pop(frontier)
        read_path(frontier, node, path)
        if frontier.depths[node] >= settle_depth:
            return int(node)
        make_children(heuristic, frontier, node, floor, path, children)
    return GO_ON


@compiled
def enter(heuristic: Heuristic, waiting: FloatArray, depth: int, bound: float, path: IntArray) -> None:
    """Put the children of the node on the path at this level of a dive."""
    waiting[depth, :] = -np.inf
    branch(heuristic, depth, bound, path, waiting[depth])


@compiled
def descend(
    heuristic: Heuristic,
    waiting: FloatArray,
    level: IntArray,
    first: int,
    floor: float,
    settle_depth: int,
    expansions: int,
    path: IntArray,
) -> int:
    """Depth-first steps; returns the depth of a node to settle (its states on the path), or why it stopped."""
    for _ in range(expansions):
        depth = level[0]
        if depth < first:
            return ENDED
        best = 0
        for s in range(1, heuristic.cardinalities[depth]):
            if waiting[depth, s] > waiting[depth, best]:
                best = s
        bound = waiting[depth, best]
        if bound <= floor:
            level[0] = depth - 1
            continue
        waiting[depth, best] = -np.inf
        path[depth] = best
        if depth + 1 >= settle_depth:
            waiting[-1, 0] = bound
            return int(depth + 1)
        level[0] = depth + 1
        enter(heuristic, waiting, depth + 1, bound, path)
    return GO_ON
