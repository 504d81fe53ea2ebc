"""Worker processes that answer cases one after another; one that dies or hangs is a finding, and is replaced."""

from __future__ import annotations

import gc
import multiprocessing
import resource
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

from soak.cases import Case
from soak.draw import draw
from soak.entries import Outcome, checked

HANG = 120.0
"""Seconds after which a case counts as one that never ends; compilation on first use is part of them."""

FIRST_HANG = 900.0
"""The same for the first cases of all, for which everything has to be compiled."""

MEMORY, COLLECTED = 10 << 30, 3 << 30
"""Bytes of address space of a worker: what takes more runs away. Cyclic garbage is collected long before that."""

Job = int | Case


@dataclass(frozen=True)
class Done:
    """A case that has been answered, in so many seconds."""

    case: Case
    outcome: Outcome
    seconds: float


class Worker:
    """One process and what it is busy with."""

    def __init__(self, only: str | None) -> None:
        self._only = only
        self.warm = False
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self._only), daemon=True)
        self._process.start()
        other.close()
        self.pid = self._process.pid or 0
        self.jobs: list[Job] = []
        self._since = time.monotonic()

    def send(self, jobs: list[Job]) -> None:
        """Give it cases, or seeds of cases."""
        self.jobs = list(jobs)
        self._since = time.monotonic()
        self.pipe.send(jobs)

    def receive(self) -> Done:
        """The next answer, once there is one, or what came instead of it."""
        try:
            done: Done = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode or 0
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return self._lost(f"crash: the process ended with {name}", "crash")
        self.warm = True
        self._took()
        return done

    def overdue(self) -> bool:
        """True when a case takes for ever."""
        return bool(self.jobs) and time.monotonic() - self._since > (HANG if self.warm else FIRST_HANG)

    def end_hang(self) -> Done:
        """Give up a case that takes for ever."""
        self._process.kill()
        self._process.join()
        return self._lost(f"hang: no answer within {HANG:g} s", "hang")

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()

    def _took(self) -> None:
        self.jobs.pop(0)
        self._since = time.monotonic()

    def _lost(self, text: str, ended: str) -> Done:
        """Go on with a new process behind the case that was lost."""
        lost, rest = self.jobs[0], self.jobs[1:]
        seconds = time.monotonic() - self._since
        self.pipe.close()
        self._start()
        self.send(rest)
        case = draw(lost, self._only) if isinstance(lost, int) else lost
        return Done(case, Outcome((text,), ended), seconds)


def _serve(pipe: Connection, only: str | None) -> None:
    """The life of a worker."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Ctrl-C at the terminal is for the parent; runs of powersum set their own handler and put this one back.
    signal.signal(signal.SIGINT, _ignore)
    while True:
        try:
            jobs: list[Job] = pipe.recv()
        except EOFError:
            return
        for job in jobs:
            case = draw(job, only) if isinstance(job, int) else job
            begun = time.perf_counter()
            outcome = checked(case)
            pipe.send(Done(case, outcome, time.perf_counter() - begun))
            if _address_space() > COLLECTED:
                gc.collect()


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _ignore(number: int, frame: object) -> None:
    del number, frame


class Pool:
    """Some workers that share a stream of seeds."""

    def __init__(self, jobs: int, only: str | None = None) -> None:
        self._workers = [Worker(only) for _ in range(jobs)]

    def run(self, batches: Iterable[list[int]]) -> Iterator[Done]:
        """Answers to all cases, in no order; a new batch is taken only when a worker is free."""
        stream = iter(batches)
        more = True
        while True:
            for worker in self._workers:
                if more and not worker.jobs:
                    batch = next(stream, None)
                    more = batch is not None
                    if batch:
                        worker.send(list(batch))
            busy = [worker for worker in self._workers if worker.jobs]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                if worker.pipe in ready:
                    yield worker.receive()
                elif worker.overdue():
                    yield worker.end_hang()

    def ask(self, case: Case) -> Outcome:
        """The answer to one case, by the first worker."""
        worker = self._workers[0]
        worker.send([case])
        while not wait([worker.pipe], timeout=1.0):
            if worker.overdue():
                return worker.end_hang().outcome
        return worker.receive().outcome

    def stop(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.stop()
