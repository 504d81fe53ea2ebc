"""One cube: a question with some variables set, bounded for a slice of time. What a worker does, without any state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from powersum.core.arrays import IntArray
from powersum.divide.box import Allowed
from powersum.model.interval import SAME
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof, empty_box, proof_of
from powersum.proof.certificate import shorter
from powersum.run.cube_memory import Room
from powersum.run.solver import Run
from powersum.run.tuning import Schedule

if TYPE_CHECKING:
    from powersum.run.inheritance import Inherited

CLOSE = 0.5 * SAME
"""A cube whose bound is no further above the best value known than this is closed: nothing in it counts as better."""

EARLY = 0.125
"""Share of its slice after which a cube may be given up."""

FEW_ASSIGNMENTS = 0.1
"""Share of the usual time for local search in a cube, where an assignment is known from elsewhere."""

MOST_VARIABLES = 20_000
"""Of larger problems the variable in most factors is branched on; what elimination would meet takes too long to say."""


@dataclass(frozen=True, slots=True)
class CubeQuestion:
    """What all cubes of a question have in common, and what a slice may use."""

    question: Question
    room: Room
    schedule: Schedule
    certificate: bool = False
    legacy: Inherited | None = None
    """What all runs begin with."""

    @property
    def sums(self) -> bool:
        """Whether everything is summed, so that cubes add up."""
        return self.question.query.task == "PR"


@dataclass(frozen=True, slots=True)
class CubeReport:
    """What a slice of time has shown about a cube.

    Parameters
    ----------
    log_upper, log_lower
        Bounds on the cube's value, every rounding counted. The upper one may stop at the floor that was given.
    states
        States of all variables in the best assignment, -1 where one has none; None where there is none.
    branch
        The variable to split by if more is to be known; None where nothing is left to split.
    seconds
        What it took; None where nobody has worked on the cube, but only looked how to split it.
    log_gap_early
        How far the bound was above the best value known when the cube could have been given up; infinity where it had
        ended before.
    given_up
        Whether it was.
    proof
        Proves the bounds, where certificates are wanted.
    notes
        What a reader of the bounds must know, such as that the lower one is not the value of the assignment itself.
    log_claimed
        The upper bound, whether it is proven or not; infinity where nobody says.
    """

    log_upper: float
    log_lower: float
    states: IntArray | None
    branch: int | None
    seconds: float | None
    log_gap_early: float = math.inf
    given_up: bool = False
    proof: BoxProof = NOTHING_PROVEN
    notes: tuple[str, ...] = ()
    log_claimed: float = math.inf


def bound_cube(
    asked: CubeQuestion,
    cube: Mapping[int, int],
    log_floor: float,
    seconds: float,
    hopeless: float,
    looking: int,
) -> CubeReport:
    """Bound a cube, with an assignment of this value known already elsewhere.

    Parameters
    ----------
    asked
        The question.
    cube
        Variables and the states they are set to.
    log_floor
        Minus infinity for sums, and where nothing is known.
    seconds
        The slice.
    hopeless
        The cube is given up after a while if its bound is then further above the best value known.
    looking
        Whether to look for assignments rather than for bounds (more than 0), and for which time: each draws otherwise.
    """
    schedule = asked.schedule
    if looking:
        schedule = replace(schedule, tighten=False)
    elif log_floor > -math.inf:
        # Somebody has found what there is to find.
        schedule = replace(schedule, companion_share=FEW_ASSIGNMENTS)
    # Cubes and those that look for assignments shall not all draw the same.
    solver = run_in(asked, states_of(cube), seconds, schedule=schedule, seed=asked.question.limits.seed + looking)
    if solver is None:
        return empty_report(asked, cube)
    solver.aim_above(log_floor)
    log_gap_early = math.inf
    for snapshot in solver:
        if snapshot.log_upper <= log_floor + CLOSE:
            solver.interrupt("Nothing better is left in this cube.")
        elif log_gap_early == math.inf and snapshot.seconds >= EARLY * seconds:
            log_gap_early = snapshot.log_upper - max(log_floor, snapshot.log_lower)
            # Before any value is known there is nothing to judge by.
            if hopeless < log_gap_early < math.inf:
                solver.interrupt("This cube will not be closed.")
    report = report_of(asked, cube, solver)
    if report.log_upper <= max(report.log_lower, log_floor) + CLOSE:
        return replace(report, log_gap_early=log_gap_early)
    return replace(
        report,
        branch=branch_of(asked, cube).branch,
        log_gap_early=log_gap_early,
        given_up=hopeless < log_gap_early < math.inf,
    )


def empty_report(asked: CubeQuestion, cube: Mapping[int, int]) -> CubeReport:
    """What there is to say of a cube of which evidence leaves nothing."""
    proof = empty_box(states_of(cube)) if asked.certificate else NOTHING_PROVEN
    return CubeReport(-math.inf, -math.inf, None, None, 0.0, proof=proof)


def run_in(asked: CubeQuestion, allowed: Allowed, seconds: float, *, schedule: Schedule, seed: int) -> Run | None:
    """A run in a box that has not begun; None where evidence leaves nothing of the box."""
    question = asked.question.within(allowed)
    if question is None:
        return None
    limits = replace(
        question.limits,
        time_limit=seconds if seconds < math.inf else None,
        work=None,
        memory=asked.room.for_process,
        seed=seed,
    )
    schedule = replace(schedule, most_bytes=min(schedule.most_bytes, asked.room.for_task))
    run = Run(replace(question, limits=limits), certificate=asked.certificate, schedule=schedule)
    if asked.legacy is not None:
        run.begin_with(asked.legacy)
    return run


def report_of(asked: CubeQuestion, cube: Mapping[int, int], solver: Run) -> CubeReport:
    """What a solver of a cube has found by its end, without how to go on from there."""
    result = solver.result()
    log_lower, log_upper, proof = result.log_lower, result.log_upper, NOTHING_PROVEN
    if result.certificate is not None:
        proof = proof_of(result.certificate, solver.n_above, asked.question, solver.question, states_of(cube))
        # What is not proven does not count: the cube is split, and its parts are proven.
        if shorter(-proof.log_upper, -log_upper):
            log_upper = proof.log_upper
        if asked.sums and shorter(proof.log_lower, log_lower):
            log_lower = proof.log_lower
    return CubeReport(
        log_upper,
        log_lower,
        solver.states() if log_lower > -math.inf else None,
        None,
        result.seconds,
        proof=proof,
        notes=solver.notes,
        log_claimed=result.log_upper,
    )


def states_of(cube: Mapping[int, int]) -> Allowed:
    """A cube as a box."""
    return {int(v): frozenset((int(s),)) for v, s in cube.items()}


def branch_of(asked: CubeQuestion, cube: Mapping[int, int]) -> CubeReport:
    """How to split a cube, and nothing else about it."""
    question = asked.question.within(states_of(cube))
    branch = None if question is None else branch_variable(question, asked.question.limits.seed)
    return CubeReport(math.inf, -math.inf, None, branch, None)


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
