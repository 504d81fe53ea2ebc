"""Working time: what limits count, which is all but compiling and loading code; whoever asks is told when that begins.

Knows nothing of Numba, so that looking at the clock does not import it; :mod:`powersum.core.jit` keeps it up to date.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from powersum.core import work_time
from powersum.core.work_time import Meter, counted_by, metered


class CompilationClock:
    """Adds up the seconds during which code was compiled, or loaded where it was compiled before.

    Neither is the question's fault: a limit of a second would end before the first bound because code was being loaded.

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

    @property
    def ending(self) -> bool:
        """Whether something was compiled for a request, and that is an outermost one."""
        return self._compiling and self._depth == 1

    def leave(self) -> None:
        """The request is fulfilled."""
        self._depth -= 1
        if self._depth == 0:
            self._compiling = False
            self.leave_out(time.monotonic() - self._begun)

    def leave_out(self, seconds: float) -> None:
        """So many seconds that have passed in this thread are no part of what limits count."""
        if not self.counted:
            self.seconds += seconds
            work_time.leave_out(seconds)


compilation = CompilationClock()
"""The clock of this process."""


@contextmanager
def loading() -> Iterator[None]:
    """Modules are imported in the block: no limit counts that, as none counts the loading of compiled code."""
    begun, before = time.monotonic(), compilation.seconds
    try:
        yield
    finally:
        compiled = compilation.seconds - before
        compilation.leave_out(max(time.monotonic() - begun - compiled, 0.0))


def working_time() -> float:
    """``time.monotonic()`` as it were if nothing had had to be compiled: for measuring against time limits."""
    return work_time.monotonic() - _others_compiling()


def deadline_at(moment: float) -> float:
    """The deadline at which :func:`working_time` will reach a moment, if no other thread compiles anything."""
    return moment + _others_compiling()


def _others_compiling() -> float:
    """Seconds that are part of this thread's time and that limits do not count, for another thread compiled."""
    return 0.0 if metered() else compilation.seconds - work_time.left_out()


class Clock:
    """The working time spent on one question, its limit, and the deadlines that follow from it.

    It goes while work is done, as :meth:`running` says, and stands still otherwise: whoever looks at snapshots for an
    hour has not used up an hour. *Moments* are seconds of this clock; *deadlines* are those of
    :mod:`powersum.core.work_time`, which is what everything that computes looks at.

    Parameters
    ----------
    limit
        Seconds that may be spent.
    monotonic
        Tells the time, in place of ``time.monotonic``.
    meter
        Counts work in place of time while the clock goes: the limit is then one on work.
    """

    def __init__(
        self, limit: float = math.inf, *, monotonic: Callable[[], float] | None = None, meter: Meter | None = None
    ) -> None:
        self.limit = limit
        self._monotonic, self._meter = monotonic, meter
        self._before = 0.0
        self._begun: float | None = None

    @property
    def spent(self) -> float:
        """Seconds of work so far, compilation left out."""
        if self._begun is None:
            return self._before
        # Another thread may have compiled since before this block began: time does not go back for that.
        return self._before + max(self._working_time() - self._begun, 0.0)

    @property
    def left(self) -> float:
        """Seconds until the limit; below 0 after it."""
        return self.limit - self.spent

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of this block."""
        with counted_by(self._meter):
            self._begun = self._working_time()
            try:
                yield
            finally:
                self._before, self._begun = self.spent, None

    def deadline(self, seconds: float) -> float:
        """The deadline so many seconds from now."""
        return self._now() + seconds

    def deadline_at(self, moment: float) -> float:
        """The deadline at which this clock will reach a moment, if it goes on and no other thread compiles."""
        return self._now() + (moment - self.spent)

    def _now(self) -> float:
        return work_time.monotonic() if self._monotonic is None else self._monotonic()

    def _working_time(self) -> float:
        return self._now() - _others_compiling()
