"""A run in one box of a question: what a worker does, here in turns or in another process, without any other state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.interrupt import Interrupt
from powersum.divide.box import Allowed
from powersum.model.interval import SAME
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.model.result import Result
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof, empty_box, proof_of
from powersum.proof.certificate import shorter, shortfall
from powersum.run.box_memory import Room
from powersum.run.solver import Run
from powersum.run.tuning import Schedule

if TYPE_CHECKING:
    from powersum.bounds.tree.rebuilding import Saved
    from powersum.model.certificate import Certificate
    from powersum.run.inheritance import Legacy

CLOSE = 0.5 * SAME
"""A box whose bound is at most this far above the best value known is closed: nothing in it counts as better."""

MOST_VARIABLES = 20_000
"""In larger problems the variable in most factors is branched on: simulating an elimination would take too long."""


@dataclass(frozen=True, slots=True)
class BoxQuestion:
    """What all boxes of a question have in common, and what a run in one may use."""

    question: Question
    room: Room
    schedule: Schedule
    certificate: bool = False
    legacy: Legacy | None = None
    """What all runs begin with."""

    @property
    def sums(self) -> bool:
        """Whether everything is summed, so that boxes add up."""
        return self.question.query.task == "PR"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxJob:
    """What is to be done in a box.

    Parameters
    ----------
    allowed
        The states that make the box.
    seconds
        The time for it.
    log_floor, states
        A value that is known elsewhere, and its assignment: only better ones count. Minus infinity for sums.
    draw
        Added to the seed, so that runs on one box draw otherwise.
    changes
        What the run's schedule has in place of the question's.
    keeps_result, keeps_tree
        Whether the report has the run's own result, and its best tree.
    """

    allowed: Allowed = field(default_factory=dict)
    seconds: float
    log_floor: float = -math.inf
    states: IntArray | None = None
    draw: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)
    keeps_result: bool = False
    keeps_tree: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxReport:
    """What a run has shown of a box.

    Parameters
    ----------
    log_upper, log_lower
        Bounds on the box's value, every rounding counted. The upper one may stop at the floor that was given.
    states
        States of all variables in the best assignment, -1 where one has none; None where there is none.
    branch
        The variable to split by if more is to be known; None where nothing is left to split.
    seconds
        What it took; None where nobody has worked on the box.
    proof, n_bytes
        Proves the bounds where certificates are wanted, and what that takes.
    notes
        What a reader of the bounds must know, such as that the lower one is not the value of the assignment itself.
    log_claimed
        The upper bound, whether it is proven or not; infinity where nobody says.
    result, tree
        The run's own result, without its certificate, and its best tree, where the job asks for them.
    """

    log_upper: float = math.inf
    log_lower: float = -math.inf
    states: IntArray | None = None
    branch: int | None = None
    seconds: float | None = None
    proof: BoxProof = NOTHING_PROVEN
    n_bytes: int = 0
    notes: tuple[str, ...] = ()
    log_claimed: float = math.inf
    result: Result | None = None
    tree: Saved | None = None


class BoxRun:
    """A run in a box, in turns.

    Parameters
    ----------
    asked, job
        The question, and what is to be done.
    legacy
        What this run begins with, in place of what all begin with.
    before
        Stages of work that came before, in boxes around this one.
    interrupt
        Ends the run early.

    Attributes
    ----------
    run
        The run; None where evidence leaves nothing of the box.
    """

    def __init__(
        self,
        asked: BoxQuestion,
        job: BoxJob,
        *,
        legacy: Legacy | None = None,
        before: int = 0,
        interrupt: Interrupt | None = None,
    ) -> None:
        self._asked, self._job, self._before = asked, job, before
        self._log_floor = job.log_floor
        question = asked.question.within(job.allowed)
        self.run: Run | None = None
        if question is None:
            return
        schedule = replace(asked.schedule, **job.changes)
        limits = replace(
            question.limits,
            time_limit=job.seconds if job.seconds < math.inf else None,
            work=None,
            memory=asked.room.for_process,
            seed=question.limits.seed + job.draw,
        )
        self.run = Run(
            replace(question, limits=limits),
            certificate=asked.certificate,
            schedule=replace(schedule, most_bytes=min(schedule.most_bytes, asked.room.for_task)),
        )
        if interrupt is not None:
            self.run.watch(interrupt)
        legacy = asked.legacy if legacy is None else legacy
        if legacy is not None:
            self.run.begin_with(legacy)
        if job.keeps_tree:
            self.run.keep_tree()
        self.run.aim_above(job.log_floor)
        if job.states is not None:
            self.run.hear(job.states)

    @property
    def log_upper(self) -> float:
        """The upper bound on the box so far."""
        return -math.inf if self.run is None else self.run.log_upper

    @property
    def log_lower(self) -> float:
        """The lower bound on the box so far."""
        return -math.inf if self.run is None else self.run.log_lower

    @property
    def stage(self) -> int:
        """How many stages of work there have been, here and before."""
        return self._before + (0 if self.run is None else self.run.stage)

    def hear(self, log_floor: float, states: IntArray) -> None:
        """An assignment of this value was found elsewhere."""
        self._log_floor = log_floor
        if self.run is not None:
            self.run.aim_above(log_floor)
            self.run.hear(states)

    def turn(self) -> bool:
        """One turn of work; False once nothing is left to do here."""
        run = self.run
        if run is None:
            return False
        more = not self._closed and run.turn() and not self._closed
        if not more:
            run.interrupt("Nothing better is left in this box.")
        return more

    @property
    def _closed(self) -> bool:
        return self.log_upper <= self._log_floor + CLOSE

    def draft(self) -> BoxProof:
        """What is proven of the box while the work is under way."""
        found = None if self.run is None else self.run.draft()
        return NOTHING_PROVEN if found is None else self._proof(*found)

    def end(self) -> BoxReport:
        """End the work; what it has shown, and what of it is proven."""
        run, asked = self.run, self._asked
        if run is None:
            proof = empty_box(self._job.allowed) if asked.certificate else NOTHING_PROVEN
            return BoxReport(log_upper=-math.inf, seconds=0.0, proof=proof, log_claimed=-math.inf)
        run.interrupt("The work goes on elsewhere.")
        result = run.result()
        certificate, proof, n_bytes = result.certificate, NOTHING_PROVEN, 0
        log_upper, log_lower = result.log_upper, result.log_lower
        if certificate is not None:
            proof, n_bytes = self._proof(certificate, run.n_above), certificate.n_bytes
            # What is not proven does not count: the box is split, and its parts are proven.
            if shorter(-proof.log_upper, -log_upper):
                log_upper = proof.log_upper
            if asked.sums and shorter(proof.log_lower, log_lower):
                log_lower = proof.log_lower
            result = uncertified(result)
        return BoxReport(
            log_upper=log_upper,
            log_lower=log_lower,
            states=run.states() if log_lower > -math.inf else None,
            seconds=result.seconds,
            proof=proof,
            n_bytes=n_bytes,
            notes=run.notes,
            log_claimed=result.log_upper,
            result=result if self._job.keeps_result else None,
            tree=run.tree_left,
        )

    def _proof(self, certificate: Certificate, n_above: int) -> BoxProof:
        assert self.run is not None
        return proof_of(certificate, n_above, self._asked.question, self.run.question, self._job.allowed)


def uncertified(result: Result) -> Result:
    """A result of a part, in which its certificate, and what it says of that, has no place."""
    assert result.certificate is not None
    told = shortfall(result.certificate, result.log_lower, result.log_upper)
    return replace(result, certificate=None, notes=tuple(note for note in result.notes if note not in told))


def bound_box(asked: BoxQuestion, job: BoxJob, interrupt: Interrupt | None = None) -> BoxReport:
    """What a worker does: a run in a box to its end, and how to split the box if it is not closed."""
    run = BoxRun(asked, job, interrupt=interrupt)
    while run.turn():
        pass
    report = run.end()
    if job.keeps_result or report.log_upper <= max(report.log_lower, job.log_floor) + CLOSE:
        return report
    return replace(report, branch=branch_of(asked.question, job.allowed))


def branch_of(question: Question, allowed: Allowed) -> int | None:
    """The variable to split a box of a question by; None where nothing is left to split."""
    within = question.within(allowed)
    return None if within is None else branch_variable(within, question.limits.seed)


def branch_task(asked: BoxQuestion, allowed: Allowed) -> int | None:
    """What a worker does: tell how to split a box that is worked on elsewhere."""
    return branch_of(asked.question, allowed)


def branch_variable(question: Question, seed: int) -> int | None:
    """The variable whose setting makes exact elimination cheapest: a max variable, or any where everything is summed.

    It is judged by the tables that elimination along a good order would meet: those that have the variable shrink.
    None where nothing is left. Cubes of a maximum join by their largest value, so its sums are never split, not even
    once all max variables are set.
    """
    from powersum.prepare.ordering import elimination_order
    from powersum.prepare.simplify import simplified

    problem = simplified(question)
    model = problem.model
    if not problem.feasible or model.n_variables == 0:
        return None
    allowed = np.full(model.n_variables, question.query.task == "PR") | (problem.tau == 0.0)
    if not allowed.any():
        return None
    log2_sizes = np.log2(model.cardinalities)
    gain = np.bincount(model.scope_variables, minlength=model.n_variables).astype(np.float64)
    if model.n_variables <= MOST_VARIABLES:
        order = elimination_order(model, problem.tau, seed=seed, time_limit=0.1)
        buckets = _buckets(model, order)
        sizes = np.array([log2_sizes[list(bucket)].sum() for bucket in buckets])
        gain = np.zeros(model.n_variables)
        for bucket, size in zip(buckets, np.exp2(sizes - sizes.max()), strict=True):
            members = list(bucket)
            gain[members] += size * (1.0 - np.exp2(-log2_sizes[members]))
        # Of many that gain alike, the one in most tables.
        gain += 1e-9 * np.bincount(model.scope_variables, minlength=model.n_variables)
    best = int(np.argmax(np.where(allowed, gain, -1.0)))
    return int(problem.variables[best])


def _buckets(model: Model, order: IntArray) -> list[set[int]]:
    """The variables of each table that elimination along an order would meet."""
    position = np.empty(model.n_variables, dtype=np.int64)
    position[order] = np.arange(model.n_variables)
    buckets: list[set[int]] = [{int(v)} for v in order]
    for k in range(model.n_factors):
        scope = model.scope_variables[model.scope_starts[k] : model.scope_starts[k + 1]].tolist()
        if scope:
            buckets[min(int(position[v]) for v in scope)].update(scope)
    for number, v in enumerate(order.tolist()):
        rest = buckets[number] - {v}
        if rest:
            buckets[min(int(position[u]) for u in rest)] |= rest
    return buckets
