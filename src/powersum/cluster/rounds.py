"""Workers whose work is counted: tasks go out in rounds, and results come in the order in which they were handed in.

Nothing then depends on which process is quicker. Each task counts its own work; a round takes as long as its tasks
would, each given to the next of so many workers of usual speed that is free.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from powersum.cluster.executor import HEARTBEAT, Shared, Workers
from powersum.core.interrupt import Interrupt
from powersum.core.work_time import Meter, counted_by


class Rounds(Workers):
    """Workers behind others, for a run whose limit is work.

    Parameters
    ----------
    workers
        Who does the tasks; whoever made them closes them.
    meter
        Counts the work of the run.
    interrupt
        Ends a round early, without results.
    """

    def __init__(self, workers: Workers, meter: Meter, interrupt: Interrupt) -> None:
        self._workers, self._meter, self._interrupt = workers, meter, interrupt
        self._round: list[tuple[Any, Callable[..., Any], Shared, tuple[Any, ...]]] = []
        self.client = workers.client

    @property
    def size(self) -> int:
        """How many tasks can run at the same time."""
        return self._workers.size

    @property
    def inside(self) -> int:
        """How many tasks may run in this very process at the same time."""
        return self._workers.inside

    @property
    def threads(self) -> int:
        """How many tasks another process has at the same time, at most."""
        return self._workers.threads

    @property
    def pending(self) -> int:
        """Tasks of the next round."""
        return len(self._round)

    def share(self, value: Any) -> Shared:
        """Make a value known that tasks will need."""
        return self._workers.share(value)

    def submit(self, tag: Any, function: Callable[..., Any], shared: Shared, *arguments: Any) -> None:
        """Hand in a task for the next round."""
        self._round.append((tag, function, shared, arguments))

    def finished(self, timeout: float = HEARTBEAT) -> list[tuple[Any, Any]]:
        """Have a round done; tags and results in the order in which tasks were handed in. Without any, time passes."""
        tasks, self._round = self._round, []
        if not tasks:
            self._meter.seconds += timeout
            return []
        for number, (_, function, shared, arguments) in enumerate(tasks):
            self._workers.submit(number, counted, shared, function, arguments)
        found: dict[int, tuple[float, Any]] = {}
        while len(found) < len(tasks):
            if self._interrupt.cause is not None:
                return []
            found.update(self._workers.finished())
        ends = [0.0] * self.size
        for number in range(len(tasks)):
            heapq.heapreplace(ends, ends[0] + found[number][0])
        self._meter.seconds += float(max(ends))
        return [(tag, found[number][1]) for number, (tag, *_) in enumerate(tasks)]

    def close(self) -> None:
        """Nothing: the workers are closed by whoever made them."""


def counted(value: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, Any]:
    """What a worker does: a task, and the work that it has taken."""
    meter = Meter()
    with counted_by(meter):
        found = function(value, *arguments)
    return meter.seconds, found
