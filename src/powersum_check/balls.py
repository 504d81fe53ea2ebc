"""The slow mode: the error of every operation measured in ball arithmetic (python-flint), not taken from a proof.

Each function gets the doubles that went into an operation and those that came out, computes every entry anew in balls
of 200 bits, and returns a bound on the largest difference. So nothing is assumed of NumPy's ``exp``, ``log``, and the
proofs in :mod:`powersum_check.numbers` are not relied upon: only that errors pass through power sums unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from powersum_check.errors import BadFile
from powersum_check.model import Factor
from powersum_check.numbers import FloatArray, Table, U

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

    def measured(self, factor: Factor) -> Factor:
        """A factor with the measured error of its logs."""
        if factor.probabilities is None:
            return factor
        error = self.of_logs(factor.probabilities, factor.table.values)
        return replace(factor, table=Table(factor.table.values, error, error))

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

    def _exact(self, shares: FloatArray) -> list[Any]:
        """The distribution that shares are, once divided by their exact sum."""
        total = sum(map(self._ball, shares.tolist()), self._ball(0))
        return [self._ball(share) / total for share in shares.tolist()]

    def of_entropy(self, shares: FloatArray, result: float) -> float:
        """The entropy of a distribution."""
        terms = (share * share.log() for share in self._exact(shares[shares > 0.0]))
        return self._worst([sum(terms, self._ball(result))])

    def of_mean(self, values: FloatArray, shares: Sequence[FloatArray | None], result: FloatArray) -> float:
        """Means over the axes that have shares."""
        ball = self._ball
        exact = [None if own is None else self._exact(own) for own in shares]
        kept = [a for a, own in enumerate(shares) if own is None]
        differences = {place: -ball(float(result[place])) for place in np.ndindex(result.shape)}
        for place in np.ndindex(values.shape):
            if (term := ball(float(values[place]))) != 0:
                for s, own in zip(place, exact, strict=True):
                    term *= 1 if own is None else own[s]
                differences[tuple(place[a] for a in kept)] += term
        return self._worst([d for place, d in differences.items() if result[place] > -math.inf])
