"""One hard question on many workers: cube and conquer.

The question is split by setting variables, and each part (a *cube*) is bounded afresh by whoever is free, for a slice
of time, with the best value known so far. What is known of the parts joins upwards: the value of a question is the
largest of its cubes' values, or where nothing is maximised their sum. So both bounds hold at any moment, whatever has
been answered, lost or never begun. A cube that does not close in its slice is split again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from powersum.bounds.tree.rebuilding import Saved
from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import HEARTBEAT, Shared, Workers, WorkersLike, crew_of
from powersum.core.arrays import IntArray
from powersum.core.clock import working_time
from powersum.core.interrupt import Interrupt
from powersum.core.work_time import counted_by, metered
from powersum.divide.join import join, lifted
from powersum.model.certificate import Certificate
from powersum.model.interval import SAME
from powersum.model.result import Result, Snapshot
from powersum.prepare.problem import Problem
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof
from powersum.run.board import FROM_FILE, Board, one_number
from powersum.run.checkpoint import written
from powersum.run.cube import CubeQuestion, CubeReport, bound_cube, branch_of
from powersum.run.cube_answer import Ending, answer_of, certificate_of_all
from powersum.run.cube_frontier import CubePolicy
from powersum.run.cube_memory import Room
from powersum.run.cube_partner import Partner, Partners, PartnerTurn, take_turn
from powersum.run.cube_road import Road
from powersum.run.cube_sum import SumBeside, awaited_sum, bound_sum
from powersum.run.cube_tree import Cube
from powersum.run.lending import Lending, Loan
from powersum.run.probability import probability_of, reserved, sum_seconds
from powersum.run.solver import Run

FIRST_SHARE, FIRST_SECONDS = 0.1, 5.0
"""Share of the time, and seconds at most, for the whole question before it is split."""

CUBE_SECONDS, SUM_SECONDS = 4.0, 1.5
"""Seconds of a slice of a maximum's and of a sum's cube, where the time left has more than so many times ten."""

CUBE_SHARE = 0.1
"""Share of the time left that a slice takes at most."""

LONG_SECONDS = 60.0
"""Seconds at most for a cube that splitting does not help, and for whoever looks for assignments."""

WHOLE = math.inf
"""No cube is given up early."""

LEAST_SECONDS = 0.2
"""And at least."""

AHEAD = 1
"""Cubes that wait for the next free worker while this process is busy itself, and looks up once a turn only."""

SEARCHERS = 4
"""With so many workers or more, one of them looks for assignments only."""

LOOKING_SHARE = 0.2
"""The share of all work that is left for it."""

PARTNER_GAP = 1.0
"""Gap beyond which a cube whose parts are as far from closed has partners."""

PARTNER_SECONDS = 3.0
"""Seconds of a partner's turn."""

LEAST_SPLITTING, OPENING_SECONDS = 5.0, 10.0
"""Seconds that must be left for boxes of a partner's tree, and that it may take until there are some."""


def solve_by_cubes(
    solver: Run,
    executor: WorkersLike,
    *,
    callback: Callable[[Snapshot], None] | None = None,
    memory_given: bool = True,
) -> Result:
    """The answer to the question of a solver that has not begun, by many workers.

    Unless it was given, they share the memory that is free.
    """
    solver.question.no_blocks("executor")
    limits = solver.question.limits
    interrupt = solver.flag or Interrupt()
    solver.watch(interrupt)
    with counted_by(solver.meter), crew_of(executor, interrupt) as (workers, road):
        spare = 0.0 if solver.question.query.task == "PR" else reserved(limits.seconds)
        memory = limits.bytes if memory_given or metered() else None
        conquest = Conquest(solver, workers, callback, seconds=limits.seconds - spare, road=road, memory=memory)
        result = conquest.run()
        log_sum = conquest.log_sum(result, left=limits.seconds - result.seconds)
    return result if log_sum is None else replace(result, probability=probability_of(result, log_sum))


