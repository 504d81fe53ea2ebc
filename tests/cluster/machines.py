"""Real schedulers and workers for tests: processes on the loopback device, started and ended here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

SECONDS = 600.0
"""How long to wait for what takes a second on an idle machine."""

SOURCE = Path(__file__).resolve().parents[2] / "src"


def environment() -> dict[str, str]:
    """That of a process which finds the package and the tests as this one does."""
    path = [str(SOURCE), str(SOURCE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def eventually(true: Any, what: str) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, f"not within {SECONDS:g} s: {what}"
        time.sleep(0.02)


class Machines:
    """A scheduler and workers, each a process of its own.

    Parameters
    ----------
    folder
        Where they keep their files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.environment = environment()
        self.workers: list[subprocess.Popen[bytes]] = []
        self._wakers: list[threading.Timer] = []
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--scheduler-file", str(self._file))
        eventually(self._known, "a scheduler")
        self.address: str = self._known()

    def _known(self) -> str:
        """The scheduler's address; nothing as long as it has not written it, or is about to."""
        try:
            return str(json.loads(self._file.read_text())["address"])
        except (OSError, ValueError):
            return ""

    def worker(self, *options: str) -> subprocess.Popen[bytes]:
        """One more worker, with one thread and nobody who restarts it."""
        process = self._start(
            "dask_worker",
            self.address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--local-directory",
            str(self._folder),
            *options,
        )
        self.workers.append(process)
        return process

    def _start(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{program}.log").open("ab")
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.{program}",
            "--host",
            "127.0.0.1",
            "--no-dashboard",
            *options,
        ]
        with log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=self.environment, start_new_session=True)

    def pause(self, worker: subprocess.Popen[bytes], seconds: float) -> None:
        """Let a worker stand still for a while; it may be ended before it goes on."""
        worker.send_signal(signal.SIGSTOP)
        waker = threading.Timer(seconds, worker.send_signal, (signal.SIGCONT,))
        self._wakers.append(waker)
        waker.start()

    def end(self) -> None:
        """End all of them."""
        for waker in self._wakers:
            waker.cancel()
            waker.join()
        for process in (*self.workers, self.scheduler):
            kill(process)


def kill(process: subprocess.Popen[Any]) -> None:
    """``kill -9``, also of a process that is stopped."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait(SECONDS)


def runs(process: int) -> bool:
    """True unless the process has ended; whoever it belongs to may not have asked for its code yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_one_of_ours(before: Collection[int] = ()) -> int:
    """``kill -9`` of a worker of this process that was not there before, once there is one; its number."""
    while True:
        eventually(lambda: set(own_workers()) - set(before), "a worker")
        for worker in sorted(set(own_workers()) - set(before)):
            # Another one may just have ended by itself.
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                return worker


def own_workers(process: int | None = None) -> list[int]:
    """Processes that a process has spawned as workers; this one, if no other is named."""
    process, found = process or os.getpid(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == process and b"spawn_main" in line:
            found.append(int(entry.name))
    return found


@contextmanager
def machines(folder: Path, workers: int) -> Iterator[Machines]:
    """A cluster for the length of a block; clients wait for it as long as tests do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("powersum.cluster.dask_workers.CONNECT_SECONDS", SECONDS)
        here = Machines(folder)
        try:
            for _ in range(workers):
                here.worker()
            yield here
        finally:
            here.end()


@contextmanager
def cluster_of(folder: Path, workers: int) -> Iterator[tuple[Machines, Any]]:
    """A cluster all of whose workers are there, and a client of it."""
    from powersum.cluster.dask_workers import connected

    with machines(folder, workers) as here, connected(here.address) as client:
        client.wait_for_workers(workers, timeout=SECONDS)
        yield here, client
