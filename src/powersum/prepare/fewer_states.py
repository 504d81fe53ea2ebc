"""A problem with fewer states: every variable and every factor stays what it was, so that a tree over it stays one.

Simplification would take out variables with one state, put tables together and number everything anew: no bound that
was found before would fit. Here such variables stay, with a single state.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from powersum.core.arrays import BoolArray, IntArray, starts_of
from powersum.model.model import Model
from powersum.prepare.problem import Problem
from powersum.prepare.simplify.restriction import restrict
from powersum.prepare.simplify.tables import Tables


def with_states(problem: Problem, alive: BoolArray) -> Problem:
    """The problem over some of its states, one flag for each state of each variable in turn.

    Each variable must keep one. The value is that of the problem where the others have probability 0. What the problem
    says of original states (``possible``) stays: see :func:`possible_with`.
    """
    model = problem.model
    tables = restrict(Tables.of(model), alive, keep_axes=True)
    fewer = Model(
        cardinalities=tables.cardinalities,
        scope_starts=tables.scope_starts,
        scope_variables=tables.scope_variables,
        table_starts=tables.table_starts,
        log_values=tables.log_values,
    )
    return replace(
        problem,
        model=fewer,
        kept_state_starts=starts_of(fewer.cardinalities),
        kept_states=problem.kept_states[alive],
    )


def possible_with(problem: Problem, alive: BoolArray, cardinalities: IntArray) -> BoolArray:
    """Which states of the original variables, with so many each, are possible where these are of the problem's own."""
    possible = problem.possible.copy()
    owner = np.repeat(problem.variables, np.diff(problem.kept_state_starts))
    possible[starts_of(cardinalities)[owner[~alive]] + problem.kept_states[~alive]] = False
    return possible


def states_before(problem: Problem, alive: BoolArray, states: IntArray) -> IntArray:
    """States of the problem from those of the problem over ``alive`` states; -1 stays what it is."""
    starts = problem.kept_state_starts[:-1]
    firsts = starts_of(np.add.reduceat(alive.astype(np.int64), starts))[:-1]
    return np.where(states >= 0, np.flatnonzero(alive)[firsts + np.maximum(states, 0)] - starts, -1)