class Conquest:
    """The cubes of one question, and who works on them.

    Parameters
    ----------
    solver
        Has the question, with the limits of the whole, the schedule and the flag to watch.
    workers
        Who bounds cubes.
    callback
        Hears of every snapshot.
    seconds
        The time for it.
    road
        Whether this process works, too: on what is left of the question, without slices. Otherwise it waits.
    memory
        Bytes that each process may hold; a share of what is free if not given.

    Attributes
    ----------
    n_above
        Of an answer: how many of the first steps of its certificate prove the upper bound.
    """

    def __init__(
        self,
        solver: Run,
        workers: Workers,
        callback: Callable[[Snapshot], None] | None = None,
        *,
        seconds: float = math.inf,
        road: bool = False,
        memory: float | None = None,
    ) -> None:
        question = solver.question
        self._solver = solver
        self._question, self._workers = question, workers
        self._interrupt, self._callback = solver.flag or Interrupt(), callback
        self._sums = question.query.task == "PR"
        self._limit = seconds
        self._begun = working_time()
        self._board = Board(question.model.n_variables)
        self._policy = CubePolicy(self._board, question.model.cardinalities, sums=self._sums)
        self._root = self._policy.root
        self._whole = Problem.whole(question.model, np.zeros(question.model.n_variables), {})
        self._looking, self._looks = False, 0
        self._gone: str | None = None
        self._n_workers = self.n_above = 0
        # None as long as the best value is the road's, which is proven when that ends.
        self._best_proof: BoxProof | None = NOTHING_PROVEN
        # A cube that is as close as the whole may be is no reason to stop.
        asked = replace(question, limits=replace(question.limits, gap=0.0))
        legacy = None if solver.earlier is None else solver.earlier.inherited
        self._asked = CubeQuestion(
            asked, Room.of(workers, memory, road=road), solver.schedule, solver.certified, legacy
        )
        self._sum = SumBeside(wanted=not self._sums)
        self._lending = Lending(workers, idle=not road)
        self._left_tree: tuple[float, Cube, Saved] | None = None
        """The best tree that a partner has left, what it has shown of its cube, and that."""
        self._opens_until = -math.inf
        """Second of the run until which a road along such a tree has to have boxes to lend."""
        # In the one process of our own that always has them, partners work in turns.
        in_turns = road and workers.size == 1 and not solver.certified
        self._partners = Partners(
            (workers.size + 1) // 2, PARTNER_SECONDS if in_turns else None, certificate=solver.certified
        )
        self._road: Road | None = None
        self._claimed = math.inf
        """What roads that were left have shown of the whole, proven or not: it was told, and is not taken back."""
        self._trunk, self._on_road = self._root, road
        if road:
            self._follow(self._root, 0)

    def run(self) -> Result:
        """Split and bound until the bounds meet, time is over, or nothing is left to split."""
        workers = self._workers
        self._take_up()
        shared = workers.share(self._asked)
        # Asked now: a cluster that is gone at the end cannot tell.
        self._n_workers = workers.size + self._on_road
        while not self._ended():
            try:
                self._hand_out(shared)
                if not workers.pending and self._road is None:
                    break
                self._go_on()
                patience = HEARTBEAT if self._road is None or self._lending.idle else 0.0
                found = workers.finished(min(patience, max(self._left, 0.0)))
            except ClusterError as error:
                if self._board.log_upper == math.inf:
                    raise
                # What is known holds, whoever is gone.
                self._gone = str(error)
                break
            for node, report in found:
                if node is self._sum:
                    self._sum.take(report)
                elif isinstance(node, Loan):
                    self._lending.take(node, report)
                elif isinstance(node, Partner):
                    self._take(node.node, report.report)
                    had_its_time = self._partners.take(node, report, self._spent)
                    self._keep_tree(node.node, report)
                    if had_its_time:
                        self._call_partner()
                else:
                    self._take(node, report)
            self._report()
            if self._solver.checkpoints is not None:
                self._solver.checkpoints.keep(lambda: self._spent, self._draft)
        return self._answer()

    def _take_up(self) -> None:
        """The bounds that an earlier run has proven of this very question; all runs begin with its tree."""
        earlier = self._solver.earlier
        if earlier is None or not earlier.same:
            return
        found, states = earlier.checked(), np.full(len(self._board.states), -1, dtype=np.int64)
        for v, state in earlier.pairs:
            states[v] = state
        complete = bool((states[self._question.query.max_variables] >= 0).all())
        notes = () if one_number(found.log_lower, found.log_upper) else (FROM_FILE,)
        if found.log_lower > -math.inf or found.log_upper < math.inf:
            log_lower = found.log_lower if complete else -math.inf
            report = CubeReport(
                found.log_upper, log_lower, states if complete else None, None, None, proof=found, notes=notes
            )
            self._take(self._root, report)
            self._report()

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
            return certificate_of_all(self._question, self._board, self._ending(best or NOTHING_PROVEN))
        finally:
            trunk.proof = kept

    @property
    def _spent(self) -> float:
        return working_time() - self._begun

    @property
    def _left(self) -> float:
        return self._limit - self._spent

    def _ended(self) -> bool:
        if self._met:
            # What the road has claimed may be more than it proves.
            self._leave()
        return self._met or self._left <= 0.0 or self._interrupt.cause is not None

    def log_sum(self, result: Result, *, left: float) -> tuple[float, float] | None:
        """Bounds on the sum that the answer is a share of: those of whoever has been at it, or of this process.

        ``left`` are the seconds that there are for it. None where it is not worth asking for.
        """
        seconds = sum_seconds(self._solver, result, left=left)
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

    @property
    def _met(self) -> bool:
        log_upper, log_lower = self._board.log_upper, self._board.log_lower
        if self._asked.certificate and self._road is None:
            # What could not be proven was claimed, and yet the proof is wanted.
            log_upper = max(log_upper, self._root.log_upper)
        return log_upper == -math.inf or log_upper - log_lower <= max(self._question.limits.gap, SAME)

    def _follow(self, node: Cube, stage: int) -> None:
        """Work on a cube in this process from now on."""
        road = Road.into(self._asked, node.cube, max(self._left, LEAST_SECONDS), stage, self._lending)
        if road is not None:
            self._road, self._trunk = road, node
            # There is nothing to wait for: whoever is free may split it.
            self._policy.begin(node, -math.inf)
            if self._floor > -math.inf:
                road.hear(self._floor, self._board.states)

    def _go_on(self) -> None:
        """A turn on the road; where a stage of it ends and only a part of its cube is left, it goes on in that part."""
        road = self._road
        if road is None:
            return
        stage = road.stage
        idle = self._lending.idle and not self._lending.open
        if (idle and (self._lending.begun or self._spent > self._opens_until)) or not road.turn(self._floor):
            self._leave()
            if self._lending.idle:
                # Workers have been at its boxes, or waited for some.
                self._call_partner()
            return
        if not self._sums and road.log_lower > self._board.log_lower:
            self._board.offer_lower(self._whole, road.log_lower, 0.0, road.states)
            self._board.notes, self._best_proof = road.notes, None
        if road.stage > stage and (left := self._policy.left_of(self._trunk, free=True)) is not self._trunk:
            self._leave()
            self._follow(left, road.stage)

    def _keep_tree(self, node: Cube, turn: PartnerTurn) -> None:
        """A partner's tree, for a caller that does not work itself; once all have left theirs, boxes of the best."""
        if not self._lending.idle or self._road is not None or turn.tree is None:
            return
        if self._left_tree is None or turn.report.log_upper < self._left_tree[0]:
            self._left_tree = turn.report.log_upper, node, turn.tree
        if self._partners.at_work or self._left < LEAST_SPLITTING or self._floor == -math.inf:
            return
        (_, node, tree), self._left_tree = self._left_tree, None
        states = [(v, int(self._board.states[v])) for v in self._question.query.max_variables.tolist()]
        road = Road.along(self._asked, node.cube, self._left, tree, states, self._lending)
        if road is not None:
            self._road, self._trunk, self._lending.begun = road, node, False
            self._opens_until = self._spent + OPENING_SECONDS
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
            self._report()

    def _hand_out(self, shared: Shared) -> None:
        """Give every free worker the open cube that matters most; one may look for assignments."""
        workers = self._workers
        if self._policy.settle(self._spent):
            self._call_partner()
        while (free := workers.size - workers.pending) > 0 or (self._road is not None and free + AHEAD > 0):
            if free > 0 and self._worth_looking():
                self._looking = True
                self._looks += 1
                seconds = self._look_seconds
                workers.submit(None, bound_cube, shared, {}, self._floor, seconds, WHOLE, self._looks)
            elif free > 0 and self._worth_summing():
                workers.submit(self._sum, bound_sum, shared, self._sum.begin(self._sum_seconds, self._left))
            elif self._lending.open:
                # Boxes of the road take a moment each: nobody shall be at something long when the next one is there.
                if not self._lending.hand_out():
                    return
            elif (partner := self._partners.next(free, self._left)) is not None:
                turn = self._partners.begin(partner, self._floor, self._board.states, self._spent, self._left)
                workers.submit(partner, take_turn, shared, *turn)
            elif self._partners.due:
                # Nobody shall have begun with a long slice when its turn comes.
                return
            elif (node := self._policy.next()) is not None:
                self._policy.begin(node, self._spent)
                hopeless = WHOLE if node is self._root or node.long or self._sums else self._policy.hopeless
                workers.submit(node, bound_cube, shared, node.cube, self._floor, self._slice(node), hopeless, 0)
            elif free > 0 and (node := self._policy.to_part(self._spent)) is not None:
                node.parted = True
                workers.submit(node, branch_of, shared, node.cube)
            else:
                return

    def _worth_summing(self) -> bool:
        """Whether somebody shall bound the sum that the answer is a share of.

        Once in any case, for many sums are easy; then where the bounds have come so near that the answer will be there
        soon.
        """
        if self._spent < self._first_seconds or not self._sum.due(self._spent, self._left):
            return False
        return not self._sum.begun or self._near

    @property
    def _near(self) -> bool:
        """Whether the answer will be there soon."""
        return self._board.gap < self._asked.schedule.nearly

    @property
    def _sum_seconds(self) -> float:
        """Seconds for the sum: as many as the answer has taken so far; fewer while nobody knows when that will end."""
        return self._spent if self._near else self._first_seconds

    @property
    def _first_seconds(self) -> float:
        """Seconds before the question is split, where nobody works on the whole of it all the time."""
        return min(FIRST_SHARE * self._limit, FIRST_SECONDS)

    def _worth_looking(self) -> bool:
        """Whether somebody shall look for assignments: while the whole is worked on, with many workers always."""
        if self._sums or self._looking or not self._root.asked:
            return False
        return self._n_workers >= SEARCHERS or not (self._root.parts or self._looks)

    @property
    def _look_seconds(self) -> float:
        """Seconds for whoever looks for assignments."""
        if self._looks == 1:
            return self._slice(self._root)
        share = LOOKING_SHARE * min(self._n_workers, SEARCHERS)
        return max(min(share * self._left, LONG_SECONDS), LEAST_SECONDS)

    def _call_partner(self) -> None:
        """Somebody shall work on all that is left of the question, for splitting it does not help."""
        if not self._sums and self._board.gap > PARTNER_GAP and not (self._road and self._lending.idle):
            self._partners.call(self._policy.left_of(self._root, free=False), self._left)

    @property
    def _floor(self) -> float:
        """The best value known, for cubes of a maximum; sums have use for every term."""
        return -math.inf if self._sums else self._board.log_lower

    def _slice(self, node: Cube) -> float:
        """Seconds for a cube."""
        if node is self._root:
            seconds = self._first_seconds
        else:
            most, share = (LONG_SECONDS, self._long_share) if node.long else (CUBE_SECONDS, CUBE_SHARE)
            seconds = min(SUM_SECONDS if self._sums else most, share * max(self._left, 0.0))
        return max(min(seconds, self._left), LEAST_SECONDS)

    @property
    def _long_share(self) -> float:
        """Share of the time left for a cube that splitting does not help: all that are as far get their turn."""
        waiting = self._policy.waiting_above(0.5 * (self._board.log_upper + self._board.log_lower))
        rounds = math.ceil((1 + waiting) / self._workers.size)
        return 1.0 / (1.0 + rounds)

    def _take(self, node: Cube | None, report: CubeReport) -> None:
        """What came back from a worker."""
        wanted = report.states if not self._sums else None
        # Its rounding is counted.
        if wanted is not None and self._board.offer_lower(self._whole, report.log_lower, 0.0, wanted):
            self._best_proof, self._board.notes = report.proof, report.notes
            if self._road is not None:
                self._road.hear(self._floor, self._board.states)
        if node is None:
            # Whoever looked for assignments has bounds of the whole, too.
            self._looking = False
            node = self._root
        elif report.seconds is not None:
            self._policy.end(node, report)
        node.log_upper = min(node.log_upper, report.log_upper)
        node.log_lower = max(node.log_lower, report.log_lower)
        if report.proof.log_upper < node.log_proven or (self._sums and report.seconds is not None):
            node.log_proven = min(node.log_proven, report.proof.log_upper)
            node.proof = report.proof if self._sums else report.proof.upper_part
        self._policy.take(node, report)
        join(node, sums=self._sums)

    def _report(self) -> None:
        """Both bounds of the whole to the board, and whoever wants to know."""
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
        self._leave()
        self._board.snapshot(self._spent, always=True)
        assert self._best_proof is not None
        ending = self._ending(self._best_proof)
        result, self.n_above = answer_of(self._question, self._asked, self._board, ending)
        return written(result, self._solver.checkpoints)

    def _ending(self, best_proof: BoxProof) -> Ending:
        """How the work stands."""
        return Ending(
            root=self._root,
            whole=self._whole,
            best_proof=best_proof,
            workers=self._n_workers,
            interrupted=self._interrupt.cause,
            gone=self._gone,
            out_of_time=self._left <= 0.0,
        )

    @property
    def states(self) -> IntArray:
        """States of all variables in the best assignment."""
        return self._board.states
