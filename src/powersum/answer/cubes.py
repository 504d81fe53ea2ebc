"""One hard question on many workers: cube and conquer.

The question is split by setting variables, and each part (a *cube*) is bounded afresh by whoever is free, for a slice
of time, with the best value known so far. What is known of the parts joins upwards: the value of a question is the
largest of its cubes' values, or where nothing is maximised their sum. So both bounds hold at any moment, whatever has
been answered, lost or never begun. A cube that does not close in its slice is split again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from powersum.answer.board import IMPOSSIBLE_REASON, Board, proven
from powersum.answer.cube import CLOSE, Asked, Report, bound_cube
from powersum.answer.probability import log_sum_of, probability_of, reserved
from powersum.answer.solver import SAME, Solver
from powersum.cluster.executor import HEARTBEAT, ExecutorLike, Shared, Workers, workers_of
from powersum.core.arrays import FloatArray
from powersum.core.clock import working_time
from powersum.core.interrupt import Interrupt
from powersum.model.result import Result, Snapshot, Status
from powersum.model.rounding import UNIT
from powersum.prepare.problem import Problem

FIRST_SHARE, FIRST_SECONDS = 0.1, 5.0
"""Share of the time, and seconds at most, for the whole question before it is split."""

CUBE_SECONDS = 1.5
"""Seconds of a cube's slice, where the time left has more than so many times ten."""

CUBE_SHARE = 0.1
"""Share of the time left that a slice takes at most."""

LEAST_SECONDS = 0.2
"""And at least."""

SEARCHERS = 4
"""With so many workers or more, one of them looks for assignments only."""


