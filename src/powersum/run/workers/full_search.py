"""The best configuration of all variables: the answer where everything is maximised, a start where some are summed.

A sum is at least its largest term, so the value of one configuration bounds every question about the model from below.
"""

from __future__ import annotations

import math

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.model.factors import configuration_value
from powersum.prepare.proof import Ground, Proof
from powersum.run.proofs import by_branching, by_cases
from powersum.run.workers.branch_and_bound import LEAST_OPTIMUM, OPTIMUM_PROVING
from powersum.run.workers.local_search import LocalSearch
from powersum.run.workers.task import Task
from powersum.search.costs import Costs, CostSearch

WORST_SLACK = 1e-6
"""Where whole numbers would be coarser than this (natural logs) the model is too large: nothing is searched."""

LONGEST_SWEEP = 0.05
"""Share of the time that looking once at all tables may take: nothing looks at the clock meanwhile."""


class FullSearch:
    """A search by soft arc consistency.

    Parameters
    ----------
    task
        What to work on.

    Attributes
    ----------
    configuration
        The best configuration found, of all variables; None before there is one.
    local
        Told of what is found, where some variables are summed; None before there is a local search.
    wanted
        False once nobody would begin from what is found.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._search: CostSearch | None = None
        self._reported: float = math.inf
        self._found = self._behind = False
        self.configuration: IntArray | None = None
        self.maximises_all = bool(task.is_max.all())
        self.local: LocalSearch | None = None
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
        task = self._task
        if self._search is None:
            costs = Costs(task.problem.model)
            if costs.log_slack > WORST_SLACK:
                self._fits = False
                return Progress.DONE
            # Costs move towards the variables of most tables, which then are set first.
            degrees = np.diff(costs.tables.incident_starts)
            order = np.argsort(-degrees, kind="stable")
            self._search = CostSearch(costs, order, memory=task.shares.open_nodes)
        search = self._search
        incumbent = task.board.incumbent
        if self.maximises_all and incumbent is not None:
            search.offer(incumbent.states)
        if self.maximises_all and task.board.log_floor > -math.inf and task.board.ground is None:
            # Proofs walk the search once more, with the configuration that it has found.
            search.only_below(search.costs.cost_at(task.board.log_floor - task.problem.log_constant))
        progress = search.run(deadline)
        self._report(search)
        return progress

    def end(self) -> None:
        """It is kept, and the next stage goes on with it; local search begins from what was found."""
        if not self._found or self.local is None or self.configuration is None:
            return
        self.local.suggest(self.configuration)
        if not self.local.holds:
            board, problem = self._task.board, self._task.problem
            self._behind = self.local.value_of(self.configuration) < board.best_known(problem)

    def _hopeless(self) -> bool:
        """Whether others have left it behind; where it gives a start only, whether it found no better one of late."""
        search, board, problem = self._search, self._task.board, self._task.problem
        assert search is not None
        if not self.maximises_all and self.configuration is not None:
            return self._behind or not self._found
        # Costs that say so much less than the bound at hand do not lead to a good configuration, either.
        behind = search.costs.log_upper(search.bound) + problem.log_constant - board.log_upper
        return behind > board.gap

    def _report(self, search: CostSearch) -> None:
        task, board = self._task, self._task.board
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
        task, search = self._task, self._search
        assert search is not None
        seconds = LEAST_OPTIMUM + OPTIMUM_PROVING * task.clock.spent
        proof = by_branching(ground, search, task.problem, seconds, task.shares.open_nodes)
        other = task.board.draft()
        return proof if proof.log_upper <= other.log_upper else other
