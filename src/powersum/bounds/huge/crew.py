"""Who works on which part: always the same worker, as long as it lives, for it keeps the part in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from powersum.cluster.executor import Task, Workers, WorkersLike, check_workers, workers_of
from powersum.core.errors import InputError

LOOK = 0.02
"""Seconds to wait for one of several pools before the next is looked at."""


class PartWorkers:
    """Workers for parts.

    Parameters
    ----------
    pools, places
        Part ``p`` is given to pool ``p`` modulo their number, and where places are named to place ``p`` modulo theirs.
    size
        How many parts can be worked on at the same time.
    """

    def __init__(self, pools: list[Workers], places: list[Any], size: int) -> None:
        self._pools, self._places, self.size = pools, places, size

    def map(self, function: Callable[..., Any], plan: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """``function(plan, number, *arguments[number])`` of all parts. What a lost worker was at is done again."""
        for number, given in enumerate(arguments):
            pool = self._pools[number % len(self._pools)]
            place = self._places[number % len(self._places)] if self._places else None
            shared = next((one for one in pool._shared if one.value is plan), None) or pool.share(plan)
            pool._start(Task(number, function, shared, (number, *given)), place)
        results: list[Any] = [None] * len(arguments)
        failed: BaseException | None = None
        while any(pool.pending for pool in self._pools):
            for pool in self._pools:
                try:
                    for number, found in pool.finished(LOOK) if pool.pending else []:
                        results[number] = found
                except Exception as error:
                    # The others end first: what they are at must not come back as an answer to the next question.
                    failed = failed or error
        if failed is not None:
            raise failed
        return results


@contextmanager
def crew_of(executor: WorkersLike) -> Iterator[PartWorkers]:
    """A crew for the length of a block.

    A number of processes is that many pools of one, so that a part stays with its process. Of Dask's workers one is
    named for each part; another takes over from the last checkpoint when it is lost. Dask's actors would be lost with
    their worker, and so would everything that waits for them. Any other executor gives a part to whoever is free, and
    that one begins with the last checkpoint unless it has had the part before.
    """
    check_workers(executor)
    if executor is None:
        raise InputError("workers is None: give workers")
    with ExitStack() as stack:
        if isinstance(executor, int):
            pools = [stack.enter_context(workers_of(1)) for _ in range(int(executor))]
            yield PartWorkers(pools, [], len(pools))
            return
        workers = stack.enter_context(workers_of(executor))
        places: list[Any] = []
        if workers.client is not None:
            about: Any = workers.client.scheduler_info(n_workers=-1)
            places = sorted(about["workers"])
        yield PartWorkers([workers], places, len(places) or workers.size)
