"""The scheduler by itself: scripted workers, and a clock that moves only when one of them works."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from powersum.core.clock import Clock
from powersum.core.progress import Progress
from powersum.run.board import Board
from powersum.run.scheduler import Crew, Scheduler, Spell
from powersum.run.tuning import Schedule
from tests.run.test_board import PLAIN

SCHEDULE = Schedule(slice=1.0, first_stage=6.0, stage_growth=4.0, nearly=0.5)


class Time:
    """A clock that workers move."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.turns: list[str] = []
        """Who worked, one after the other."""

    def __call__(self) -> float:
        return self.now


class Scripted:
    """A worker that takes all of its turn, ends as it is told, and says when it began and ended."""

    last_gain = 0.0

    def __init__(self, name: str, time: Time, *, ends: Sequence[Progress] = (), takes: float | None = None) -> None:
        self.name, self._time, self._ends, self._takes = name, time, list(ends), takes
        self.applies = True
        self.useful_seconds: float | None = None
        self.gaps: list[float] = []
        self.begun: list[float] = []
        self.ended = 0
        self.lengths: list[float] = []
        self.idle = self.beside = self.closed = self.wide = self.keen = False

    def run(self, deadline: float) -> Progress:
        self.lengths.append(deadline - self._time.now)
        self._time.turns.append(self.name)
        self._time.now = deadline if self._takes is None else self._time.now + self._takes
        return self._ends.pop(0) if self._ends else Progress.MORE

    def end(self) -> None:
        self.ended += 1

    def close(self) -> None:
        self.closed = True

    @contextmanager
    def alongside(self, seconds: float) -> Iterator[None]:
        self._time.turns.append(f"{self.name} beside")
        yield


class Stages(Scripted):
    """A scripted worker that begins with every stage."""

    def begin(self, ends: float) -> bool:
        self.begun.append(ends)
        return self.applies


class Tightening(Scripted):
    """A scripted bound."""

    def begin(self, stage: int, ends: float, *, last: bool = False) -> None:
        del last
        assert stage == len(self.begun)
        self.begun.append(ends)

    splits = False

    @property
    def gap(self) -> float:
        return self.gaps.pop(0) if self.gaps else math.inf


class Run:
    """A scheduler with scripted workers: an opening, a bound, a search that tries, sums, a companion, a late one."""

    def __init__(self, *, limit: float = math.inf, schedule: Schedule = SCHEDULE) -> None:
        self.time = Time()
        self.board = Board(3)
        self.clock = Clock(limit, monotonic=self.time)
        self.first = Scripted("first", self.time, ends=[Progress.DONE], takes=0.1)
        self.tightening = Tightening("tighten", self.time)
        self.search = Stages("search", self.time)
        self.sums = Stages("sums", self.time)
        self.local = Scripted("local", self.time)
        self.late = Scripted("late", self.time, ends=[Progress.MORE, Progress.DONE])
        self.sums.applies = False
        spells = (
            Spell(self.sums, (0.5, 0.5), first=0.5, accompanied=False),
            Spell(self.search, (0.5, 0.25)),
        )
        crew = Crew(self.first, self.tightening, self.local, spells)
        self.scheduler = Scheduler(crew, self.board, self.clock, schedule, self.late)

    def until(self, seconds: float) -> list[str]:
        """All turns until so much time is spent or there are no more; a turn is a stretch of the clock's running."""
        self.left = self.scheduler.turns()
        while True:
            with self.clock.running():
                if next(self.left, 0) == 0:
                    return self.time.turns
            if self.clock.spent >= seconds:
                return self.time.turns


