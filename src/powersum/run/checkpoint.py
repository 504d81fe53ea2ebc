"""Checkpoints: the certificate of what is known so far, written every now and then while a run goes on."""

from __future__ import annotations

import math
from os import PathLike

from powersum.core.clock import Clock
from powersum.core.errors import InputError
from powersum.core.speed import FILE_BYTE, FILE_MEMBER
from powersum.core.work_time import spend
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.run.board import Board

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

    def keep(self, question: Question, board: Board, clock: Clock) -> None:
        """Write one if it is time and there is something to write; whoever works is not disturbed by it.

        Not before what an earlier run has left is taken up: that may be in the very file, and prove more.
        """
        begun = clock.spent
        if board.ground is None or board.resuming or board.log_upper == math.inf or begun < self._next:
            return
        from powersum.run.certificate import certificate_on

        certificate = certificate_on(board, question, board.draft())
        self.write(certificate)
        # Where work is counted, writing counts as what it usually takes: runs are then the same on all machines.
        spend(FILE_MEMBER * len(certificate.arrays) + FILE_BYTE * certificate.n_bytes)
        self._next = clock.spent + max(self._every, (clock.spent - begun) / MOST_SHARE)

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
