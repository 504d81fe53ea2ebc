"""Branch and bound over the max variables in the parts that the problem falls into: AND/OR search.

The root's cost, what every assignment takes off the bound of the tree at least, only rises: the bound less the cost is
an upper bound at any moment. Nodes are settled exactly, by elimination of what is left below them, where that is
narrow; which nodes are is judged from the order first and learned on the way, for zeros make many of them narrower.
"""

from __future__ import annotations

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.assign.regions import TOO_WIDE
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.look_up import Boundary
from powersum.bounds.tree.losses import Losses
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.core.speed import SEARCH_STEP
from powersum.search.pseudo_tree import Shape, Subtree
from powersum.search.values import FIRST_BYTES, new_values, roomy
from powersum.search.walk import ENDED, PAUSED, best_state, explore, new_walk

STEPS = 20000
"""Steps between two looks at the clock."""

SETTLE_WORK = 1e3
"""Table entries that settling one node exactly may take: more of them take longer than the steps they save."""

RISE = 0.1
"""By how much the root's cost shall rise in one round, as a share of the gap."""

SLACK, QUICK_SLACK = 0.015, 0.1
"""How much worse (natural logs) a choice may become than the next best before it is changed: little where settling
takes most of the time, for then nodes must be chosen well; more where steps do, for each change goes a way again."""

DEAR = 500
"""Steps that take about as long as settling a node (`walk` counts less, for what is settled is exact)."""

READING = 0.5
"""Seconds beyond the deadline for reading off the assignment that looks best, a step for each variable."""


