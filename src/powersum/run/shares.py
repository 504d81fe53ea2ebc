"""What share of a sum has each state of a variable: both sides from bounds on the sums with the states set."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray
from powersum.core.clock import working_time
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt
from powersum.core.memory import bytes_held
from powersum.model.question import Question
from powersum.model.rounding import UNIT
from powersum.run.restriction import restricted
from powersum.run.tuning import DEFAULT_SCHEDULE, Schedule

LEAST_SECONDS = 0.05
"""A sum has at least so long; what there is no time for is not known."""

UNLIMITED_SECONDS = 10.0
"""What a sum has where the call has no time limit: bounds on a sum that is too wide hardly ever meet."""

UNKNOWN = (-math.inf, math.inf)


def sum_bounds(
    question: Question,
    evidence: dict[int, Any] | None,
    *,
    seconds: float,
    memory: float | None = None,
    interrupt: Interrupt | None = None,
    schedule: Schedule = DEFAULT_SCHEDULE,
) -> tuple[float, float]:
    """Both bounds on log Z of a question's model given other evidence; None for what is impossible.

    ``memory`` is what the process may hold, that of the question unless given.
    """
    from powersum.run.solver import Solver

    if evidence is None:
        return -math.inf, -math.inf
    sums: Solver | None = None
    try:
        sums = Solver(
            question.model,
            evidence=evidence,
            time_limit=seconds,
            memory=question.limits.bytes if memory is None else memory,
            threads=question.limits.threads,
            seed=question.limits.seed,
            # Without any bound in time there is none: nothing is worth waiting for longer.
            schedule=replace(schedule, grace=0.0, grace_share=0.0),
        )
        if interrupt is not None:
            sums.watch(interrupt)
        for _ in sums:
            pass
    except (InputError, MemoryError):
        # There is too little memory for the sum; what was found before that holds.
        pass
    return UNKNOWN if sums is None else (sums.log_lower, sums.log_upper)


class SumBounds:
    """Bounds on the sum of everything and on sums with a state set, one after the other until time is over.

    Parameters
    ----------
    question
        The model and its evidence.
    interrupt
        Ends it early.
    end
        The :func:`~powersum.core.clock.working_time` at which to be done.
    """

    def __init__(self, question: Question, interrupt: Interrupt, *, end: float) -> None:
        self._question, self._interrupt, self._end = question, interrupt, end
        # Marginals are given the bytes for tables, a solver those for the whole process.
        self._memory = question.limits.bytes + bytes_held()
        self._whole = UNKNOWN

    def whole(self, share: float) -> bool:
        """Bound the sum of everything in this share of the time left; False if it is 0."""
        self._whole = self._bounds(self._question.all_evidence, share)
        return self._whole[1] > -math.inf

    def shares(self, variable: int, possible: BoolArray, *, of: int) -> tuple[FloatArray, FloatArray]:
        """Logs of both sides of the share of each state, where ``of`` states in all wait for the time left."""
        lower = np.full(len(possible), -math.inf)
        upper = np.where(possible, self._whole[1], -math.inf)
        for count, state in enumerate(np.flatnonzero(possible).tolist()):
            found = self._bounds(restricted(self._question, {variable: [state]}), 1.0 / max(of - count, 1))
            lower[state], upper[state] = found[0], min(found[1], upper[state])
        return shares_between(lower, upper, self._whole)

    def _bounds(self, evidence: dict[int, Any] | None, share: float) -> tuple[float, float]:
        left = self._end - working_time()
        if left <= 0.0 or self._interrupt.cause is not None:
            return UNKNOWN
        seconds = max(share * left, LEAST_SECONDS) if left < math.inf else UNLIMITED_SECONDS
        return sum_bounds(self._question, evidence, seconds=seconds, memory=self._memory, interrupt=self._interrupt)


def shares_between(lower: FloatArray, upper: FloatArray, whole: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Both sides of the share that each part has of the whole, as logs.

    Parameters
    ----------
    lower, upper
        Logs of bounds on the parts, which add up to the whole.
    whole
        Logs of bounds on it; it is not 0.
    """
    least, most = np.full(len(lower), -math.inf), np.zeros(len(lower))
    for part in range(len(lower)):
        if upper[part] == -math.inf:
            most[part] = -math.inf
            continue
        others = np.arange(len(lower)) != part
        # A share grows with its own part and falls with the others.
        if lower[part] > -math.inf:
            rest = min(_log_sum(upper[others], lower[part]), whole[1])
            least[part] = lower[part] - rest
        if upper[part] < math.inf:
            rest = max(_log_sum(lower[others], upper[part]), whole[0])
            most[part] = upper[part] - rest
    known = np.concatenate([lower, upper, whole])
    size = float(np.abs(known[np.isfinite(known)]).max(initial=1.0))
    # Each sum adds a few exponentials up, relative to its largest term.
    error = UNIT * (8.0 * size + 4.0 * len(lower) + 32.0)
    most = np.minimum(most + error, 0.0)
    return np.minimum(least - error, most), most


def _log_sum(logs: FloatArray, own: float) -> float:
    """Log of the sum of the exponentials of some logs and one more that is finite."""
    if (logs == math.inf).any():
        return math.inf
    top = max(float(logs.max(initial=-math.inf)), own)
    return top + math.log(float(np.exp(logs - top).sum()) + math.exp(own - top))
