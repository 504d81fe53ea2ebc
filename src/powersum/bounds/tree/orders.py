"""Elimination orders for a covering tree: drawn from several kinds, and the best of those looked at first.

Orders of one kind differ by one to two nats on pedigrees. Where max variables must come last, buckets are far wider
than any table, and small trees tell after a hundred passes which orders are good: of 16 orders of pedigree9.Q0.5.I3 the
correlation with the bounds of larger trees was 0.8. What can be told without numbers (mini-buckets, splits, the bound
before any descent) says next to nothing. Drawing the end of the best order anew, from a place chosen at random, finds
better ones than as many fresh draws. Where everything is summed the width counts, which small trees do not see: there
screening made bounds worse (log Z of pedigree13 by 2.9 nats), and orders are drawn by plain min-fill as they are tried.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import IntArray
from powersum.prepare.ordering import elimination_order
from powersum.prepare.ordering.bounded import bounded_fill
from powersum.prepare.problem import Problem

RESTARTS = 4
"""Tries of min-fill for each order by it."""

LOG2_LIMITS = (12.0, None, 10.0, 14.0)
"""Kinds of orders: largest tables (log to base 2) of those by bounded min-fill; None stands for plain min-fill."""

LEAST_SCREENED, MOST_SCREENED = 400, 3000
"""With fewer variables than this orders hardly differ, and time is better spent on a larger tree (pedigree1.Q0.5.I3,
283 variables: 0.03 to 0.13 nat). With more, bounded min-fill would take too long."""

DRAWN_APART = 5
"""Orders that are drawn from scratch before every second one follows the best so far."""


class Judged(NamedTuple):
    """An order, and the bound of a small tree along it."""

    log_upper: float
    number: int
    order: IntArray
    limit: float | None


class Orders:
    """Orders of one problem: some are drawn and judged, then the best are handed out, each once.

    Parameters
    ----------
    problem
        The simplified problem.
    seed
        Chooses the orders that are drawn.

    Attributes
    ----------
    screened
        Whether to judge many orders by small trees.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        self._problem, self._seed, self._drawn = problem, seed, 0
        self._rng = np.random.default_rng(seed % 2**62)
        self._judged: list[Judged] = []
        self._limit: float | None = None
        """Kind of the order that was drawn last; whoever hands over a first one has it from plain min-fill."""
        mixed = bool((problem.tau == 0.0).any() and (problem.tau > 0.0).any())
        self.screened = mixed and LEAST_SCREENED <= problem.model.n_variables <= MOST_SCREENED

    def draw(self) -> IntArray:
        """Another order: of each kind in turn or, once some are judged, like the best.

        Of a bounded order that is the best its end is drawn anew; plain min-fill is quick enough to draw a whole one.
        """
        model, tau, rank = self._problem.model, self._problem.tau, self._problem.rank
        self._drawn += 1
        self._limit = LOG2_LIMITS[self._drawn % len(LOG2_LIMITS)] if self.screened else None
        begin = None
        if self._drawn > DRAWN_APART and self._drawn % 2 == 0 and self._judged and self.screened:
            best = self._judged[0]
            self._limit = best.limit
            begin = best.order[: int(self._rng.integers(model.n_variables))]
        if self._limit is None:
            return elimination_order(model, tau, rank=rank, seed=self._seed + self._drawn, restarts=RESTARTS)
        return bounded_fill(model, tau, self._limit, rank=rank, seed=int(self._rng.integers(2**31)), begin=begin)

    def judge(self, order: IntArray, log_upper: float) -> None:
        """Note the bound of a small tree along the order that was drawn last, or that was given before any."""
        if any(np.array_equal(judged.order, order) for judged in self._judged):
            # The order given, by the tree of an earlier stage.
            return
        self._judged.append(Judged(log_upper, len(self._judged), order, self._limit))
        self._judged.sort(key=lambda judged: judged[:2])

    @property
    def n_judged(self) -> int:
        """How many were judged and not handed out yet."""
        return len(self._judged)

    @property
    def log_upper(self) -> float | None:
        """The best bound of all small trees; None where there was none."""
        return self._judged[0].log_upper if self._judged else None

    def ranked(self) -> list[IntArray]:
        """All that were judged, the best first."""
        return [judged.order for judged in self._judged]

    def best(self) -> IntArray:
        """The best of those judged that was not handed out yet; another one where there is none."""
        return self._judged.pop(0).order if self._judged else self.draw()
