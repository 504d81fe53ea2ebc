"""A clock for tests: time passes only by looking at it, so that limits count work and no machine is too slow."""

from __future__ import annotations


class Ticks:
    """Goes on by one step at every look; stands for the module ``time``, or for a function that tells the time."""

    def __init__(self, step: float = 1.0) -> None:
        self.step, self.now = step, 0.0

    def monotonic(self) -> float:
        self.now += self.step
        return self.now

    def spend(self, seconds: float) -> None:
        """Work is not counted here."""

    __call__ = monotonic
