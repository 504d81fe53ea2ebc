"""Functions that workers import."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress


def add(shared: int, own: int) -> int:
    """The sum of what all tasks share and what is this task's own."""
    return shared + own


def slow(shared: int, own: int) -> int:
    """The same, a little later."""
    time.sleep(0.1)
    return shared + own


def endless(_: object) -> None:
    """No result, as long as the process lives."""
    while True:
        time.sleep(0.1)


def number_of_process(_: object) -> int:
    """Which process this is."""
    return os.getpid()


def die_once(place: str, own: int) -> int:
    """Kill this process, unless that was done before at this place; without a place, always."""
    if own == 7 or not place:
        try:
            with open(place, "x"):
                pass
        except FileExistsError:
            return own
        except FileNotFoundError:
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return own


class Told:
    """Whoever packs it has all packed that stands before it, and begins to send: then a file is made.

    Parameters
    ----------
    place
        The file.
    dies
        Whether this process is killed a moment after that.
    """

    def __init__(self, place: str, *, dies: bool) -> None:
        self._place, self._dies = place, dies

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        with suppress(FileExistsError), open(self._place, "x"):
            if self._dies:
                threading.Timer(0.005, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return str, (self._place,)


def large(place: str, size: int) -> tuple[bytes, Told]:
    """So many bytes, and a file once they are being sent."""
    return bytes(size), Told(place, dies=False)


def large_and_dying(place: str, size: int) -> tuple[bytes, Told]:
    """The same, and this process is killed while it sends them, unless that was done before at this place."""
    return bytes(size), Told(place, dies=True)
