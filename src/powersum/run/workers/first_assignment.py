"""A first assignment out of what the bound likes, or the proof that zeros allow none."""

from __future__ import annotations

import numpy as np

from powersum.assign.complete import complete, preferring
from powersum.assign.evaluator import Evaluator
from powersum.assign.regions import TOO_WIDE
from powersum.core.arrays import IntArray
from powersum.core.clauses import Ended
from powersum.core.progress import Progress
from powersum.proof.format import Prover
from powersum.run.proofs import by_cases, by_elimination
from powersum.run.workers.local_search import LocalSearchWorker
from powersum.run.workers.partial_sums import PartialSums
from powersum.run.workers.task import WorkerTask
from powersum.run.workers.tightening import Tightening


class FirstAssignment:
    """Looks for a way around the zeros, evaluates what it finds, and tells the others how to go on from there.

    Parameters
    ----------
    task
        What to work on.
    evaluator
        Values of assignments.
    tightening
        Has the tree to begin with.
    local, sums
        Local search and partial sums, which begin where this ends.
    """

    def __init__(
        self,
        task: WorkerTask,
        evaluator: Evaluator,
        tightening: Tightening,
        local: LocalSearchWorker,
        sums: PartialSums,
    ) -> None:
        self._task, self._evaluator, self._tightening = task, evaluator, tightening
        self._local, self._sums = local, sums
        self._decoded: IntArray | None = None

    def run(self, deadline: float) -> Progress:
        """Look for one until the deadline."""
        evaluator = self._evaluator
        if self._decoded is None:
            self._decoded = self._tightening.decode()
            self._take_up()
            # The bound has been taken up before; to complete an assignment may take for ever.
            self._task.board.resuming = False
        ended, states = complete(
            evaluator, preferring(evaluator, self._decoded), deadline=deadline, seed=self._task.seed
        )
        if ended is Ended.GIVEN_UP:
            return Progress.MORE
        if ended is Ended.IMPOSSIBLE:
            self._task.board.impossible(by_cases)
        else:
            self._go_on_from(states, self._decoded)
        return Progress.DONE

    def _take_up(self) -> None:
        """Begin with the assignment of an earlier run, if there is one: it is evaluated anew."""
        task, evaluator = self._task, self._evaluator
        states = None if task.resumed is None else task.resumed.states(task.problem)
        if states is None or self._decoded is None:
            return
        self._decoded = np.where(states >= 0, states, self._decoded)
        if (states[evaluator.is_max] >= 0).all():
            value = evaluator.value(states, self._affordable_entries())
            task.board.offer_lower(task.problem, value, 2.0 * task.log_error, states)

    def _go_on_from(self, states: IntArray, decoded: IntArray) -> None:
        """Evaluate what was found; whether its sum is too wide decides how lower bounds are found from now on."""
        task, evaluator = self._task, self._evaluator
        maximises = bool(evaluator.is_max.any())
        # An evaluation gives no distributions.
        value = TOO_WIDE
        if not task.board.wants_distributions:
            value = evaluator.value(np.where(evaluator.is_max, states, -1), self._affordable_entries())
        if value < TOO_WIDE:
            if maximises:
                self._local.suggest(decoded)
            else:
                nothing = np.full(len(states), -1, dtype=np.int64)
                reason = "Exact elimination, component by component."
                prover = _by_elimination(value + task.problem.log_constant)
                task.board.offer_exact(task.problem, value, task.log_error, nothing, reason, prover)
            return
        sums_apply = len(states) <= task.schedule.most_variables
        if sums_apply:
            self._sums.possible = states
        if sums_apply and not maximises:
            task.board.notes = ("Summing is too wide for the memory given: log_lower is the sum of the largest terms.",)
            return
        self._local.hold(states)
        task.board.notes = (
            "Summing is too wide for the memory or time given: log_lower is a lower bound on the value of the "
            "assignment.",
        )

    def _affordable_entries(self) -> float:
        """Nothing looks outside during an evaluation: one that might take much longer than a slice is not begun."""
        return (0.5 + 0.05 * min(self._task.clock.left, 60.0)) / self._task.schedule.evaluation_cost


def _by_elimination(log_value: float) -> Prover:
    return lambda ground: by_elimination(ground, None, log_value)
