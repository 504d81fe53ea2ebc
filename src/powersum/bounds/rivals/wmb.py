"""Weighted mini-bucket (Liu & Ihler 2011): a fixed-point heuristic on shifts and weights, with damping."""

from __future__ import annotations

import numpy as np

from powersum.bounds.buckets.wiring import intersections, products
from powersum.bounds.rivals.mini_buckets import MiniBuckets
from powersum.bounds.rivals.wmb_kernels import backward_beliefs, matching_pass
from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.core.errors import InputError
from powersum.model.result import Residuals
from powersum.model.rounding import certain
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest


class WMB:
    """Weighted mini-bucket with forward and backward passes; follows :class:`powersum.bounds.protocol.Tightener`.

    Every pass gives a valid bound, but not always a lower one: nothing stops the updates from overshooting.

    Parameters
    ----------
    problem, order
        The simplified problem and an elimination order of its variables, max variables last.
    threads, seed
        Accepted because every method accepts them.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket, unless a factor alone has more.
    damping
        Share of the way to the fixed point that each pass goes, between 0 and 1: smaller is slower and safer.

    Attributes
    ----------
    log_upper
        The best bound so far.
    last_value
        The bound of the latest pass, which may have risen.
    exact
        True where no variable is split.
    """

    def __init__(
        self,
        problem: Problem,
        order: IntArray,
        *,
        threads: int = 1,
        seed: int = 0,
        ibound: int = 1,
        damping: float = 0.05,
    ) -> None:
        del threads, seed
        if not 0.0 < damping <= 1.0:
            raise InputError(f"damping is {damping}: it must be above 0 and at most 1")
        self._damping = float(damping)
        self._buckets = MiniBuckets(problem, order, ibound)
        layout = self._buckets.layout
        parts = self._buckets.parts
        cardinalities = problem.model.cardinalities[order]
        self._shift_starts = (layout.n_static + layout.n_messages) + starts_of(
            products(*intersections(parts.edges, parts.starts, parts.positions), cardinalities)
        )
        self._weights: FloatArray = self._buckets.shared_evenly()
        self._tables = np.empty(layout.n_entries)
        self._entropies = np.empty(layout.n_entropies)
        self._beliefs = np.empty(layout.n_messages)
        self._before = np.empty(layout.n_messages)
        self._starts = np.append(self._buckets.starts, layout.n_nodes)
        self.exact = layout.n_parameters == 0
        self._buckets.run(np.arange(layout.n_nodes), self._weights, self._tables, self._entropies)
        self.last_value, self.log_error = self._buckets.total(), self._buckets.error()
        self.log_upper = certain(self.last_value, self.log_error)
        self._best = self._point()
        self._backward()

    def step(self, deadline: float) -> bool:
        """A full forward and backward pass."""
        del deadline
        if self.exact or self.log_upper == -np.inf:
            return False
        buckets = self._buckets
        matching_pass(
            buckets.layout.wiring,
            self._starts,
            buckets.parts.edges,
            self._shift_starts,
            buckets.tau,
            buckets.layout.n_static,
            self._damping,
            self._weights,
            buckets.pool,
            self._before,
            self._beliefs,
            self._tables,
            self._entropies,
            buckets.workspace,
        )
        self.last_value = buckets.total()
        error = buckets.error()
        log_upper = certain(self.last_value, error)
        if log_upper < self.log_upper:
            self.log_upper, self.log_error = log_upper, error
            self._best = self._point()
        self._backward()
        return True

    def bound(self) -> float:
        """The bound at the best point, from the problem's own tables."""
        here = self._point()
        self._go_to(self._best)
        self._buckets.passes.refill()
        value = certain(self._buckets.value(self._weights), self._buckets.error())
        self._go_to(here)
        self._buckets.value(self._weights)
        return value

    def certified(self) -> tuple[Forest, float]:
        """See :class:`powersum.bounds.protocol.Provable`."""
        here = self._point()
        self._go_to(self._best)
        forest = self._buckets.forest(self._weights)
        self._go_to(here)
        return forest, self.bound()

    def decode(self) -> IntArray:
        """States of max variables at the present point, last eliminated first."""
        return self._buckets.decode()

    def residuals(self) -> Residuals | None:
        """The fixed point has no residual that is comparable with those of descent methods."""
        return None

    def sizes(self) -> dict[str, int | float]:
        """Mini-buckets, table entries, shifts and weights."""
        return self._buckets.sizes()

    def _backward(self) -> None:
        """Beliefs for the next forward pass."""
        buckets = self._buckets
        layout = buckets.layout
        self._before[:] = buckets.pool[layout.n_static : layout.n_static + layout.n_messages]
        backward_beliefs(
            layout.wiring, buckets.tau, layout.n_static, layout.n_messages, buckets.pool, self._tables, self._beliefs
        )

    def _point(self) -> tuple[FloatArray, FloatArray]:
        return self._buckets.passes.parameters.copy(), self._weights.copy()

    def _go_to(self, point: tuple[FloatArray, FloatArray]) -> None:
        self._buckets.passes.parameters[:], self._weights[:] = point
