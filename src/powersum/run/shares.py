"""Bounds on the sum of a question's model with other evidence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt
from powersum.model.limits import Limits
from powersum.model.question import Question
from powersum.run.tuning import Schedule, schedule_of

if TYPE_CHECKING:
    from powersum.run.inheritance import Legacy

LEAST_SECONDS = 0.05
"""A sum has at least so long; what there is no time for is not known."""

UNLIMITED_SECONDS = 10.0
"""What a sum has where the call has no time limit: bounds on a sum that is too wide hardly ever meet."""

UNKNOWN = (-math.inf, math.inf)


def sum_bounds(
    question: Question | None,
    *,
    seconds: float,
    memory: float | None = None,
    interrupt: Interrupt | None = None,
    schedule: Schedule | None = None,
    legacy: Legacy | None = None,
) -> tuple[float, float]:
    """Both bounds on log Z given the evidence of a question, in which nothing is possible where it is None.

    Without any time nothing is known. ``memory`` is what the process may hold, that of the question unless given;
    ``legacy`` is what to begin with.
    """
    from powersum.run.solver import Run

    if question is None:
        return -math.inf, -math.inf
    if not seconds > 0.0:
        return UNKNOWN
    limits = question.limits
    sums: Run | None = None
    try:
        memory = limits.bytes if memory is None else memory
        limits = Limits(time_limit=seconds, memory=memory, threads=limits.threads, seed=limits.seed)
        # Without any bound in time there is none: nothing is worth waiting for longer.
        schedule = replace(schedule_of(schedule), grace=0.0, grace_share=0.0)
        sums = Run(replace(question.summed(), limits=limits), schedule=schedule)
        if interrupt is not None:
            sums.watch(interrupt)
        if legacy is not None:
            sums.begin_with(legacy)
        for _ in sums:
            pass
    except (InputError, MemoryError):
        # There is too little memory for the sum; what was found before that holds.
        pass
    return UNKNOWN if sums is None else (sums.log_lower, sums.log_upper)