@dataclass(slots=True, eq=False)
class Node:
    """A cube, what its own slice has shown, and the cubes it was split into.

    Attributes
    ----------
    log_upper, log_lower
        Bounds on its value, from its own slice and from what it was split into.
    """

    cube: dict[int, int]
    parent: Node | None = None
    log_upper: float = math.inf
    log_lower: float = -math.inf
    asked: bool = False
    children: list[Node] = field(default_factory=list)

    def leaves(self) -> Iterator[Node]:
        """The cubes below it that are not split."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def log_sum_outward(logs: list[float], sign: int) -> float:
    """The log of a sum of exponentials, rounded up for a sign of 1 and down for -1."""
    values: FloatArray = np.array(logs)
    top = float(values.max(initial=-math.inf))
    if not math.isfinite(top):
        return top
    # Each exponential and each addition loses a few units; relative to the largest term that is absolute in the log.
    error = UNIT * (4.0 * abs(top) + 8.0 * len(logs) + 32.0)
    return top + math.log(float(np.exp(values - top).sum())) + sign * error


def solve_by_cubes(
    solver: Solver, executor: ExecutorLike, *, callback: Callable[[Snapshot], None] | None = None
) -> Result:
    """The answer to the question of a solver that has not begun, by many workers."""
    limits = solver.question.limits
    with workers_of(executor) as workers:
        spare = 0.0 if solver.question.query.task == "PR" else reserved(limits.seconds)
        result = Conquest(solver, workers, callback, seconds=limits.seconds - spare).run()
    log_sum = log_sum_of(solver, result, left=limits.seconds - result.seconds)
    return result if log_sum is None else replace(result, probability=probability_of(result, log_sum))


class Conquest:
    """The cubes of one question, and who works on them.

    Parameters
    ----------
    solver
        Has the question, with the limits of the whole, the schedule and the flag to watch; memory is for each process.
    workers
        Who bounds cubes.
    callback
        Hears of every snapshot.
    seconds
        The time for it.
    """

    def __init__(
        self,
        solver: Solver,
        workers: Workers,
        callback: Callable[[Snapshot], None] | None = None,
        *,
        seconds: float = math.inf,
    ) -> None:
        question = solver.question
        self._question, self._workers = question, workers
        self._interrupt, self._callback = solver.flag or Interrupt(), callback
        self._sums = question.query.task == "PR"
        self._limit = seconds
        self._begun = working_time()
        self._root = Node({})
        self._open = [self._root]
        self._board = Board(question.model.n_variables)
        self._whole = Problem.whole(question.model, np.zeros(question.model.n_variables), {})
        self._looking = False
        self._asked = Asked(
            question.model,
            question.query,
            question.all_evidence,
            question.limits.bytes,
            solver.schedule,
            question.limits.threads,
            question.limits.seed,
        )

    def run(self) -> Result:
        """Split and bound until the bounds meet, time is over, or nothing is left to split."""
        workers = self._workers
        shared = workers.share(self._asked)
        while not self._ended():
            self._hand_out(shared)
            if not workers.pending:
                break
            for node, report in workers.finished(min(HEARTBEAT, max(self._left, 0.0))):
                self._take(node, report)
            self._report()
        return self._answer()

    @property
    def _spent(self) -> float:
        return working_time() - self._begun

    @property
    def _left(self) -> float:
        return self._limit - self._spent

    def _ended(self) -> bool:
        gap = self._board.gap
        met = gap <= max(self._question.limits.gap, SAME) or self._board.log_upper == -math.inf
        return met or self._left <= 0.0 or self._interrupt.cause is not None

    def _hand_out(self, shared: Shared) -> None:
        """Give every free worker the open cube that matters most; one may look for assignments."""
        workers = self._workers
        while workers.pending < workers.size:
            node = self._next()
            if node is not None:
                node.asked = True
                workers.submit(node, bound_cube, shared, node.cube, self._floor, self._slice(node), False)
            elif self._worth_looking():
                self._looking = True
                workers.submit(None, bound_cube, shared, {}, self._floor, self._slice(self._root), True)
            else:
                return
            if workers.size >= SEARCHERS and self._worth_looking():
                self._looking = True
                workers.submit(None, bound_cube, shared, {}, self._floor, self._slice(self._root), True)

    def _worth_looking(self) -> bool:
        return not self._sums and not self._looking

    @property
    def _floor(self) -> float:
        """The best value known, for cubes of a maximum; sums have use for every term."""
        return -math.inf if self._sums else self._board.log_lower

    def _slice(self, node: Node) -> float:
        """Seconds for a cube."""
        if node is self._root:
            seconds = min(FIRST_SHARE * self._limit, FIRST_SECONDS)
        else:
            seconds = min(CUBE_SECONDS, CUBE_SHARE * max(self._left, 0.0))
        return max(min(seconds, self._left), LEAST_SECONDS)

    def _next(self) -> Node | None:
        """The cube that keeps the bounds apart most: that of the largest bound, or of the largest gap in a sum."""
        self._open = [node for node in self._open if not (node.asked or self._closed(node))]
        return max(self._open, key=self._weight, default=None)

    def _weight(self, node: Node) -> float:
        if not self._sums or node.log_lower == -math.inf or node.log_upper == math.inf:
            return node.log_upper
        return node.log_upper + math.log(max(-math.expm1(node.log_lower - node.log_upper), 1e-300))

    def _closed(self, node: Node) -> bool:
        """True where nothing in the cube can matter any more."""
        if node.log_upper == -math.inf:
            return True
        return node.log_upper <= (node.log_lower if self._sums else self._board.log_lower) + CLOSE

    def _take(self, node: Node | None, report: Report) -> None:
        """What came back from a worker."""
        if report.states is not None and not self._sums:
            # Its rounding is counted.
            self._board.offer_lower(self._whole, report.log_lower, 0.0, report.states)
        if node is None:
            # Whoever looked for assignments has bounds of the whole, too.
            self._looking = False
            node = self._root
        elif report.branch is not None:
            self._split(node, report)
        node.log_upper = min(node.log_upper, report.log_upper)
        node.log_lower = max(node.log_lower, report.log_lower)
        self._join(node)

    def _split(self, node: Node, report: Report) -> None:
        """Cubes for the states of a variable; until they are bounded themselves, they have the bound of the whole."""
        assert report.branch is not None
        log_upper = min(node.log_upper, report.log_upper)
        for state in range(int(self._question.model.cardinalities[report.branch])):
            node.children.append(Node({**node.cube, report.branch: state}, node, log_upper))
        self._open += node.children

    def _join(self, node: Node) -> None:
        """Take what is known of a cube up to the whole."""
        above: Node | None = node
        while above is not None:
            if above.children:
                uppers = [child.log_upper for child in above.children]
                lowers = [child.log_lower for child in above.children]
                upper = log_sum_outward(uppers, 1) if self._sums else max(uppers)
                lower = log_sum_outward(lowers, -1) if self._sums else max(lowers)
                above.log_upper, above.log_lower = min(above.log_upper, upper), max(above.log_lower, lower)
            above = above.parent

    def _report(self) -> None:
        """Both bounds of the whole to the board, and whoever wants to know."""
        root, board = self._root, self._board
        if root.log_upper == -math.inf:
            board.impossible()
        else:
            board.offer_upper(self._whole, root.log_upper, 0.0)
        if self._sums:
            board.offer_lower(self._whole, root.log_lower, 0.0, np.full(len(board.states), -1, dtype=np.int64))
        snapshot = board.snapshot(self._spent)
        if snapshot is not None and self._callback is not None:
            self._callback(snapshot)

    def _answer(self) -> Result:
        from powersum import __version__

        board, limits = self._board, self._question.limits
        board.snapshot(self._spent, always=True)
        status, reason = self._status()
        cubes = sum(1 for _ in self._root.leaves())
        options: dict[str, Any] = {
            name: getattr(limits, name) for name in ("time_limit", "memory", "gap", "threads", "seed")
        }
        known = board.log_lower > -math.inf
        return Result(
            log_upper=board.log_upper,
            log_lower=board.log_lower,
            assignment=self._question.answer(board.states) if known else {},
            status=status,
            reason=reason,
            history=tuple(board.history),
            method="solve",
            options={**options, "workers": self._workers.size},
            sizes={"cubes": cubes},
            version=__version__,
            question=self._question.asked(),
        )

    def _status(self) -> tuple[Status, str]:
        board, limits = self._board, self._question.limits
        if board.log_upper == -math.inf:
            return Status.INFEASIBLE, IMPOSSIBLE_REASON
        if board.gap <= SAME:
            return Status.OPTIMAL, proven("Every cube is closed.", board.gap)
        if self._interrupt.cause is not None:
            return Status.INTERRUPTED, f"Interrupted by {self._interrupt.cause}: the best answer until then."
        if board.gap <= limits.gap:
            return Status.BOUNDED, f"The gap asked for, {limits.gap:g}, was reached."
        if self._left > 0.0:
            return Status.BOUNDED, "Nothing is left to split."
        return Status.BOUNDED, f"The time limit of {limits.seconds:g} s was reached."
