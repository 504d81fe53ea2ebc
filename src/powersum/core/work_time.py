"""Time as all that computes sees it: that of the machine or, where limits count work, that of the work done.

Modules that look at deadlines import this one in place of ``time``. What a thread has to compile or to load is no part
of its time: no deadline passes meanwhile, and no piece of work seems to have taken as long.

A run whose limit is work has a :class:`Meter`: it goes on by what each kind of work costs on a machine of usual speed
(:mod:`powersum.core.speed`), whatever it takes on this one, and a little by every look, so that every loop ends. All
decisions are then those of the seed alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LOOK = 2.0**-20
"""Seconds that a look at the meter counts: what is done between two looks costs something."""


class Meter:
    """Work done so far, in seconds of a machine of usual speed."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        """The work done; a look is work, too."""
        self.seconds += LOOK
        return self.seconds


class _Present(threading.local):
    """The meter of this thread's run. Others may work in other threads of the same process, by the clock or not."""

    meter: Meter | None = None
    left_out: float = 0.0
    """Seconds of the machine's clock that are no part of this thread's time."""


_present = _Present()


def monotonic() -> float:
    """Seconds as ``time.monotonic()`` has them, without what is left out, or of the meter in use."""
    meter = _present.meter
    return time.monotonic() - _present.left_out if meter is None else meter.monotonic()


def leave_out(seconds: float) -> None:
    """So many seconds that have passed in this thread are no part of its time."""
    _present.left_out += seconds


def left_out() -> float:
    """All seconds that are no part of this thread's time."""
    return _present.left_out


def spend(seconds: float) -> None:
    """Work has been done that takes about so long; nothing where the machine's clock tells."""
    meter = _present.meter
    if meter is not None:
        meter.seconds += seconds


def metered() -> bool:
    """True where work is counted: then nothing that is measured, neither time nor memory, may decide anything."""
    return _present.meter is not None


def present_meter() -> Meter | None:
    """What counts the work of this thread's run; None where the machine's clock tells."""
    return _present.meter


@contextmanager
def counted_by(meter: Meter | None) -> Iterator[None]:
    """Let a meter tell the time in the block, in this thread; None leaves it as it is."""
    before = _present.meter
    if meter is not None:
        _present.meter = meter
    try:
        yield
    finally:
        _present.meter = before