def test_the_first_stage_opens_tightens_and_searches_with_the_companion_in_between() -> None:
    run = Run()
    turns = run.until(9.0)
    assert turns[:3] == ["tighten", "first", "local"]
    searched = turns.index("search")
    assert turns[3:searched] == ["tighten", "local"] * ((searched - 3) // 2)
    assert run.tightening.begun[0] == pytest.approx(6.0)
    # A quarter of the usual turn in the first stage.
    assert run.tightening.lengths[1] == pytest.approx(0.25)
    # With no bounds the gap is not hopeful: a quarter of the time for tightening.
    assert run.search.begun[0] == pytest.approx(run.clock.spent, abs=3.0)
    assert run.search.ended == 1


def test_each_stage_is_longer_than_the_one_before() -> None:
    run = Run()
    run.until(200.0)
    begun = run.tightening.begun
    assert len(begun) >= 3
    assert begun[1] - begun[0] > 20.0
    assert max(run.tightening.lengths) == pytest.approx(1.0)


def test_a_last_stage_takes_all_the_time_that_is_left() -> None:
    run = Run(limit=40.0)
    run.until(39.9)
    # The first stage, of 6 s, is no more than 0.15 of 40 s; the next, of 24 s, is more than that of what is left.
    assert len(run.tightening.begun) == 2
    ends = run.tightening.begun[1]
    begun = run.search.begun[0] + 0.5
    assert begun + 0.7 * (40.0 - begun) <= ends <= 36.0
    assert run.search.begun[-1] == pytest.approx(40.0)


def test_where_boxes_are_counted_on_the_last_stage_comes_sooner_and_leaves_half_of_the_time() -> None:
    run = Run(limit=40.0)
    run.tightening.splits = True
    run.until(39.9)
    assert run.tightening.begun == [pytest.approx(SCHEDULE.split_tightening * 40.0)]


def test_time_that_another_worker_could_use_is_left_to_it_at_the_end() -> None:
    run = Run(limit=20.0)
    run.sums.useful_seconds = 8.0
    run.until(1.0)
    assert run.tightening.begun[0] == pytest.approx(12.0)
    run = Run(limit=20.0)
    run.sums.useful_seconds = math.inf
    run.until(1.0)
    assert run.tightening.begun[0] == pytest.approx(10.0)


def test_a_bound_that_has_come_near_ends_the_first_stage_before_its_time() -> None:
    run = Run()
    run.tightening.gaps = [9.0, 0.4]
    turns = run.until(3.0)
    assert turns[:6] == ["tighten", "first", "local", "tighten", "local", "search"]


def test_a_worker_that_is_done_or_out_of_time_has_no_more_turns() -> None:
    for end in (Progress.DONE, Progress.OUT_OF_TIME):
        run = Run()
        run.tightening._ends = [Progress.MORE, Progress.MORE, end]
        run.search._ends = [end]
        turns = run.until(7.0)
        search = turns.index("search")
        assert turns[:search].count("tighten") == 3
        stage = turns[search:]
        assert stage[:3] == ["search", "local", "tighten"]
        assert run.search.ended >= 1


def test_a_worker_may_have_time_at_the_very_beginning_and_no_company() -> None:
    run = Run()
    run.sums.applies = True
    turns = run.until(2.0)
    assert turns[:6] == ["tighten", "first", "sums", "sums", "local", "tighten"]


def test_once_the_answer_is_proven_nobody_works() -> None:
    run = Run()
    left = run.scheduler.turns()
    with run.clock.running():
        for _ in range(7):
            next(left)
        run.board.prove("By hand.")
        count = len(run.time.turns)
        list(left)
    assert len(run.time.turns) <= count + 1
    assert run.local.closed
    assert run.scheduler.crew is None


def test_with_threads_the_companion_works_beside_the_others() -> None:
    run = Run()
    run.local.beside = True
    turns = run.until(5.0)
    assert turns[3:7] == ["local beside", "tighten"] * 2


def test_a_companion_that_finds_nothing_has_short_turns_and_long_ones_where_nothing_else_helps() -> None:
    schedule = replace(SCHEDULE, active_share=0.8, idle_share=0.4, hopeless_share=2.0, hopeless_gap=1.0)
    run = Run(schedule=schedule)
    run.until(60.0)
    assert run.local.lengths[0] == pytest.approx(0.8 * 0.25)
    assert run.local.lengths[-1] == pytest.approx(0.4)
    run = Run(schedule=schedule)
    run.board.offer_upper(PLAIN, 20.0, 0.0)
    run.board.offer_lower(PLAIN, 1.0, 0.0, np.zeros(PLAIN.model.n_variables, dtype=np.int64))
    run.until(60.0)
    assert run.local.lengths[-1] == pytest.approx(2.0)


def test_a_companion_has_longer_turns_again_once_it_has_found_something() -> None:
    run = Run(schedule=replace(SCHEDULE, active_share=0.8, idle_share=0.4))
    run.until(60.0)
    assert run.local.lengths[-1] == pytest.approx(0.4)
    run.local.last_gain = run.clock.spent
    turns = len(run.local.lengths)
    while len(run.local.lengths) == turns:
        with run.clock.running():
            next(run.left)
    assert run.local.lengths[-1] == pytest.approx(0.8)


@pytest.mark.parametrize(("gap", "wide", "share"), [(5.0, False, 0.8), (5.0, True, 0.4), (0.9, False, 0.4)])
def test_beside_a_search_that_will_not_close_the_gap_a_companion_has_long_turns(
    gap: float, wide: bool, share: float
) -> None:
    run = Run(limit=600.0, schedule=replace(SCHEDULE, active_share=0.8, idle_share=0.4, wide_share=1.0, hopeful=1.0))
    run.local.wide = wide
    run.board.offer_upper(PLAIN, 10.0 + gap, 0.0)
    run.board.offer_lower(PLAIN, 10.0, 0.0, np.zeros(PLAIN.model.n_variables, dtype=np.int64))
    turns = run.until(590.0)
    local = [at for at, name in enumerate(turns) if name == "local"]
    lengths = {turns[at - 1]: length for at, length in zip(local, run.local.lengths, strict=True)}
    assert lengths["search"] == pytest.approx(share)
    assert lengths["tighten"] == pytest.approx(0.4)


def test_a_companion_on_a_wide_sum_has_longer_turns() -> None:
    lengths = []
    for wide in (False, True):
        run = Run(schedule=replace(SCHEDULE, active_share=0.5, idle_share=0.2, wide_share=2.0))
        run.local.wide = wide
        run.until(60.0)
        lengths.append((run.local.lengths[0], run.local.lengths[-1]))
    assert lengths == [pytest.approx((0.125, 0.2)), pytest.approx((0.25, 0.4))]


def test_a_companion_that_takes_longer_than_its_turn_has_fewer_of_them() -> None:
    schedule = replace(SCHEDULE, active_share=0.5, idle_share=0.5)
    run = Run(schedule=schedule)
    run.local._takes = 10.0
    turns = run.until(400.0)
    others = sum(run.tightening.lengths) + sum(run.search.lengths)
    taken = 10.0 * turns.count("local")
    # Its turns are half as long as those of the others: so is its time in all, but for the step that it is in.
    assert 0.5 * others - 10.0 <= taken <= 0.5 * others + 10.0


def test_with_nothing_to_do_at_the_end_the_run_is_over() -> None:
    run = Run(limit=10.0)
    run.local.idle = True
    run.search._ends = [Progress.DONE] * 9
    run.tightening._ends = [Progress.DONE] * 9
    turns = run.until(math.inf)
    assert "local" not in turns
    assert run.board.exhausted
    assert not run.board.proven
    assert run.board.reason == "Nothing is left to do within the time and memory given."
    assert run.local.closed


def test_elimination_comes_late_and_alone() -> None:
    run = Run(limit=100.0)
    run.scheduler.late_seconds = 50.0
    confirmed: list[object] = []

    def compute_again() -> float:
        confirmed.append(run.scheduler.crew)
        return 20.0

    run.board.offer_upper(PLAIN, 20.0, 0.0, compute_again)
    turns = run.until(math.inf)
    assert turns[-2:] == ["late", "late"]
    # Not before the first stage has ended, and at the first turn after it.
    assert len(run.tightening.begun) == 2
    assert turns.count("search") >= 1
    # The others are gone by then, and the bound they gave was computed again.
    assert confirmed == [None]
    assert run.local.closed


@pytest.mark.parametrize("seconds", [math.inf, 90.0])
def test_elimination_that_takes_too_long_is_not_done(seconds: float) -> None:
    run = Run(limit=100.0)
    run.scheduler.late_seconds = seconds
    assert "late" not in run.until(99.0)


def test_a_caller_who_stops_lets_everybody_go() -> None:
    run = Run()
    run.until(3.0)
    run.left.close()
    assert run.local.closed
    assert run.scheduler.crew is None
