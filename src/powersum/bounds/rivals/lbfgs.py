"""Off-the-shelf L-BFGS on the paper's decomposed bound (eq. 5), weights by softmax, max variables as they are."""

from __future__ import annotations

import queue
import threading
import weakref
from typing import Any, cast

import numpy as np

from powersum.bounds.gdd import GDD
from powersum.core.arrays import FloatArray, IntArray
from powersum.model.rounding import certain
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest

MOST_ITERATIONS = 100_000

Points = queue.SimpleQueue[FloatArray | BaseException | None]


class LBFGS(GDD):
    """The bound of GDD, all shifts and weights at once by SciPy's L-BFGS.

    At weight 0 the bound has kinks, which quasi-Newton steps know nothing of: the run may end early.

    Parameters
    ----------
    problem, order
        The simplified problem and an elimination order of its variables, max variables last.
    threads, seed
        Accepted because every method accepts them.
    """

    def __init__(self, problem: Problem, order: IntArray, *, threads: int = 1, seed: int = 0) -> None:
        del threads
        super().__init__(problem, order, seed=seed)
        variable = self._wiring.regions.axis_variable
        self._axis_tau: FloatArray = problem.tau[variable]
        self._free = np.flatnonzero((self._axis_tau > 0) & (np.bincount(variable)[variable] > 1))
        self._group: IntArray = variable[self._free].astype(np.int64)
        self._best: FloatArray = self._start()
        self._worker: _Minimisation | None = None

    def step(self, deadline: float) -> bool:
        """One quasi-Newton step, line search included; False when SciPy finds no further step."""
        del deadline
        if not len(self._best):
            return False
        if self._worker is None:
            self._worker = _Minimisation(self, self._best.copy())
        point = self._worker.advance()
        if point is None:
            return False
        value, _ = self.value_and_gradient(point)
        error = self._error(0)
        log_upper = certain(value, error)
        if log_upper < self.log_upper:
            self.log_upper, self.log_error = log_upper, error
            self._best = point
        return True

    def bound(self) -> float:
        """The bound at the best point, from the model's own tables."""
        self._go_to(self._best)
        return super().bound()

    def certified(self) -> tuple[Forest, float]:
        """See :class:`powersum.bounds.protocol.Provable`."""
        self._go_to(self._best)
        return super().certified()

    def _start(self) -> FloatArray:
        """The present point as one vector: shifts, then a logit for each free weight."""
        with np.errstate(divide="ignore"):
            logits = np.log(self._state.weights[self._free])
        return np.concatenate([self._state.delta, logits])

    def _go_to(self, point: FloatArray) -> None:
        n = len(self._state.delta)
        self._state.delta[:] = point[:n]
        logits = point[n:]
        top = np.full(len(self._problem.tau), -np.inf)
        np.maximum.at(top, self._group, logits)
        parts = np.exp(logits - top[self._group])
        total = np.bincount(self._group, parts, minlength=len(top))
        self._state.weights[self._free] = self._axis_tau[self._free] * parts / total[self._group]

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The bound at a point, where the method then stands, and its gradient."""
        self._go_to(point)
        value = self._rebuilt()
        of_delta, entropies = self.gradients()
        weights, entropy = self._state.weights[self._free], entropies[self._free]
        tau = self._axis_tau[self._free]
        mean = np.bincount(self._group, weights * entropy, minlength=len(self._problem.tau))[self._group] / tau
        return value, np.concatenate([of_delta, weights * (entropy - mean)])


class _Minimisation:
    """SciPy's minimiser one iteration at a time: it runs in a thread of its own and waits after each.

    SciPy calls back but cannot be called step by step; starting it anew for each step would lose what it has learnt.
    The thread holds its owner only weakly, and ends with it.
    """

    def __init__(self, owner: LBFGS, start: FloatArray) -> None:
        self._points: Points = queue.SimpleQueue()
        self._go: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._ended = False
        arguments = (weakref.ref(owner), start, self._points, self._go)
        weakref.finalize(owner, self._go.put, False)
        # A daemon: a run that is given up must not keep the program from ending.
        threading.Thread(target=_minimise, args=arguments, daemon=True).start()

    def advance(self) -> FloatArray | None:
        """The point after the next iteration; None when there is none."""
        if self._ended:
            return None
        self._go.put(True)
        point = self._points.get()
        if isinstance(point, BaseException):
            raise point
        self._ended = point is None
        return point


def _minimise(owner: weakref.ref[LBFGS], start: FloatArray, points: Points, go: queue.SimpleQueue[bool]) -> None:
    from scipy.optimize import minimize

    # Only the limits of the machine end it: when to stop is for others to say.
    options: Any = {"maxiter": MOST_ITERATIONS, "maxfun": MOST_ITERATIONS, "ftol": 1e-12, "gtol": 1e-8}

    def wait(point: Any) -> None:
        points.put(point.copy())
        if not go.get():
            raise StopIteration

    def value_and_gradient(point: Any) -> Any:
        method = owner()
        if method is None:
            raise StopIteration
        return method.value_and_gradient(point)

    try:
        if go.get():
            minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", callback=cast(Any, wait), options=options)
        points.put(None)
    except BaseException as error:
        points.put(error)
