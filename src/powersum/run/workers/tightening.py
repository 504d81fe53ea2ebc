"""Tightening: a covering tree in each stage, each with more time and from another seed than the one before.

Where no two trees fit the memory there is one bound in all stages: a tree, or what takes less memory and time.
"""

from __future__ import annotations

import math
from typing import Protocol

from powersum.bounds.affordable import affordable, decomposed_bytes, decomposed_first, in_time
from powersum.bounds.gdd import GDD
from powersum.bounds.protocol import Provable, Tightener
from powersum.bounds.single import SingleFactors
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.orders import Orders
from powersum.bounds.tree.race import Outlook
from powersum.bounds.tree.rebuilding import saved_of
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.errors import TooLittleMemoryError
from powersum.core.progress import Progress
from powersum.proof.format import Ground, Proof
from powersum.run.inheritance import Legacy
from powersum.run.proofs import by_forest, by_tree
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.task import WorkerTask

FIRST_STAGES = 2
"""Stages of the bound to begin with, where that is no tree."""

LIKELY_SHARE, LIKELY_SECONDS = 0.5, 0.5
"""Share of a stage that tightening itself is taken to have, local search the rest, and how many seconds that guess
counts for: later on what was seen tells."""

LONGEST_DRAW = 0.05
"""Seconds that drawing a start for local search may take."""


class Boxes(Protocol):
    """Whoever splits boxes of a tree once that has grown."""

    def likely(self) -> bool:
        """Whether that is likely to be worth more than larger trees."""
        ...

    def limit(self, tree: CoveringTree) -> None:
        """Let the tree of the last stage grow as far as it pays, again and again while it does."""
        ...


