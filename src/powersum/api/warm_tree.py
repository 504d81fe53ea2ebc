"""A covering tree that takes new numbers again and again and goes on from the shifts of the last time.

Where no tree fits there are single factors in its place.
"""

from __future__ import annotations

import math
from threading import Lock

import numpy as np

from powersum.bounds.buckets.factor_passes import FactorPasses
from powersum.bounds.buckets.wiring import Layout
from powersum.bounds.single import single_bound
from powersum.bounds.tree import CoveringTree
from powersum.bounds.tree.descent import Descent
from powersum.bounds.tree.fixed_tree import FARTHEST
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.clock import deadline_at, working_time
from powersum.core.interrupt import interruptible
from powersum.model.limits import Limits
from powersum.model.model import Model
from powersum.model.rounding import certain, magnitude
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem

COLDEST = 0.005
"""Temperature of max variables at which shifts are improved where the bound is asked for at 0: there it has kinks."""


class WarmTree:
    """One structure, found and tightened with the numbers of a problem; then any numbers.

    Parameters
    ----------
    problem
        The problem, at least one variable of which is left.
    limits
        Sweeps and time of the first tightening; memory, threads and seed.
    temperature
        Weight of max variables; 0 is the true bound.
    ibound
        As in :class:`powersum.bounds.tree.CoveringTree`.

    Attributes
    ----------
    start
        Shifts and logits of weights after the first tightening.
    exact
        True where there are none.
    """

    def __init__(self, problem: Problem, limits: Limits, *, temperature: float, ibound: int | None) -> None:
        self._model = problem.model
        self._temperature = temperature
        layout, order, self.start = _tightened(problem, limits, ibound)
        self._passes = FactorPasses(layout, problem.model, order, problem.tau, threads=limits.threads)
        self.exact = self.start.size == 0
        self._descent: Descent | None = None
        self._beliefs = np.empty(problem.model.log_values.size)
        self._lock = Lock()

    def run(self, model: Model, point: FloatArray, steps: int) -> tuple[float, FloatArray, FloatArray]:
        """The bound for a model of this structure after some steps of descent from a point.

        Returns also its derivatives, which the next call overwrites, and where the steps have led.
        """
        with self._lock:
            passes = self._passes
            self._model = model
            passes.take(model)
            passes.parameters[:] = point
            fresh = False
            if steps and not self.exact:
                fresh = self._descend(steps) and self._guide == self._temperature
            if fresh and self._descent is not None:
                value = self._descent.value
            else:
                value = passes.value_and_gradient(self._temperature)
            passes.factor_beliefs(self._beliefs)
            bound = certain(value, passes.error())
            # A point that bounds nothing is no place to go on from.
            return bound, self._beliefs, passes.parameters.copy() if math.isfinite(bound) else point

    @property
    def _guide(self) -> float:
        """The temperature of descent."""
        return self._temperature or (COLDEST if self._passes.has_max else 0.0)

    def _descend(self, steps: int) -> bool:
        """Improve the point; True where the latest pass was made at it."""
        passes = self._passes
        if self._descent is None:
            self._descent = Descent(
                passes.parameters,
                passes.gradient,
                lambda: passes.value_and_gradient(self._guide),
                farthest=FARTHEST * (1.0 + magnitude(self._model.log_values)),
            )
        # Curvature changes little from one set of numbers to the next.
        self._descent.restart(forget=False)
        for _ in range(steps):
            if not self._descent.iterate(math.inf):
                break
        return self._descent.at_point


class WarmFactors:
    """What is left where no tree fits the memory: every factor by itself, with nothing to tighten.

    Parameters
    ----------
    problem
        The problem, at least one variable of which is left.
    temperature
        Weight of max variables; 0 is the true bound.
    """

    exact = False

    def __init__(self, problem: Problem, *, temperature: float) -> None:
        self._tau = np.where(problem.tau == 0.0, temperature, problem.tau)
        self.start = np.zeros(0)

    def run(self, model: Model, point: FloatArray, steps: int) -> tuple[float, FloatArray, FloatArray]:
        """As that of :class:`WarmTree`; there are no shifts, and so no steps."""
        del steps
        gradient = np.empty(model.log_values.size)
        return single_bound(model, self._tau, gradient=gradient), gradient, point


def _tightened(problem: Problem, limits: Limits, ibound: int | None) -> tuple[Layout, IntArray, FloatArray]:
    """Wiring, order and point of a tree after the first tightening."""
    end = working_time() + limits.seconds
    order = elimination_order(problem.model, problem.tau, seed=limits.seed)
    # Gradients by table entries are computed in double precision, which takes up to twice what the descent does.
    tree = CoveringTree(
        problem, order, threads=limits.threads, seed=limits.seed, ibound=ibound, memory=int(limits.bytes / 2)
    )
    with interruptible() as interrupt:
        for _ in range(limits.sweeps or 0):
            if interrupt.cause is not None or working_time() >= end or not tree.step(deadline_at(end)):
                break
    best = tree.best_tree
    best.bound()
    return best.layout, best.order, best.passes.parameters.copy()
