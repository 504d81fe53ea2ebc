"""Checkpoints: the certificate of what is known so far, written every now and then while a run goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike

from powersum.core.errors import InputError
from powersum.core.speed import FILE_BYTE, FILE_MEMBER
from powersum.core.work_time import spend
from powersum.model.certificate import Certificate
from powersum.model.result import Result

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
        self._written = False
        self._failure: str | None = None

    def keep(self, spent: Callable[[], float], make: Callable[[], tuple[Certificate, int] | None]) -> None:
        """Write one if it is time and there is something to write; whoever works is not disturbed by it."""
        begun = spent()
        if begun < self._next or (found := make()) is None:
            return
        certificate, _ = found
        self.write(certificate)
        # Where work is counted, writing counts as what it usually takes: runs are then the same on all machines.
        spend(FILE_MEMBER * len(certificate.arrays) + FILE_BYTE * certificate.n_bytes)
        self._next = spent() + max(self._every, (spent() - begun) / MOST_SHARE)

    def write(self, certificate: Certificate) -> None:
        """Write one. If that fails for the first one, the run ends; later on it is too valuable for that."""
        try:
            certificate.save(self._path)
        except InputError as error:
            if not self._written:
                raise
            self._failure = str(error)
            return
        self._written, self._failure = True, None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said about the latest one."""
        return () if self._failure is None else (f"The last checkpoint is an older one: {self._failure}.",)


def written(result: Result, checkpoints: Checkpoints | None) -> Result:
    """The answer of a run, once its certificate is in the file of its checkpoints; with notes on these."""
    if checkpoints is None or result.certificate is None:
        return result
    checkpoints.write(result.certificate)
    told = tuple(note for note in checkpoints.notes if note not in result.notes)
    return replace(result, notes=result.notes + told)
