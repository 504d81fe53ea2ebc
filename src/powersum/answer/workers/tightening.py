"""Tightening: a covering tree in each stage, each with more time and from another seed than the one before."""

from __future__ import annotations

import math

from powersum.answer.proofs import by_tree
from powersum.answer.resume import Resumed
from powersum.answer.workers.local_search import LocalSearch
from powersum.answer.workers.task import Task
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.core import work_time as time
from powersum.core.progress import Progress
from powersum.prepare.proof import Ground, Proof


class Tightening:
    """The trees of all stages: the best so far, and the one at work.

    Parameters
    ----------
    task
        What to work on.
    local
        Shown the assignments that trees like.
    """

    def __init__(self, task: Task, local: LocalSearch) -> None:
        self._task, self._local = task, local
        self._best: CoveringTree | None = None
        self._present: CoveringTree | None = None
        self._resumed: CoveringTree | None = None
        self._ends = math.inf

    @property
    def tree(self) -> CoveringTree:
        """The tree at work during a stage, the best of all after it."""
        tree = self._present or self._best
        assert tree is not None
        return tree

    @property
    def gap(self) -> float:
        """How far the tree at work is above the best value known."""
        return self.tree.log_upper - self._task.board.best_known(self._task.problem)

    def begin(self, stage: int, ends: float) -> None:
        """Another tree, to be tightened until a moment of the clock."""
        task = self._task
        self._ends = ends
        if self._resumed is None and stage == 0 and task.resumed is not None:
            self._resumed = self._of_checkpoint(task.resumed)
        if self._resumed is not None:
            # It goes on for as long as there is something to gain.
            self._present = self._resumed
            return
        self._present = CoveringTree(
            task.problem,
            task.order,
            threads=task.threads - task.shares.beside,
            seed=task.seed + stage,
            ibound=task.schedule.ibound,
            memory=int(task.shares.tree),
        )

    def _of_checkpoint(self, resumed: Resumed) -> CoveringTree | None:
        """The tree that an earlier run has left, if it fits."""
        task = self._task
        threads, memory = task.threads - task.shares.beside, int(task.shares.tree)
        start = resumed.tree(task.problem, threads=threads, memory=memory)
        if start is None:
            return None
        return CoveringTree.going_on(
            start, task.problem, threads=threads, seed=task.seed, ibound=task.schedule.ibound, memory=memory
        )

    def run(self, deadline: float) -> Progress:
        """Tighten until the deadline; how large trees grow is planned for the end of the stage."""
        tree, clock = self.tree, self._task.clock
        more = self._task.schedule.tighten
        while more and time.monotonic() < deadline:
            more = tree.step(clock.deadline_at(self._ends))
        self._report(tree)
        # While it is annealed the tree shows one good assignment after another, at every temperature others.
        self._local.look_at(tree.glance())
        if more:
            return Progress.MORE
        if clock.spent < self._ends:
            self._resumed = None
        return Progress.OUT_OF_TIME if clock.spent >= self._ends else Progress.DONE

    def end(self) -> None:
        """Keep the better of the tree at work and the best before, and begin local search from what it likes."""
        tree = self.tree
        self._report(tree)
        first = self._best is None
        if self._best is None or tree.log_upper < self._best.log_upper:
            self._best = tree
            if not first:
                self._local.suggest(tree.decode())
        self._present = None

    def _report(self, tree: CoveringTree) -> None:
        """The tree's bound counts its own rounding, and can be computed again at its point."""
        problem = self._task.problem

        def prover(ground: Ground) -> Proof:
            return by_tree(ground, tree.best_tree, problem)

        def draft(ground: Ground) -> Proof:
            return by_tree(ground, tree.best_tree, problem, evaluate=False)

        self._task.board.offer_upper(problem, tree.log_upper, 0.0, tree.bound, prover, draft)
