"""Passes over a covering tree that takes new numbers again and again, and tells how its bound depends on them."""

from __future__ import annotations

import numpy as np

from powersum.bounds.buckets.factor_links import FactorLinks
from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.tree_wiring import (
    COLUMNS,
    ENTROPY,
    STATES,
    TABLE,
)
from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.model.model import Model


class FactorPasses(Passes):
    """Passes with derivatives by every table entry of the model, each variable of which lies in a factor.

    Here gradients are to be had at temperature 0, too: where a maximum has a kink they are the mean of those of the
    best states. So one pass gives the true bound and a slope of it.
    """

    def __init__(self, layout: Layout, model: Model, order: IntArray, tau: FloatArray, *, threads: int = 1) -> None:
        super().__init__(layout.with_factor_slopes(), model, order, tau, threads=threads)
        self._links = FactorLinks(layout, model, order)

    def take(self, model: Model) -> None:
        """Go on with a model of the same structure and other numbers in its tables; parameters stay as they are."""
        self._model = model
        self._constant = self._links.fill(model.log_values, self.pool[: self.layout.n_static])
        self._fixed_error = self._fixed_errors.of(model)

    def factor_beliefs(self, beliefs: FloatArray) -> None:
        """Derivatives of the value by all table entries of the model, at the latest gradient."""
        self._links.gather(self._slopes[self.layout.factor_slopes :], beliefs)

    def _run_forward(self, tables: FloatArray | None) -> None:
        super()._run_forward(tables)
        cold = np.flatnonzero(self.weights == 0.0)
        if tables is not None and cold.size:
            _choose(cold, self.layout.wiring.nodes, tables, self._entropies)


@compiled
def _choose(cold: IntArray, nodes: IntArray, tables: FloatArray, entropies: FloatArray) -> None:
    """Conditionals of maximised variables in place of their tables: best states of a column share it equally."""
    for node in cold:
        n, start, states = nodes[node, COLUMNS], nodes[node, TABLE], nodes[node, STATES]
        if states == 2:
            # Unsigned places and no branches, so that it runs at the speed of memory.
            low, high = np.uint64(start), np.uint64(start + n)
            for column in range(np.uint64(n)):
                gap = tables[low + column] - tables[high + column]
                first = 0.5 * (np.float64(gap > 0.0) + np.float64(gap >= 0.0))
                tables[low + column] = first
                tables[high + column] = 1.0 - first
        else:
            end = states * n
            for column in range(start, start + n):
                top, ties = tables[column], 1.0
                for entry in range(column + n, start + end, n):
                    if tables[entry] > top:
                        top, ties = tables[entry], 1.0
                    elif tables[entry] == top:
                        ties += 1.0
                for entry in range(column, start + end, n):
                    tables[entry] = 1.0 / ties if tables[entry] == top else 0.0
        entropy = nodes[node, ENTROPY]
        if entropy >= 0:
            # Nothing depends on how a weight of 0 is divided.
            for place in range(entropy, entropy + n):
                entropies[place] = 0.0
