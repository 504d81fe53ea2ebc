"""How far a batch is: rows, rate and time left; a live line on a terminal, now and then a line in a log."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

LIVE_SECONDS, LOG_SECONDS = 0.2, 10.0
"""Seconds between two lines, on a terminal and elsewhere."""

BLOCK = 1 << 20


class Counter:
    """Counts rows, and says how far they are.

    Parameters
    ----------
    path
        The file of cases.
    done
        Rows that were done before.
    quiet
        Whether to say nothing.
    """

    def __init__(self, path: Path, *, done: int, quiet: bool) -> None:
        self._quiet, self._first, self._done = quiet, done, done
        self._total = 0 if quiet else _lines(path)
        self._live = sys.stderr.isatty()
        self._begun = self._told = time.monotonic()

    def __enter__(self) -> Counter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._quiet:
            self._say(end="\n")

    def advance(self) -> None:
        """One more row is done."""
        self._done += 1
        now = time.monotonic()
        if not self._quiet and now - self._told >= (LIVE_SECONDS if self._live else LOG_SECONDS):
            self._told = now
            self._say(end="" if self._live else "\n")

    def _say(self, end: str) -> None:
        new, seconds = self._done - self._first, time.monotonic() - self._begun
        rate = new / seconds if seconds > 0.0 else 0.0
        left = max(self._total - self._done, 0)
        parts: list[Any] = [f"{self._done} rows" if not left else f"{self._done} of about {self._total} rows"]
        if new:
            parts.append(f"{rate:.3g} rows/s")
        if left and rate:
            parts.append(f"{_time(left / rate)} left")
        before = "\r\x1b[K" if self._live else ""
        print(f"{before}powersum: {', '.join(parts)}", file=sys.stderr, end=end, flush=True)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _lines(path: Path) -> int:
    """Rows of a file of cases, about: its lines less the header."""
    with path.open("rb") as file:
        lines = sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b""))
    return lines - (path.suffix == ".csv")