class Tightening:
    """The bounds of all stages: the best so far, and the one at work.

    Parameters
    ----------
    task
        What to work on.
    local
        Shown the assignments that trees like.

    Attributes
    ----------
    order
        Elimination order of trees to come.
    outlook
        Says what a search of so many seconds takes off the bound of a tree; trees are chosen for both.
    boxes
        Says whether boxes of the last stage's tree are split afterwards, and how large it may then be.
    """

    def __init__(self, task: WorkerTask, local: LocalSearchWorker) -> None:
        self._task, self._local = task, local
        self.order = task.order
        self.outlook: Outlook | None = None
        self.boxes: Boxes | None = None
        self._best: Tightener | None = None
        self._present: Tightener | None = None
        self._resumed: CoveringTree | None = None
        self._ends, self._last = math.inf, False
        self._begun = self._own = 0.0
        self._alone = False
        self._tree: CoveringTree | None = None
        self._orders: Orders | None = None
        """What trees of earlier stages have learned of orders."""
        self._left = math.inf
        """The bound of the tree that is left to others."""

    @property
    def tree(self) -> CoveringTree | None:
        """The tree at work during a stage, the best of all after it; None where there is another bound in its place."""
        return self._present if isinstance(self._present, CoveringTree) else self._tree

    @property
    def splits(self) -> bool:
        """Whether boxes of the last stage's tree are likely to be split afterwards."""
        return self.boxes is not None and self.boxes.likely()

    @property
    def _bound(self) -> Tightener:
        bound = self._present or self._best
        assert bound is not None
        return bound

    @property
    def gap(self) -> float:
        """How far the bound at work is above the best value known."""
        return self._bound.log_upper - self._task.board.best_known(self._task.problem)

    def decode(self) -> IntArray:
        """States of max variables that the bound likes."""
        return self._bound.decode()

    def begin(self, stage: int, ends: float, *, last: bool = False) -> None:
        """Another tree, to be tightened until a moment of the clock; what is there in its place goes on."""
        task = self._task
        self._ends, self._last = ends, last
        self._begun, self._own = task.clock.spent, 0.0
        if self._resumed is None and stage == 0 and task.resumed is not None:
            self._resumed = self._of_checkpoint(task.resumed)
        if self._resumed is not None:
            # It goes on for as long as there is something to gain.
            self._present = self._resumed
            return
        if self._alone:
            self._present = self._best
            return
        problem, order, left = task.problem, self.order, task.clock.left
        threads, seed = task.threads - task.shares.beside, task.seed + stage
        ibound = task.schedule.ibound
        first = decomposed_first(problem) and decomposed_bytes(problem) <= task.shares.alone
        if first and ibound is None and stage < FIRST_STAGES:
            self._present = self._best or GDD(problem, order, threads=threads)
            return
        if self._best is not None and self._tree is None:
            # The bound to begin with makes room for trees; what it has found is computed from scratch before.
            task.board.confirm()
            self._best = None
        if in_time(problem, left):
            try:
                tree = CoveringTree(
                    problem,
                    order,
                    threads=threads,
                    seed=seed,
                    ibound=ibound,
                    memory=int(task.shares.tree),
                    orders=self._orders,
                    rival=None if self._tree is None else self._tree.best_tree,
                    outlook=self.outlook,
                )
                self._present, self._orders = tree, tree.orders if tree.orders.screened else None
                return
            except TooLittleMemoryError:
                pass
        self._alone = True
        size = int(task.shares.alone)
        self._present = affordable(problem, order, threads=threads, seed=seed, ibound=ibound, memory=size, seconds=left)

    def _of_checkpoint(self, resumed: Legacy) -> CoveringTree | None:
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
        bound, clock = self._bound, self._task.clock
        more = self._task.schedule.tighten
        begun, own = clock.spent, self._own
        while more and time.monotonic() < deadline:
            if self._last and self.boxes is not None and isinstance(bound, CoveringTree):
                self.boxes.limit(bound)
            more = bound.step(clock.deadline_at(self._planned_end()))
            self._own = own + clock.spent - begun
        self._report(bound)
        if isinstance(bound, CoveringTree):
            # While it is annealed the tree shows one good assignment after another, at every temperature others.
            self._local.look_at(bound.glance())
            before = self._tree
            self._lead(before if before is not None and before.log_upper < bound.log_upper else bound)
        if more:
            return Progress.MORE
        if clock.spent < self._ends:
            self._resumed = None
        return Progress.OUT_OF_TIME if clock.spent >= self._ends else Progress.DONE

    def _planned_end(self) -> float:
        """When the stage would end if tightening had all of the time from now on: others take turns in between.

        A tree that plans for time which it will not have is too large and too warm when the stage ends.
        """
        now, bound = self._task.clock.spent, self._bound
        if isinstance(bound, CoveringTree) and bound.most_entries < math.inf:
            # It ends before that, once it has grown as far as it pays.
            return self._ends
        share = (self._own + LIKELY_SHARE * LIKELY_SECONDS) / (max(now - self._begun, self._own) + LIKELY_SECONDS)
        return now + share * (self._ends - now)

    def end(self) -> None:
        """Keep the better of the bound at work and the best before, and begin local search from what it likes."""
        bound = self._bound
        self._report(bound)
        first = self._best is None
        if self._best is None or bound is self._best or bound.log_upper < self._best.log_upper:
            self._best = bound
            self._tree = bound if isinstance(bound, CoveringTree) else None
            if not first or self._tree is None:
                self._local.suggest(bound.decode())
        self._lead(self._tree)
        self._present = None
        known = self._task.board.distributions
        if known is not None and isinstance(self._best, CoveringTree | SingleFactors):
            known.guess(self._task.problem, self._best.beliefs())

    def _lead(self, tree: CoveringTree | None) -> None:
        """Let local search draw its starts from a tree, unless that takes long or a bound so far off leads nowhere."""
        board = self._task.board
        hopeless = board.is_hopeless(self._task.schedule.hopeless_gap)
        if tree is None or hopeless or tree.draw_seconds > LONGEST_DRAW:
            self._local.draw_from(None)
        else:
            self._local.draw_from(tree.draw)

    def _report(self, bound: Tightener) -> None:
        """The bound counts its own rounding, and can be computed again at its point."""
        problem, board = self._task.problem, self._task.board
        if board.keeps_tree and isinstance(bound, CoveringTree) and bound.log_upper < self._left:
            self._left = bound.log_upper
            board.tree_left = lambda: saved_of(bound.best_tree, problem)

        def prover(ground: Ground) -> Proof:
            if isinstance(bound, CoveringTree):
                return by_tree(ground, bound.best_tree, problem)
            assert isinstance(bound, Provable)
            return by_forest(ground, *bound.certified(), problem)

        def draft(ground: Ground) -> Proof:
            assert isinstance(bound, CoveringTree)
            return by_tree(ground, bound.best_tree, problem, evaluate=False)

        board.offer_upper(
            problem,
            bound.log_upper,
            0.0,
            bound.bound,
            prover if isinstance(bound, Provable) else None,
            draft if isinstance(bound, CoveringTree) else None,
        )
