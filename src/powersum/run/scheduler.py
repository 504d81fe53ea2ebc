"""The scheduler: whose turn it is, and for how long. It knows nothing of what workers do.

Stages of growing length: in each a bound is tightened, then others work with it; the companion, local search, has turns
all the while. Between two turns the caller can look at the board, at the clock and at signals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from powersum.core.clock import Clock
from powersum.core.progress import Progress
from powersum.run.board import Board
from powersum.run.tuning import Schedule
from powersum.run.workers.task import Companion, StageWorker, TighteningWorker, Worker


@dataclass(frozen=True, slots=True)
class Spell:
    """A worker's time in each stage, after the bound was tightened.

    Parameters
    ----------
    worker
        Who.
    share
        Its time, as a share of that for tightening: where the gap is hopeful, and elsewhere.
    first
        Seconds at the very beginning, right after a first assignment was looked for.
    accompanied
        False where the companion has no turns in between.
    modest
        True where it has no more than its share in the last stage, too, where others have all the time left.
    nearly_done
        Asked when its time is over: True where it is about to end the whole run, and goes on.
    """

    worker: StageWorker
    share: tuple[float, float]
    first: float = 0.0
    accompanied: bool = True
    modest: bool = False
    nearly_done: Callable[[], bool] = field(default=lambda: False)


@dataclass(frozen=True, slots=True)
class Crew:
    """All who work on a question in stages."""

    first: Worker
    """Looks for something to begin with, after a first turn of tightening."""

    tightening: TighteningWorker
    companion: Companion
    spells: Sequence[Spell]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its number, the time for tightening and the moment that it ends, and whether another one follows."""

    number: int
    length: float
    ends: float
    last: bool


