"""One hard question on many workers: cube and conquer.

This process works on the question as it would alone (the *road*), and lends boxes of its tree. Workers without such a
box bound *cubes*: parts of the question with some variables set. What is known of cubes joins upwards: the value of a
question is the largest of its cubes' values, or where nothing is maximised their sum. So both bounds hold at any
moment, whatever has been answered, lost or never begun. A cube that does not close in its time is split again.

Where this process does not work itself, the first worker has the whole question, and leaves its tree for the road.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from powersum.bounds.tree.rebuilding import Saved
from powersum.cluster.executor import HEARTBEAT, Workers, WorkersLike, crew_of
from powersum.core.arrays import IntArray
from powersum.core.interrupt import Interrupt
from powersum.core.work_time import counted_by, metered
from powersum.divide.box import Allowed
from powersum.divide.join import JoinedProofs, join, lifted
from powersum.model.certificate import Certificate
from powersum.model.interval import SAME
from powersum.model.result import Result, Snapshot
from powersum.prepare.problem import Problem
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof
from powersum.proof.certificate import certificate_of, ground_of
from powersum.proof.format import Proof
from powersum.run.answer import answer_of, options_of
from powersum.run.board import FROM_FILE, Board, one_number
from powersum.run.box_run import BoxJob, BoxQuestion, BoxReport, BoxRun, bound_box, branch_task
from powersum.run.checkpoint import written
from powersum.run.cube_frontier import Cube, CubePolicy
from powersum.run.division import BoxTask, Division
from powersum.run.inheritance import Inherited
from powersum.run.lending import Lending
from powersum.run.probability import probability_of, reserved, sum_seconds
from powersum.run.solver import Run
from powersum.run.sum_beside import SumBeside, awaited_sum, bound_sum

FIRST_SHARE, FIRST_SECONDS = 0.2, 20.0
"""Share of the time, and seconds at most, for the whole question where this process does not work on it."""

SUM_FROM = 5.0
"""Seconds, or this share of the first time, after which the sum that the answer is a share of is bounded once."""

CUBE_SECONDS, CUBE_SHARE = 4.0, 0.1
"""Seconds for a cube, and share of the time left at most."""

LEAST_SECONDS = 0.2
"""Seconds for a cube at least."""

AHEAD = 1
"""Tasks that wait for the next free worker while this process is busy and hears of reports once a turn only."""

OPENING_SECONDS = 5.0
"""Seconds until a road along a tree that was left must lend boxes; not begun where fewer are left."""

FEW_ASSIGNMENTS = {"companion_share": 0.1}
"""Local search in a cube, where an assignment is known already."""

ONLY_BOXES = {
    "first_full": 0.0,
    "first_conditioning": 0.0,
    "first_sum": 0.0,
    "first_variational": 0.0,
    "first_orders": 0.0,
    "first_stage": math.inf,
    "last_tightening": 0.0,
    "least_last_tightening": 0.0,
    "companion_share": 0.0,
    "search_trial": 0.0,
    "nearly": 0.0,
    "look_first": False,
}
"""The schedule of a road that lends boxes of a tree and does nothing else."""


def solve_by_cubes(
    run: Run,
    executor: WorkersLike,
    *,
    callback: Callable[[Snapshot], None] | None = None,
    memory_given: bool = True,
) -> Result:
    """The answer to the question of a run that has not begun, by many workers.

    They share the memory that is free, unless it was given.
    """
    run.question.no_blocks("workers")
    limits = run.question.limits
    interrupt = run.flag or Interrupt()
    run.watch(interrupt)
    with counted_by(run.meter), crew_of(executor, interrupt) as (workers, here):
        spare = 0.0 if run.question.query.task == "PR" else reserved(limits.seconds)
        memory = limits.bytes if memory_given or metered() else None
        conquest = Conquest(run, workers, callback, seconds=limits.seconds - spare, road=here, memory=memory)
        result = conquest.run()
        log_sum = conquest.log_sum(result, left=limits.seconds - result.seconds)
    return result if log_sum is None else replace(result, probability=probability_of(result, log_sum))


def road_into(asked: BoxQuestion, allowed: Allowed, seconds: float, stage: int) -> BoxRun:
    """The run of this process in a cube, after so many stages of work in cubes around it."""
    # The first stage is as long as the next one would have been.
    first_stage = asked.schedule.first_stage * asked.schedule.stage_growth**stage
    job = BoxJob(allowed=allowed, seconds=seconds, draw=stage, changes={"first_stage": first_stage})
    return BoxRun(asked, job, before=stage)


def road_along(
    asked: BoxQuestion, allowed: Allowed, seconds: float, tree: Saved, states: Sequence[tuple[int, int]]
) -> BoxRun:
    """A run of this process in a cube that only lends boxes of a tree, from an assignment on."""
    job = BoxJob(allowed=allowed, seconds=seconds, changes=ONLY_BOXES)
    return BoxRun(asked, job, legacy=Inherited(tree, states))


class Conquest(Division):
    """The cubes of one question.

    Parameters
    ----------
    run, workers, callback, seconds, memory
        As for :class:`Division`.
    road
        Whether this process works, too, on what is left of the question. Otherwise it waits.

    Attributes
    ----------
    n_above
        Of an answer: how many of the first steps of its certificate prove the upper bound.
    """

    def __init__(
        self,
        run: Run,
        workers: Workers,
        callback: Callable[[Snapshot], None] | None = None,
        *,
        seconds: float = math.inf,
        road: bool = False,
        memory: float | None = None,
    ) -> None:
        legacy = None if run.earlier is None else run.earlier.inherited
        # A cube that is as close as the whole may be is no reason to stop.
        super().__init__(run, workers, callback, here=road, seconds=seconds, memory=memory, legacy=legacy)
        question = self._question
        self._sums = question.query.task == "PR"
        self._board = Board(question.model.n_variables)
        self._policy = CubePolicy(self._board, question.model.cardinalities, sums=self._sums)
        self._root = self._policy.root
        self._whole = Problem.whole(question.model, np.zeros(question.model.n_variables), {})
        self._n_workers = self.n_above = 0
        # None as long as the best value is the road's, which is proven when that ends.
        self._best_proof: BoxProof | None = NOTHING_PROVEN
        self._sum = SumBeside(wanted=not self._sums)
        self._lending = Lending(workers, idle=not road)
        self._road: BoxRun | None = None
        self._trunk = self._root
        """The cube that this process works on."""
        self._opens_until = math.inf
        """Second of the run until which a road along a tree must lend boxes."""
        self._claimed = math.inf
        """What roads have shown of the whole, proven or not: it was told, and is not taken back."""
        self._ended = False
        if road:
            self._follow(self._root, 0)

    def run(self) -> Result:
        """Split and bound until the bounds meet, time is over, or nothing is left to split."""
        self._take_up()
        # Asked now: a cluster that is gone at the end cannot tell.
        self._n_workers = self._workers.size + self._here
        self._work()
        self._leave()
        self._ended = True
        self._board.snapshot(self._spent, always=True)
        return self._answer()

    def _take_up(self) -> None:
        """The bounds that an earlier run has proven of this very question."""
        earlier = self._run.earlier
        if earlier is None or not earlier.same:
            return
        found, states = earlier.checked(), np.full(len(self._board.states), -1, dtype=np.int64)
        for v, state in earlier.pairs:
            states[v] = state
        complete = bool((states[self._question.query.max_variables] >= 0).all())
        if found.log_lower > -math.inf or found.log_upper < math.inf:
            report = BoxReport(
                log_upper=found.log_upper,
                log_lower=found.log_lower if complete else -math.inf,
                states=states if complete else None,
                proof=found,
                notes=() if one_number(found.log_lower, found.log_upper) else (FROM_FILE,),
            )
            self._take(self._root, report)
            self._show()

    def _draft(self) -> tuple[Certificate, int] | None:
        """The certificate of what is known, with what is proven on the road; None before there is a bound."""
        if self._board.log_upper == math.inf:
            return None
        trunk, best = self._trunk, self._best_proof
        kept = trunk.proof
        if self._road is not None:
            draft = self._road.draft()
            if draft.log_upper < trunk.log_proven:
                trunk.proof = draft if self._sums else draft.upper_part
            best = draft if best is None else best
        try:
            return self._certificate(best or NOTHING_PROVEN)
        finally:
            trunk.proof = kept

    def _is_over(self) -> bool:
        if self._met:
            # What the road has claimed may be more than it proves.
            self._leave()
        return self._met or self._left <= 0.0 or self._interrupt.cause is not None or self._gone is not None

    @property
    def _met(self) -> bool:
        log_upper, log_lower = self._board.log_upper, self._board.log_lower
        if self._asked.certificate and self._road is None:
            # What could not be proven was claimed, and yet the proof is wanted.
            log_upper = max(log_upper, self._root.log_upper)
        return log_upper == -math.inf or log_upper - log_lower <= max(self._question.limits.gap, SAME)

    def log_sum(self, result: Result, *, left: float) -> tuple[float, float] | None:
        """Bounds on the sum that the answer is a share of: those of a worker, or of this process.

        ``left`` are the seconds that there are for it. None where it is not worth asking for.
        """
        seconds = sum_seconds(self._run, result, left=left)
        if seconds == 0.0:
            return None
        return awaited_sum(
            self._sum,
            self._asked,
            self._workers,
            answer_seconds=result.seconds,
            seconds=seconds,
            interrupt=self._interrupt,
        )

    def _next_task(self, free: int) -> BoxTask | None:
        """The sum when it is due, else a box of the road, else the cube that matters most."""
        if free + (AHEAD if self._road is not None else 0) <= 0:
            return None
        if free > 0 and self._worth_summing():
            return self._task(self._sum.take, bound_sum, self._sum.begin(self._sum_seconds, self._left))
        if self._lending.open:
            # Boxes take a moment each: no worker shall be at something long when the next one is there.
            return self._lending.task()
        if (node := self._policy.next()) is not None:
            self._policy.begin(node, self._spent)
            node.seconds = self._seconds(node)
            job = BoxJob(
                allowed=node.allowed,
                seconds=node.seconds,
                log_floor=self._floor,
                changes=FEW_ASSIGNMENTS if self._floor > -math.inf else {},
                keeps_tree=node is self._root and not self._sums,
            )
            return self._task(partial(self._take, node), bound_box, job)
        if free > 0 and (node := self._policy.to_part(self._spent)) is not None:
            node.parted = True
            return self._task(partial(self._split, node), branch_task, node.allowed)
        return None

    def _turn(self) -> float | None:
        """A turn on the road. Where a stage ends and only a part of its cube is left, the next one is in that part."""
        road = self._road
        if road is None:
            return None
        stage, idle = road.stage, self._lending.idle
        over = idle and not self._lending.open and (self._lending.begun or self._spent > self._opens_until)
        if over or not road.turn():
            self._leave()
            return 0.0
        if not self._sums and road.log_lower > self._board.log_lower:
            assert road.run is not None
            self._board.offer_lower(self._whole, road.log_lower, 0.0, road.run.states())
            self._board.notes, self._best_proof = road.run.notes, None
        if road.stage > stage and (left := self._policy.left_of(self._trunk)) is not self._trunk:
            self._leave()
            self._follow(left, road.stage)
        return HEARTBEAT if idle else 0.0

    def _follow(self, node: Cube, stage: int) -> None:
        """Work on a cube in this process from now on."""
        self._begin(node, road_into(self._asked, node.allowed, max(self._left, LEAST_SECONDS), stage))
        # It has all the time: an idle worker may split it at once.
        self._policy.begin(node, -math.inf)

    def _begin(self, node: Cube, road: BoxRun) -> None:
        self._road, self._trunk = road, node
        if road.run is not None:
            road.run.lend_by(self._lending)
        if self._floor > -math.inf:
            road.hear(self._floor, self._board.states)

    def _leave(self) -> None:
        """End the work of this process on its cube."""
        road, self._road = self._road, None
        if road is not None:
            report = road.end()
            if report.log_claimed > -math.inf:
                # That nothing is possible counts with its proof only, by `_take`.
                claimed, _ = lifted(self._trunk, report.log_claimed, -math.inf, sums=self._sums)
                self._claimed = min(self._claimed, claimed)
            if self._best_proof is None:
                self._best_proof, self._board.notes = report.proof, report.notes
            self._take(self._trunk, report)
            self._show()

    def _lose(self, error: Exception) -> None:
        if self._board.log_upper == math.inf:
            raise error

    def _worth_summing(self) -> bool:
        """Whether a worker shall bound the sum that the answer is a share of.

        Once in any case, for many sums are easy; then where the answer will be there soon.
        """
        if self._spent < self._sum_from or not self._sum.due(self._spent, self._left):
            return False
        return not self._sum.begun or self._near

    @property
    def _near(self) -> bool:
        """Whether the answer will be there soon."""
        return self._board.gap < self._asked.schedule.nearly

    @property
    def _sum_seconds(self) -> float:
        """Seconds for the sum: as many as the answer has taken so far; fewer while its end is not near."""
        return self._spent if self._near else self._sum_from

    @property
    def _sum_from(self) -> float:
        return min(CUBE_SHARE * self._limit, SUM_FROM)

    @property
    def _floor(self) -> float:
        """The best value known, for cubes of a maximum; sums have use for every term."""
        return -math.inf if self._sums else self._board.log_lower

    def _seconds(self, node: Cube) -> float:
        """Seconds for a cube: twice as many each time that it had too few."""
        left = max(self._left, 0.0)
        if node is self._root:
            seconds = min(FIRST_SHARE * self._limit, FIRST_SECONDS)
        else:
            seconds = min(CUBE_SECONDS, CUBE_SHARE * left)
        return max(min(max(seconds, 2.0 * node.seconds), left), LEAST_SECONDS)

    def _take(self, node: Cube, report: BoxReport) -> None:
        """What a run has shown of a cube, here or at a worker."""
        if self._ended:
            return
        wanted = report.states if not self._sums else None
        # Its rounding is counted.
        if wanted is not None and self._board.offer_lower(self._whole, report.log_lower, 0.0, wanted):
            self._best_proof, self._board.notes = report.proof, report.notes
            if self._road is not None:
                self._road.hear(self._floor, self._board.states)
        if report.seconds is not None:
            self._policy.end(node)
        node.log_upper = min(node.log_upper, report.log_upper)
        node.log_lower = max(node.log_lower, report.log_lower)
        if report.proof.log_upper < node.log_proven or (self._sums and report.seconds is not None):
            node.log_proven = min(node.log_proven, report.proof.log_upper)
            node.proof = report.proof if self._sums else report.proof.upper_part
        if report.branch is not None:
            self._policy.split(node, report.branch)
        elif report.seconds is not None:
            self._policy.again(node, report.seconds)
        join(node, sums=self._sums)
        lends = report.tree is not None and self._lending.idle and self._floor > -math.inf
        if lends and self._left >= OPENING_SECONDS and not self._policy.closed(node):
            assert report.tree is not None
            states = [(v, int(self._board.states[v])) for v in self._question.query.max_variables.tolist()]
            self._lending.begun, self._opens_until = False, self._spent + OPENING_SECONDS
            self._begin(node, road_along(self._asked, node.allowed, self._left, report.tree, states))

    def _split(self, node: Cube, variable: int | None) -> None:
        """How to split a cube that is worked on."""
        if variable is not None and not self._ended:
            self._policy.split(node, variable)

    def _report(self) -> None:
        self._show()
        super()._report()

    def _show(self) -> None:
        """Both bounds of the whole to the board, and to the callback."""
        root, board, road = self._root, self._board, self._road
        log_upper, log_lower = min(root.log_upper, self._claimed), root.log_lower
        if road is not None and road.log_upper > -math.inf:
            above, live = lifted(self._trunk, road.log_upper, road.log_lower, sums=self._sums)
            log_upper = min(log_upper, above)
            # A sum that a certificate is wanted of counts as far as it is proven, which is known at the end.
            log_lower = log_lower if self._asked.certificate else live
        if root.log_upper == -math.inf:
            board.impossible()
        else:
            board.offer_upper(self._whole, log_upper, 0.0)
        if self._sums:
            board.offer_lower(self._whole, log_lower, 0.0, np.full(len(board.states), -1, dtype=np.int64))
        snapshot = board.snapshot(self._spent)
        if snapshot is not None and self._callback is not None:
            self._callback(snapshot)

    def _answer(self) -> Result:
        cause = None
        if self._interrupt.cause is not None:
            cause = f"Interrupted by {self._interrupt.cause}: the best answer until then."
        elif self._gone is not None:
            cause = f"Broken off, for {self._gone}: the best answer until then."
        certificate = None
        if self._asked.certificate:
            assert self._best_proof is not None
            certificate, self.n_above = self._certificate(self._best_proof)
        options = options_of(self._question.limits)
        result = answer_of(
            self._question,
            self._board,
            options=options | {"memory": self._asked.room.for_process, "workers": self._n_workers},
            sizes={"cubes": self._root.n_leaves},
            reason="Every cube is closed.",
            interrupted=cause,
            exhausted="Nothing is left to split." if self._left > 0.0 else None,
            certificate=certificate,
        )
        return written(result, self._run.checkpoints)

    def _certificate(self, best_proof: BoxProof) -> tuple[Certificate, int]:
        """The proofs of all cubes as one, and how many steps of it prove the upper bound."""
        question, board = self._question, self._board
        joint = JoinedProofs(self._root, sums=self._sums)
        n_above = len(joint.steps)
        if self._sums:
            log_lower = joint.lower()
        else:
            log_lower = best_proof.log_lower
            joint.steps.put(best_proof)
        found = not self._sums and log_lower > -math.inf
        certificate = certificate_of(
            question,
            ground_of(question, self._whole),
            Proof(joint.steps, joint.log_upper),
            log_lower=min(board.log_lower, log_lower),
            log_upper=board.log_upper,
            assignment={v: int(board.states[v]) for v in question.query.max_variables.tolist()} if found else None,
        )
        return certificate, n_above

    @property
    def states(self) -> IntArray:
        """States of all variables in the best assignment."""
        return self._board.states
