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
    places = is_sum[model.scope_variables]
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    counts = np.bincount(owner[places], minlength=model.n_factors)
    scopes = np.split(model.scope_variables[places], np.cumsum(counts)[:-1])
    cards = [int(c) if s else 1 for c, s in zip(model.cardinalities, is_sum, strict=True)]
    distinct = {tuple(sorted(scope.tolist())) for scope in scopes if len(scope)}
    ordered = sorted(distinct)
    sizes = [int(np.prod([cards[v] for v in scope])) for scope in ordered]
    return Model(
        cardinalities=np.asarray(cards, dtype=np.int64),
        scope_starts=starts_of([len(scope) for scope in ordered]),
        scope_variables=np.asarray([v for scope in ordered for v in scope], dtype=np.int64),
        table_starts=starts_of(sizes),
        log_values=np.zeros(int(np.sum(sizes))),
    )


def _crowded(model: Model, entries: float, seed: int) -> IntArray:
    """How many bucket tables of more than ``entries`` entries each variable is part of."""
    order = elimination_order(model, np.ones(model.n_variables), seed=seed, restarts=2)
    wiring, _ = wire(order, positions_of(order), np.arange(model.n_factors), factors_of(model))
    log_sizes = np.log(model.cardinalities)
    counts = np.zeros(model.n_variables, dtype=np.int64)
    for b in range(len(order)):
        axes = wiring.axes[wiring.axis_starts[b] : wiring.axis_starts[b + 1]]
        if log_sizes[axes].sum() > np.log(entries):
            counts[axes] += 1
    return np.where(model.cardinalities > 1, counts, 0)
