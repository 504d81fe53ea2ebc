"""Splitting by the tree of the present stage: boxes of max variables, each with a tree tightened for it."""

from __future__ import annotations

import math
from functools import partial
from time import sleep

from powersum.assign.evaluator import Evaluator
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.growth import many_are_maximised
from powersum.core.progress import Progress
from powersum.divide.split_tree import limit_growth
from powersum.divide.splitting import Splitting
from powersum.divide.tree_boxes import LEAST_BOXES, SEARCH_SECONDS, SEARCHING, box_seconds
from powersum.divide.trial import Trial
from powersum.proof.format import Prover
from powersum.run.proofs import by_splitting
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.task import WorkerTask
from powersum.run.workers.tightening import Tightening

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

    def __init__(
        self, task: WorkerTask, evaluator: Evaluator, tightening: Tightening, local: LocalSearchWorker
    ) -> None:
        self._task, self._evaluator, self._tightening, self._local = task, evaluator, tightening, local
        self._trial: Trial | None = None
        self._provers: dict[Splitting, Prover] = {}
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
        enough = many_are_maximised(task.problem.tau) and not self._local.holds and not self._local.wide
        return self.possible() and enough and not board.is_hopeless(task.schedule.hopeless_gap)

    def limit(self, tree: CoveringTree) -> None:
        """Let a tree grow as far as it pays, so that enough boxes of it fit the time left."""
        left = SPLITTING * self._task.clock.left
        if left < math.inf and self.likely():
            limit_growth(tree, left, left, processes=self._processes)

    def worth_while(self, ends: float) -> bool:
        """Whether there is a tree to split, and time for enough boxes of it until a moment of the clock."""
        task, covering = self._task, self._tightening.tree
        if covering is None or task.board.incumbent is None or self._local.holds or not self.possible():
            return False
        tree = covering.best_tree
        return not tree.exact and LEAST_BOXES * box_seconds(tree, tree.layout.n_entries) <= ends - task.clock.spent

    def begin(self, ends: float) -> None:
        """Begin with the best tree, to end at a moment of the clock, where that is worth while."""
        task, covering = self._task, self._tightening.tree
        assert covering is not None
        self._ends, seconds = ends, ends - task.clock.spent
        self._searches_from = ends - SEARCHING * seconds
        self._trial = Trial.of(
            covering, self._splitting, memory=task.shares.search, seconds=seconds, processes=self._processes
        )
        self._lend()

    def _splitting(self, tree: FixedTree, memory: float) -> Splitting:
        """The splitting of a tree, with so many bytes for its boxes."""
        task, board = self._task, self._task.board
        assert board.incumbent is not None
        splitting = Splitting(
            task.problem,
            tree,
            self._evaluator,
            log_lower=board.best_known(task.problem),
            assignment=board.incumbent.states,
            log_error=task.log_error,
            memory=memory,
            keeps_all=board.ground is not None,
            threads=task.threads - task.shares.beside,
            seed=task.seed,
        )
        self._provers[splitting] = partial(by_splitting, splitting=splitting)
        return splitting

    @property
    def _processes(self) -> int:
        """How many split boxes."""
        return 1 if self._task.lender is None else self._task.lender.processes

    def _lend(self) -> None:
        """Let others split boxes of the tree whose turn it is; once that is decided, let go of all other trees."""
        task, trial = self._task, self._trial
        assert trial is not None
        if trial.decided:
            proving = task.board.prover
            kept = {one: prover for one, prover in self._provers.items() if one is trial.at or prover is proving}
            self._provers = kept
        if task.lender is not None:
            task.lender.begin(trial.at, task.clock.deadline_at(self._ends))

    def run(self, deadline: float) -> Progress:
        """Split until the deadline, with the best assignment that anybody has found."""
        task, trial = self._task, self._trial
        assert trial is not None
        board, splitting, begun = task.board, trial.at, task.clock.spent
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
        board.offer_upper(task.problem, splitting.log_upper, 0.0, prover=self._provers[splitting])
        if splitting.done and splitting.log_upper <= splitting.log_lower + splitting.tolerance:
            board.prove("Splitting: nothing better is left in any box.")
        elif trial.spend(task.clock.spent - begun, stuck=progress is Progress.DONE and not splitting.done):
            self._lend()
            return Progress.MORE
        return progress

    def end(self) -> None:
        """Let go of all boxes; their proof comes before."""
        board, lender = self._task.board, self._task.lender
        if lender is not None:
            lender.end()
        if any(board.prover is prover for prover in self._provers.values()):
            board.proof()
        self._trial, self._provers = None, {}
