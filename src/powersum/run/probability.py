"""How probable an answer is given the evidence: its value over the sum of everything, both from both sides."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from powersum.core.work_time import counted_by
from powersum.model.interval import Interval
from powersum.model.result import Result, Status
from powersum.run.shares import sum_bounds

if TYPE_CHECKING:
    from powersum.run.solver import Run

RESERVED, MOST_RESERVED = 0.04, 2.0
"""Share of the time limit, and seconds at most, that are kept for the sum while the answer is looked for."""

LEAST_SECONDS = 1.0
"""The sum may take as long as the answer did, and so many seconds in any case where the time limit has them."""


def reserved(time_limit: float) -> float:
    """Seconds of a time limit to keep for the sum."""
    return min(RESERVED * time_limit, MOST_RESERVED) if time_limit < math.inf else 0.0


def probability_of(result: Result, log_sum: tuple[float, float]) -> Interval:
    """The probability of an answer, from bounds on the sum of everything.

    The assignment has at least the lower side, and no assignment has more than the upper one.
    """
    return share_of((result.log_lower, result.log_upper), log_sum)


def share_of(log_value: tuple[float, float], log_sum: tuple[float, float]) -> Interval:
    """The share that a value has of a sum, both known from both sides."""
    # The sum has the answer's value among its terms.
    log_lower = max(log_sum[0], log_value[0])
    return Interval.ratio(log_value, (log_lower, max(log_sum[1], log_lower)))


def sum_seconds(solver: Run, result: Result, *, left: float) -> float:
    """Seconds that the sum may take which the answer of a solver is a share of; 0 where it is not worth asking for.

    Parameters
    ----------
    solver, result
        A solver that has ended, or at whose flag others have looked, and the answer.
    left
        Seconds that there are for it.
    """
    unknown = result.status is Status.INFEASIBLE or not math.isfinite(result.log_lower)
    interrupted = solver.flag is not None and solver.flag.cause is not None
    # With sums outside of maxima the value is no share of the sum of everything.
    if unknown or interrupted or solver.question.query.task in ("PR", "power-sum"):
        return 0.0
    return max(min(left, max(result.seconds, LEAST_SECONDS)), 0.0)


def log_sum_of(solver: Run, result: Result, *, left: float) -> tuple[float, float] | None:
    """Bounds on the sum that the answer of a solver is a share of; None where it is not worth asking for."""
    seconds = sum_seconds(solver, result, left=left)
    if seconds == 0.0:
        return None
    return sum_bounds(solver.question, seconds=seconds, interrupt=solver.flag, schedule=solver.schedule)


def with_probability(solver: Run) -> Result:
    """The answer of a solver that has ended, with its probability where that is worth asking for."""
    result = solver.result()
    with counted_by(solver.meter):
        log_sum = log_sum_of(solver, result, left=solver.question.limits.seconds - result.seconds)
    return result if log_sum is None else replace(result, probability=probability_of(result, log_sum))
