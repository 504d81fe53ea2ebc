"""Components that exact elimination settles at once, so that search and local search have only the hard ones left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.exact.elimination import Elimination
from powersum.exact.way_down import WayDown
from powersum.model.model import Model
from powersum.model.rounding import elimination_error
from powersum.prepare.problem import Problem

Tell = Callable[[Problem, FloatArray, float], None]


def settle_components(
    problem: Problem, order: IntArray, *, work: float, size: float, tell: Tell | None = None
) -> tuple[Problem, IntArray]:
    """The problem without the components that are easy, whose value goes into the constant, and the order that is left.

    Parameters
    ----------
    problem
        The simplified problem.
    order
        Elimination order of its variables.
    work, size
        Table entries and bytes that the easy components together may take.
    tell
        Called with the easy components, which are all summed over, their distributions, one after another, and what
        those add to relative errors of rounding; by default nobody wants them.
    """
    sizes = np.bincount(problem.component)
    # The largest stays: where it is easy as well, elimination of the whole has been tried before.
    candidates = np.argsort(sizes, kind="stable")[:-1]
    while len(candidates):
        easy = np.isin(problem.component, candidates)
        part, part_order = part_of(problem, order, easy)
        elimination = (
            Elimination(part.model, part_order, part.tau) if tell is None else WayDown(part.model, part_order, size)
        )
        if elimination.work <= work and elimination.bytes <= size:
            if isinstance(elimination, WayDown):
                exact, beliefs = elimination.run()
                if tell is not None and exact.log_value > -math.inf:
                    tell(part, beliefs, elimination.log_error)
            else:
                exact = elimination.run()
            rest, rest_order = part_of(problem, order, ~easy)
            fixed = np.maximum(problem.fixed_states, part.restore(exact.states))
            constant = problem.log_constant + exact.log_value
            error = problem.log_error + elimination_error(part.model)
            return replace(rest, log_constant=constant, log_error=error, fixed_states=fixed), rest_order
        candidates = candidates[:-1]
    return problem, order


def part_of(problem: Problem, order: IntArray, chosen: BoolArray) -> tuple[Problem, IntArray]:
    """Some whole components as a problem of their own, with the constant of all, and their order."""
    model = problem.model
    number = np.cumsum(chosen) - 1
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    inside = np.zeros(model.n_factors, dtype=np.bool_)
    inside[owner[chosen[model.scope_variables]]] = True
    part = Model(
        cardinalities=model.cardinalities[chosen],
        scope_starts=starts_of(np.diff(model.scope_starts)[inside]),
        scope_variables=number[model.scope_variables[inside[owner]]],
        table_starts=starts_of(np.diff(model.table_starts)[inside]),
        log_values=model.log_values[np.repeat(inside, np.diff(model.table_starts))],
    )
    kept = np.repeat(chosen, np.diff(problem.kept_state_starts))
    _, component = np.unique(problem.component[chosen], return_inverse=True)
    return replace(
        problem,
        model=part,
        tau=problem.tau[chosen],
        variables=problem.variables[chosen],
        kept_state_starts=starts_of(np.diff(problem.kept_state_starts)[chosen]),
        kept_states=problem.kept_states[kept],
        component=component.astype(np.int64),
        blocks=None if problem.blocks is None else problem.blocks[chosen],
        fates=problem.fates.among(np.where(inside, np.cumsum(inside) - 1, -1)),
    ), number[order[chosen[order]]]
