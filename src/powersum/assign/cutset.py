"""Certified lower bounds where summing exactly is too wide: some sum variables are held at one state.

All terms of a sum of probabilities are positive, so leaving terms out gives a lower bound. Holding a *cutset* of sum
variables makes the rest narrow; which states they are held at is then a matter of maximisation, like that of the max
variables, and the same local search does it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from powersum.core.arrays import BoolArray, IntArray, positions_of, starts_of
from powersum.exact.wiring import wire
from powersum.model.factors import factors_of
from powersum.model.model import Model
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem


def hold_cutset(problem: Problem, *, entries: float, seed: int = 0) -> Problem:
    """The problem with a cutset of sum variables turned into max variables: its value is a lower bound.

    Parameters
    ----------
    problem
        The simplified problem.
    entries
        Largest table that the sum over the remaining sum variables may need, given all others.
    seed
        Seed of the elimination orders.
    """
    tau = problem.tau.copy()
    while True:
        left = sum_part(problem.model, tau > 0.0)
        crowded = _crowded(left, entries, seed)
        if not crowded.any():
            return replace(problem, tau=tau)
        # The variables met most often in tables too large; several at a time where there are many.
        n_held = max(1, int((crowded > 0).sum()) // 20)
        tau[np.argsort(-crowded, kind="stable")[:n_held]] = 0.0


def sum_part(model: Model, is_sum: BoolArray) -> Model:
    """The scopes that are left when all other variables are given, with tables that are never read."""
    number = np.where(is_sum, np.arange(model.n_variables), -1)
    return scopes_left(model, np.arange(model.n_factors), number, np.where(is_sum, model.cardinalities, 1))


def scopes_left(model: Model, factors: IntArray, number: IntArray, cardinalities: IntArray) -> Model:
    """What factors have to do with some variables, with tables that are never read: only the graph counts.

    Parameters
    ----------
    model, factors
        The whole model, and some of its factors.
    number
        The number that each variable has in what is left; -1 for those that are given.
    cardinalities
        By these numbers.
    """
    lengths = np.diff(model.scope_starts)[factors]
    begun = starts_of(lengths)
    places = np.repeat(model.scope_starts[factors] - begun[:-1], lengths) + np.arange(begun[-1])
    variables = number[model.scope_variables[places]]
    left = variables >= 0
    owner, variables = np.repeat(np.arange(len(factors)), lengths)[left], variables[left]
    variables = variables[np.lexsort((variables, owner))]
    lengths = np.bincount(owner, minlength=len(factors))
    starts = starts_of(lengths)[:-1]
    # Each scope once, those of equal length together: array operations, for this is done dozens of times.
    scopes = [
        np.unique(variables[starts[lengths == n, None] + np.arange(n)], axis=0) for n in np.unique(lengths[lengths > 0])
    ]
    sizes = [np.prod(cardinalities[group], axis=1) for group in scopes]
    return Model(
        cardinalities=cardinalities,
        scope_starts=starts_of(np.concatenate([np.zeros(0, np.int64), *(np.full(len(g), g.shape[1]) for g in scopes)])),
        scope_variables=np.concatenate([np.zeros(0, np.int64), *(group.ravel() for group in scopes)]),
        table_starts=starts_of(np.concatenate([np.zeros(0, np.int64), *sizes])),
        log_values=np.zeros(int(sum(size.sum() for size in sizes))),
    )


def _crowded(model: Model, entries: float, seed: int) -> IntArray:
    """How many bucket tables of more than ``entries`` entries each variable is part of."""
    order = elimination_order(model, np.ones(model.n_variables), seed=seed, restarts=2)
    wiring, _ = wire(order, positions_of(order), np.arange(model.n_factors), factors_of(model))
    log_sizes = np.append(np.log(model.cardinalities)[wiring.axes], 0.0)
    large = np.add.reduceat(log_sizes, wiring.axis_starts[:-1]) > np.log(entries)
    in_large = np.repeat(large, np.diff(wiring.axis_starts))
    counts = np.bincount(wiring.axes[in_large], minlength=model.n_variables)
    return np.where(model.cardinalities > 1, counts, 0)
