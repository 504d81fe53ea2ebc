"""Splitting by the tree of the present stage: boxes of max variables, each with a tree tightened for it."""

from __future__ import annotations

import math
from functools import partial

from powersum.answer.proofs import by_splitting
from powersum.answer.workers.local_search import LocalSearch
from powersum.answer.workers.task import Task
from powersum.answer.workers.tightening import Tightening
from powersum.assign.evaluator import Evaluator
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core.progress import Progress
from powersum.core.speed import TREE_BOX, TREE_PASS
from powersum.prepare.proof import Prover
from powersum.search.splitting import PASSES, Splitting

LEAST_BOXES = 16
"""Boxes that must fit the time for splitting to be worth while."""

DOUBLING, FIRST_BOXES = 0.45, 8.0
"""What twice as many boxes take off the bound (natural logs, pedigrees), and about how many the first of that takes."""

TIGHTENING = 4.0
"""How many times as long as a box a tree takes that has grown, with local search in between."""

SEARCHING, LEAST_SEARCH = 0.4, 0.1
"""Share of the time in which boxes are searched at the end, and seconds for each at least."""

SPLITTING = 0.4
"""Share of the time that goes into trees of boxes, by and large: the rest is searches in them and local search."""


def _gain(boxes: float) -> float:
    """What so many boxes take off the bound, by and large."""
    return DOUBLING * math.log2(1.0 + boxes / FIRST_BOXES)


class Splits:
    """A splitting that begins anew with every tree.

    Parameters
    ----------
    task
        What to work on.
    evaluator
        Evaluates assignments.
    tightening
        Has the tree.
    local
        Says whether a cutset is held: assignments cannot be evaluated then.
    """

    def __init__(self, task: Task, evaluator: Evaluator, tightening: Tightening, local: LocalSearch) -> None:
        self._task, self._evaluator, self._tightening, self._local = task, evaluator, tightening, local
        self._splitting: Splitting | None = None
        self._prover: Prover | None = None
        self._ends = self._searches_from = self._box_seconds = 0.0

    def possible(self) -> bool:
        """Whether there is something to split."""
        task = self._task
        few = task.problem.model.n_variables <= task.schedule.most_variables
        return few and bool(task.is_max.any()) and task.schedule.tighten

    def price_of_growth(self, tree: FixedTree, factor: float) -> float:
        """What is lost, in natural logs, if there are fewer boxes because the tree grows so many times before."""
        left = self._task.clock.left
        if not self.possible() or left == math.inf:
            return 0.0
        each, larger = self._seconds(tree), self._seconds(tree, factor)
        if SPLITTING * left < LEAST_BOXES * each:
            return 0.0
        growing = TIGHTENING * larger
        return _gain(SPLITTING * left / each) - _gain(SPLITTING * max(left - growing, 0.0) / larger)

    def begin(self, ends: float) -> bool:
        """Begin with the best tree, to end at a moment of the clock; False where that would not be worth while."""
        task, board, covering = self._task, self._task.board, self._tightening.tree
        if covering is None or board.incumbent is None or self._local.holds or not self.possible():
            return False
        tree = covering.best_tree
        if tree.exact or self._seconds(tree) * LEAST_BOXES > ends - task.clock.spent:
            return False
        self._ends, self._box_seconds = ends, self._seconds(tree)
        self._searches_from = ends - SEARCHING * (ends - task.clock.spent)
        self._splitting = Splitting(
            task.problem,
            tree,
            self._evaluator,
            log_lower=board.best_known(task.problem),
            assignment=board.incumbent.states,
            log_error=task.log_error,
            memory=task.shares.search,
            keeps_all=board.ground is not None,
            threads=task.threads - task.shares.beside,
            seed=task.seed,
        )
        self._prover = partial(by_splitting, splitting=self._splitting)
        return True

    def _seconds(self, tree: FixedTree, factor: float = 1.0) -> float:
        """What a box takes, of a tree that is so many times as large."""
        pace = tree.seconds_per_entry or TREE_PASS
        return PASSES * pace * factor * tree.layout.n_entries + TREE_BOX * tree.layout.n_nodes

    def run(self, deadline: float) -> Progress:
        """Split until the deadline, with the best assignment that anybody has found."""
        task, splitting = self._task, self._splitting
        assert splitting is not None
        board = task.board
        if board.incumbent is not None:
            splitting.offer(board.incumbent.log_value, board.incumbent.states)
        search = 0.0
        if board.ground is None and task.clock.spent >= self._searches_from:
            # Bounds of searches would have to be proven box by box: where a certificate is wanted, trees have to do.
            search = max(self._box_seconds, LEAST_SEARCH)
        progress = splitting.run(deadline, task.clock.deadline_at(self._ends), search=search)
        # A value that is known elsewhere is not that of the assignment at hand.
        if splitting.log_lower > board.log_floor - task.problem.log_constant:
            board.offer_lower(task.problem, splitting.log_lower, 2.0 * task.log_error, splitting.assignment)
        # Every box was computed from scratch at its point, rounding counted.
        board.offer_upper(task.problem, splitting.log_upper, 0.0, prover=self._prover)
        if splitting.done and splitting.log_upper <= splitting.log_lower + splitting.tolerance:
            board.prove("Splitting: nothing better is left in any box.")
        return progress

    def end(self) -> None:
        """Let go of all boxes; their proof comes before."""
        board = self._task.board
        if self._prover is not None and board.prover is self._prover:
            board.proof()
        self._prover = self._splitting = None
