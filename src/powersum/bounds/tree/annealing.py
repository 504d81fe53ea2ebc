"""The temperature of max variables while a bound is tightened.

At temperature ε > 0 a max variable is a power sum of weight ε. Power sums grow with their weight, so the bound at ε
lies above the true one (ε = 0) at the same shifts: every iterate stays valid, and the function becomes smooth.
"""

from __future__ import annotations

LEAST_COST = 1e-4
"""A temperature is taken to cost at least this, in nats: below it, what single precision shows of gains is rounding."""

FIRST_TEMPERATURE = 0.5
"""Where it begins."""

LAST_TEMPERATURE = 0.005
"""Where it ends."""


class Annealing:
    """Lower the temperature whenever what is still gained at it is small beside what it costs.

    The cost of a temperature is the distance between the bound at it and the true bound at the same point; once a few
    iterations gain less than a share of that, the colder function is the better guide.

    Parameters
    ----------
    first, last
        Temperatures to start from and to end at.
    factor
        What the temperature is multiplied with each time.
    patience
        Share of the cost that a round of iterations must gain to stay.
    """

    def __init__(
        self,
        *,
        first: float = FIRST_TEMPERATURE,
        last: float = LAST_TEMPERATURE,
        factor: float = 0.5,
        patience: float = 0.05,
    ) -> None:
        self.temperature = first
        self._first, self._last, self._factor, self._patience = first, last, factor, patience

    @property
    def finished(self) -> bool:
        """True at the last temperature."""
        return self.temperature <= self._last

    def cooled(self, gain: float, cost: float, time_share: float) -> bool:
        """Judge a round of iterations; True when the temperature has been lowered.

        Where ``time_share`` of the time allowed is over, the temperature is at most what equal times for all
        temperatures would make it, so that a run does not end warm.
        """
        if self.finished:
            return False
        planned = self._first * (2.0 * self._last / self._first) ** min(time_share, 1.0)
        if gain > self._patience * max(cost, LEAST_COST) and self.temperature <= planned:
            return False
        self.temperature = max(self.temperature * self._factor, self._last)
        return True
