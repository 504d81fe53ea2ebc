"""Local search for better assignments, by turns with the other workers or in a thread beside them.

Where the sum that an assignment leaves is too wide to evaluate, a cutset of sum variables is held: local search then
works on another problem, whose value is a lower bound; the longer it finds nothing, the fewer variables are held.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from powersum.assign.cutset import hold_cutset
from powersum.assign.evaluator import Evaluator
from powersum.assign.guided_search import GuidedSearch, is_guided
from powersum.assign.portfolio import Draw, Portfolio
from powersum.assign.regions import TOO_WIDE
from powersum.assign.sum_tree import SumTree
from powersum.assign.wide_search import WideSearch, sum_tree_for
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.prepare.problem import Problem
from powersum.run.workers.task import WorkerTask

PATIENCE, PAUSE = 1.3, 1.0
"""Fewer variables are held once nothing was found for so many times as long as until then, and so many seconds."""

LARGER = 8.0
"""How many times larger tables then may be."""

WORKING_BYTES = 64.0
"""Bytes of working memory for each entry of the largest table."""


class LocalSearchWorker:
    """A portfolio of local searches, and what it works on.

    Parameters
    ----------
    task
        What to work on.
    evaluator
        Values of assignments; not used where local search runs beside the rest, which needs one of its own.
    messages
        What is kept from move to move where sums are too large to be summed anew for each; None elsewhere.

    Attributes
    ----------
    portfolio
        The searches: a portfolio, or what is used like one.
    holds
        True where a cutset is held.
    wide
        True where the sum stays in one piece, and messages are kept.
    last_gain
        Moment of the clock at which something better was found for the last time, or at which it began.
    """

    def __init__(self, task: WorkerTask, evaluator: Evaluator, messages: SumTree | None = None) -> None:
        self._task = task
        beside = task.shares.beside
        self._evaluator = Evaluator(task.problem, memory=task.shares.local_search) if beside else evaluator
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="powersum-local") if beside else None
        self._draw: Draw | None = None
        self.portfolio = self._searcher(messages)
        self.wide = messages is not None
        self.holds = False
        self.last_gain = task.clock.spent
        self._held_table, self._most_held_table = task.schedule.held_table, math.inf
        self._evaluation = 0.0

    @property
    def idle(self) -> bool:
        """True where nothing is maximised."""
        return not self._evaluator.is_max.any()

    @property
    def held(self) -> Problem:
        """The problem that it works on: where a cutset is held, with these variables maximised."""
        return self._evaluator.problem

    @property
    def beside(self) -> bool:
        """True where it runs in a thread of its own."""
        return self._pool is not None

    @property
    def keen(self) -> bool:
        """True where time gains more for the value than for any bound."""
        return self.portfolio.keen

    def suggest(self, states: IntArray) -> None:
        """Begin from this assignment next; zeros may forbid it."""
        self.portfolio.suggest(states)

    def look_at(self, decoded: IntArray) -> None:
        """States that a bound likes now: one kind of beginning among others."""
        self.portfolio.look_at(decoded)

    def draw_from(self, draw: Draw | None) -> None:
        """Draw states that a bound likes whenever they are wanted; not in a thread, for others work on the bound."""
        if not self.beside:
            self._draw = draw
            self.portfolio.draw_from(draw)

    def value_of(self, states: IntArray) -> float:
        """The value of the states of its max variables; infinity where that is too wide."""
        schedule = self._task.schedule
        return self._evaluator.value(states, schedule.longest_evaluation / schedule.evaluation_cost)

    def hold(self, states: IntArray) -> None:
        """Go on with a cutset of sum variables held, so that what is left fits tables of the present limit."""
        task = self._task
        held = hold_cutset(task.problem, entries=self._held_table, seed=task.seed)
        if self.holds:
            # The evaluator before makes room for the next.
            del self._evaluator, self.portfolio
        self.holds = True
        messages = sum_tree_for(held, memory=0.5 * task.shares.held, seed=task.seed)
        self._evaluator = Evaluator(held, memory=(1.0 if messages is None else 0.5) * task.shares.held)
        self.portfolio = self._searcher(messages)
        self.wide = messages is not None
        self.portfolio.suggest(states)

    def _searcher(self, messages: SumTree | None, *, again: bool = False) -> Portfolio | GuidedSearch | WideSearch:
        """Local search by blocks that are summed anew, guided where memory allows, or by messages that are kept."""
        problem, seed = self._evaluator.problem, self._task.seed + again
        if messages is not None:
            return WideSearch(problem, messages, seed=seed)
        guided = is_guided(problem, memory=self._task.shares.wide)
        portfolio = (GuidedSearch if guided else Portfolio)(self._evaluator, seed=seed)
        portfolio.draw_from(self._draw)
        return portfolio

    def run(self, deadline: float) -> Progress:
        """Search until the deadline."""
        if self.idle:
            return Progress.DONE
        self._hear()
        self._report(gained=self.portfolio.improve(deadline))
        return Progress.MORE

    @contextmanager
    def alongside(self, seconds: float) -> Iterator[None]:
        """Search in a thread while the block runs, to end within so many seconds after it."""
        assert self._pool is not None
        self._hear()
        ended = threading.Event()
        portfolio = self.portfolio

        def search() -> bool:
            gained = False
            while not ended.is_set():
                gained |= portfolio.improve(time.monotonic() + seconds)
            return gained

        searching = self._pool.submit(search)
        try:
            yield
        finally:
            ended.set()
            gained = searching.result()
        self._report(gained=gained)

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown()

    def _hear(self) -> None:
        """Go on from an assignment that was found elsewhere, if there is one."""
        task = self._task
        heard, task.board.heard = task.board.heard, None
        if heard is not None:
            self.suggest(task.problem.reduced_states(heard))

    def _report(self, *, gained: bool) -> None:
        """Report what was found, or hold fewer variables where nothing more is found."""
        task, now = self._task, self._task.clock.spent
        if not gained:
            if self.holds and now > PATIENCE * self.last_gain + PAUSE:
                self.last_gain = now
                self._hold_fewer()
            return
        self.last_gain = now
        # Recomputed from scratch: the running value has the rounding of all its updates.
        begun = time.monotonic()
        states = self.portfolio.assignment
        value = self._evaluator.value(states)
        self._evaluation = time.monotonic() - begun
        if value == TOO_WIDE:
            self._begin_again()
        else:
            task.board.offer_lower(task.problem, value, 2.0 * task.log_error, states)

    def _hold_fewer(self) -> None:
        """Fewer variables need to be held where larger tables are allowed."""
        self._held_table *= LARGER
        fits = WORKING_BYTES * self._held_table < self._task.shares.held and self._held_table <= self._most_held_table
        if fits and LARGER * self._evaluation < self._task.schedule.longest_evaluation:
            self.hold(self.portfolio.assignment)

    def _begin_again(self) -> None:
        """A new portfolio, after one that met an assignment whose value is too wide, which says nothing about it."""
        incumbent = self._task.board.incumbent
        states = np.full_like(self.portfolio.assignment, -1) if incumbent is None else incumbent.states
        if not self.holds:
            self.portfolio = self._searcher(None, again=True)
            self.portfolio.suggest(states)
            return
        # Zeros can leave more of a sum than the cutset was chosen for.
        self._held_table = max(self._held_table / LARGER, 2.0)
        self._most_held_table = self._held_table
        self.hold(states)
