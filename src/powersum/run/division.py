"""The one loop for a question that is divided into boxes: this process and workers take them, and reports are heard.

What differs between cubes and the k best is a policy: which task is next, what a report means, and when all is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import HEARTBEAT, Shared, Workers
from powersum.core.clock import working_time
from powersum.core.interrupt import Interrupt
from powersum.model.certificate import Certificate
from powersum.model.result import Snapshot
from powersum.run.box_memory import Room
from powersum.run.box_run import BoxQuestion
from powersum.run.inheritance import Legacy
from powersum.run.solver import Run


class BoxTask(NamedTuple):
    """A task for a worker: ``function(shared, *arguments)``, and who is told what it returns."""

    hear: Callable[[Any], None]
    function: Callable[..., Any]
    shared: Shared
    arguments: tuple[Any, ...]


class Division(ABC):
    """A question whose boxes are worked on here and by workers.

    Parameters
    ----------
    run
        A run that has not begun: it has the question with the limits of the whole, the schedule and the flag to watch.
    workers
        The workers beside this process, or in place of it.
    here
        Whether this process works, too. Otherwise it waits.
    seconds
        The time for all of it.
    memory
        Bytes that each process may hold; a share of what is free if not given.
    gap
        A box is left once its bounds are this close.
    legacy
        What all runs begin with.
    callback
        Hears of snapshots.
    """

    def __init__(
        self,
        run: Run,
        workers: Workers,
        callback: Callable[[Snapshot], None] | None,
        *,
        here: bool,
        seconds: float,
        memory: float | None,
        gap: float = 0.0,
        legacy: Legacy | None = None,
    ) -> None:
        self._run, self._question, self._workers, self._here = run, run.question, workers, here
        self._interrupt, self._callback = run.flag or Interrupt(), callback
        self._begun, self._limit, self._memory = working_time(), seconds, memory
        self._gone: str | None = None
        self._shared: Shared | None = None
        asked = replace(run.question, limits=replace(run.question.limits, gap=gap))
        room = Room.of(workers, memory, road=here)
        self._asked = BoxQuestion(asked, room, run.schedule, run.certified, legacy)

    @property
    def _spent(self) -> float:
        return working_time() - self._begun

    @property
    def _left(self) -> float:
        return self._limit - self._spent

    def _task(self, hear: Callable[[Any], None], function: Callable[..., Any], *arguments: Any) -> BoxTask:
        """A task about the question."""
        if self._shared is None:
            self._shared = self._workers.share(self._asked)
        return BoxTask(hear, function, self._shared, arguments)

    def _work(self) -> None:
        """Hand out tasks, work here, and hear reports, until all is done or nobody has work."""
        while not self._is_over():
            try:
                workers = self._workers
                while (task := self._next_task(workers.size - workers.pending)) is not None:
                    workers.submit(task.hear, task.function, task.shared, *task.arguments)
                wait = self._turn()
                if wait is None and not workers.pending:
                    break
                wait = HEARTBEAT if wait is None else wait
                for hear, report in workers.finished(min(wait, max(self._left, 0.0))):
                    hear(report)
            except ClusterError as error:
                self._gone = str(error)
                self._lose(error)
            self._report()

    def _report(self) -> None:
        """Write a checkpoint if it is due."""
        if self._run.checkpoints is not None:
            self._run.checkpoints.keep(lambda: self._spent, self._draft)

    @abstractmethod
    def _is_over(self) -> bool:
        """Whether the answer is known, or the time is over."""

    @abstractmethod
    def _next_task(self, free: int) -> BoxTask | None:
        """The next task, while so many workers are free (below 0: tasks wait); None where there is none now."""

    @abstractmethod
    def _turn(self) -> float | None:
        """A turn of work in this process; how long it may wait for reports after it. None where it has no work."""

    @abstractmethod
    def _lose(self, error: ClusterError) -> None:
        """The workers are gone: what is known holds."""

    @abstractmethod
    def _draft(self) -> tuple[Certificate, int] | None:
        """The certificate of what is known, for a checkpoint; None before there is one."""


class Nobody(Workers):
    """No workers beside this process."""

    def __init__(self) -> None:
        self._running, self._shared = {}, []

    @property
    def size(self) -> int:
        """None."""
        return 0
