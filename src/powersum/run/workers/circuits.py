"""Search over max variables by circuits: each further circuit is larger, and its bound nearer."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import IntArray, positions_of
from powersum.core.progress import Progress
from powersum.core.speed import COUNTING_NODE
from powersum.exact.circuit import LEAST
from powersum.exact.counting import LEAST_BYTES, Counting, worth_counting
from powersum.prepare.orientation import causal_order
from powersum.proof.conditioning import conditioning_arrays
from powersum.proof.format import Ground, Proof, Prover
from powersum.run.proofs import MOST_BOXES, by_cases, by_circuit, by_conditioning_given
from powersum.run.workers.task import WorkerTask
from powersum.search.circuit_search import CircuitSearch, choices_of

EARLIER = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""How far max variables move to the front of the order in which variables are set, as a share of all variables."""

EQUAL = 1e-9
"""Bounds that are nearer say one value."""

FIRST, FURTHER = 0.25, 0.5
"""Share of the time left that the first circuit may take, and each further one; the search then has the last one."""

PROVING, LEAST_PROVING = 0.3, 3.0
"""Share of the time so far, and seconds, that proving all boxes of the search may take; else the whole has to do."""

LEAST_SECONDS, HOPELESS = 0.3, 2.0
"""Building is given up after so many seconds where it needs so many times the time that it may take, at its pace."""

WAITING = 0.1
"""Share of the memory of conditioning for nodes of the search that wait."""


