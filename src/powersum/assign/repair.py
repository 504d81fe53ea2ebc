"""Repair: turn a decoded assignment that hard zeros forbid into a feasible one near it."""

from __future__ import annotations

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.prepare.problem import Problem

LARGEST = 20_000
"""Variables beyond which the search for a feasible assignment, quadratic in their number, takes too long."""


def repaired(problem: Problem, states: IntArray, *, seconds: float, seed: int = 0) -> IntArray | None:
    """States of the max variables near the given ones under which something has positive probability.

    Parameters
    ----------
    problem
        The simplified problem.
    states
        A state for each max variable, -1 for the others.
    seconds
        How long to search. Afterwards, and for very large problems, the given states are returned as they are.
    seed
        Breaks ties.

    Returns
    -------
    IntArray or None
        The states, or None where the search proved that no assignment at all has positive probability.
    """
    model = problem.model
    if model.n_variables > LARGEST or not np.isneginf(model.log_values).any():
        return states
    # Compiled modules are imported where they are used, so that ``import powersum`` stays quick.
    from powersum.assign.complete import complete, preferring
    from powersum.assign.evaluator import Evaluator
    from powersum.core.clauses import Ended

    evaluator = Evaluator(problem, memory=1e6)
    deadline = time.monotonic() + seconds
    ended, found = complete(evaluator, preferring(evaluator, states), deadline=deadline, seed=seed)
    if ended is Ended.IMPOSSIBLE:
        return None
    return np.where(problem.tau == 0, found, -1) if ended is Ended.SATISFIED else states
