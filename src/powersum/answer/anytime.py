"""The anytime part of ``solve``: tighten, decode, improve, search and sum by turns, in slices."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from powersum.answer.board import State
from powersum.assign.complete import Completion, complete, preferring
from powersum.assign.cutset import hold_cutset
from powersum.assign.evaluator import Evaluator
from powersum.assign.portfolio import Portfolio
from powersum.assign.regions import TOO_WIDE
from powersum.bounds.tree.covering_tree import CoveringTree
from powersum.bounds.tree.look_up import heuristic_of
from powersum.core.arrays import IntArray
from powersum.core.clock import deadline_at, working_time
from powersum.model.rounding import elimination_error
from powersum.prepare.problem import Problem
from powersum.search import AndOr
from powersum.sums.passes import FIRST_SHARE, SumPasses

FIRST_STAGE = 0.6
"""Seconds for tightening in the first stage; each further stage has four times as much."""

SLICE = 0.2
"""Seconds of work between two looks at the outside; a quarter of that in the first stage."""

NEARLY = 0.3
"""A gap (natural logs) that search is likely to close: the first stage then ends before its time, and in each later
one search has a try before tightening goes on."""

TRY = 0.3
"""Time for such a try, as a share of the time of the stage so far."""

LAST_STAGE = 0.15
"""A stage that would take more than this share of the time left is the last, and takes all of it."""

LAST_TIGHTENING = 0.75
"""Share of the last stage that goes into tightening, the rest into search."""

SEARCH_TIME, HOPEFUL = (0.5, 0.2), 1.0
"""Time for search after an earlier stage, as a share of the time for tightening: where the gap is below ``HOPEFUL``
(natural logs), and elsewhere."""

IDLE_SHARE = 0.4
"""Share of the usual slice for a local search that has not found anything for long."""

HOPELESS, HOPELESS_SHARE = 1.0, 2.0
"""A gap larger than this share of the value will not be closed; local search then has so many times the usual slice."""

TREE_SHARE = 0.4
"""Share of the memory that a tree may take."""

SUM_SHARE = 0.4
"""Share of the memory that partial sums may take, half of it beside a held cutset; search is not done beside them."""

FIRST_SUM = 0.2
"""Seconds for a first partial sum, by bounds that are hardly tightened."""

MOST_VARIABLES = 10_000
"""With more variables than this left, neither branch and bound nor partial sums would get anywhere."""

HELD_TABLE = 2.0**18
"""Largest table of the sum that is left when a cutset is held."""

EVALUATED_PER_SECOND = 7e7
"""Table entries of a sum that are evaluated in a second, at the least."""

LONGEST_EVALUATION = 0.6
"""Seconds that the sum may take once fewer variables are held: nothing looks outside before it is done."""


class Anytime:
    """The anytime part: a tree, a portfolio of local searches and a branch and bound that take turns."""

    def __init__(
        self, problem: Problem, order: IntArray, state: State, *, memory: float, threads: int, seed: int
    ) -> None:
        self.problem, self.order, self.state = problem, order, state
        self.memory, self.threads, self.seed = memory, threads, seed
        self.evaluator = Evaluator(problem, memory=0.2 * memory)
        # With threads, local search runs beside the rest, one thread of its own, and needs working memory of its own.
        self.beside = threads > 1 and bool(self.evaluator.is_max.any())
        self.local = Evaluator(problem, memory=0.1 * memory) if self.beside else self.evaluator
        # Where sums are too wide, the portfolio works on another problem whose value is a lower bound.
        self.held: Evaluator | None = None
        # Then a state of every variable that zeros allow, for partial sums.
        self.possible: IntArray | None = None
        self.least_share, self.sum_seconds = FIRST_SHARE, math.inf
        self.portfolio = Portfolio(self.local, seed=seed)
        self.search: AndOr | None = None
        self.pool = ThreadPoolExecutor(1)
        self.improved = 0.0
        self.overrun = 0.0
        self.stage = 0
        self.held_table = HELD_TABLE
        self.most_held = math.inf
        self.known_value = -math.inf
        self.known: IntArray = np.full(problem.model.n_variables, -1, dtype=np.int64)
        self.evaluation_work = math.inf
        self.evaluation = 0.0
        self.log_error = elimination_error(problem.model)
        """Rounding of an exact evaluation, or of a sum of some of its terms."""

    def run(self, clock: Callable[[], float], time_limit: float) -> Iterator[State]:
        """Stages of growing length: a tree is tightened, then searched with; local search all the while."""
        state = self.state
        tree: CoveringTree | None = None
        while not state.settled:
            # A last stage takes all the time that is left, so that none is spent on what cannot be finished.
            length = FIRST_STAGE * 4.0**self.stage
            left = time_limit - clock()
            last = length > LAST_STAGE * left
            if last:
                # Partial sums gain more by time than the tree, up to what memory allows them.
                length = LAST_TIGHTENING * left if self.possible is None else max(0.5 * left, left - self.sum_seconds)
            ends = working_time() + length
            fresh = CoveringTree(
                self.problem,
                self.order,
                threads=self.threads - self.beside,
                seed=self.seed + self.stage,
                memory=int(TREE_SHARE * self.memory),
            )
            if tree is None:
                yield state
                # Nothing looks outside during an evaluation: one that might take much longer than a slice is not begun.
                self.evaluation_work = EVALUATED_PER_SECOND * (0.5 + 0.05 * min(left, 60.0))
                yield from self._first_assignment(fresh, ends)
            begun, tried = working_time(), False
            more = not state.settled
            while more and working_time() < ends and not state.settled:
                if not tried and fresh.log_upper + self.problem.log_constant - state.log_lower < NEARLY:
                    if self.stage == 0:
                        break
                    tried = True
                    yield from self._search(fresh, working_time() + TRY * (working_time() - begun), clock)
                    continue
                more = yield from self._by_turns(partial(self._tighten, fresh, ends), clock)
            self._claim(fresh)
            if tree is None or fresh.log_upper < tree.log_upper:
                tree = fresh
                if self.stage:
                    self.portfolio.suggest(tree.decode())
            del fresh
            ends = math.inf if last else working_time() + SEARCH_TIME[self._gap() >= HOPEFUL] * length
            if self.possible is not None and not state.settled:
                yield from self._sum(tree, time_limit - clock() if last else 0.5 * length)
            yield from self._search(tree, ends, clock)
            while last and not state.settled:
                if not (self.held or self.evaluator).is_max.any():
                    state.exhausted, state.reason = True, "Nothing is left to do within the time and memory given."
                    yield state
                    return
                self._improve(clock)
                yield state
            self.stage += 1

    @property
    def slice(self) -> float:
        """Seconds of work between two looks at the outside."""
        return SLICE if self.stage else 0.25 * SLICE

    def _gap(self) -> float:
        return self.state.log_upper - self.state.log_lower

    def _search(self, tree: CoveringTree, ends: float, clock: Callable[[], float]) -> Iterator[State]:
        """Branch and bound by turns with local search, where it applies, until it is done or until a working time."""
        state = self.state
        # There must be something to maximise, and leaves that can be evaluated.
        applies = self.held is None and state.log_lower > -math.inf and bool(self.evaluator.is_max.any())
        if state.settled or not applies or self.problem.model.n_variables > MOST_VARIABLES:
            return
        self._begin_search(tree)
        more = True
        while more and working_time() < ends and not state.settled:
            more = yield from self._by_turns(self._branch_and_bound, clock)
        # It holds a copy of the tree's tables, and is of no use once the tree changes.
        self.search = None

    def _claim(self, tree: CoveringTree) -> None:
        """Report the tree's bound, which counts its own rounding, and how to compute it again at its point."""
        self.state.offer_upper(self.problem, tree.log_upper, 0.0, tree.bound)

    def _first_assignment(self, tree: CoveringTree, ends: float) -> Iterator[State]:
        """A feasible assignment from the tree, or the proof that there is none."""
        self._tighten(tree, ends, time.monotonic() + self.slice)
        yield self.state
        evaluator = self.evaluator
        decoded = tree.decode()
        while True:
            ended, states = complete(
                evaluator, preferring(evaluator, decoded), deadline=time.monotonic() + 1.0, seed=self.seed
            )
            if ended is Completion.IMPOSSIBLE:
                self.state.impossible()
                yield self.state
                return
            if ended is Completion.FOUND:
                break
            yield self.state
        value = evaluator.value(np.where(evaluator.is_max, states, -1), self.evaluation_work)
        if not evaluator.is_max.any() and value < TOO_WIDE:
            if value == -math.inf:
                self.state.impossible()
                yield self.state
                return
            self.state.offer_upper(self.problem, value, self.log_error)
            self.state.offer_lower(self.problem, value, self.log_error, np.full(len(states), -1, dtype=np.int64))
            self.state.settled, self.state.reason = True, "Exact elimination, component by component."
            yield self.state
            return
        if value == TOO_WIDE and len(states) <= MOST_VARIABLES:
            self.possible = states
        if self.possible is not None and not evaluator.is_max.any():
            self.state.notes = ("Summing is too wide for the memory given: log_lower is the sum of the largest terms.",)
            yield from self._sum(tree, FIRST_SUM)
        elif value == TOO_WIDE:
            self._hold(states)
            self.state.notes = (
                "Summing is too wide for the memory or time given: log_lower is a lower bound on the value of the "
                "assignment.",
            )
        else:
            self.portfolio.suggest(decoded)
        self._improve(lambda: 0.0)
        yield self.state

    def _tighten(self, tree: CoveringTree, ends: float, deadline: float) -> bool:
        more = True
        while more and time.monotonic() < deadline:
            more = tree.step(deadline_at(ends))
        self._claim(tree)
        # While it is annealed the tree shows one good assignment after another, at every temperature others.
        self.portfolio.look_at(tree.glance())
        return more

    def _by_turns(self, work: Callable[[float], bool], clock: Callable[[], float]) -> Generator[State, None, bool]:
        """A slice of some work and one of local search, after one another or side by side; what the work returned."""
        if not self.beside:
            # On large models a step of local search takes longer than its slice: the work shall not starve by that.
            more = work(time.monotonic() + max(self.slice, self.overrun))
            yield self.state
            begun = time.monotonic()
            self._improve(clock)
            self.overrun = time.monotonic() - begun - HOPELESS_SHARE * self.slice
            yield self.state
            return more
        ended = threading.Event()
        portfolio = self.portfolio

        def search() -> bool:
            gained = False
            while not ended.is_set():
                gained |= portfolio.run(time.monotonic() + 0.1 * self.slice)
            return gained

        task = self.pool.submit(search)
        try:
            more = work(time.monotonic() + self.slice)
        finally:
            ended.set()
            gained = task.result()
        self._record_gain(gained, clock)
        yield self.state
        return more

    def _improve(self, clock: Callable[[], float]) -> None:
        """A slice of local search; a short one where it has not found anything for long, unless nothing else helps."""
        if not (self.held or self.local).is_max.any():
            return
        length = self.slice if clock() < 2.0 * self.improved + 1.0 else IDLE_SHARE * self.slice
        if self.stage and HOPELESS * abs(self.state.log_lower) < self._gap() < math.inf:
            length = HOPELESS_SHARE * self.slice
        self._record_gain(self.portfolio.run(time.monotonic() + length), clock)

    def _record_gain(self, gained: bool, clock: Callable[[], float]) -> None:
        """After a slice of local search: record what it found, or hold fewer variables where it finds nothing more."""
        if not gained:
            if self.held is not None and clock() > 1.3 * self.improved + 1.0:
                # Fewer variables need to be held where larger tables are allowed.
                self.held_table *= 8.0
                self.improved = clock()
                fits = 64.0 * self.held_table < 0.2 * self.memory and self.held_table <= self.most_held
                if fits and 8.0 * self.evaluation < LONGEST_EVALUATION:
                    self._hold(self.portfolio.assignment)
            return
        self.improved = clock()
        evaluator = self.held or self.local
        # Recomputed from scratch: the running value has the rounding of all its updates.
        begun = time.monotonic()
        value = evaluator.value(self.portfolio.assignment)
        self.evaluation = time.monotonic() - begun
        if value == TOO_WIDE:
            self._begin_again()
            return
        self._record(value, self.portfolio.assignment)
        if self.search is not None:
            self.search.offer(value, self.portfolio.assignment)

    def _begin_again(self) -> None:
        """A new portfolio, after one that met an assignment whose value is too wide, which says nothing about it."""
        if self.held is None:
            self.portfolio = Portfolio(self.local, seed=self.seed + 1)
            self.portfolio.suggest(self.known)
            return
        # Zeros can leave more of a sum than the cutset was chosen for.
        self.held_table = max(0.125 * self.held_table, 2.0)
        self.most_held = self.held_table
        self._hold(self.known)

    def _hold(self, states: IntArray) -> None:
        """Go on with a cutset of sum variables held, so that what is left fits tables of the present limit."""
        held = hold_cutset(self.problem, entries=self.held_table, seed=self.seed)
        self.held = None
        self.held = Evaluator(held, memory=0.2 * self.memory)
        self.portfolio = Portfolio(self.held, seed=self.seed)
        self.portfolio.suggest(states)

    def _sum(self, tree: CoveringTree, seconds: float) -> Iterator[State]:
        """Where summing is too wide: partial sums, ever larger, of everything or of what the best assignment leaves."""
        is_max = self.evaluator.is_max
        states = np.where(is_max, self.known, -1) if is_max.any() else None
        if states is not None and (states[is_max] < 0).any():
            return  # no assignment is known yet
        # Where there is an assignment to be found, local search has the other half of the time.
        end = working_time() + (seconds if states is None else 0.5 * seconds)
        passes = SumPasses(
            self.problem,
            tree,
            memory=SUM_SHARE * self.memory * (1.0 if self.held is None else 0.5),
            first_share=self.least_share,
            given=states,
            anchor=self.possible if states is None else None,
        )
        while passes.run(time.monotonic() + min(self.slice, end - working_time()), end):
            self._record(passes.sum.log_lower, np.full(len(is_max), -1) if states is None else states)
            if states is None:
                self.state.offer_upper(self.problem, passes.sum.log_upper, 2.0 * self.log_error)
                if passes.sum.exact:
                    self.state.settled, self.state.reason = True, "Every term that is not zero was summed."
                    self.state.notes = ()
            yield self.state
            if self.state.settled:
                return
        self.least_share = passes.share
        if states is None:
            self.sum_seconds = passes.seconds

    def _record(self, value: float, assignment: IntArray) -> None:
        # Too wide is no value: also with a cutset held, some assignments leave more variables free than others.
        states = np.where(self.evaluator.is_max, assignment, -1)
        if value < TOO_WIDE and self.state.offer_lower(self.problem, value, 2.0 * self.log_error, states):
            self.known, self.known_value = assignment.copy(), value

    def _begin_search(self, tree: CoveringTree) -> None:
        # What tightening needed beside the tables makes room for the copy of them that the search reads.
        tree.best_tree.rest()
        heuristic, log_upper = heuristic_of(tree, self.problem)
        self.search = AndOr(
            heuristic,
            tree.best_tree,
            self.evaluator,
            log_upper=log_upper,
            log_lower=self.known_value,
            log_error=self.log_error,
            assignment=self.known,
            memory=0.2 * self.memory,
        )

    def _branch_and_bound(self, deadline: float) -> bool:
        """A slice of branch and bound; False when it is done."""
        search = self.search
        assert search is not None
        search.run(deadline)
        self._record(search.log_lower, search.assignment)
        self.state.offer_upper(self.problem, search.log_upper, search.log_error)
        if search.done and search.log_upper <= search.log_lower + search.tolerance:
            self.state.settled, self.state.reason = True, "Branch and bound: nothing better is left."
        return not search.done
