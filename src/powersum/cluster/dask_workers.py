"""Workers behind a Dask scheduler; retries, places and the model's way from worker to worker are Dask's own."""

from __future__ import annotations

import concurrent.futures as cf
import logging
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import Shared, Task, Workers, words
from powersum.core.errors import InputError
from powersum.core.machine import USUAL, default_memory

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10
"""How long to wait for a scheduler, and for its first worker."""

DASK = "distributed"
"""Dask's package, and what the names of its loggers begin with."""

DASK_SHARE = 0.6
"""Share of a worker's own limit on memory that tasks may hold: from 0.7 on Dask begins to act, and at 0.95 kills it."""

COUNT_SECONDS = 2.0
"""Seconds between two looks at how many workers there are."""


def _itself(value: Any) -> Any:
    return value


def _called(value: Any, function: Any, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    return True, function(value, *arguments)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address such as ``tcp://127.0.0.1:8786``."""
    distributed = _distributed()
    with _silent():
        try:
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClusterError(f"no scheduler at {address} ({words(error)})") from None
        try:
            yield client
        finally:
            # A scheduler that does not answer a goodbye in time costs no result.
            with suppress(OSError):
                client.close(timeout=CONNECT_SECONDS)


_SILENT: ContextVar[bool] = ContextVar("silent", default=False)
"""True in this thread, and in what Dask's event loop does for it: tasks inherit the context of their caller."""


@contextmanager
def _silent() -> Iterator[None]:
    """Drop what Dask logs about this connection: our own line says it. Other clients of the process log as before."""

    def others(record: logging.LogRecord) -> bool:
        del record
        return not _SILENT.get()

    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict) if name.startswith(DASK)]
    before = _SILENT.set(True)
    for logger in loggers:
        logger.addFilter(others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(others)
        _SILENT.reset(before)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError("a cluster needs dask.distributed: pip install powersum[cluster]") from None
    return distributed


class DaskWorkers(Workers):
    """The workers of a Dask client's scheduler.

    Parameters
    ----------
    client
        The client; it stays open.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        # Half of Dask's methods have no types.
        self._dask = cast(Any, client)
        self._size, self._counted = 1, -math.inf
        super().__init__(self._dask.get_executor(pure=False), own=True)
        self._check()

    @property
    def size(self) -> int:
        """Threads of all workers that were there a moment ago."""
        now = time.monotonic()
        if now >= self._counted + COUNT_SECONDS:
            self._counted = now
            try:
                self._size = max(int(sum(self._dask.nthreads().values())), 1)
            except Exception as error:
                raise self._gone(error) from None
        return self._size

    @property
    def threads(self) -> int:
        """Threads of the worker that has most."""
        return max(self._dask.nthreads().values(), default=1)

    def default_memory(self, beside: int) -> float:
        """The least that a worker has, each asked on its own machine; Dask kills those that hold more than it likes."""
        try:
            workers = self._dask.scheduler_info(n_workers=-1)["workers"].values()
            hosts = Counter(about["host"] for about in workers)
            processes = max(hosts.values(), default=1) + beside
            # Who is lost meanwhile is not asked.
            found = list(self._dask.run(default_memory, processes, on_error="ignore").values())
        except Exception as error:
            raise self._gone(error) from None
        found += [DASK_SHARE * about["memory_limit"] for about in workers if about.get("memory_limit")]
        return min(found, default=USUAL)

    def share(self, value: Any) -> Shared:
        """The value as a task of its own: workers hand it on among themselves, and a lost one is made again."""
        import dask

        # A model of any size is meant to travel like this.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            remote = self._dask.submit(_itself, value, pure=False)
        shared = Shared(str(remote.key), None, remote)
        self._shared.append(shared)
        return shared

    def _start(self, task: Task, place: Any = None) -> None:
        kwargs = {} if place is None else {"workers": [place], "allow_other_workers": True}
        try:
            future = self._pool.submit(_called, task.shared.remote, task.function, task.arguments, **kwargs)
        except Exception as error:
            raise self._gone(error) from None
        self._running[future] = task

    def finished(self, timeout: float = 0.2) -> list[tuple[Any, Any]]:
        """As for all workers; what Dask says of a cluster in trouble becomes one line."""
        try:
            found = super().finished(timeout)
        except InputError:
            raise
        except Exception as error:
            if type(error).__module__.split(".")[0] in ("distributed", "tornado"):
                raise self._gone(error) from None
            if isinstance(error, ModuleNotFoundError):
                raise _bare("a worker", error) from None
            raise
        if not found and self._running and self._dask.status != "running":
            # Nobody answers what was handed in while the connection was lost, not even with an error.
            self._running.clear()
            raise self._gone(ConnectionError("the scheduler does not answer"))
        return found

    def close(self) -> None:
        """Give up what is not done; a scheduler that is gone has nothing left to be told."""
        self._running.clear()
        self._shared.clear()
        if self._dask.status == "running":
            self._pool.shutdown(wait=False)

    def _lost(self, task: Task, error: BaseException) -> None:
        raise self._gone(error) from None

    def _gone(self, error: BaseException) -> ClusterError:
        return ClusterError(f"the cluster is gone ({words(error)})")

    def _check(self) -> None:
        """There are workers, and they have the same powersum."""
        from powersum import __version__

        try:
            self._dask.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except (TimeoutError, cf.TimeoutError):
            raise ClusterError(f"the scheduler has no workers after {CONNECT_SECONDS} s") from None
        found = self._dask.run(_version, on_error="return")
        for place, version in found.items():
            if isinstance(version, BaseException):
                raise _bare(f"the worker at {place}", version)
            if version != __version__:
                raise ClusterError(f"the worker at {place} has powersum {version}, this process {__version__}")

    def _nodes(self) -> list[Any]:
        workers = self._dask.scheduler_info(n_workers=-1)["workers"]
        return list({about["host"]: place for place, about in workers.items()}.values()) or [None]


def _version() -> str:
    from powersum import __version__

    return str(__version__)


def _bare(who: str, error: BaseException) -> ClusterError:
    return ClusterError(f"{who} has no powersum that works ({words(error)}): install the same version there")
