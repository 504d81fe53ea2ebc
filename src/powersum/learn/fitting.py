"""``fit``: the parameters that minimise a loss, by SciPy's quasi-Newton method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.core.interrupt import interruptible
from powersum.learn.example import Example
from powersum.learn.loss import Loss
from powersum.model.limits import whole_number

SETTLED = 1e-4
"""A run of the optimiser that gains less than this share of the loss is the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What was learned.

    Parameters
    ----------
    parameters
        The best that were found.
    loss
        Their loss.
    history
        The loss at the start and after each iteration.
    exact_given
        Whether the loss bounds that of the likelihood: see :class:`Loss`.
    reason
        Why it stopped.
    """

    parameters: FloatArray
    loss: float
    history: tuple[float, ...]
    exact_given: bool
    reason: str


def fit(
    examples: Iterable[Example],
    objective: str = "likelihood",
    *,
    start: Any = None,
    iterations: int = 100,
    **options: Any,
) -> Fit:
    """Learn parameters from examples.

    Parameters
    ----------
    examples, objective
        As in :class:`Loss`.
    start
        Where to start, zeros if not given. Hidden variables whose states could be exchanged need a start that tells
        them apart, such as small random numbers.
    iterations
        Iterations of L-BFGS at most.
    **options
        As in :class:`Loss`. For another optimiser call a :class:`Loss`, which returns value and gradient.

    Examples
    --------
    >>> import powersum as ps
    >>> coin = ps.Model.from_tables({"side": [1.0, 1.0]})
    >>> seen = [ps.learn.Example(coin, [0, -1], {"side": side}) for side in (0, 0, 0, 1)]
    >>> learned = ps.learn.fit(seen)
    >>> round(float(learned.parameters[0]), 3)  # log(3), the odds
    1.099
    """
    from scipy import optimize

    # Its types know no functions inside functions.
    lbfgs: Any = optimize.minimize
    loss = Loss(examples, objective, **options)
    theta = np.zeros(loss.n_parameters) if start is None else np.array(start, dtype=np.float64)
    most = whole_number(iterations, "iterations", 0)
    best = theta, loss(theta)[0]
    if not np.isfinite(best[1]):
        raise InputError("the loss is not finite at the start: the labels are impossible there")
    history = [best[1]]
    reason = "no iteration was asked for"
    with interruptible() as interrupt:

        def watched(parameters: FloatArray) -> tuple[float, FloatArray]:
            nonlocal best
            value, slopes = loss(parameters)
            if value < best[1]:
                best = parameters.copy(), value
            return value, slopes

        def after(parameters: FloatArray) -> None:
            history.append(best[1])
            if interrupt.cause is not None or len(history) > most:
                raise StopIteration

        # Bounds get tighter on the way, which a line search may take for the end: it is one if the next one agrees.
        while len(history) <= most and interrupt.cause is None:
            before = best[1]
            found = lbfgs(watched, best[0], jac=True, method="L-BFGS-B", callback=after)
            reason = str(found.message)
            if before - best[1] <= SETTLED * max(1.0, abs(before)):
                break
        if interrupt.cause is not None:
            reason = f"interrupted by {interrupt.cause}"
        elif len(history) > most:
            reason = f"{most} iterations are over"
    return Fit(best[0], best[1], tuple(history), loss.exact_given, reason)
