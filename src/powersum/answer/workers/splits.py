"""Splitting by the tree of the present stage: boxes of max variables, each with a tree tightened for it."""

from __future__ import annotations

import math
from functools import partial
from time import sleep

from powersum.answer.proofs import by_splitting
from powersum.answer.workers.local_search import LocalSearch
from powersum.answer.workers.task import Task
from powersum.answer.workers.tightening import Tightening
from powersum.assign.evaluator import Evaluator
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.core.progress import Progress
from powersum.prepare.proof import Prover
from powersum.search.boxes import LEAST_BOXES, SEARCH_SECONDS, SEARCHING, box_seconds
from powersum.search.split_tree import limit_growth
from powersum.search.splitting import Splitting

LEAST_MAX = 0.25
"""Share of variables that must be maximised for boxes to be counted on."""

LOOK_UP = 0.01
"""Seconds to wait for others, where all boxes are in their hands."""

SPLITTING = 0.3
"""Share of the last stage that goes into trees of boxes, by and large: the rest is tightening before, searches in boxes
and local search."""


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
        self._ends = self._searches_from = 0.0

    def possible(self) -> bool:
        """Whether there is something to split."""
        task = self._task
        few = task.problem.model.n_variables <= task.schedule.most_variables
        return few and bool(task.is_max.any()) and task.schedule.tighten

    def likely(self) -> bool:
        """Whether boxes are likely to be worth more than larger trees.

        Not where few variables are maximised: then most of what makes a bound loose are sums, which boxes leave. Nor
        where the gap will not be closed: there time is for local search.
        """
        task, board = self._task, self._task.board
        enough = task.is_max.mean() >= LEAST_MAX and not self._local.holds and not self._local.wide
        return self.possible() and bool(enough) and not board.is_hopeless(task.schedule.hopeless_gap)

    def limit(self, tree: CoveringTree) -> None:
        """Let a tree grow as far as it pays, so that enough boxes of it fit the time left."""
        left = SPLITTING * self._task.clock.left
        if left < math.inf and self.likely():
            limit_growth(tree, left, left)

    def worth_while(self, ends: float) -> bool:
        """Whether there is a tree to split, and time for enough boxes of it until a moment of the clock."""
        task, covering = self._task, self._tightening.tree
        if covering is None or task.board.incumbent is None or self._local.holds or not self.possible():
            return False
        tree = covering.best_tree
        return not tree.exact and LEAST_BOXES * box_seconds(tree, tree.layout.n_entries) <= ends - task.clock.spent

    def begin(self, ends: float) -> None:
        """Begin with the best tree, to end at a moment of the clock, where that is worth while."""
        task, board, covering = self._task, self._task.board, self._tightening.tree
        assert covering is not None
        assert board.incumbent is not None
        tree = covering.best_tree
        self._ends = ends
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
        if task.lender is not None:
            task.lender.begin(self._splitting, task.clock.deadline_at(ends))

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
            search = SEARCH_SECONDS
        if task.lender is not None:
            task.lender.search_seconds = search
        if task.lender is not None and task.lender.idle:
            progress = splitting.leave_to_others()
        else:
            if splitting.waits:
                sleep(LOOK_UP)
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
        board, lender = self._task.board, self._task.lender
        if lender is not None:
            lender.end()
        if self._prover is not None and board.prover is self._prover:
            board.proof()
        self._prover = self._splitting = None
