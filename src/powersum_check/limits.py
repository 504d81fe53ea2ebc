"""What a check may use: bytes of memory, counted before they are taken, and work, counted as it is done."""

from __future__ import annotations

from dataclasses import dataclass

from powersum_check.errors import BadFile

MEMORY = 4_000_000_000
"""Bytes that files and steps may take unless the user says otherwise."""
PER_ENTRY = 64
"""Bytes that are counted for an entry of an array, or a byte of JSON: lists of it may be made while it is used."""


def afford(what: str, needed: float, memory: float) -> None:
    """Refuse what would take more bytes than are allowed."""
    if needed > memory:
        raise BadFile(f"{what} would take {needed:.0f} bytes, and --memory allows {memory:.0f}")


@dataclass(slots=True)
class Room:
    """Bytes that may be used, and how many of them are taken."""

    limit: int
    taken: int = 0

    @property
    def left(self) -> int:
        return self.limit - self.taken

    def take(self, what: str, needed: int) -> None:
        """Count what is kept; refuse it if it is too much."""
        afford(what, needed, self.left)
        self.taken += needed