class Circuits:
    """The best assignment and a bound on all, where conditioning of everything fits into memory and time.

    Parameters
    ----------
    task
        What to work on.
    """

    def __init__(self, task: WorkerTask) -> None:
        self._task = task
        self._open = (
            # In other orders a maximum inside a sum is part of the question.
            task.problem.blocks is None
            and task.schedule.circuits_share > 0.0
            and bool(task.is_max.any())
            and task.shares.conditioning >= LEAST_BYTES
            and worth_counting(task.problem.model)
        )
        self._levels = list(EARLIER)
        self._next_order = task.order
        self._building: Counting | None = None
        self._most = 0.0
        """Seconds that building the next circuit may take."""
        self._search: CircuitSearch | None = None
        self._searched, self._built = 0.0, 0.0
        """Seconds of the search by the present circuit, and of building the last one."""
        self._paces: list[tuple[float, float]] = []
        """Seconds of building, and the log of the share of the states that are explored."""
        self._prover: Prover | None = None
        self._proven_before = task.board.prover

    @property
    def useful_seconds(self) -> float | None:
        """It takes the time that it is given."""
        return None

    def begin(self, ends: float) -> bool:
        """Begin, or go on; False where a circuit is too large."""
        del ends
        return self._open

    def run(self, deadline: float) -> Progress:
        """Build circuits and search by them until the deadline."""
        task, begun = self._task, self._task.clock.spent
        if self._building is None and self._levels and (self._search is None or self._searched >= self._built):
            self._begin_circuit()
        if self._building is not None:
            progress = self._build(self._building, deadline)
            self._built += task.clock.spent - begun
            if progress is Progress.DONE:
                self._take(self._building)
                self._searched, self._building = 0.0, None
            elif progress is not Progress.MORE or self._built > self._most or self._hopeless(self._building):
                # No larger one would fit either.
                self._building, self._levels = None, []
                self._open = self._search is not None
        elif self._search is not None:
            self._search.offer(task.board.best_known(task.problem))
            progress = self._search.run(deadline)
            self._searched += task.clock.spent - begun
            self._report(self._search)
            if progress is Progress.DONE and not self._few_boxes and self._levels:
                # By a larger circuit there are fewer.
                self._searched = math.inf
                return Progress.MORE
            if progress is not Progress.MORE:
                self._open = False
            if progress is Progress.DONE and self._search.log_upper <= task.board.best_known(task.problem) + EQUAL:
                self._prove_below(self._search)
                task.board.prove("Search over max variables, bounded by a circuit: nothing better is left.")
        return Progress.MORE if self._open and not task.board.proven else Progress.DONE

    def end(self) -> None:
        """What is under way goes on in the next stage."""

    def _hopeless(self, building: Counting) -> bool:
        """Whether the logarithm of what is explored grows too slowly: what is remembered makes it grow evenly."""
        self._paces.append((self._built, math.log(max(building.explored, LEAST))))
        seconds, share = self._paces[-1]
        before = next(pace for pace in reversed(self._paces) if pace[0] <= 0.5 * seconds or pace is self._paces[0])
        gained = share - before[1]
        return seconds > LEAST_SECONDS and -share * (seconds - before[0]) > HOPELESS * self._most * max(gained, 0.0)

    def _build(self, counting: Counting, deadline: float) -> Progress:
        progress = Progress.MORE
        while progress is Progress.MORE and time.monotonic() < deadline:
            nodes = counting.nodes
            progress = counting.step()
            time.spend(COUNTING_NODE * (counting.nodes - nodes))
        return progress

    def _begin_circuit(self) -> None:
        task, problem = self._task, self._task.problem
        known = causal_order(problem)
        earlier = self._levels.pop(0) * len(known) * task.is_max
        rank = -positions_of(known) + earlier
        self._next_order = np.argsort(rank, kind="stable")
        self._building = Counting(
            problem.model,
            problem.tau,
            self._next_order,
            memory=task.shares.conditioning,
            rank=np.zeros_like(known),
            circuit=True,
        )
        self._paces = []
        self._built, self._most = 0.0, task.clock.left * (FIRST if self._search is None else FURTHER)

    def _take(self, counting: Counting) -> None:
        """Search by a new circuit, if its bound is better than what is left of the search by the last one."""
        task = self._task
        if counting.log_value == -np.inf:
            task.board.impossible(by_cases)
            return
        if self._search is not None and counting.log_value >= self._search.log_upper and self._few_boxes:
            return
        choices = choices_of(counting.circuit, task.is_max, counting.possible)
        self._search = CircuitSearch(
            choices,
            counting.log_value,
            counting.log_error,
            task.is_max,
            task.problem.model.cardinalities,
            counting.possible.copy(),
            memory=WAITING * task.shares.conditioning,
            records=task.board.ground is not None,
        )
        self._prover = partial(self._prove, self._search, self._next_order)
        task.board.offer_upper(task.problem, counting.log_value, counting.log_error, prover=self._prover)

    @property
    def _few_boxes(self) -> bool:
        """Whether a proof of the search by the present circuit is not too large, if one is wanted."""
        return self._task.board.ground is None or self._search is None or self._search.n_boxes <= MOST_BOXES

    def _report(self, search: CircuitSearch) -> None:
        board, problem = self._task.board, self._task.problem
        if search.states is not None and search.log_lower > board.best_known(problem):
            board.offer_lower(problem, search.log_lower, search.log_error, search.states)
        prover = self._prover if self._few_boxes else None
        board.offer_upper(problem, search.log_upper, search.log_error, prover=prover)

    def _prove(self, search: CircuitSearch, order: IntArray, ground: Ground) -> Proof:
        task = self._task
        seconds = LEAST_PROVING + PROVING * task.clock.spent
        memory = task.shares.conditioning
        return by_circuit(ground, search, task.problem, order, memory, seconds, self._proven_before)

    def _prove_below(self, search: CircuitSearch) -> None:
        """Prove the value of the best assignment by conditioning: elimination may be too wide for that."""
        task, board, problem = self._task, self._task.board, self._task.problem
        states = search.states
        if board.ground is None or states is None or not np.array_equal(problem.restore(states), board.states):
            return
        ones, memory = np.ones_like(problem.tau), task.shares.conditioning
        counting = Counting(problem.model, ones, task.order, memory=memory, given=states, log=True)
        if self._build(counting, math.inf) is Progress.DONE:
            arrays = conditioning_arrays(counting, problem, states)
            step = by_conditioning_given(board.ground, problem, arrays, board.states)
            board.offer_below(problem, counting.log_value, counting.log_error, [step])
