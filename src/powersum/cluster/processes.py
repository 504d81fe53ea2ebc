"""Processes of our own on this machine: they end with whoever started them, however that one ends."""

from __future__ import annotations

import concurrent.futures as cf
import multiprocessing as mp
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import MOST_LOSSES, Task, Workers
from powersum.cluster.parcels import opened, packed, run_packed
from powersum.cluster.run_folder import RunFolder
from powersum.cluster.store import run_with
from powersum.core.interrupt import ENDING


class ProcessWorkers(Workers):
    """So many processes; those that die are replaced, and what they were at is begun again.

    Parameters
    ----------
    size
        How many.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._folder: RunFolder | None = None
        # Without a place for files there are messages in pieces, as anybody else has them.
        with suppress(OSError):
            self._folder = RunFolder()
        self._begin()
        super().__init__(self._pool, own=True)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self._size

    @property
    def inside(self) -> int:
        """None: this process only hands tasks in."""
        return 0

    def close(self) -> None:
        """End the processes at once: their tasks have no state, and nobody waits for them any more."""
        super().close()
        self._line.close()
        if self._folder is not None:
            self._folder.remove()

    def _submit(self, *call: Any) -> cf.Future[Any]:
        return self._pool.submit(run_packed, run_with, packed(call, self._path), self._path)

    def _result(self, future: cf.Future[Any]) -> Any:
        return opened(future.result(), self._path)

    @property
    def _path(self) -> Path | None:
        return None if self._folder is None else self._folder.path

    def _begin(self) -> None:
        # Not forked: threads of compiled code and of Dask would be torn apart.
        context = mp.get_context("spawn")
        ear, self._line = context.Pipe(duplex=False)
        self._ear = ear
        self._pool: cf.Executor = cf.ProcessPoolExecutor(
            self._size, mp_context=context, initializer=_listen, initargs=(ear,)
        )

    def _lost(self, task: Task, error: BaseException) -> None:
        """A process was killed, and with it the whole pool broke: begin a new one with all that was under way."""
        lost = [task, *self._running.values()]
        self._running.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._line.close()
        self._begin()
        for one in lost:
            one.losses += 1
            if one.losses > MOST_LOSSES:
                raise ClusterError(
                    f"a worker process died {one.losses} times at the same work: is there enough memory for"
                    f" {self._size} processes, and is the script's own code under if __name__ == '__main__'?"
                )
            # The new processes have nothing yet.
            one.carried = True
            self._start(one)


def _listen(ear: Connection, *_: Any) -> None:
    """In a worker: leave Ctrl-C and a closed terminal to the process that started us, and end at once with it."""
    for number in ENDING:
        # That one ends its workers by SIGTERM.
        if number != signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)

    def wait() -> None:
        try:
            ear.poll(None)
        finally:
            os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
