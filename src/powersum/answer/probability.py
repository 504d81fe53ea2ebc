"""How probable an answer is given the evidence: its value over the sum of everything, both from both sides."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from powersum.core.errors import InputError
from powersum.model.interval import Interval
from powersum.model.query import Query
from powersum.model.result import Result, Status

if TYPE_CHECKING:
    from powersum.answer.solver import Solver

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
    # The sum has the answer's value among its terms.
    log_lower = max(log_sum[0], result.log_lower)
    return Interval.ratio((result.log_lower, result.log_upper), (log_lower, max(log_sum[1], log_lower)))


def sum_of_everything(solver: Solver, *, seconds: float) -> tuple[float, float]:
    """Both bounds on the log of the sum over all variables, given the evidence of a solver's question."""
    from powersum.answer.solver import Solver

    question, schedule = solver.question, solver.schedule
    weights = question.query.weights
    sums = Solver(
        question.model,
        evidence=question.all_evidence,
        query=Query(weights * 0.0 + 1.0),
        time_limit=seconds,
        memory=question.limits.bytes,
        threads=question.limits.threads,
        seed=question.limits.seed,
        # Without any bound in time there is none: nothing is worth waiting for longer.
        schedule=replace(schedule, grace=0.0, grace_share=0.0),
    )
    if solver.flag is not None:
        sums.watch(solver.flag)
    try:
        for _ in sums:
            pass
    except (InputError, MemoryError):
        # There is too little memory for the sum; what was found before that holds.
        pass
    return sums.log_lower, sums.log_upper


def with_probability(solver: Solver) -> Result:
    """The answer of a solver that has ended, with its probability where that is worth asking for."""
    result = solver.result()
    asked = solver.question
    unknown = result.status is Status.INFEASIBLE or not math.isfinite(result.log_lower)
    if unknown or asked.query.task == "PR" or (solver.flag is not None and solver.flag.cause is not None):
        return result
    left = asked.limits.seconds - result.seconds
    seconds = min(left, max(result.seconds, LEAST_SECONDS))
    if seconds <= 0.0:
        return result
    return replace(result, probability=probability_of(result, sum_of_everything(solver, seconds=seconds)))
