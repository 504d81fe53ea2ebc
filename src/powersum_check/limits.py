"""What a check may use: bytes of memory, counted before they are taken, and work, counted as it is done."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from powersum_check.errors import BadFile

MEMORY = 4_000_000_000
"""Bytes that files and steps may take unless the user says otherwise."""
WORK = 2e11
"""Entries of tables that a check may compute unless the user says otherwise: some minutes."""
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


@dataclass(slots=True)
class Work:
    """Work that may be done, and how much of it is done; the unit is an entry of a table that is computed."""

    limit: float
    done: float = 0.0


ACCOUNT: ContextVar[Work | None] = ContextVar("ACCOUNT", default=None)
"""Where work is counted, while a certificate is checked."""


def spend(entries: float) -> None:
    """Count work, before it is done; a call by itself counts as 500 entries."""
    if account := ACCOUNT.get():
        account.done += 500.0 + entries
        if account.done > account.limit:
            raise BadFile(f"checking takes more work than the {account.limit:g} entries that --work allows")
