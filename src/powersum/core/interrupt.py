"""Ctrl-C, SIGTERM and SIGHUP as a flag, so that work ends early but in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a run; Windows has no SIGHUP."""


class Interrupt:
    """The first signal raises a flag inside :func:`interruptible`, any other one raises KeyboardInterrupt."""

    __slots__ = ("cause", "depth")

    def __init__(self) -> None:
        self.cause: str | None = None
        self.depth = 0
        """How many blocks look at the flag."""

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal, and raise it where nobody looks at the flag or did not look soon enough."""
        again = self.cause is not None
        self.cause = name_of(number)
        if again or not self.depth:
            raise KeyboardInterrupt(self.cause)

    def check(self) -> None:
        """Raise KeyboardInterrupt if the flag is up: for work that has nothing to return yet."""
        if self.cause is not None:
            raise KeyboardInterrupt(self.cause)


def name_of(number: int) -> str:
    """What a signal is called in messages."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


@contextmanager
def watched() -> Iterator[Interrupt]:
    """Have one object receive all signals that end a run; it raises them as long as nobody looks at its flag.

    Python allows signal handlers in the main thread only; elsewhere no signal arrives. A signal that is ignored, as
    SIGHUP under ``nohup``, stays ignored. An inner block shares the object of an outer one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interrupt()
        return
    present = {number: signal.getsignal(number) for number in ENDING}
    owners = (getattr(handler, "__self__", None) for handler in present.values())
    outer = next((owner for owner in owners if isinstance(owner, Interrupt)), None)
    if outer is not None:
        yield outer
        return
    interrupt = Interrupt()
    # None: a handler that was not installed from Python and cannot be put back by it.
    replaced = {n: h for n, h in present.items() if h is not None and h is not signal.SIG_IGN}
    for number in replaced:
        signal.signal(number, interrupt.handle)
    try:
        with as_interrupts():
            yield interrupt
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn the first signal that ends a run into a flag while the block runs, so that it ends early but in order."""
    with watched() as interrupt:
        interrupt.depth += 1
        try:
            yield interrupt
        finally:
            interrupt.depth -= 1


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt where compiled code turned it into a SystemError.

    A signal that arrives while compiled code hands over its result is raised inside Numba, which does not look.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise KeyboardInterrupt(*cause.args) from None
