"""The slow mode: the error of every operation measured in ball arithmetic (python-flint), not taken from a proof.

Each function gets the doubles that went into an operation and those that came out, computes every entry anew in balls
of 200 bits, and returns a bound on the largest difference. So nothing is assumed of NumPy's ``exp``, ``log``, and the
proofs in :mod:`powersum_check.numbers` are not relied upon: only that errors pass through power sums unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from powersum_check.errors import BadFile
from powersum_check.numbers import FloatArray, U

BITS = 200


class Balls:
    """Measures errors; a parameter of :func:`powersum_check.check`."""

    def __init__(self) -> None:
        try:
            import flint
        except ImportError:
            raise BadFile("--exact needs python-flint: pip install python-flint") from None
        flint.ctx.prec = BITS
        self._ball: Any = flint.arb

    def _worst(self, differences: Sequence[Any]) -> float:
        """The largest absolute value that the balls may hold, as a double not below it."""
        worst = 0.0
        for difference in differences:
            size = float(abs(difference).upper())
            if math.isnan(size):
                return math.inf
            # The conversion to a double is to nearest.
            worst = max(worst, math.nextafter(size, math.inf))
        return worst

    def of_logs(self, probabilities: FloatArray, logs: FloatArray) -> float:
        """Logs of decimal numbers that were read as doubles, each with a relative error u."""
        ball = self._ball
        near = ball(1, U)
        pairs = zip(probabilities.ravel().tolist(), logs.ravel().tolist(), strict=True)
        return self._worst([(ball(p) * near).log() - ball(x) for p, x in pairs if p > 0.0])

    def of_sum(self, tables: Sequence[FloatArray], total: FloatArray) -> float:
        """The sum of tables, entry by entry."""
        flat = [np.broadcast_to(t, total.shape).ravel().tolist() for t in tables]
        differences = []
        for result, *terms in zip(total.ravel().tolist(), *flat, strict=True):
            if result > -math.inf:
                differences.append(sum((self._ball(t) for t in terms), self._ball(0)) - self._ball(result))
        return self._worst(differences)

    def of_power_sum(self, values: FloatArray, weight: float, result: FloatArray) -> float:
        """Power sums over the leading axis."""
        ball = self._ball
        differences = []
        columns = values.reshape(values.shape[0], -1).T.tolist()
        for column, value in zip(columns, result.ravel().tolist(), strict=True):
            if value > -math.inf:
                # Relative to the result, so that nothing overflows: the log of the sum is the error over the weight.
                terms = (((ball(t) - ball(value)) / ball(weight)).exp() for t in column if t > -math.inf)
                differences.append(ball(weight) * sum(terms, ball(0)).log())
        return self._worst(differences)

    def mean_field(self, rows: Sequence[FloatArray], weights: Sequence[float], tables: Sequence[Any]) -> float:
        """The bound of Jensen's inequality from below; ``tables`` are (scope, logs over the box, error)."""
        ball = self._ball
        shares = []
        total = ball(0)
        for row, weight in zip(rows, weights, strict=True):
            exact = [ball(x) for x in row.tolist()]
            size = sum(exact, ball(0))
            share = [x / size for x in exact]
            shares.append(share)
            for x, number in zip(share, row.tolist(), strict=True):
                if number > 0.0:
                    total -= ball(weight) * x * x.log()
        for scope, logs, error in tables:
            for index in np.ndindex(*logs.shape):
                if all(rows[v][s] > 0.0 for v, s in zip(scope, index, strict=True)):
                    term = ball(float(logs[index])) - ball(error)
                    for v, s in zip(scope, index, strict=True):
                        term *= shares[v][s]
                    total += term
        low = float(total.lower())
        return -math.inf if math.isnan(low) else math.nextafter(low, -math.inf)
