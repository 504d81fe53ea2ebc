"""The work on a question whose sums and maxima alternate: elimination, conditioning, outcomes by clauses, a tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import partial

import numpy as np

from powersum.bounds.corner import corner_of
from powersum.bounds.tree import CoveringTree
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.clock import Clock
from powersum.core.progress import Progress
from powersum.core.speed import COUNTING_NODE
from powersum.exact.counting import LEAST_BYTES, Counting, worth_counting
from powersum.model.interval import SAME
from powersum.model.question import Question
from powersum.model.rounding import elimination_error
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplified
from powersum.prepare.sizes import order_sizes, question_sizes
from powersum.run.board import Board
from powersum.run.memory_shares import MemoryShares
from powersum.run.scheduler import exhaust
from powersum.run.tuning import Schedule
from powersum.run.workers.elimination import ExactElimination
from powersum.search.scenarios import Scenarios, scenarios_of

SHARES = (0.02, 0.1, 0.3, 1.0)
"""Each worker in turn has time until this share of the limit is spent, round after round."""


def alternating_work(
    question: Question,
    *,
    board: Board,
    clock: Clock,
    schedule: Schedule,
    memory: float,
    threads: int,
    seed: int,
) -> Generator[None]:
    """Work on a question whose sums and maxima alternate; at each pause the board says what is known."""
    problem = simplified(question)
    board.sizes = question_sizes(question, problem)
    if not problem.feasible:
        board.impossible()
        yield
        return
    if problem.model.n_variables == 0:
        nothing = np.zeros(0, dtype=np.int64)
        board.offer_exact(problem, 0.0, 0.0, nothing, "Simplification alone gave the exact value.")
        yield
        return
    reader = corner_of(question, problem, clock.limit)
    if reader is not None:
        board.offer_upper(problem, reader.log_upper, 0.0)
    yield
    order = elimination_order(
        problem.model, problem.tau, rank=problem.rank, seed=seed, time_limit=min(0.2, 0.05 * clock.limit)
    )
    shares = MemoryShares(memory)
    elimination = ExactElimination(problem, order, board, cost=schedule.elimination_cost)
    board.sizes.update(order_sizes(elimination.width, elimination.log2_entries))
    fits = elimination.bytes <= shares.elimination
    if fits and elimination.seconds < schedule.quick:
        yield from exhaust(elimination, clock, schedule.slice)
        return
    workers: list[Callable[[float], Progress]] = []
    if shares.conditioning >= LEAST_BYTES and worth_counting(problem.model):
        counting = Counting(problem.model, problem.tau, order, memory=shares.conditioning, rank=problem.rank)
        workers.append(partial(_condition, counting, problem, board))
    scenarios = scenarios_of(problem)
    if scenarios is not None:
        workers.append(partial(_search, scenarios, problem, board))
    tree = _Tree(problem, order, board, memory=shares.tree, threads=threads, seed=seed)
    workers.append(tree.run)
    for share in SHARES:
        for place, worker in enumerate(list(workers)):
            ends = clock.spent + share * clock.left / (len(workers) - place if share == 1.0 else 1.0)
            progress = Progress.MORE
            while progress is Progress.MORE and clock.spent < ends and not board.proven:
                progress = worker(clock.deadline(schedule.slice))
                yield
            if board.proven:
                return
            if progress is not Progress.MORE:
                workers.remove(worker)
        if fits and elimination.seconds < schedule.late_elimination * clock.left:
            yield from exhaust(elimination, clock, schedule.slice)
            return
    board.give_up("Nothing more is known that would bring the two sides together.")


def _condition(counting: Counting, problem: Problem, board: Board, deadline: float) -> Progress:
    """Conditioning with caching, outer blocks before inner ones."""
    progress = Progress.MORE
    while progress is Progress.MORE and time.monotonic() < deadline:
        nodes = counting.nodes
        progress = counting.step()
        time.spend(COUNTING_NODE * (counting.nodes - nodes))
    if progress is Progress.DONE:
        states = counting.states()
        if states is None and (problem.rank[problem.tau == 0.0] == problem.rank.max()).any():
            # The best assignment was forgotten: its value is a bound.
            board.offer_upper(problem, counting.log_value, counting.log_error)
        else:
            found = np.full(len(problem.tau), -1, dtype=np.int64) if states is None else states
            reason = f"Conditioning with caching, {counting.nodes} nodes."
            board.offer_exact(problem, counting.log_value, counting.log_error, found, reason)
    return progress


def _search(scenarios: Scenarios, problem: Problem, board: Board, deadline: float) -> Progress:
    """Outcomes of the sum as copies of the clauses, where the inner maximum only asks whether."""
    error = elimination_error(problem.model)
    progress = scenarios.run(deadline)
    if scenarios.log_upper == -math.inf:
        board.impossible()
        return Progress.DONE
    board.offer_upper(problem, scenarios.log_upper, error)
    if scenarios.log_lower > -math.inf:
        board.offer_lower(problem, scenarios.log_lower, error, scenarios.states)
    if progress is Progress.DONE and board.gap <= SAME:
        board.prove(f"Conflict-driven search over {scenarios.n_outcomes} outcomes.")
    return progress


class _Tree:
    """A covering tree, and the value of the assignment that it suggests."""

    def __init__(
        self, problem: Problem, order: IntArray, board: Board, *, memory: float, threads: int, seed: int
    ) -> None:
        self._problem, self._board = problem, board
        self._start = partial(CoveringTree, problem, order, memory=int(memory), threads=threads, seed=seed)
        self._tree: CoveringTree | None = None

    def run(self, deadline: float) -> Progress:
        """Tighten until a deadline."""
        if self._tree is None:
            self._tree = self._start()
        tree, more = self._tree, True
        while more and time.monotonic() < deadline:
            more = tree.step(deadline)
        self._board.offer_upper(self._problem, tree.log_upper, 0.0, tree.bound)
        if tree.exact:
            self._board.offer_lower(self._problem, tree.log_upper - 2.0 * tree.log_error, 0.0, tree.decode())
            self._board.prove("One table holds every bucket: the value is exact.")
        return Progress.MORE if more else Progress.DONE
