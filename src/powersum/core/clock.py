"""Working time: what limits count, which is all but compiling and loading code; whoever asks is told when that begins.

Knows nothing of Numba, so that looking at the clock does not import it; :mod:`powersum.core.jit` keeps it up to date.
"""

from __future__ import annotations

import math
import threading
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
    compiled
        True once something had to be compiled.
    announce
        Called whenever a function is about to be compiled that no other waits for; nothing by default.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.counted = False
        self.announce: Callable[[], None] | None = None
        self.compiled = False
        self._own = _Wait()
        self._lock = threading.Lock()
        self._waiting = 0
        self._until = 0.0

    def enter(self, since: float | None = None) -> None:
        """A wait of this thread for code begins, now or at a moment of ``time.monotonic()``; calls nest."""
        if self._own.depth == 0:
            now = time.monotonic()
            self._own.begun = now if since is None else since
            with self._lock:
                self._count(now, self._own.begun)
                self._waiting += 1
        self._own.depth += 1

    def compile(self) -> None:
        """The code has to be compiled."""
        self.compiled = True
        if self.announce is not None:
            self.announce()

    def leave(self) -> None:
        """The code is there."""
        self._own.depth -= 1
        if self._own.depth == 0:
            now = time.monotonic()
            with self._lock:
                self._count(now, now)
                self._waiting -= 1
            if not self.counted:
                work_time.leave_out(now - self._own.begun)

    def _count(self, now: float, since: float) -> None:
        """Add what has passed; time in which several threads wait is added once."""
        begun = self._until if self._waiting else max(since, self._until)
        if not self.counted:
            self.seconds += now - begun
        self._until = now


class _Wait(threading.local):
    """What a thread waits for: how many calls are open, and since when."""

    depth = 0
    begun = 0.0


compilation = CompilationClock()
"""The clock of this process."""


@contextmanager
def loading() -> Iterator[None]:
    """Modules are imported in the block: no limit counts that, as none counts the loading of compiled code."""
    compilation.enter()
    try:
        yield
    finally:
        compilation.leave()


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
