"""An elimination order that is kept for one component, and gets better the more often it is used.

Where there are no zeros, every evaluation of a component has the same structure: an order can be kept from one to the
next. One try of min-fill is often far from the best of many (grids of 400 variables: half as many table entries), so a
share of the work that evaluations take goes into further tries.
"""

from __future__ import annotations

import numpy as np

from powersum.assign.cutset import scopes_left
from powersum.core.arrays import IntArray, positions_of
from powersum.core.speed import ELIMINATION, ORDERING_STEP
from powersum.model.model import Model
from powersum.prepare.ordering import elimination_order
from powersum.prepare.ordering.tries import OrderTries

TRYING = 0.1
"""Work on further tries, as a share of that on evaluations."""

MOST_TRIES = 300
"""Tries after which it is as good as it gets, about."""

LEAST_ENTRIES = 1e4
"""Table entries of an evaluation from which on an order is worth keeping."""

MOST_MEMBERS = 3000
"""Members of a component at most: a single try would take long for more."""


class KeptOrder:
    """The best order so far of the members of a component.

    Parameters
    ----------
    model
        The whole model.
    members
        Variables of the component that have a choice; all others are given.
    factors
        Factors of the component.
    seed
        Chooses among equally good variables.

    Attributes
    ----------
    order
        The members, first eliminated first.
    """

    def __init__(self, model: Model, members: IntArray, factors: IntArray, *, seed: int) -> None:
        self._members = members
        number = positions_of(members, model.n_variables)
        part = scopes_left(model, factors, number, model.cardinalities[members])
        weights = np.ones(len(members))
        first = elimination_order(part, weights, seed=seed, restarts=1)
        self._tries = OrderTries(part, weights, first, seed=seed, most_work=round(1.0 / ORDERING_STEP))
        self._left, self._budget = MOST_TRIES, 0.0
        self.order: IntArray = members[first]

    def used(self, entries: float) -> None:
        """Count an evaluation of so many table entries along the order, and try others as far as that pays."""
        self._budget += TRYING * ELIMINATION * entries
        while self._left > 0 and self._budget > 0.0:
            if self._tries.step():
                self.order = self._members[self._tries.order]
            self._budget -= ORDERING_STEP * self._tries.last_work
            self._left -= 1
