"""Passes over a covering tree that takes new numbers again and again, and tells how its bound depends on them."""

from __future__ import annotations

from powersum.bounds.buckets.factor_links import FactorLinks
from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray
from powersum.model.model import Model


class FactorPasses(Passes):
    """Passes with derivatives by every table entry of the model, each variable of which lies in a factor."""

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
