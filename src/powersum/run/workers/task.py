"""What all workers on a question are given, and what the scheduler may ask of them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from powersum.core.arrays import BoolArray, IntArray
from powersum.core.clock import Clock
from powersum.core.progress import Progress
from powersum.divide.splitting import Splitting
from powersum.model.rounding import elimination_error
from powersum.prepare.problem import Problem
from powersum.run.board import Board
from powersum.run.inheritance import Legacy
from powersum.run.memory_shares import MemoryShares
from powersum.run.tuning import Schedule


class Worker(Protocol):
    """Work that is done in turns."""

    def run(self, deadline: float) -> Progress:
        """Work until ``time.monotonic()`` reaches a deadline, or a little longer, and report to the board."""
        ...


class StageWorker(Worker, Protocol):
    """Work that begins anew in every stage, with what the stage before has found out."""

    @property
    def useful_seconds(self) -> float | None:
        """Seconds that it could make good use of at the very end; None where it does not ask for any."""
        ...

    def begin(self, ends: float) -> bool:
        """Begin, to end at a moment of the clock; False where there is nothing to do for it now."""
        ...

    def end(self) -> None:
        """Let go of what was needed only until here."""
        ...


class TighteningWorker(Worker, Protocol):
    """Work on a bound of its own in each stage."""

    @property
    def gap(self) -> float:
        """How far this stage's bound is above the best value known."""
        ...

    @property
    def splits(self) -> bool:
        """Whether boxes of the last stage's tree are likely to be split afterwards."""
        ...

    def begin(self, stage: int, ends: float, *, last: bool = False) -> None:
        """Begin a stage that ends at a moment of the clock; in the last one others have the time after that."""
        ...

    def end(self) -> None:
        """End the stage."""
        ...


class Companion(Worker, Protocol):
    """Work that goes on all the while, by turns with the others or beside them."""

    last_gain: float
    """Moment of the clock at which it found something for the last time, or began."""

    wide: bool
    """True where moves are slow, because they keep a sum that stays in one piece."""

    @property
    def keen(self) -> bool:
        """True where time gains more for the value than for any bound."""
        ...

    @property
    def idle(self) -> bool:
        """True where there is nothing to do for it at all."""
        ...

    @property
    def beside(self) -> bool:
        """True where it runs beside the others."""
        ...

    def alongside(self, seconds: float) -> AbstractContextManager[None]:
        """Work beside what is done in the block; at its end, stop within so many seconds and report."""
        ...

    def close(self) -> None:
        """End its threads."""
        ...


class Lender(Protocol):
    """Has others work on boxes of a splitting."""

    search_seconds: float
    """Seconds of a search in each box before it is split; 0 for none."""

    @property
    def idle(self) -> bool:
        """Whether all boxes are left to others."""
        ...

    @property
    def processes(self) -> int:
        """How many work on boxes at the same time."""
        ...

    def begin(self, splitting: Splitting, ends: float) -> None:
        """A splitting begins or goes on, in place of another; it will end at a moment of ``time.monotonic()``."""
        ...

    def end(self) -> None:
        """All that have begun are over."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """One problem to work on, and with what."""

    problem: Problem
    order: IntArray
    board: Board
    clock: Clock
    schedule: Schedule
    shares: MemoryShares
    threads: int
    seed: int
    resumed: Legacy | None = None
    """What an earlier run has left."""
    lender: Lender | None = None
    """Knows others who have time for boxes."""

    @property
    def is_max(self) -> BoolArray:
        """Which variables are maximised."""
        return np.asarray(self.problem.tau == 0.0)

    @property
    def log_error(self) -> float:
        """Rounding of an exact evaluation, or of a sum of some of its terms."""
        return elimination_error(self.problem.model)
