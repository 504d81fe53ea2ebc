"""The time that compilation takes on first use: no time limit counts it, and whoever asks is told when it begins.

Knows nothing of Numba, so that looking at the clock does not import it; :mod:`powersum.core.jit` keeps it up to date.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class CompilationClock:
    """Adds up the seconds during which something was compiled and stored; loading what was stored before is work.

    Attributes
    ----------
    seconds
        Seconds spent on it so far in this process that no limit counts, without what is under way.
    counted
        True where limits count compilation too, because whoever set them does not wait for it.
    announce
        Called once, when the first compilation begins; nothing by default.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.counted = False
        self.announce: Callable[[], None] | None = None
        self._depth = 0
        self._begun = 0.0
        self._compiling = False

    def enter(self) -> None:
        """The compiler is asked for something; requests nest."""
        if self._depth == 0:
            self._begun, self._compiling = time.monotonic(), False
        self._depth += 1

    def compile(self) -> bool:
        """It has to be compiled; True for the first time within an outermost request."""
        first, self._compiling = not self._compiling, True
        if self.announce is not None:
            self.announce()
            self.announce = None
        return first

    def leave(self) -> bool:
        """The request is fulfilled; True if it was an outermost one for which something was compiled."""
        self._depth -= 1
        if self._depth > 0 or not self._compiling:
            return False
        self._compiling = False
        if not self.counted:
            self.seconds += time.monotonic() - self._begun
        return True


compilation = CompilationClock()
"""The clock of this process."""


def working_time() -> float:
    """``time.monotonic()`` as it were if nothing had had to be compiled: for measuring against time limits."""
    return time.monotonic() - compilation.seconds


def deadline_at(moment: float) -> float:
    """The ``time.monotonic()`` at which :func:`working_time` will reach a moment, if nothing more is compiled."""
    return moment + compilation.seconds
