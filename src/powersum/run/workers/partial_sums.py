"""Partial sums where summing is too wide: of everything, or of what the best assignment leaves."""

from __future__ import annotations

import math

import numpy as np

from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.core.arrays import IntArray
from powersum.core.clock import working_time
from powersum.core.progress import Progress
from powersum.proof.format import Proof
from powersum.run.proofs import by_sums, by_sums_given
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.task import WorkerTask
from powersum.run.workers.tightening import Tightening
from powersum.sums.partial_sum import PartialSum, Recorded
from powersum.sums.passes import SumPasses

RECORD, RECORD_RATE = 2e7, 4e6
"""States of contexts that a certificate may list of one pass, in all and for each second of the time limit, for packing
them takes time; of larger passes it proves less."""


class PartialSums:
    """Passes over ever more terms of a sum, by the best tree there is.

    Parameters
    ----------
    task
        What to work on.
    tightening
        Has the tree.
    local
        Says whether a cutset is held, which takes memory.

    Attributes
    ----------
    possible
        A state of every variable that zeros allow; None where partial sums are not needed.
    """

    def __init__(self, task: WorkerTask, tightening: Tightening, local: LocalSearchWorker) -> None:
        self._task, self._tightening, self._local = task, tightening, local
        self.possible: IntArray | None = None
        self._passes: SumPasses | None = None
        self._given: IntArray | None = None
        self._recorded: Recorded | None = None
        self._ends = math.inf
        self._tree: CoveringTree | None = None
        self._share, self._seconds = task.schedule.first_share, math.inf

    @property
    def useful_seconds(self) -> float | None:
        """What the largest passes that memory allows would take: they gain more by time than a tree does."""
        return None if self.possible is None else self._seconds

    def begin(self, ends: float) -> bool:
        """Begin passes that end at a moment of the clock."""
        task = self._task
        tree = self._tightening.tree
        if self.possible is None or tree is None:
            return False
        is_max = task.is_max
        self._given = None
        left = ends - task.clock.spent
        if is_max.any():
            incumbent = task.board.incumbent
            if incumbent is None or (incumbent.states[is_max] < 0).any():
                return False
            self._given = np.where(is_max, incumbent.states, -1)
            # Where there is an assignment to be found, local search has the other half of the time.
            left *= 0.5
        self._ends = task.clock.spent + left
        self._passes = SumPasses(
            task.problem,
            tree,
            memory=task.shares.sums(held=self._local.holds),
            first_share=self._share,
            given=self._given,
            anchor=self.possible if self._given is None else None,
            record=min(RECORD, RECORD_RATE * task.clock.limit) if task.board.ground is not None else 0.0,
            by_state=task.board.wants_distributions,
        )
        self._recorded, self._tree = None, tree
        return True

    def run(self, deadline: float) -> Progress:
        """Go on with the present pass, or with a larger one, until the deadline."""
        task, passes = self._task, self._passes
        assert passes is not None
        clock = task.clock
        deadline = min(deadline, clock.deadline_at(self._ends))
        progress = passes.run(deadline, working_time() + self._ends - clock.spent)
        if progress is not Progress.MORE:
            return progress
        error = 2.0 * task.log_error
        if self._given is not None:
            task.board.offer_lower(task.problem, passes.sum.log_lower, error, self._given)
            self._prove(passes.sum.recorded, error)
            return Progress.MORE
        nothing = np.full(len(task.is_max), -1, dtype=np.int64)
        task.board.offer_lower(task.problem, passes.sum.log_lower, error, nothing)
        task.board.offer_upper(task.problem, passes.sum.log_upper, error)
        self._tell(passes.sum)
        self._prove(passes.sum.recorded, error)
        if passes.sum.exact:
            task.board.prove("Every term that is not zero was summed.")
            return Progress.DONE
        return Progress.MORE

    def _tell(self, found: PartialSum) -> None:
        """Bounds on distributions, of a pass that has ended since the last time."""
        sums, found.state_sums = found.state_sums, []
        known = self._task.board.distributions
        if known is not None:
            known.within(self._task.problem, sums)

    def _prove(self, recorded: Recorded | None, error: float) -> None:
        """Hand over the proof of a new pass of which all was recorded, if a certificate is wanted."""
        board, problem, ground = self._task.board, self._task.problem, self._task.board.ground
        if recorded is None or recorded is self._recorded or ground is None:
            return
        self._recorded = recorded
        assert self._tree is not None
        tree = self._tree.best_tree
        if self._given is None:
            step = by_sums(ground, tree, problem, recorded)
            board.offer_proof(Proof([step], recorded.log_upper + problem.log_constant))
            # Max variables that simplification has set, or left free, are part of the assignment all the same.
            named = bool((ground.weights == 0.0).any())
            below = by_sums_given(ground, tree, problem, recorded, board.states) if named else step
            board.offer_below(problem, recorded.log_lower, error, [below])
        elif np.array_equal(problem.restore(self._given), board.states):
            below = by_sums_given(ground, tree, problem, recorded, board.states)
            board.offer_below(problem, recorded.log_lower, error, [below])

    def end(self) -> None:
        """Remember how far the passes came; the next ones begin there."""
        passes, self._passes, self._tree = self._passes, None, None
        if passes is not None:
            self._share = passes.share
            if self._given is None:
                self._seconds = passes.seconds