@dataclass(slots=True)
class Scheduler:
    """Turns for a crew, until the answer is proven or nothing is left to do.

    Parameters
    ----------
    crew
        The workers; let go of when the turns end.
    board, clock
        What is known, and the time.
    schedule
        The policy.
    late
        A worker that proves the answer in a known number of seconds, if it has all the memory for itself.
    late_seconds
        What it takes; infinity where it is not to be done.
    """

    crew: Crew | None
    board: Board
    clock: Clock
    schedule: Schedule
    late: Worker
    late_seconds: float = math.inf
    _searching: bool = field(default=False, init=False)
    """True during a spell that the companion accompanies."""
    _stage: int = field(default=0, init=False)
    _debt: float = field(default=0.0, init=False)
    """Seconds that the companion has taken beyond its turns."""

    def turns(self) -> Generator[None]:
        """One turn after the other; the caller decides when to end."""
        assert self.crew is not None
        stages = self._stages(self.crew)
        try:
            for _ in stages:
                yield
                if self._late_is_due():
                    break
            else:
                return
        finally:
            self.crew.companion.close()
            # What is to be done late needs the memory of all others.
            stages.close()
            self.crew = None
        self.board.confirm()
        yield from exhaust(self.late, self.clock, self.schedule.slice)

    def _late_is_due(self) -> bool:
        """What takes elimination long is often proven sooner by search, but not always."""
        if self._stage == 0 or self.board.proven:
            return False
        return self.late_seconds < self.schedule.late_elimination * self.clock.left

    def _stages(self, crew: Crew) -> Generator[None]:
        board, clock = self.board, self.clock
        while not board.proven:
            stage = self._next_stage(crew)
            crew.tightening.begin(stage.number, stage.ends, last=stage.last)
            if stage.number == 0:
                yield
                yield from self._begin(crew)
            yield from self._tighten(crew, stage)
            crew.tightening.end()
            for spell in crew.spells:
                hopeful = board.gap < self.schedule.hopeful
                share = spell.share[0 if hopeful else 1] * stage.length
                seconds = clock.left if stage.last and not spell.modest else share
                yield from self._spell(crew, spell, seconds)
            while stage.last and not board.proven:
                if crew.companion.idle:
                    board.give_up("Nothing is left to do within the time and memory given.")
                    yield
                    return
                self._accompany(crew)
                yield
            self._stage += 1
            board.stage = self._stage

    def _next_stage(self, crew: Crew) -> Stage:
        """The next stage; a last one takes all the time left, so that none is spent on what cannot be finished."""
        schedule, clock = self.schedule, self.clock
        left = clock.left
        length = schedule.first_stage * schedule.stage_growth**self._stage
        splits = crew.tightening.splits
        share = min(schedule.split_stage, schedule.last_stage) if splits else schedule.last_stage
        last = length > share * left
        if last:
            useful = [spell.worker.useful_seconds for spell in crew.spells]
            wanted = max((seconds for seconds in useful if seconds is not None), default=None)
            length = schedule.last_tightening * left
            if splits:
                length = min(length, schedule.split_tightening * left)
            if wanted is not None:
                length = max(schedule.least_last_tightening * left, left - wanted)
        return Stage(self._stage, length, clock.spent + length, last)

    def _begin(self, crew: Crew) -> Iterator[None]:
        """A first bound and a first assignment."""
        crew.tightening.run(self.clock.deadline(self._slice))
        yield
        yield from exhaust(crew.first, self.clock, self.schedule.completion)
        for spell in crew.spells:
            if spell.first:
                yield from self._spell(crew, spell, spell.first)
        if not self.board.proven:
            self._accompany(crew)
            yield

    def _tighten(self, crew: Crew, stage: Stage) -> Iterator[None]:
        """Tighten until the stage ends; the first one ends once the bound is near."""
        progress = Progress.MORE
        while progress is Progress.MORE and self.clock.spent < stage.ends and not self.board.proven:
            if stage.number == 0 and crew.tightening.gap < self.schedule.nearly:
                return
            progress = yield from self._by_turns(crew, crew.tightening)

    def _spell(self, crew: Crew, spell: Spell, seconds: float) -> Iterator[None]:
        """Turns of one worker until it is done or for so many seconds."""
        ends = self.clock.spent + seconds
        if self.board.proven or not spell.worker.begin(ends):
            return
        progress = Progress.MORE
        self._searching = spell.accompanied
        try:
            while progress is Progress.MORE and not self.board.proven:
                if self.clock.spent >= ends and not spell.nearly_done():
                    break
                if spell.accompanied:
                    progress = yield from self._by_turns(crew, spell.worker)
                else:
                    progress = spell.worker.run(self.clock.deadline(self._slice))
                    yield
        except GeneratorExit:
            # The run is over: what the worker has found may still have to be proven.
            spell.worker.end()
            raise
        self._searching = False
        spell.worker.end()

    def _by_turns(self, crew: Crew, worker: Worker) -> Generator[None, None, Progress]:
        """A turn of a worker and one of the companion, after one another or side by side; how the worker's ended."""
        clock = self.clock
        if crew.companion.beside:
            with crew.companion.alongside(0.1 * self._slice):
                progress = worker.run(clock.deadline(self._slice))
            yield
            return progress
        progress = worker.run(clock.deadline(self._slice))
        yield
        self._accompany(crew)
        yield
        return progress

    def _accompany(self, crew: Crew) -> None:
        """A turn of the companion; a short one where it has not found anything for long, unless nothing else helps.

        On large models a step of it takes longer than its turn: what it has taken too much, it has less later on.
        """
        if crew.companion.idle:
            return
        schedule, board = self.schedule, self.board
        active = self.clock.spent < 2.0 * crew.companion.last_gain + 1.0
        # A search that will not close the gap gains ever less for its time.
        active |= self._searching and not crew.companion.wide and schedule.hopeful < board.gap < math.inf
        seconds = (schedule.active_share if active else schedule.idle_share) * self._slice
        if crew.companion.wide or (crew.companion.keen and active):
            seconds *= schedule.wide_share
        if self._stage and board.is_hopeless(schedule.hopeless_gap):
            seconds = schedule.hopeless_share * self._slice
        share = schedule.companion_share
        self._debt -= share * seconds
        if share and self._debt < 0.0:
            begun = self.clock.spent
            crew.companion.run(self.clock.deadline(-self._debt))
            self._debt += self.clock.spent - begun

    @property
    def _slice(self) -> float:
        """Seconds of a turn."""
        return self.schedule.slice * (1.0 if self._stage else self.schedule.first_slice)


def exhaust(worker: Worker, clock: Clock, seconds: float) -> Iterator[None]:
    """Turns of one worker alone, until it is done."""
    progress = Progress.MORE
    while progress is Progress.MORE:
        progress = worker.run(clock.deadline(seconds))
        yield
