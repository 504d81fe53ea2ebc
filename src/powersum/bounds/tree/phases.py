"""The phases of a covering tree whose size is free: trees for several orders, then ever larger ones."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from powersum.core import work_time as time


class Phase(enum.Enum):
    """What comes after the tree at work."""

    FIRST = enum.auto()
    """Trees for other orders, if there is time for them, or else a larger one."""

    SCREENING = enum.auto()
    """Small trees for other orders as long as there is time for them, then a race of the best of these."""

    RACE = enum.auto()
    """Larger trees for the best orders, of which the better half grows, and again, until one is left."""

    ORDERS = enum.auto()
    """Larger trees for the orders that are left to try, then the best of these once more."""

    BEST_ORDER = enum.auto()
    """The best of the orders tried goes on for a while before a larger tree has to do better."""

    GROWTH = enum.auto()
    """A larger tree."""

    LAST = enum.auto()
    """Nothing: it stays."""


class OwnTime:
    """Seconds of one's own: they stand still while others have their turns."""

    def __init__(self) -> None:
        self._before, self._begun = 0.0, 0.0

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._before += time.monotonic() - self._begun

    @property
    def now(self) -> float:
        """How many there have been, during one's turn."""
        return self._before + time.monotonic() - self._begun


@dataclass(slots=True)
class PhaseTurn:
    """How long a tree goes on at most before it makes room for another: until a moment of its time, or for so many
    rounds.
    """

    ends: float = math.inf
    rounds_left: float = math.inf

    def is_over(self, now: float) -> bool:
        """True when it has had its time."""
        return now >= self.ends or self.rounds_left <= 0
