"""Ctrl-C and SIGTERM as a flag, so that work ends early but in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """A flag that the first Ctrl-C or SIGTERM raises; a second one ends the program at once."""

    __slots__ = ("cause",)

    def __init__(self) -> None:
        self.cause: str | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; whoever sends another one does not want to wait for the answer."""
        if self.cause is not None:
            raise KeyboardInterrupt
        self.cause = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn Ctrl-C and SIGTERM into a flag while the block runs, so that a run ends early but in order.

    Python allows signal handlers in the main thread only; elsewhere the flag is never raised. An inner block shares the
    flag of an outer one, so that a caller can cover what it does with the result, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interrupt()
        return
    outer = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    if isinstance(outer, Interrupt):
        yield outer
        return
    interrupt = Interrupt()
    previous = {number: signal.signal(number, interrupt.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in previous.items():
            # None: a handler that was not installed from Python and cannot be put back by it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
