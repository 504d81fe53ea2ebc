"""The road: the cube that whoever asked works on itself, for as long as it likes, while others have parts of it.

One process with all the time has better trees than slices have. So of several processes one goes on as it would alone,
and hears what the others find, without waiting for them. Once they have closed all of the question but one part, the
road goes on within that part, with the next tree that would have been begun anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from powersum.bounds.tree.rebuilding import Saved
from powersum.core.arrays import IntArray
from powersum.proof.boxes import NOTHING_PROVEN, BoxProof, proof_of
from powersum.run.cube import CLOSE, CubeQuestion, CubeReport, report_of, run_in, states_of
from powersum.run.inheritance import Inherited
from powersum.run.solver import Run
from powersum.run.workers.task import Lender

FEWER_ASSIGNMENTS = 0.1
"""Share of the usual time for local search after the first stage, for others look for assignments, too."""

TIGHTENING = 0.6
"""Share of the last stage that goes into its tree rather than into search: with others beside it that has less time."""


class Road:
    """Work on one cube in turns, in this process.

    Parameters
    ----------
    asked
        The question.
    cube
        Variables and the states they are set to.
    solver
        Works on it.
    stage
        How many stages the road has had in cubes around this one.
    """

    def __init__(self, asked: CubeQuestion, cube: Mapping[int, int], solver: Run, stage: int = 0) -> None:
        self._asked, self._cube, self._solver, self._stage = asked, cube, solver, stage

    @classmethod
    def into(
        cls, asked: CubeQuestion, cube: Mapping[int, int], seconds: float, stage: int = 0, lender: Lender | None = None
    ) -> Road | None:
        """The road into a cube, after so many stages elsewhere; None where evidence leaves nothing of the cube.

        ``lender`` knows others who have time for boxes of it.
        """
        schedule = asked.schedule
        # The first stage is as long as the next one would have been.
        first_stage = schedule.first_stage * schedule.stage_growth**stage
        schedule = replace(
            schedule,
            first_stage=first_stage,
            later_companion_share=FEWER_ASSIGNMENTS,
            last_tightening=schedule.last_tightening if asked.sums else TIGHTENING,
            # Whoever looks for assignments begins with it.
            first_full=schedule.first_full if asked.question.query.task == "MAP" else 0.0,
        )
        solver = run_in(asked, states_of(cube), seconds, schedule=schedule, seed=asked.question.limits.seed + stage)
        if solver is None:
            return None
        if lender is not None:
            solver.lend_by(lender)
        return cls(asked, cube, solver, stage)

    @classmethod
    def along(
        cls,
        asked: CubeQuestion,
        cube: Mapping[int, int],
        seconds: float,
        tree: Saved,
        states: Sequence[tuple[int, int]],
        lender: Lender,
    ) -> Road | None:
        """A road that begins with the tree and the assignment that somebody has left, and only lends boxes of it."""
        schedule = replace(
            asked.schedule,
            first_full=0.0,
            first_conditioning=0.0,
            first_sum=0.0,
            first_variational=0.0,
            first_orders=0.0,
            first_stage=math.inf,
            last_tightening=0.0,
            least_last_tightening=0.0,
            companion_share=0.0,
            search_trial=0.0,
            nearly=0.0,
            look_first=False,
        )
        solver = run_in(asked, states_of(cube), seconds, schedule=schedule, seed=asked.question.limits.seed)
        if solver is None:
            return None
        solver.begin_with(Inherited(tree, states))
        solver.lend_by(lender)
        return cls(asked, cube, solver)

    @property
    def log_upper(self) -> float:
        """The upper bound on the cube so far."""
        return self._solver.log_upper

    @property
    def log_lower(self) -> float:
        """The lower bound on the cube so far."""
        return self._solver.log_lower

    @property
    def states(self) -> IntArray:
        """States of all variables in the best assignment of the cube so far."""
        return self._solver.states()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the bounds must know."""
        return self._solver.notes

    @property
    def stage(self) -> int:
        """How many stages the road has had, here and before: what was tightened in them is not gone on with."""
        return self._stage + self._solver.stage

    def hear(self, log_lower: float, states: IntArray) -> None:
        """Somebody has found an assignment of this value."""
        self._solver.aim_above(log_lower)
        self._solver.hear(states)

    def turn(self, log_floor: float) -> bool:
        """One turn of work, with an assignment of this value known; False once nothing is left to do here."""
        return self.log_upper > log_floor + CLOSE and self._solver.turn()

    def draft(self) -> BoxProof:
        """What is proven of the cube while the work is under way."""
        found = self._solver.draft()
        if found is None:
            return NOTHING_PROVEN
        return proof_of(*found, self._asked.question, self._solver.question, states_of(self._cube))

    def end(self) -> CubeReport:
        """End the work; what it has shown, and what of it is proven."""
        self._solver.interrupt("Others have gone on from here.")
        return report_of(self._asked, self._cube, self._solver)
