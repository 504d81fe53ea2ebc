"""The search for a narrower order, all the while of a long run: trees of later stages, or elimination, have it."""

from __future__ import annotations

from collections.abc import Callable

from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.prepare.ordering import MIN_FILL_VARIABLES, MIN_FILL_WORK
from powersum.prepare.ordering.tries import OrderTries
from powersum.run.workers.task import WorkerTask

USEFUL = 0.5
"""With less than this share of the time left nothing is searched any more."""


class OrderSearch:
    """Tries of min-fill beyond those of preparation.

    A certificate speaks of the order that preparation has found, so nothing is searched where one is wanted.

    Parameters
    ----------
    task
        What to work on.
    narrower
        Called with each order that is better than all before.
    """

    def __init__(self, task: WorkerTask, narrower: Callable[[IntArray], None]) -> None:
        self._task, self._narrower = task, narrower
        self._tries: OrderTries | None = None
        long = task.clock.limit >= task.schedule.order_search_from
        small = 1 < task.problem.model.n_variables <= MIN_FILL_VARIABLES
        self._open = long and small and task.board.ground is None

    @property
    def useful_seconds(self) -> float | None:
        """What is found at the very end is of no use."""
        return None

    def begin(self, ends: float) -> bool:
        """Go on, unless so much of the time is over that no later stage would have an order's use."""
        del ends
        clock = self._task.clock
        return self._open and not clock.left < USEFUL * clock.limit

    def run(self, deadline: float) -> Progress:
        """Try one order after the other."""
        task = self._task
        if self._tries is None:
            self._tries = OrderTries(
                task.problem.model, task.problem.tau, task.order, seed=task.seed, most_work=MIN_FILL_WORK
            )
        found = False
        while time.monotonic() < deadline:
            found = self._tries.step() or found
        if found:
            self._narrower(self._tries.order)
        return Progress.MORE

    def end(self) -> None:
        """It goes on in the next stage."""
