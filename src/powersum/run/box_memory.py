"""How much memory each of those who work on one question may take: no process, and no machine, is promised twice."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from powersum.cluster.executor import Workers
from powersum.core.machine import default_memory
from powersum.core.memory import LEAST_MEMORY, bytes_held, memory_usually_left
from powersum.core.work_time import metered


@dataclass(frozen=True, slots=True)
class Room:
    """Memory for tasks, wherever they run: in the process that asks, or in others.

    Parameters
    ----------
    here, elsewhere
        Bytes that the process which asks may hold, and that any other process may.
    tasks_here, tasks_elsewhere
        How many tasks one such process has at the same time, at most.
    held
        Bytes that the process which asks held before any task began.
    process
        The one that asks.
    """

    here: float
    elsewhere: float
    tasks_here: int
    tasks_elsewhere: int
    process: int
    held: float = 0.0

    @classmethod
    def of(cls, workers: Workers, given: float | None, *, road: bool) -> Room:
        """Room for the tasks of some workers, and for the process that asks if it works on the ``road``.

        ``given`` is for each process; without it they share what is free on the machine.
        """
        processes = workers.size + road
        inside = workers.inside + road
        return cls(
            # Tasks that turn out to run here share what is for all of them.
            here=given or default_memory(1 if workers.inside else processes),
            elsewhere=given or workers.default_memory(beside=int(road)),
            tasks_here=max(inside, 1),
            tasks_elsewhere=workers.threads,
            process=os.getpid(),
            # Where work is counted, nothing that is measured decides anything.
            held=0.0 if metered() else bytes_held(),
        )

    @classmethod
    def alone(cls, given: float) -> Room:
        """Room for one task after the other in the process that asks."""
        return cls(given, given, tasks_here=1, tasks_elsewhere=1, process=os.getpid())

    @property
    def for_process(self) -> float:
        """Bytes that the process which asks now may hold."""
        return self.here if os.getpid() == self.process else self.elsewhere

    @property
    def for_task(self) -> float:
        """Bytes to work with that a task of this process may take; infinity where it has the process for itself."""
        here = os.getpid() == self.process
        tasks = self.tasks_here if here else self.tasks_elsewhere
        if tasks == 1:
            return math.inf
        left = memory_usually_left(self.for_process)
        if here:
            left = max(min(left, self.here - self.held), LEAST_MEMORY)
        return left / tasks
