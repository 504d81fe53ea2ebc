"""Heats: of all who take part the better half takes part again, and again, until few are left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Heats(Generic[T]):
    """Who waits for a turn in the present heat, and who has had one.

    Parameters
    ----------
    ranked
        Puts those who have arrived in order, the best first.
    """

    def __init__(self, ranked: Callable[[list[T]], list[T]]) -> None:
        self._ranked = ranked
        self._waiting: list[T] = []
        self._arrived: list[T] = []

    def arrive(self, one: T) -> None:
        """One has had its turn in this heat."""
        self._arrived.append(one)

    def next(self, left: int = 1) -> T | None:
        """Whose turn it is; None once no more than so many are left."""
        while not self._waiting and len(self._arrived) > left:
            ranked = self._ranked(self._arrived)
            self._waiting, self._arrived = ranked[: (len(ranked) + 1) // 2], []
            if len(self._waiting) <= left:
                self._waiting, self._arrived = [], self._waiting
        return self._waiting.pop(0) if self._waiting else None

    @property
    def left(self) -> list[T]:
        """Who is left, once nobody's turn is next; the best first where there was more than one heat."""
        return self._arrived
