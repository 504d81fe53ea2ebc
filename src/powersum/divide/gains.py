"""Which variable to split by: what splitting by each has gained so far, and before that what the tree tells of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray

MOST_GAIN = 3.0
"""A part that falls by more than this, or that turns out to be impossible, counts as if it fell by so much."""

MEAN_SHARE = 0.2
"""What the mean over all parts counts beside the one that gains least, which is what the bound hangs on."""


class Gains:
    """What is known of variables.

    Variables are judged by the mean of what they have gained and of one guess, which follows their looseness: by as
    much as gains have followed it so far.

    Parameters
    ----------
    looseness
        How much each variable is likely to gain, in any unit.
    """

    def __init__(self, looseness: FloatArray) -> None:
        self._looseness = looseness
        self._sums, self._counts = np.zeros(len(looseness)), np.zeros(len(looseness))
        self._gained = self._guessed = 0.0

    def best(self, eligible: BoolArray) -> int:
        """The variable that promises most of those that are eligible, of which there must be one."""
        unit = self._gained / self._guessed if self._guessed > 0.0 else 1.0
        expected = (self._sums + unit * self._looseness) / (self._counts + 1.0)
        return int(np.argmax(np.where(eligible, expected, -np.inf)))

    def learn(self, variable: int, falls: Sequence[float]) -> None:
        """By how much the bounds of the parts of a box lay below its own."""
        capped = [min(max(fall, 0.0), MOST_GAIN) for fall in falls]
        gain = min(capped) + MEAN_SHARE * sum(capped) / len(capped)
        self._sums[variable] += gain
        self._counts[variable] += 1.0
        self._gained += gain
        self._guessed += self._looseness[variable]
