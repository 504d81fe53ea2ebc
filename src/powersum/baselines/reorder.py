"""Elimination in an exchanged order (Park & Darwiche 2003; Yuan & Hansen 2009), within mini-buckets.

Maximising before summing can only raise the value: ``max Σ ≤ Σ max``. So the order need not put max variables last,
and an unconstrained order has a smaller width. Where even that is too wide, mini-buckets limit it further.
"""

from __future__ import annotations

import numpy as np

from powersum.arrays import IntArray
from powersum.baselines.one_shot import OneShot
from powersum.ordering import elimination_order
from powersum.problem import Problem


class Reordered(OneShot):
    """Mini-bucket elimination along an order that ignores which variables are maximised.

    Parameters
    ----------
    problem
        The simplified problem.
    order
        Not used: the method chooses its own.
    threads
        Accepted because every method accepts it.
    seed
        Chooses among equally good orders.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket, unless a factor alone has more.
    """

    def __init__(self, problem: Problem, order: IntArray, *, threads: int = 1, seed: int = 0, ibound: int = 1) -> None:
        del threads, order
        free = elimination_order(problem.model, np.ones(problem.model.n_variables), seed=seed)
        super().__init__(problem, free, ibound)
        self._exchanged = len(np.unique(problem.tau)) > 1

    @property
    def exact(self) -> bool:
        """True where no variable is split and all weights are equal: there was nothing to exchange."""
        return super().exact and not self._exchanged
