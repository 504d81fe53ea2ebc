"""The sum that an answer is a share of, bounded by one of the workers while others end the proof.

One process bounds it after the answer is known, for as long as that took. With several nobody has to wait for it: once
the bounds have come near there is little left to split, and the answer will soon be there.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import HEARTBEAT, Workers
from powersum.core.clock import working_time
from powersum.core.interrupt import Interrupt
from powersum.model.interval import SAME
from powersum.run.box_run import BoxQuestion
from powersum.run.probability import LEAST_SECONDS
from powersum.run.shares import UNKNOWN, sum_bounds

AGAIN, ENOUGH = 2.0, 4.0
"""It is bounded once more when the run is so many times as long as the last slice for it, and by then longer; and it is
known well enough where the run is at most so many times as long as that."""


def bound_sum(asked: BoxQuestion, seconds: float, interrupt: Interrupt | None = None) -> tuple[float, float]:
    """What a worker does: bounds on the log of the sum of everything, after so many seconds."""
    return sum_bounds(
        asked.question,
        seconds=seconds,
        interrupt=interrupt,
        memory=asked.room.for_process,
        schedule=replace(asked.schedule, most_bytes=min(asked.schedule.most_bytes, asked.room.for_task)),
    )


class SumBeside:
    """What is known of the sum, and when somebody shall go on with it.

    Parameters
    ----------
    wanted
        Whether the answer is a share of a sum at all.

    Attributes
    ----------
    log_bounds
        The best known, lower and upper.
    begun, running
        Whether somebody has been at it, and is.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._slice = self._ended = 0.0
        self.log_bounds = UNKNOWN
        self.begun = self.running = False

    def due(self, spent: float, left: float) -> bool:
        """Whether a slice is worth while now, after so many seconds of the run and with so many left."""
        if not self._wanted or self.running or left <= 0.0 or self._is_known:
            return False
        return spent >= AGAIN * self._slice

    def begin(self, seconds: float, left: float) -> float:
        """A slice begins: so many seconds if there are as many left, and not too few to be of use."""
        self._slice = min(max(seconds, LEAST_SECONDS), left)
        self.begun = self.running = True
        return self._slice

    def take(self, found: tuple[float, float]) -> None:
        """A slice has ended."""
        self.running, self._ended = False, self._slice
        self.log_bounds = max(self.log_bounds[0], found[0]), min(self.log_bounds[1], found[1])

    def enough(self, seconds: float) -> bool:
        """Whether an answer that took so long needs no better bounds than are known."""
        return self._is_known or ENOUGH * self._ended >= max(seconds, LEAST_SECONDS)

    @property
    def _is_known(self) -> bool:
        log_lower, log_upper = self.log_bounds
        return log_lower > -math.inf and log_upper - log_lower <= SAME


def awaited_sum(
    beside: SumBeside,
    asked: BoxQuestion,
    workers: Workers,
    *,
    answer_seconds: float,
    seconds: float,
    interrupt: Interrupt,
) -> tuple[float, float]:
    """Bounds on the sum that an answer is a share of: those of whoever has been at it, or of this process.

    Parameters
    ----------
    beside, asked, workers
        What is known of the sum, the question, and who may still be at it.
    answer_seconds
        What the answer took.
    seconds
        How long to wait, or to work, at most.
    interrupt
        Ends both.
    """
    end = working_time() + seconds
    with suppress(ClusterError):
        # A task whose worker was lost never comes back.
        while beside.running and workers.pending and not beside.enough(answer_seconds) and interrupt.cause is None:
            if (wait := end - working_time()) <= 0.0:
                break
            for hear, found in workers.finished(min(HEARTBEAT, wait)):
                # Other tasks come too late.
                if hear == beside.take:
                    beside.take(found)
    wait = end - working_time()
    if wait > 0.0 and interrupt.cause is None and not beside.enough(answer_seconds):
        beside.take(bound_sum(asked, wait, interrupt))
    return beside.log_bounds
