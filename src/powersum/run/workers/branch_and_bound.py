"""Branch and bound over the max variables, by the tree of the present stage."""

from __future__ import annotations

from functools import partial

from powersum.assign.evaluator import Evaluator
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.losses import losses_of, losses_seconds
from powersum.core import work_time as time
from powersum.core.progress import Progress
from powersum.proof.format import Ground, Proof, Prover
from powersum.run.proofs import by_search
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.task import WorkerTask
from powersum.run.workers.tightening import Tightening
from powersum.search import AndOr
from powersum.search.recall import Recall

PROVING, OPTIMUM_PROVING = 0.08, 0.2
"""Share of the time so far that proofs of searches may take together, and that of an optimum; else trees have to do."""

PROVING_MEMORY = 0.4
"""Share of the memory of a search that is kept for its proof."""

RECALLING = 0.5
"""Share of the time for looking at what an earlier run has found, until all is looked at."""

LEAST_PROVING, LEAST_OPTIMUM = 0.1, 0.5
"""Seconds for them in any case."""

OUTLOOK_BYTES = 2.0**26
"""What a short search remembers that only looks how far it comes."""


class BranchAndBound:
    """A search that begins anew with every tree.

    Parameters
    ----------
    task
        What to work on.
    evaluator
        Evaluates leaves.
    tightening
        Has the tree.
    local
        Says whether a cutset is held: leaves cannot be evaluated then.
    """

    def __init__(
        self, task: WorkerTask, evaluator: Evaluator, tightening: Tightening, local: LocalSearchWorker
    ) -> None:
        self._task, self._evaluator, self._tightening, self._local = task, evaluator, tightening, local
        self._search: AndOr | None = None
        self._recall: Recall | None = None
        self._prover: Prover | None = None
        self._proving = 0.0

    def begin(self, ends: float) -> bool:
        """Begin with the tree of now, where there is something to maximise and leaves can be evaluated."""
        del ends
        task, tree = self._task, self._tightening.tree
        if tree is None:
            return False
        self._search = self._along(tree.best_tree, task.shares.search - self._memory_for_proofs)
        if self._search is None:
            return False
        listed = None if task.resumed is None else task.resumed.listed()
        self._recall = None if listed is None else Recall(self._search, task.problem, listed)
        self._prover = partial(self._prove, self._search)
        return True

    def _along(self, tree: FixedTree, memory: float) -> AndOr | None:
        """A search along a tree, where there is something to maximise, leaves can be evaluated, and time is enough."""
        task, incumbent = self._task, self._task.board.incumbent
        if self._local.holds or incumbent is None or not self._evaluator.is_max.any():
            return None
        if task.problem.model.n_variables > task.schedule.most_variables:
            return None
        if losses_seconds(tree, task.problem) > task.clock.left:
            return None
        # What tightening needed beside the tables makes room for the copy of them that the search reads.
        tree.rest()
        losses, log_upper = losses_of(tree, task.problem)
        return AndOr(
            losses,
            tree,
            self._evaluator,
            log_upper=log_upper,
            log_lower=task.board.best_known(task.problem),
            log_error=task.log_error,
            assignment=incumbent.states,
            memory=memory,
        )

    def outlook(self, tree: FixedTree, seconds: float) -> float:
        """What a search of so many seconds takes off the bound of a tree: some orders suit it better than others."""
        search = self._along(tree, min(OUTLOOK_BYTES, self._task.shares.search))
        if search is None:
            return 0.0
        search.run(time.monotonic() + seconds)
        return search.log_root - search.log_upper

    def run(self, deadline: float) -> Progress:
        """Search until the deadline, with the best assignment that anybody has found."""
        task, search = self._task, self._search
        assert search is not None
        if task.board.incumbent is not None:
            search.offer(task.board.incumbent.log_value, task.board.incumbent.states)
        if self._recall is not None and self._recall.run(time.monotonic() + RECALLING * (deadline - time.monotonic())):
            self._recall = None
        progress = search.run(deadline)
        # A value that is known elsewhere is not that of the assignment at hand.
        if search.log_lower > task.board.log_floor - task.problem.log_constant:
            task.board.offer_lower(task.problem, search.log_lower, 2.0 * task.log_error, search.assignment)
        task.board.offer_upper(task.problem, search.log_upper, search.log_error, prover=self._prover)
        if progress is Progress.DONE and search.log_upper <= search.log_lower + search.tolerance:
            task.board.prove("Branch and bound: nothing better is left.")
        return progress

    def end(self) -> None:
        """Let go of the copy of the tree's tables, which is of no use once the tree changes; its proof comes before."""
        board = self._task.board
        if self._prover is not None and board.prover is self._prover:
            board.proof()
        self._prover = None
        self._search = self._recall = None

    def _prove(self, search: AndOr, ground: Ground) -> Proof:
        task, begun = self._task, time.monotonic()
        share, least = (OPTIMUM_PROVING, LEAST_OPTIMUM) if task.board.proven else (PROVING, LEAST_PROVING)
        seconds = least + share * task.clock.spent - self._proving
        proof = by_search(ground, search, task.problem, seconds, self._memory_for_proofs)
        self._proving += time.monotonic() - begun
        return proof

    @property
    def _memory_for_proofs(self) -> float:
        """Bytes kept for the proof, where one is wanted."""
        return PROVING_MEMORY * self._task.shares.search if self._task.board.ground is not None else 0.0
