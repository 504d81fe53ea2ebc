"""Ever more orders of one model, as long as somebody asks: each try of min-fill meets other ties."""

from __future__ import annotations

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.speed import ORDERING_STEP
from powersum.model.graph import adjacency
from powersum.model.model import Model
from powersum.prepare.ordering.cost import order_cost
from powersum.prepare.ordering.fill import min_fill

UNIT_WEIGHT = 8
"""What a variable weighs, or each of its states, before weights are drawn."""

DRAWN = (3, 13)
"""Weights that are drawn are at least the first of these, and less than the second."""

REDRAWN = (1.0, 0.3, 0.1, 0.03)
"""Shares of the variables whose weights are drawn anew, try by try: all of them, or near the best weights so far."""


class OrderTries:
    """The best elimination order so far, and one more try whenever there is time.

    Parameters
    ----------
    model, tau
        The model and the weight of each variable: larger weights come first, max variables last.
    order
        An order to begin with; a try that is no better is given up as soon as that shows.
    seed
        Chooses among equally good variables.
    most_work
        Steps after which a single try is given up.
    by_entries
        Whether the order with the fewest table entries is the best, whatever its width. Variables then get random
        weights, which change near the best ones found: edges to heavy variables count more.

    Attributes
    ----------
    order
        The best so far: of least width, and among these with the fewest table entries.
    width, log2_total
        What it costs.
    last_work
        Steps that the latest try took.
    """

    def __init__(
        self,
        model: Model,
        tau: FloatArray,
        order: IntArray,
        *,
        seed: int,
        most_work: int,
        by_entries: bool = False,
    ) -> None:
        graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
        group = np.unique(-np.asarray(tau), return_inverse=True)[1].astype(np.int64)
        # All writable, as where other kernels call min-fill: read-only arrays would be compiled for separately.
        self._arrays = (graph.starts, graph.neighbours, group, np.argsort(group, kind="stable"))
        self._weights = (np.ones(model.n_variables, dtype=np.int64), model.cardinalities.copy())
        self._log2_cardinalities = np.log2(model.cardinalities)
        # Other ties than those of the tries that have led to the order.
        self._seed, self._most_work = (seed + 1) % 2**62, most_work
        self._by_entries = by_entries
        self._tries = self.last_work = 0
        self._random = np.random.default_rng(self._seed)
        self._best_weights = [UNIT_WEIGHT * weights for weights in self._weights]
        cost = order_cost(model, order)
        self.order, self.width, self.log2_total = order, cost.width, cost.log2_total

    def step(self) -> bool:
        """One more try; True if it is the best so far."""
        kind = self._tries % 2
        weights = self._drawn(kind) if self._by_entries else self._weights[kind]
        order, width, log2_total, self.last_work = min_fill(
            *self._arrays,
            weights,
            self._log2_cardinalities,
            self._seed,
            self._tries,
            len(self.order) if self._by_entries else self.width,
            self.log2_total,
            self._most_work,
        )
        time.spend(ORDERING_STEP * self.last_work)
        self._tries += 1
        if not len(order) or (self._by_entries and not log2_total < self.log2_total):
            return False
        self.order, self.width, self.log2_total = order, width, log2_total
        self._best_weights[kind] = weights
        return True

    def _drawn(self, kind: int) -> IntArray:
        """The best weights of variables, or of their states, with a share of them drawn anew."""
        best, share = self._best_weights[kind], REDRAWN[self._tries // 2 % len(REDRAWN)]
        drawn = self._random.integers(*DRAWN, len(best)) * self._weights[kind]
        return np.where(self._random.random(len(best)) < share, drawn, best)
