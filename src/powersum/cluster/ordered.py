"""A stream of items through workers: in chunks, results in order, equal items once, memory that does not grow.

Results come in the order of the items, so that whatever was written of them can be gone on with by counting it.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from powersum.cluster.executor import HEARTBEAT, Shared, Workers

CHUNK_SECONDS = 0.25
"""What a chunk is meant to take: long against its way to a worker and back, short for whoever waits."""

LARGEST_CHUNK = 1000
"""Items of a chunk at most."""

GROWTH = 4
"""A chunk is at most so many times as large as those before it: the first items of a worker tell little."""

CHUNKS_AHEAD = 3
"""Chunks for each worker that are under way or waiting, so that none is ever without work."""

WAITING_CHUNKS = 20
"""Chunks for each worker whose results may wait for one before them."""

MOST_REMEMBERED = 10_000
"""Results that are remembered for equal items to come."""


class _Slot:
    """The place of a result, which equal items share."""

    __slots__ = ("ready", "value")

    def __init__(self) -> None:
        self.ready = False
        self.value: Any = None


def timed(shared: Any, function: Callable[..., list[Any]], options: Any, chunk: list[Any]) -> tuple[float, list[Any]]:
    """On a worker: the results of a chunk, and how long they took."""
    begun = time.perf_counter()
    found = function(shared, options, chunk)
    return time.perf_counter() - begun, found


class Remembered:
    """Slots by what their items are told apart by; the oldest are forgotten."""

    def __init__(self) -> None:
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()

    def slot(self, key: Hashable) -> tuple[_Slot, bool]:
        """The slot of an item, and whether it is new."""
        slot = self._slots.get(key)
        if slot is not None:
            self._slots.move_to_end(key)
            return slot, False
        slot = self._slots[key] = _Slot()
        if len(self._slots) > MOST_REMEMBERED:
            self._slots.popitem(last=False)
        return slot, True


def here(
    value: Any,
    function: Callable[..., list[Any]],
    options: Any,
    items: Iterable[tuple[Hashable, Any]],
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Any]:
    """The results of items one by one in this process; parameters as for :func:`ordered`."""
    remembered = Remembered()
    for key, item in items:
        if stopped():
            return
        slot, new = remembered.slot(key)
        if new:
            slot.value = function(value, options, [item])[0]
        yield slot.value


def ordered(
    workers: Workers,
    shared: Shared,
    function: Callable[..., list[Any]],
    options: Any,
    items: Iterable[tuple[Hashable, Any]],
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Any]:
    """The results of items, in order, as they come.

    Parameters
    ----------
    workers, shared
        Who works, and what every chunk needs.
    function, options
        ``function(shared value, options, chunk)`` gives a result for each item of the chunk.
    items
        What equal items have in common and others have not, and the item. Taken only as workers need them.
    stopped
        Asked now and then; ends the stream early.
    """
    waiting: deque[_Slot] = deque()
    remembered = Remembered()
    coming = iter(items)
    more, size = True, 1
    # A result that waits for one before it, or for whoever takes it, costs memory.
    while (more or waiting) and not stopped():
        n_workers = workers.size
        while more and workers.pending < CHUNKS_AHEAD * n_workers:
            if len(waiting) >= WAITING_CHUNKS * n_workers * size:
                break
            slots: list[_Slot] = []
            chunk: list[Any] = []
            for key, item in coming:
                slot, new = remembered.slot(key)
                waiting.append(slot)
                if new:
                    slots.append(slot)
                    chunk.append(item)
                if len(chunk) >= size or len(waiting) >= WAITING_CHUNKS * n_workers * LARGEST_CHUNK:
                    break
            else:
                more = False
            if chunk:
                workers.submit(slots, timed, shared, function, options, chunk)
        for slots, (seconds, values) in workers.finished(HEARTBEAT if workers.pending else 0.0):
            for slot, value in zip(slots, values, strict=True):
                slot.ready, slot.value = True, value
            fitting = int(CHUNK_SECONDS * len(values) / max(seconds, 1e-9))
            size = max(1, min(fitting, GROWTH * size, LARGEST_CHUNK))
        while waiting and waiting[0].ready:
            yield waiting.popleft().value
