"""Value and gradient of a covering tree in single precision: what a descent is guided by, and never a claim.

Twice the numbers fit into a cache line and into a vector register. So that large constants cost no digits, static
tables and messages are centred: the largest entry of each is taken off and kept in double precision.
"""

from __future__ import annotations

import math

import numpy as np

from powersum.bounds.buckets.kernels import NOTHING_SINGLE
from powersum.bounds.buckets.passes import lonely_constant
from powersum.bounds.buckets.statics import fill_static
from powersum.bounds.buckets.sweeps import Sweeps
from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.lanes import roomy
from powersum.model.model import Model


class SinglePasses(Sweeps):
    """Passes in single precision. There is no ``value`` here: a bound is what :class:`Passes` has at the same point."""

    def __init__(self, layout: Layout, model: Model, order: IntArray, tau: FloatArray, *, threads: int = 1) -> None:
        # The backward pass has no use for messages: their gradients take their place, the others lie behind the pool.
        self._whole = roomy(layout.pool_size + 2 * layout.n_shifts, np.float32)
        super().__init__(
            layout,
            tau[order][layout.bucket],
            self._whole[: layout.pool_size],
            offsets=np.zeros(layout.n_nodes),
            threads=threads,
        )
        static = np.zeros(layout.n_static)
        self._constant = fill_static(layout, model, order, static) + lonely_constant(layout, model, order, tau)
        if static.size:
            starts = layout.group_source[:-1]
            centres = np.maximum.reduceat(static, starts)
            # A table of impossible states only has no centre.
            centres[np.isneginf(centres)] = 0.0
            static -= np.repeat(centres, np.diff(layout.group_source))
            self._constant += float(centres.sum())
        # Numbers too far below 0 for single precision are as good as impossible, for a guide.
        self.pool[: layout.n_static] = np.maximum(static, NOTHING_SINGLE)

    def _allocate(self) -> None:
        self._tables = roomy(int(self.layout.wiring.packed[-1]), np.float32)
        self._entropies = np.empty(self.layout.n_entropies, np.float32)
        self._slopes = self._whole[self.layout.n_static :]

    def guide(self, temperature: float) -> float:
        """About the bound with max variables at a temperature > 0; its gradient goes to ``gradient``."""
        roots = self._run_both(temperature)
        total = float(self._offsets.sum()) + float(roots.sum(dtype=np.float64)) + self._constant
        if math.isnan(total):
            return math.inf
        return total if total > 0.5 * NOTHING_SINGLE else -math.inf
