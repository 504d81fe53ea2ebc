"""``workers=`` of every public function: nothing, a number of processes, a standard executor, or Dask.

The rooms above ask :func:`workers_of` for :class:`Workers` and know nothing else: tasks go in, their results come out
in any order. Tasks have no state, so that one whose worker was lost is simply done again: by Dask, where it is
Dask, and here where the processes are our own.
"""

from __future__ import annotations

import concurrent.futures as cf
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from powersum.cluster.errors import ClusterError
from powersum.cluster.store import forget, keep, run_with
from powersum.core.errors import InputError
from powersum.core.interrupt import Interrupt
from powersum.core.machine import default_memory
from powersum.core.work_time import metered, present_meter
from powersum.model.keys import as_text
from powersum.model.limits import whole_number

if TYPE_CHECKING:
    from distributed import Client

WorkersLike = Any
"""None, a number of processes, a :class:`concurrent.futures.Executor`, a ``dask.distributed.Client``, or the address of
a Dask scheduler, as ``"tcp://host:8786"``."""

MOST_LOSSES = 3
"""So often a task is begun again because its process died; then it is taken for the cause. Dask has the same number."""

HEARTBEAT = 0.2
"""Seconds after which whoever waits looks up: for Ctrl-C, and for the clock."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A value that travels once to each worker, under the key it is known by there."""

    key: str
    value: Any
    remote: Any = None


@dataclass(slots=True)
class Task:
    """What was handed in, whether its shared value goes along, and how often its process died."""

    tag: Any
    function: Callable[..., Any]
    shared: Shared
    arguments: tuple[Any, ...]
    carried: bool = False
    losses: int = 0


def check_workers(workers: WorkersLike, argument: str = "workers") -> None:
    """Refuse what cannot work, before anything long begins."""
    if workers is None or isinstance(workers, cf.Executor) or _is_client(workers) or _is_address(workers):
        return
    if isinstance(workers, (bool, str, float)) or not hasattr(workers, "__index__"):
        raise InputError(
            f"{argument} is {as_text(workers)}: give a number of processes, a concurrent.futures.Executor,"
            " a dask.distributed.Client, or the address of a Dask scheduler such as tcp://host:8786"
        )
    whole_number(workers, argument, 1)


@contextmanager
def workers_of(executor: WorkersLike) -> Iterator[Workers]:
    """Workers for the length of a block. What the block leaves undone is given up; what the caller brought stays open.

    Parameters
    ----------
    executor
        None for one thread of this process, or any :data:`WorkersLike`.
    """
    check_workers(executor)
    workers: Workers
    if _is_address(executor):
        from powersum.cluster.dask_workers import connected

        with connected(executor) as client, workers_of(client) as workers:
            yield workers
        return
    if _is_client(executor):
        from powersum.cluster.dask_workers import DaskWorkers

        workers = DaskWorkers(executor)
    elif executor is None or isinstance(executor, cf.Executor):
        workers = Workers(cf.ThreadPoolExecutor(1) if executor is None else executor, own=executor is None)
    else:
        from powersum.cluster.processes import ProcessWorkers

        workers = ProcessWorkers(int(executor))
    try:
        yield workers
    finally:
        workers.close()


def others_of(executor: WorkersLike) -> tuple[WorkersLike, bool]:
    """Who works beside this process, and whether this one works, too: it is one of a number of processes.

    Where work is counted all of these are beside it: what two of them find would depend on which of them is quicker.
    """
    here = hasattr(executor, "__index__") and not metered()
    return (int(executor) - 1, True) if here else (executor, False)


@contextmanager
def crew_of(executor: WorkersLike, interrupt: Interrupt) -> Iterator[tuple[Workers, bool]]:
    """Workers beside this process, in rounds where work is counted, and whether this process works, too."""
    others, here = others_of(executor)
    with workers_of(others) as workers:
        meter = present_meter()
        if meter is None:
            yield workers, here
            return
        from powersum.cluster.rounds import Rounds

        yield Rounds(workers, meter, interrupt), here


