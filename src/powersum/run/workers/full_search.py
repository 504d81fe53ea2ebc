"""The best configuration of all variables: the answer where everything is maximised, a start where some are summed.

A sum is at least its largest term, so the value of one configuration bounds every question about the model from below.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from powersum.assign.annealer import Annealer
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.model.factors import configuration_value
from powersum.proof.format import Ground, Proof
from powersum.run.proofs import by_branching, by_cases
from powersum.run.workers.branch_and_bound import LEAST_OPTIMUM, OPTIMUM_PROVING
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.task import WorkerTask
from powersum.search.costs import Costs, CostSearch

WORST_SLACK = 1e-6
"""Where whole numbers would be coarser than this (natural logs) the model is too large: nothing is searched."""

LONGEST_SWEEP = 0.05
"""Share of the time that looking once at all tables may take: nothing looks at the clock meanwhile."""

LONGEST_RACE = 0.03
"""Seconds of sweeps at the root after which no other order is tried."""

DRAWS = 4
"""Annealed configurations to begin with, where tables are strong: dives find nothing as good there."""


class FullSearch:
    """A search by soft arc consistency.

    Parameters
    ----------
    task
        What to work on.

    Attributes
    ----------
    task
        What to work on; another one on the same problem may take its place.
    configuration
        The best configuration found, of all variables; None before there is one.
    local
        Told of what is found, where some variables are summed; None before there is a local search.
    wanted
        False once nobody would begin from what is found.
    """

    def __init__(self, task: WorkerTask) -> None:
        self.task = task
        self._search: CostSearch | None = None
        self._costs: Costs | None = None
        self._orders: list[IntArray] = []
        self._rival: CostSearch | None = None
        self._raced = 0.0
        self._draws = DRAWS
        self._reported: float = math.inf
        self._found = self._behind = False
        self.configuration: IntArray | None = None
        self.maximises_all = bool(task.is_max.all())
        self.local: LocalSearchWorker | None = None
        self.wanted = True
        self._fits = (
            task.shares.full > 0.0
            and task.schedule.first_full > 0.0
            and Costs.sweep_seconds(task.problem.model) <= LONGEST_SWEEP * task.clock.limit
        )

    @property
    def useful_seconds(self) -> float | None:
        """Nobody knows."""
        return None

    @property
    def done(self) -> bool:
        """True once nothing better is left."""
        return self._search is not None and self._search.done

    def begin(self, ends: float) -> bool:
        """Go on; False where it is not wanted, has ended, or leads nowhere."""
        del ends
        if not self._fits or self.done or not self.wanted:
            return False
        if self._search is not None and self._hopeless():
            return False
        self._found = False
        return True

    def run(self, deadline: float) -> Progress:
        """Search until the deadline."""
        task = self.task
        if self._costs is None and not self._prepare():
            return Progress.DONE
        if self._orders or self._rival is not None:
            self._race(deadline)
            if self._search is not None:
                self._report(self._search)
            if time.monotonic() >= deadline:
                return Progress.MORE
        search = self._search
        assert search is not None
        self._anneal(search, deadline)
        incumbent = task.board.incumbent
        if self.maximises_all and incumbent is not None:
            search.offer(incumbent.states)
        if self.maximises_all and task.board.log_floor > -math.inf and task.board.ground is None:
            # Proofs walk the search once more, with the configuration that it has found.
            search.only_below(search.costs.cost_at(task.board.log_floor - task.problem.log_constant))
        progress = search.run(deadline)
        self._report(search)
        return progress

    def _prepare(self) -> bool:
        """Costs, and orders to compare; False where whole numbers are too coarse."""
        task = self.task
        self._costs = costs = Costs(task.problem.model)
        if costs.log_slack > WORST_SLACK:
            self._fits = False
            return False
        # Costs move towards the variables of most tables, which then are set first. The order of the model is often
        # that of causes and effects, one direction of which lets them gather.
        degrees = np.diff(costs.tables.incident_starts)
        there = np.arange(len(degrees))
        self._orders = [there, there[::-1].copy(), np.argsort(-degrees, kind="stable")]
        return True

    def _race(self, deadline: float) -> None:
        """Go on with the order whose costs at the root are highest; at the deadline the comparison waits."""
        costs, task = self._costs, self.task
        assert costs is not None
        while self._orders or self._rival is not None:
            if self._rival is None:
                self._rival = CostSearch(costs, self._orders.pop(), memory=task.shares.open_nodes)
            begun = time.monotonic()
            through = self._rival.reach_root(deadline)
            self._raced += time.monotonic() - begun
            if not through:
                return
            if self._search is None or self._rival.bound > self._search.bound:
                self._search = self._rival
            self._rival = None
            if self._raced > LONGEST_RACE:
                self._orders = []

    def _anneal(self, search: CostSearch, deadline: float) -> None:
        """Give the search annealed configurations to begin with, where tables are strong."""
        if self._draws == 0:
            return
        problem = self.task.problem
        annealer = Annealer(replace(problem, tau=np.zeros_like(problem.tau)))
        self._draws = self._draws if annealer.strong else 0
        while self._draws > 0 and time.monotonic() < deadline:
            rng = np.random.default_rng([self.task.seed, self._draws])
            search.offer(annealer.draw(rng))
            self._draws -= 1

    def end(self) -> None:
        """It is kept, and the next stage goes on with it; local search begins from what was found."""
        if not self._found or self.local is None or self.configuration is None:
            return
        self.local.suggest(self.configuration)
        if not self.local.holds:
            board, problem = self.task.board, self.task.problem
            self._behind = self.local.value_of(self.configuration) < board.best_known(problem)

    def _hopeless(self) -> bool:
        """Whether others have left it behind; where it gives a start only, whether it found no better one of late."""
        search, board, problem = self._search, self.task.board, self.task.problem
        assert search is not None
        if not self.maximises_all and self.configuration is not None:
            return self._behind or not self._found
        # Costs that say so much less than the bound at hand do not lead to a good configuration, either.
        behind = search.costs.log_upper(search.bound) + problem.log_constant - board.log_upper
        return behind > board.gap

    def _report(self, search: CostSearch) -> None:
        task, board = self.task, self.task.board
        states = search.states
        if states is not None and search.best < self._reported:
            self._reported, self._found = search.best, True
            self.configuration = states
            # Where the sum that the assignment leaves can be had, its value counts, and local search finds that.
            if self.maximises_all or (self.local is not None and self.local.holds):
                board.offer_lower(
                    task.problem, configuration_value(task.problem.model, states), 2.0 * task.log_error, states
                )
        if self.maximises_all:
            log_upper = search.costs.log_upper(search.bound)
            if search.done and log_upper == -math.inf:
                # Costs are finite numbers, which prove no zero: that is done by cases.
                board.impossible(by_cases)
                return
            board.offer_upper(task.problem, log_upper, search.costs.log_error, prover=self._prove)
            if search.proven:
                board.prove("Branch and bound with soft arc consistency: nothing better is left.")

    def _prove(self, ground: Ground) -> Proof:
        """The search walked once more, or a tree that is there where that proves more."""
        task, search = self.task, self._search
        assert search is not None
        seconds = LEAST_OPTIMUM + OPTIMUM_PROVING * task.clock.spent
        proof = by_branching(ground, search, task.problem, seconds, task.shares.open_nodes)
        other = task.board.draft()
        return proof if proof.log_upper <= other.log_upper else other
