"""Functions that workers import."""

from __future__ import annotations

import os
import signal
import time


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