class Workers:
    """Tasks in, results out, over a standard executor.

    Parameters
    ----------
    pool
        What runs the tasks.
    own
        Whether it ends with the workers.

    Attributes
    ----------
    client
        The Dask client for those who need more than tasks, such as actors; None elsewhere.
    """

    client: Client | None = None

    def __init__(self, pool: cf.Executor, *, own: bool) -> None:
        self._pool, self._own = pool, own
        self._running: dict[cf.Future[Any], Task] = {}
        self._shared: list[Shared] = []

    @property
    def size(self) -> int:
        """How many tasks can run at the same time, as far as the pool says; all processors of this machine if not."""
        most = getattr(self._pool, "_max_workers", None)
        return most if isinstance(most, int) and most > 0 else os.cpu_count() or 1

    @property
    def inside(self) -> int:
        """How many tasks may run in this very process at the same time, if it turns out that they do: as in threads."""
        return self.size

    @property
    def threads(self) -> int:
        """How many tasks another process has at the same time, at most."""
        return 1

    def default_memory(self, beside: int) -> float:
        """Bytes for each process where nobody says how many; ``beside`` so many others on the same machine."""
        return default_memory(self.size + beside)

    @property
    def pending(self) -> int:
        """Tasks that were handed in and whose results have not been taken."""
        return len(self._running)

    def share(self, value: Any) -> Shared:
        """Make a value known that tasks will need; it goes to each worker once, when the first task there needs it."""
        shared = Shared(token_hex(8), value)
        # A pool of threads finds it here and never has it sent.
        keep(shared.key, value)
        self._shared.append(shared)
        return shared

    def submit(self, tag: Any, function: Callable[..., Any], shared: Shared, *arguments: Any) -> None:
        """Hand in a task: ``function(shared value, *arguments)``; ``tag`` comes back with its result."""
        self._start(Task(tag, function, shared, arguments))

    def finished(self, timeout: float = HEARTBEAT) -> list[tuple[Any, Any]]:
        """Tags and results of the tasks that are done; waits for one at most so long. A task's exception is raised."""
        results = []
        done, _ = cf.wait(self._running, timeout=max(timeout, 0.0), return_when=cf.FIRST_COMPLETED)
        for future in done:
            # A pool that broke may have been replaced on the way, and all its tasks with it.
            task = self._running.pop(future, None)
            if task is None:
                continue
            try:
                found, value = self._result(future)
            except (cf.BrokenExecutor, cf.CancelledError) as error:
                self._lost(task, error)
                continue
            if found:
                results.append((task.tag, value))
            else:
                task.carried = True
                self._start(task)
        return results

    def once_a_node(self, function: Callable[..., Any], shared: Shared, *arguments: Any) -> None:
        """Call a function on one worker of each machine and wait: what it compiles is then there for the others.

        Nothing else may be pending.
        """
        for number, place in enumerate(self._nodes()):
            self._start(Task(number, function, shared, arguments), place)
        while self._running:
            self.finished()

    def close(self) -> None:
        """Give up what is not done; end what is our own."""
        if self._own:
            self._pool.shutdown(wait=False, cancel_futures=True)
        else:
            for future in self._running:
                future.cancel()
        self._running.clear()
        for shared in self._shared:
            forget(shared.key)

    def _start(self, task: Task, place: Any = None) -> None:
        shared = task.shared
        value = shared.value if task.carried else None
        try:
            future = self._submit(task.function, shared.key, value, task.carried, task.arguments)
        except (cf.BrokenExecutor, RuntimeError) as error:
            self._lost(task, error)
            return
        self._running[future] = task

    def _submit(self, *call: Any) -> cf.Future[Any]:
        """Have :func:`run_with` called by whoever is free."""
        return self._pool.submit(run_with, *call)

    def _result(self, future: cf.Future[Any]) -> Any:
        """What such a call has returned."""
        return future.result()

    def _lost(self, task: Task, error: BaseException) -> None:
        """A task's worker is gone; a pool that is somebody else's cannot be mended here."""
        raise ClusterError(f"the executor's workers are gone ({words(error)}): give one that works") from None

    def _nodes(self) -> list[Any]:
        """A worker of each machine."""
        return [None]


def words(error: BaseException) -> str:
    """An exception in a few words on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": .")


def _is_address(workers: Any) -> bool:
    """True for the address of a scheduler."""
    return isinstance(workers, str) and "://" in workers


def _is_client(executor: Any) -> bool:
    """True for a Dask client, without importing Dask for what is none."""
    return any(
        kind.__name__ == "Client" and kind.__module__.split(".")[0] == "distributed" for kind in type(executor).__mro__
    )
