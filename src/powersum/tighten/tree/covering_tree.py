"""CoveringTree: weighted mini-bucket bound, shifts and weights optimised jointly, max variables annealed."""

from __future__ import annotations

import time

import numpy as np

from powersum.arrays import IntArray
from powersum.problem import Problem
from powersum.result import Residuals
from powersum.tighten.tree.annealing import Annealing
from powersum.tighten.tree.decoding import decode
from powersum.tighten.tree.descent import Descent
from powersum.tighten.tree.partition import limits_of, partition
from powersum.tighten.tree.passes import Passes
from powersum.tighten.tree.scopes import scopes_in_order
from powersum.tighten.tree.wiring import lay_out

ROUND = 5
"""Iterations between two evaluations of the true bound."""

CONVERGED = 1e-7
"""A round that gains less than this share of the bound, at the last temperature, is the last one."""


class CoveringTree:
    """Upper bound by mini-buckets of limited size; follows :class:`powersum.tighten.protocol.Tightener`.

    Parameters
    ----------
    problem
        The simplified problem.
    order
        Elimination order of its variables, max variables last.
    threads
        Independent branches of the tree run side by side; results do not depend on it.
    seed
        Present for the sake of the protocol: nothing here is random.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket.
    memory
        Bytes that may be allocated.

    Attributes
    ----------
    exact
        True when every bucket is one mini-bucket: ``log_upper`` is then the value itself.
    """

    def __init__(
        self,
        problem: Problem,
        order: IntArray,
        *,
        threads: int = 1,
        seed: int = 0,
        ibound: int | None = None,
        memory: int | None = None,
    ) -> None:
        model = problem.model
        self._problem = problem
        self._order = np.asarray(order, dtype=np.int64)
        scopes = scopes_in_order(model, self._order)
        parts = partition(scopes, limits_of(ibound if ibound is not None else 10))
        self._layout = lay_out(parts, scopes, model.cardinalities[self._order])
        self._passes = Passes(self._layout, model, problem.tau, self._order, threads=threads)
        self.exact = self._layout.n_parameters == 0
        self.log_upper = self._passes.value()
        self._best = self._passes.parameters.copy()
        self._annealing = Annealing()
        self._descent: Descent | None = None
        self._done = self.exact or self.log_upper == -np.inf

    def step(self, deadline: float) -> bool:
        """A few iterations of joint descent at the present temperature; False when nothing is left to gain."""
        if self._done:
            return False
        passes = self._passes
        if self._descent is None:
            self._descent = Descent(
                passes.parameters,
                passes.gradient,
                lambda: passes.value_and_gradient(self._annealing.temperature),
            )
            self._descent.restart(forget=True)
        descent = self._descent
        before = descent.value
        moved = True
        for _ in range(ROUND):
            if time.monotonic() + descent.seconds > deadline:
                return True
            moved = descent.iterate(deadline)
            if not moved:
                break
        gain = before - descent.value
        value = descent.value
        if passes.has_max:
            value = passes.value(sums_are_fresh=True)
        if value < self.log_upper:
            self.log_upper = value
            self._best[:] = passes.parameters
        if time.monotonic() > deadline:
            return True
        cooled = passes.has_max and self._annealing.cooled(gain, descent.value - value)
        if cooled:
            descent.restart(forget=True)
        elif gain < CONVERGED * max(1.0, abs(descent.value)) and (not passes.has_max or self._annealing.finished):
            self._done = True
        return not self._done

    def bound(self) -> float:
        """The bound at the best point, from the problem's own tables."""
        self._go_to_best()
        self._passes.refill()
        return self._passes.value()

    def decode(self) -> IntArray:
        """States of max variables, last eliminated first, each the best given those already set."""
        self._go_to_best()
        self._passes.value()
        return decode(self._passes, self._problem, self._order)

    def residuals(self) -> Residuals | None:
        """Largest mismatch of beliefs and of weighted entropies between mini-buckets of one variable."""
        if self.exact or self.log_upper == -np.inf:
            return Residuals(0.0, 0.0)
        self._go_to_best()
        self._passes.value_and_gradient(self._annealing.temperature)
        gradient = np.abs(self._passes.gradient)
        n = self._layout.n_shifts
        return Residuals(float(gradient[:n].max(initial=0.0)), float(gradient[n:].max(initial=0.0)))

    def sizes(self) -> dict[str, int | float]:
        """Mini-buckets, table entries, parameters and bytes."""
        layout = self._layout
        return {
            "mini_buckets": layout.n_nodes,
            "split_variables": len(layout.shared_starts) - 1,
            "entries": layout.n_entries,
            "largest_mini_bucket": int((layout.wiring.states * layout.wiring.columns).max(initial=0)),
            "parameters": layout.n_parameters,
            "temperature": self._annealing.temperature if self._passes.has_max else 0.0,
        }

    def one_pass(self) -> float:
        """Bound at the present temperature and all gradients at the present point, for measurements."""
        return self._passes.value_and_gradient(self._annealing.temperature)

    def _go_to_best(self) -> None:
        """Bring the best point back; descent, if it goes on, goes on from there."""
        if not np.array_equal(self._passes.parameters, self._best):
            self._passes.parameters[:] = self._best
        self._descent = None
