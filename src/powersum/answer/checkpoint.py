"""Checkpoints: the certificate of what is known so far, written every now and then while a run goes on."""

from __future__ import annotations

from os import PathLike

from powersum.core.work_time import metered
from powersum.model.certificate import Certificate

MOST_SHARE = 0.1
"""Share of a run's time that writing may take."""


class Checkpoints:
    """When the next one is due, and where it goes.

    Parameters
    ----------
    path
        The file; it is replaced as a whole.
    every
        Seconds between two of them.
    """

    def __init__(self, path: str | PathLike[str], every: float) -> None:
        self._path, self._every = path, every
        self._next = 0.0

    def due(self, spent: float) -> bool:
        """Whether it is time for one, after so many seconds of work."""
        return spent >= self._next

    def write(self, certificate: Certificate, begun: float, spent: float) -> None:
        """Write one that was begun, and is there, at these moments of the clock."""
        certificate.save(self._path)
        # What writing takes differs from machine to machine: it decides nothing where runs shall be the same.
        pause = 0.0 if metered() else (spent - begun) / MOST_SHARE
        self._next = spent + max(self._every, pause)
