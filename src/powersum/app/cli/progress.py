"""How a run shows itself: a live line on a terminal, plain lines in a pipe, or nothing."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from powersum.bounds.run import Callback
from powersum.core.ahead import helpers
from powersum.core.clock import compilation
from powersum.model.result import Snapshot

if TYPE_CHECKING:
    from rich.live import Live

# Seconds between two refreshings of the live line, and between two plain lines that are not worth one by themselves.
LIVE_INTERVAL, PLAIN_INTERVAL = 0.1, 2.0
CLOCK_RATE, SILENCE = 4, 1.0


COMPILING = "powersum: note: compiling"
"""How each line about compilation begins: without them a first run would be silent for long."""

WORTH_TELLING = 1.0
"""Seconds of compilation from which a run says how long it took."""


def announce_compilation(*, quiet: bool) -> None:
    """Say on stderr how far compilation is, should there be any, and at the end how long it took."""
    if quiet:
        compilation.announce = None
        return
    said = -math.inf

    def announce() -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < PLAIN_INTERVAL:
            return
        said = now
        done, total = helpers.progress()
        far = f" {done} of about {total}" if 0 < done < total else ""
        print(f"{COMPILING}{far}, first time only", file=sys.stderr, flush=True)

    compilation.announce = announce


def tell_compilation() -> None:
    """Say on stderr how long the run waited for code, where limits leave that out and anything was compiled."""
    told = compilation.announce is not None and compilation.compiled and not compilation.counted
    if told and compilation.seconds > WORTH_TELLING:
        took = f"{COMPILING} and loading took {compilation.seconds:.0f} s, which time limits do not count"
        # Nobody may listen any more.
        with suppress(OSError):
            print(took, file=sys.stderr, flush=True)


Line = Callable[[Snapshot, float], str]
"""Text for a snapshot and the change of the upper bound since the last one shown."""


@contextmanager
def progress(*, quiet: bool, stream: TextIO, line: Line, seconds: float = math.inf) -> Iterator[Callback | None]:
    """A callback that shows each snapshot in the way that suits the stream, and what is left of a time limit."""
    if quiet:
        yield None
        return
    line = with_time_left(line, seconds)
    if not stream.isatty():
        yield PlainLines(stream, line)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream, highlight=False)
    if console.is_dumb_terminal:
        yield PlainLines(stream, line)
        return
    # Refreshed by itself, so that the clock moves while something compiles and no bound does.
    shown = LiveLine(line)
    with Live(shown, console=console, refresh_per_second=CLOCK_RATE, transient=True) as live:
        shown.live = live
        yield shown


def upper_line(snapshot: Snapshot, change: float) -> str:
    """Sweep, bound, its change since the last line, and time."""
    return (
        f"sweep {snapshot.sweep:>6}   log value ≤ {snapshot.log_upper:>z14.6f}   "
        f"change {change:>+10.3g}  {snapshot.seconds:>8.2f} s"
    )


def two_sided_line(snapshot: Snapshot, change: float) -> str:
    """Both bounds, the gap between them, and time."""
    gap = snapshot.log_upper - snapshot.log_lower if snapshot.log_upper > -math.inf else 0.0
    return (
        f"{snapshot.log_lower:>z14.6f} ≤ log value ≤ {snapshot.log_upper:>z14.6f}   gap {gap:>z10.4g}  "
        f"{snapshot.seconds:>8.2f} s"
    )


def with_time_left(line: Line, seconds: float) -> Line:
    """The same line with how much of a time limit is left at its end; as it is, where there is no limit."""
    if seconds == math.inf:
        return line
    return lambda snapshot, change: f"{line(snapshot, change)}, {max(seconds - snapshot.seconds, 0.0):.3g} s left"


class PlainLines:
    """One line for sweeps 0, 1, 2, 5, 10, 20, 50, … and after some silence."""

    def __init__(self, stream: TextIO, line: Line) -> None:
        self._stream = stream
        self._line = line
        self._last: Snapshot | None = None
        self._printed = time.monotonic()

    def __call__(self, snapshot: Snapshot) -> None:
        now = time.monotonic()
        if not _is_round(snapshot.sweep) and now - self._printed < PLAIN_INTERVAL:
            return
        change = 0.0 if self._last is None else snapshot.log_upper - self._last.log_upper
        print(self._line(snapshot, change), file=self._stream, flush=True)
        self._last, self._printed = snapshot, now


class LiveLine:
    """One line that is overwritten, at most ten times a second; the change is that of the last sweep.

    Attributes
    ----------
    live
        The display, once there is one.
    """

    live: Live | None = None

    def __init__(self, line: Line) -> None:
        self._line = line
        self._text = "preparing"
        self._last: Snapshot | None = None
        self._begun, self._shown = time.monotonic(), 0.0

    def __rich__(self) -> str:
        """The line, and behind it a clock while nothing new comes."""
        now = time.monotonic()
        silent = now - max(self._shown, self._begun) > SILENCE
        return f"{self._text}   [dim]{now - self._begun:.0f} s since the start[/dim]" if silent else self._text

    def __call__(self, snapshot: Snapshot) -> None:
        change = 0.0 if self._last is None else snapshot.log_upper - self._last.log_upper
        self._last = snapshot
        now = time.monotonic()
        if now - self._shown >= LIVE_INTERVAL:
            self._shown = now
            self._text = self._line(snapshot, change)
            if self.live is not None:
                self.live.refresh()


def _is_round(number: int) -> bool:
    """0, 1, 2, 5, 10, 20, 50, 100, …"""
    digits = str(number)
    return number == 0 or (digits[0] in "125" and set(digits[1:]) <= {"0"})


def output_stream(json_output: str | None) -> TextIO:
    """Where text for people goes: stdout, unless JSON has taken it."""
    return sys.stderr if json_output == "-" else sys.stdout
