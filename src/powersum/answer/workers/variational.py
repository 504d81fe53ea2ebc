"""Variational sums where summing is too wide: distributions in place of the states at which a cutset is held."""

from __future__ import annotations

import numpy as np

from powersum.answer.proofs import by_distributions
from powersum.answer.workers.local_search import LocalSearch
from powersum.answer.workers.partial_sums import PartialSums
from powersum.answer.workers.task import Task
from powersum.assign.cutset import hold_cutset
from powersum.core.progress import Progress
from powersum.sums.variational import Variational


class VariationalSums:
    """Lower bounds by Jensen's inequality, from where local search or the first possible configuration stands.

    Parameters
    ----------
    task
        What to work on.
    local
        Has the assignment and the cutset, where one is held.
    sums
        Knows a possible configuration, where everything is summed.
    """

    def __init__(self, task: Task, local: LocalSearch, sums: PartialSums) -> None:
        self._task, self._local, self._sums = task, local, sums
        self._bound: Variational | None = None

    @property
    def useful_seconds(self) -> float | None:
        """A few rounds are enough."""
        return None

    def begin(self, ends: float) -> bool:
        """Begin from the best configuration known; False where sums are not too wide, or none is known."""
        del ends
        task = self._task
        if self._local.holds:
            held, states = self._local.held, self._local.portfolio.assignment
        elif self._sums.possible is not None and not task.is_max.any():
            held = hold_cutset(task.problem, entries=task.schedule.held_table, seed=task.seed)
            states = self._sums.possible
        else:
            return False
        core = held.tau > 0.0
        if (states[~core] < 0).any():
            return False
        # States of the core are summed over: which one it begins with does not matter.
        begun = np.where(states >= 0, states, 0)
        self._bound = Variational(task.problem, core, begun, memory=task.shares.variational, seed=task.seed)
        self._report()
        return self._bound.possible

    def run(self, deadline: float) -> Progress:
        """Rounds of updates until the deadline."""
        bound = self._bound
        assert bound is not None
        more = bound.run(deadline)
        self._report()
        return Progress.MORE if more else Progress.DONE

    def end(self) -> None:
        """Local search goes on from the states that the distributions prefer."""
        bound, self._bound = self._bound, None
        if bound is not None:
            self._prove(bound)
        if bound is not None and self._local.holds:
            self._local.suggest(bound.states)

    def _prove(self, bound: Variational) -> None:
        """Hand over the proof, if a certificate is wanted and nothing better is proven for the present assignment."""
        task, board = self._task, self._task.board
        if board.ground is None or bound.log_lower + task.problem.log_constant <= board.below.log_lower:
            return
        states = np.where(task.is_max, bound.states, -1)
        if np.array_equal(task.problem.restore(states), board.states):
            step = by_distributions(board.ground, bound, task.problem, board.states)
            if step is not None:
                board.offer_below(task.problem, bound.log_lower, 0.0, [step])

    def _report(self) -> None:
        task, bound = self._task, self._bound
        assert bound is not None
        states = np.where(task.is_max, bound.states, -1)
        # Its rounding is taken off already.
        task.board.offer_lower(task.problem, bound.log_lower, 0.0, states)
