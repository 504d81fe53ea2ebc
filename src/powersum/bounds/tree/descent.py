"""Limited-memory quasi-Newton descent (L-BFGS) on a flat vector that lives inside somebody else's array.

SciPy's version copies the vector to and from Python on every evaluation, cannot be stopped inside a line search at a
deadline and starts afresh whenever the function changes a little, as it does here at each new temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import FloatArray
from powersum.core.jit import compiled

_ARMIJO = 1e-4
_MOST_TRIALS = 12

STEPS_REMEMBERED = 16
"""Number of curvature pairs kept."""


class Curvature(NamedTuple):
    """What a descent has seen of a function's curvature: a row for each step, the newest last."""

    steps: FloatArray
    changes: FloatArray
    """Of the gradient."""


class Descent:
    """One line of descent: point, gradient, curvature pairs.

    Parameters
    ----------
    point
        The parameters, in single or double precision; written to in place.
    gradient
        Where ``evaluate`` leaves the gradient.
    evaluate
        Computes value and gradient at ``point``.
    farthest
        No parameter goes farther from 0 than this. Where zeros leave a direction flat, gradients are nothing but
        rounding and steps have no natural end; far out, rounding would pass for gain.

    Attributes
    ----------
    at_point
        True while the latest evaluation was made at the point as it is now: after a failed line search the point is
        put back, but whatever ``evaluate`` left behind belongs to the last trial.
    """

    def __init__(
        self, point: FloatArray, gradient: FloatArray, evaluate: Callable[[], float], *, farthest: float = np.inf
    ) -> None:
        self._point, self._gradient, self._evaluate = point, gradient, evaluate
        self._farthest = farthest
        self.at_point = False
        n, kind = point.size, point.dtype
        self._steps = np.zeros((STEPS_REMEMBERED, n), kind)
        self._changes = np.zeros((STEPS_REMEMBERED, n), kind)
        self._products = np.zeros(STEPS_REMEMBERED)
        self._count, self._newest = 0, -1
        self._start = np.empty(n, kind)
        self._old_gradient = np.empty(n, kind)
        self._direction = np.empty(n, kind)
        self.value = np.inf
        self.seconds = 0.0
        """What the latest evaluation took."""
        self.evaluations = 0

    def restart(self, *, forget: bool) -> None:
        """Take up the point as it is now, for a function that has changed; ``forget`` drops the curvature too."""
        if forget:
            self._count, self._newest = 0, -1
        self.value = self._timed()
        self.at_point = True

    def curvature(self, most: int = STEPS_REMEMBERED) -> Curvature:
        """A copy of what the newest steps have shown, of at most so many."""
        rows = (self._newest - np.arange(min(self._count, most))[::-1]) % len(self._products)
        return Curvature(self._steps[rows], self._changes[rows])

    def begin_with(self, curvature: Curvature) -> None:
        """Take over what another descent has found, in whatever precision, on a function that is much the same."""
        self._count, self._newest = 0, -1
        for step, change in zip(*curvature, strict=True):
            self._newest = (self._newest + 1) % len(self._products)
            self._steps[self._newest], self._changes[self._newest] = step, change
            self._keep_newest()

    def iterate(self, deadline: float) -> bool:
        """One descent step; False when no step along the direction lowers the value, or when time is up."""
        if self._try_direction(deadline):
            return True
        if not self._count or time.monotonic() + self.seconds > deadline:
            return False
        # Old curvature can mislead; the plain gradient cannot, but for rounding.
        self._count, self._newest = 0, -1
        return self._try_direction(deadline)

    def _timed(self) -> float:
        start = time.monotonic()
        value = self._evaluate()
        self.seconds = time.monotonic() - start
        self.evaluations += 1
        return value

    def _try_direction(self, deadline: float) -> bool:
        slope = _two_loops(
            self._steps, self._changes, self._products, self._count, self._newest, self._gradient, self._direction
        )
        # Curvature out of bounds gives a direction without one, and no step along it could be judged.
        if not -np.inf < slope < 0.0:
            return False
        self._start[:] = self._point
        self._old_gradient[:] = self._gradient
        old_value = self.value
        length = 1.0 if self._count else min(1.0, 1.0 / np.sqrt(-slope))
        for _ in range(_MOST_TRIALS):
            np.multiply(self._direction, length, out=self._point)
            self._point += self._start
            np.clip(self._point, -self._farthest, self._farthest, out=self._point)
            value = self._timed()
            self.at_point = True
            if value <= old_value + _ARMIJO * length * slope:
                self.value = value
                self._remember()
                return True
            if time.monotonic() + self.seconds > deadline:
                break
            # Minimum of the parabola through value, slope and the failed value, within reason.
            excess = value - old_value - length * slope
            shrink = -0.5 * length * slope / excess if np.isfinite(excess) and excess > 0 else 0.1
            length *= min(max(shrink, 0.1), 0.6)
        self._point[:] = self._start
        self.at_point = False
        self._gradient[:] = self._old_gradient
        return False

    def _remember(self) -> None:
        """Keep the step and the change of the gradient."""
        self._newest = (self._newest + 1) % len(self._products)
        step, change = self._steps[self._newest], self._changes[self._newest]
        np.subtract(self._point, self._start, out=step)
        np.subtract(self._gradient, self._old_gradient, out=change)
        self._keep_newest()

    def _keep_newest(self) -> None:
        """Count the pair that was just written, where it shows upward curvature; else it is as if it was not."""
        step, change = self._steps[self._newest], self._changes[self._newest]
        product = dot(step, change)
        if product > 1e-12 * np.sqrt(dot(step, step) * dot(change, change)):
            self._products[self._newest] = product
            self._count = min(self._count + 1, len(self._products))
        elif self._count == len(self._products):
            # The oldest pair has just been overwritten.
            self._count -= 1
            self._newest = (self._newest - 1) % len(self._products)
        else:
            self._newest = (self._newest - 1) % len(self._products)


@compiled
def dot(a: FloatArray, b: FloatArray) -> float:
    """Inner product in four strands: the same on every machine and for any number of threads."""
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    whole = a.size - a.size % 4
    for i in range(0, whole, 4):
        p += a[i] * b[i]
        q += a[i + 1] * b[i + 1]
        r += a[i + 2] * b[i + 2]
        s += a[i + 3] * b[i + 3]
    for i in range(whole, a.size):
        p += a[i] * b[i]
    return (p + q) + (r + s)


@compiled
def _add_multiple(target: FloatArray, amount: float, values: FloatArray) -> None:
    for i in range(target.size):
        target[i] += amount * values[i]


@compiled
def _two_loops(
    steps: FloatArray,
    changes: FloatArray,
    products: FloatArray,
    count: int,
    newest: int,
    gradient: FloatArray,
    direction: FloatArray,
) -> float:
    """Quasi-Newton direction; returns its slope."""
    memory = products.size
    amounts = np.empty(memory)
    for i in range(direction.size):
        direction[i] = -gradient[i]
    for back in range(count):
        k = (newest - back) % memory
        amounts[k] = dot(steps[k], direction) / products[k]
        _add_multiple(direction, -amounts[k], changes[k])
    if count > 0:
        scale = products[newest] / dot(changes[newest], changes[newest])
        for i in range(direction.size):
            direction[i] *= scale
    for back in range(count - 1, -1, -1):
        k = (newest - back) % memory
        amount = amounts[k] - dot(changes[k], direction) / products[k]
        _add_multiple(direction, amount, steps[k])
    return dot(direction, gradient)
