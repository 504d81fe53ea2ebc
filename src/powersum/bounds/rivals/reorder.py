"""Elimination in an exchanged order (Park & Darwiche 2003; Yuan & Hansen 2009), within mini-buckets.

Maximising before summing can only raise the value: ``max Σ ≤ Σ max``. So the order need not put max variables last,
and an unconstrained order has a smaller width. Where even that is too wide, mini-buckets limit it further.

The same holds for any two weights (Minkowski): taking the smaller one first can only raise the value. Where the order
asked for already takes a smaller weight before a larger one, exchanging them would lower it: no order but that one is
then known to be a bound.
"""

from __future__ import annotations

import numpy as np

from powersum.bounds.rivals.one_shot import OneShot
from powersum.core.arrays import IntArray
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem


class Reordered(OneShot):
    """Mini-bucket elimination along an order that ignores which variables are maximised.

    Parameters
    ----------
    problem
        The simplified problem.
    order
        The order of the question. Where its weights never rise, as where sums come before maxima, the method chooses an
        order of its own; otherwise it keeps this one.
    threads
        Accepted because every method accepts it.
    seed
        Chooses among equally good orders.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket, unless a factor alone has more.
    """

    def __init__(self, problem: Problem, order: IntArray, *, threads: int = 1, seed: int = 0, ibound: int = 1) -> None:
        del threads
        free = bool((np.diff(problem.tau[order]) <= 0.0).all())
        if free:
            order = elimination_order(problem.model, np.ones(problem.model.n_variables), seed=seed)
        super().__init__(problem, order, ibound)
        self._exchanged = free and len(np.unique(problem.tau)) > 1

    @property
    def exact(self) -> bool:
        """True where no variable is split and nothing was exchanged, or nothing but equal weights."""
        return super().exact and not self._exchanged
