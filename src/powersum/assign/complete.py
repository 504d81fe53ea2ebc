"""Feasible assignments from preferences: the preferred states, changed where hard zeros forbid them.

Rounding beliefs breaks zeros, and a model full of them (pedigrees, grids, planning) then has value 0. A conflict-driven
search sets all variables to their preferred states as far as the zeros allow, sum variables included, so that a whole
configuration of positive probability stands behind the assignment. What it learns of the zeros is kept for later ones.
"""

from __future__ import annotations

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.assign.zeros import Zeros
from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.clauses import Ended
from powersum.model.factors import factors_of
from powersum.prepare.fewer_states import possible_with
from powersum.prepare.problem import Problem


def complete(
    evaluator: Evaluator, preferences: FloatArray, *, deadline: float, seed: int = 0
) -> tuple[Ended, IntArray]:
    """A configuration of all variables that no zero forbids, close to the preferred states.

    Parameters
    ----------
    evaluator
        The problem.
    preferences
        One number for each state of each variable, as in ``evaluator.supports.state_starts``; larger is better.
    deadline
        When to give up, on the clock of ``time.monotonic``.
    seed
        Breaks ties among variables.

    Returns
    -------
    Ended, IntArray
        How it ended, and a state for every variable where one was found. ``IMPOSSIBLE`` is a proof.
    """
    # Max variables go first: it is their states that matter.
    random = np.random.default_rng(seed).random(len(evaluator.is_max))
    return evaluator.zeros.search(preferences, 0.5 * random + 0.5 * evaluator.is_max, deadline=deadline)


def without_impossible(problem: Problem, cardinalities: IntArray, deadline: float) -> BoolArray | None:
    """The possible states of the original variables, with so many each, less those that search proves impossible.

    None where it proves nothing. Variables in small tables are asked about first: chances that constraints exclude are
    often there, and take most off a bound.
    """
    model = problem.model
    arity = np.repeat(np.diff(model.scope_starts), np.diff(model.scope_starts))
    least = np.full(model.n_variables, np.iinfo(np.int64).max)
    np.minimum.at(least, model.scope_variables, arity)
    zeros = Zeros(model.cardinalities, factors_of(model), model.table_starts)
    gone = zeros.impossible(np.argsort(least, kind="stable"), deadline=deadline)
    return possible_with(problem, ~gone, cardinalities) if gone.any() else None


def preferring(evaluator: Evaluator, states: IntArray, rng: np.random.Generator | None = None) -> FloatArray:
    """Preferences for given states (-1 for none); all others are equal, or random with ``rng``."""
    starts = evaluator.supports.state_starts
    preferences = np.zeros(int(starts[-1])) if rng is None else 0.5 * rng.random(int(starts[-1]))
    known = states >= 0
    preferences[starts[:-1][known] + states[known]] = 1.0
    return preferences