class AndOr:
    """Search with one heuristic.

    Parameters
    ----------
    losses
        Costs of states.
    tree
        The tree that they were read from. It must stay at its best point: bounds of parts are read off its messages.
    evaluator
        Settles nodes.
    log_upper
        Bound of the root, without the problem's constant.
    log_lower, assignment
        The best value known and its assignment; the value must be finite.
    log_error
        Rounding of an exact evaluation.
    memory
        Bytes for what is remembered of nodes.

    Attributes
    ----------
    log_upper
        Upper bound, valid up to ``log_error``; never rises.
    log_error
        How far rounding can have moved it: costs are differences of the tree's messages and tables, added up over
        mini-buckets that each come once on a path; settled parts have the rounding of an evaluation.
    log_lower, assignment
        Best value found; never falls.
    done
        True once nothing is left to search and the best assignment is read off: both bounds then meet, unless a
        component was too wide to evaluate.
    settled
        Nodes settled by exact elimination.
    losses, bound_tree, shape, walk, values, log_root
        What the search reads and what it knows: a proof of its bound is made of them.
    """

    def __init__(
        self,
        losses: Losses,
        tree: FixedTree,
        evaluator: Evaluator,
        *,
        log_upper: float,
        log_lower: float,
        assignment: IntArray,
        log_error: float = 0.0,
        memory: float = 2e8,
        tolerance: float = 1e-9,
    ) -> None:
        self.losses, self.bound_tree, self._evaluator = losses, tree, evaluator
        self.log_root = log_upper
        self.log_upper, self.log_lower = log_upper, log_lower
        self.assignment: IntArray = assignment.copy()
        self.done = False
        self._closed = False
        """True once the root's cost is exact, or nothing better than what is known is left."""
        self._unread: list[int] = []
        """Nodes below which an exact reading that ran out of time goes on."""
        self.settled = 0
        self.tolerance = tolerance
        self.log_error = 2.0 * (tree.log_error + log_error)
        self.shape = Shape(evaluator, tree.order)
        self._tree, self._root = self.shape.tree, self.shape.root
        self.memory = memory
        self.values = new_values(min(memory, FIRST_BYTES))
        self.walk = new_walk(self._tree)
        n_max = self.shape.n_max
        self._cards_in_order = evaluator.problem.model.cardinalities[tree.order]
        self._parts: dict[int, tuple[Subtree, Boundary]] = {}
        self.walk.settles[n_max:-1] = True
        self.walk.settles[:n_max] = self.shape.log_work[:n_max] <= np.log(SETTLE_WORK)
        self._successes = np.zeros(self._root + 1, dtype=np.int64)
        self._patience = np.ones(self._root + 1, dtype=np.int64)

    def offer(self, log_lower: float, assignment: IntArray) -> None:
        """A better assignment found elsewhere."""
        if log_lower > self.log_lower:
            self.log_lower, self.assignment = log_lower, assignment.copy()

    @property
    def expanded(self) -> int:
        """Steps taken in all."""
        return int(self.walk.counts[1])

    def run(self, deadline: float, *, reads: bool = True) -> Progress:
        """Search until the deadline; unless it ``reads``, without looking for the best assignment on the way."""
        at = self._tree.value_starts[self._root]
        while not self._closed and time.monotonic() < deadline:
            gap = self.log_root - self.log_lower
            self.work_below(self._root, min(float(self.walk.known[at]) + RISE * gap, gap), deadline)
            cost = float(self.walk.known[at])
            self.log_upper = min(self.log_upper, max(self.log_root - cost, self.log_lower))
            self._closed = bool(self.walk.exact[at]) or self.log_root - cost <= self.log_lower + self.tolerance
        if reads or self._closed:
            self.done = self._offer_best(deadline) and self._closed
        return Progress.DONE if self.done else Progress.MORE

    def work_below(self, node: int, threshold: float, deadline: float) -> bool:
        """Work below a node, whose path is set, until its cost is exact or above the threshold; False if time is up."""
        walk, tree = self.walk, self._tree
        start, settled, cost = node, -1, 0.0
        while True:
            late = time.monotonic() >= deadline
            before = int(walk.counts[1])
            slack = QUICK_SLACK if before > DEAR * self.settled else SLACK
            met = explore(self.losses, tree, self.values, walk, start, threshold, settled, cost, STEPS, slack, late)
            time.spend(SEARCH_STEP * (int(walk.counts[1]) - before))
            if met == ENDED:
                return not late
            self.make_room()
            start = settled = -1
            if met != PAUSED:
                settled, cost = self._settle(met)

    def make_room(self) -> None:
        """Let the table of what is known grow where it is crowded."""
        self.values = roomy(self.values, self.memory)

    def settled_cost(self, component: int, context: IntArray) -> float:
        """What a component costs, by elimination, in a context: states of the nodes of its context."""
        self.walk.path[self.shape.contexts[component]] = context
        return self._settle(component)[1]

    def _settle(self, node: int) -> tuple[int, float]:
        """The node and what it costs, by elimination of all below it; -1 where that is too wide."""
        assignment = self._present()
        value = self._maximise(node, assignment)
        if value < TOO_WIDE:
            self.settled += 1
            self._encourage(int(self._tree.parents[node]), node)
            bound = self._part(node)[1].log_bound(assignment[self.shape.order])
            return node, max(bound - value, 0.0)
        if node >= self.shape.n_max:
            # A component too wide to evaluate: its bound stands for its value. Search still bounds, but cannot prove.
            return node, 0.0
        # From now on only what is below it, and be slower to try again.
        self.walk.settles[node] = False
        self._patience[node] = min(2 * self._patience[node], 1024)
        return -1, 0.0

    def walk_down(self) -> None:
        """From now on settle components only: what is below a max variable is searched."""
        self.walk.settles[: self.shape.n_max] = False
        self._patience[:] = np.iinfo(np.int64).max

    def _encourage(self, parent: int, node: int) -> None:
        """What was narrow enough here may be narrow enough one variable earlier."""
        if node >= self.shape.n_max or parent == self._root:
            return
        self._successes[parent] += 1
        if self._successes[parent] >= self._patience[parent]:
            self._successes[parent] = 0
            self.walk.settles[parent] = True

    def _maximise(self, node: int, assignment: IntArray) -> float:
        """The exact value of all below a node; ``assignment`` receives the best states there."""
        if node >= self.shape.n_max:
            return self._evaluator.component_value(node - self.shape.n_max, assignment)
        part = self._part(node)[0]
        return self._evaluator.maximise(assignment, part.variables, part.factors, SETTLE_WORK)

    def _part(self, node: int) -> tuple[Subtree, Boundary]:
        """What is below a node, and its bound."""
        if node not in self._parts:
            part = self.shape.subtree(node)
            self._parts[node] = part, Boundary(self.bound_tree, part.inside, self._cards_in_order)
        return self._parts[node]

    def _present(self) -> IntArray:
        """The path as an assignment of the whole problem."""
        assignment = np.full(len(self._evaluator.is_max), -1, dtype=np.int64)
        assignment[self.losses.variables] = self.walk.path[: self.shape.n_max]
        return assignment

    def _offer_best(self, deadline: float) -> bool:
        """Read off the assignment of least cost and take it if it is better; False if time was up before.

        While the search goes on, what is known is enough; at its end it must be the optimum, and that may take long.
        """
        solve = self._closed and self.log_upper > self.log_lower + self.tolerance
        assignment = self._read_off(deadline if solve else deadline + READING, solve=solve)
        if assignment is None:
            # Bounds that meet need no assignment beside the one they have.
            return not solve
        value = self._evaluator.value(assignment)
        if value < TOO_WIDE:
            self.offer(value, assignment)
        return True

    def _read_off(self, deadline: float, *, solve: bool) -> IntArray | None:
        """States of all max variables, each the best given those above; exact ones if ``solve``. None if time is up.

        An exact reading goes on where the one before was left: nothing else has moved the path since.
        """
        walk, tree, n_max = self.walk, self._tree, self.shape.n_max
        waiting = self._unread or [self._root]
        self._unread = []
        while waiting:
            if time.monotonic() >= deadline:
                self._unread = waiting if solve else []
                return None
            node = waiting.pop()
            if node >= n_max and node != self._root:
                continue
            if walk.settles[node]:
                assignment = self._present()
                if -np.inf < self._maximise(node, assignment) < TOO_WIDE:
                    walk.path[:n_max] = np.maximum(assignment[self.losses.variables], 0)
                    continue
            walk.path[node], exact = best_state(self.losses, tree, self.values, walk, node)
            # What was known had to make room; the best state is on the path when the node is left.
            if solve and not exact and not self.work_below(node, np.inf, deadline):
                self._unread = [*waiting, node]
                return None
            waiting += tree.children[tree.child_starts[node] : tree.child_starts[node + 1]].tolist()
        return self._present()
