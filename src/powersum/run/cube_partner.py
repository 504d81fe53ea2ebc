"""Partners: runs on a whole cube from other seeds, where splitting it does not help.

How near a run comes is much of it luck: which order its tree has, where local search begins. Where the parts of a
cube are as far from closed as the cube itself, somebody who works on all of it, with other draws, helps more than one
who works on a part: the smaller upper bound counts, and the better assignment.

A process of our own keeps the run of its partner between turns, so that what it finds is heard of while it works, and
it hears what others find. Where that process is lost the run begins anew, with the time that is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any

from powersum.bounds.tree.rebuilding import Saved
from powersum.cluster.store import forget, keep, kept
from powersum.core.arrays import IntArray
from powersum.core.clock import working_time
from powersum.run.cube import CLOSE, CubeQuestion, CubeReport, empty_report, report_of, run_in, states_of
from powersum.run.cube_tree import Cube
from powersum.run.solver import Run
from powersum.run.tuning import Schedule

LEAST_SECONDS, SHORTEST = 6.0, 0.05
"""Seconds that must be left for a run to be worth beginning, and that it has if it comes to nothing after all."""

RUN_SECONDS = 20.0
"""Seconds of a run that is in one piece, or as many as the whole has taken before: so it is heard of now and then."""

SHARE, PROVING_SHARE = 0.97, 0.8
"""Share of the time left that a run is planned for: what comes too late is lost. With a proof it takes longer."""

TIGHTENING, ASSIGNMENTS = 0.5, 1.5
"""Share of a partner's run that goes into its tree rather than into search, and how many times the usual turns local
search has: the road has a larger tree and leaves assignments to others."""

MEMORY = 0.7
"""Share of its process that a partner takes: the rest is for boxes that the road lends meanwhile."""

OVER = "powersum: this run has ended"
"""What a process keeps of a run that has ended, for a turn of it may be under way."""


@dataclass(slots=True, eq=False)
class Partner:
    """A run on a cube, as whoever has it done sees it.

    Attributes
    ----------
    node
        The cube.
    number
        Partners draw otherwise than the road, and than one another.
    waiting
        Turns that were handed in and have not come back.
    over
        Whether the run has ended.
    ends
        Second of the whole at which it was planned to end.
    key
        What its run is known by in the process that has it.
    """

    node: Cube
    number: int
    waiting: int = 0
    over: bool = False
    ends: float = math.inf
    key: str = field(default_factory=lambda: f"partner {token_hex(8)}")


class Partners:
    """The partners of a question, and whose turn it is.

    Parameters
    ----------
    most
        How many there are at the same time.
    turn_seconds
        Seconds of a turn, where one process of our own has all turns of a partner; None where a run is in one piece.
    certificate
        Whether runs have to be proven.
    """

    def __init__(self, most: int, turn_seconds: float | None, *, certificate: bool) -> None:
        self._most, self._turn_seconds = most, turn_seconds
        self._share = PROVING_SHARE if certificate else SHARE
        self._partners: list[Partner] = []
        self._called = 0

    def call(self, node: Cube, left: float) -> None:
        """Somebody shall work on a cube, unless there are partners enough, or no time is left."""
        self._partners = [one for one in self._partners if not one.over]
        if len(self._partners) < self._most and left >= LEAST_SECONDS:
            self._called += 1
            self._partners.append(Partner(node, self._called))

    def next(self, free: int, left: float) -> Partner | None:
        """Who shall have a turn; turns may wait for the end of what is under way, runs in one piece may not."""
        for partner in self._partners:
            if self._turn_seconds is None:
                due = partner.waiting == 0 and free > 0
            else:
                due = partner.waiting == 0 or (partner.waiting == 1 and left > self._turn_seconds)
            if due and not partner.over:
                return partner
        return None

    @property
    def at_work(self) -> bool:
        """Whether a run is under way, or waits for somebody."""
        return any(not partner.over for partner in self._partners)

    @property
    def due(self) -> bool:
        """Whether a run waits for the next who is free."""
        return any(partner.waiting == 0 and not partner.over for partner in self._partners)

    def begin(self, partner: Partner, log_floor: float, states: IntArray, spent: float, left: float) -> tuple[Any, ...]:
        """A turn of a partner begins; returns what :func:`take_turn` is asked with."""
        left = max(self._share * (left - partner.waiting * (self._turn_seconds or 0.0)), SHORTEST)
        if self._turn_seconds is None:
            left = min(left, max(RUN_SECONDS, spent))
        partner.waiting += 1
        partner.ends = min(partner.ends, spent + left)
        known = states if log_floor > -math.inf else None
        stays = self._turn_seconds is not None
        seconds = min(self._turn_seconds or left, left)
        return partner.key, partner.number, partner.node.cube, log_floor, known, seconds, left, stays

    def take(self, partner: Partner, turn: PartnerTurn, spent: float) -> bool:
        """A turn has ended; True where its run had all of its time, and another one is worth while."""
        partner.waiting -= 1
        partner.over |= not turn.more
        return partner.over and spent >= partner.ends


@dataclass(frozen=True, slots=True)
class PartnerTurn:
    """What a turn has shown, whether the run goes on, and the tree that it leaves if it does not and had one."""

    report: CubeReport
    more: bool
    tree: Saved | None = None


def schedule_of(schedule: Schedule, left: float, *, stays: bool) -> Schedule:
    """How a partner spends its time.

    In turns it has one stage for all of it, if that has an end: the road has had the short ones, and what they find is
    known.
    """
    return replace(
        schedule,
        first_stage=math.inf if stays and left < math.inf else schedule.first_stage,
        # Turns of local search are shares of a slice: it would have next to none beside a tree that is large at once.
        first_slice=1.0,
        last_tightening=TIGHTENING,
        companion_share=ASSIGNMENTS * schedule.companion_share,
        first_full=0.0,
        first_conditioning=0.0,
    )


def take_turn(
    asked: CubeQuestion,
    key: str,
    number: int,
    cube: Mapping[int, int],
    log_floor: float,
    states: IntArray | None,
    seconds: float,
    left: float,
    stays: bool,
) -> PartnerTurn:
    """Go on with the run of a partner, or begin it where this process has none of that name.

    Parameters
    ----------
    asked
        The question.
    key, number
        Which partner.
    cube
        Variables and the states they are set to.
    log_floor, states
        The best value known elsewhere and its assignment; minus infinity and None where there is none.
    seconds
        The turn.
    left
        Seconds that a run which begins now has.
    stays
        Whether the run is kept for more turns; otherwise it ends with this one.
    """

    def begun() -> Run | None:
        schedule = schedule_of(asked.schedule, left, stays=stays)
        schedule = replace(schedule, most_bytes=min(schedule.most_bytes, MEMORY * asked.room.for_process))
        solver = run_in(asked, states_of(cube), left, schedule=schedule, seed=asked.question.limits.seed + number)
        if solver is not None and not stays:
            solver.keep_tree()
        return solver

    solver: Run | str | None = kept(key, begun) if stays else begun()
    if isinstance(solver, str):
        return PartnerTurn(CubeReport(math.inf, -math.inf, None, None, None), more=False)
    if solver is None:
        report, more = empty_report(asked, cube), False
    else:
        solver.aim_above(log_floor)
        if states is not None and log_floor > solver.log_lower:
            solver.hear(states)
        more, ends = True, working_time() + seconds
        while more and working_time() < ends:
            more = solver.log_upper > log_floor + CLOSE and solver.turn()
        if not (more and stays):
            more = False
            solver.interrupt("Nothing is left to do here.")
        report = report_of(asked, cube, solver)
    if stays and not more:
        forget(key)
        keep(key, OVER)
    # Nobody has to split the cube because of it, or to give it to somebody else.
    return PartnerTurn(replace(report, seconds=None), more, None if solver is None else solver.tree_left)
