"""The road: this process works on the question while others have cubes of it. Bounds hold whoever is quicker."""

from __future__ import annotations

import concurrent.futures as cf
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.cluster.executor import Workers
from powersum.core.arrays import IntArray
from powersum.divide.box import Allowed
from powersum.divide.join import lifted
from powersum.model.question import Question
from powersum.prepare.simplify import simplified
from powersum.run import cubes
from powersum.run.board import Board
from powersum.run.box_run import BoxJob, BoxQuestion, BoxReport
from powersum.run.cube_frontier import CubePolicy
from powersum.run.cubes import Conquest
from powersum.run.solver import Solver
from powersum.run.tuning import Schedule
from powersum.run.workers.task import Lender
from tests.run.test_certified_answers import checked
from tests.run.test_cube_proofs import Doubtful, grid
from tests.run.test_cubes import SLOW, Oracle, is_proven, question_of, truth
from tests.run.test_cubes_by_force import Case, drawn, roads_bounds_hold


def conquered(
    model: ps.Model, maximize: list[int], evidence: Mapping[int, Any], *, seen: list[ps.Snapshot], **options: Any
) -> tuple[ps.Result, Conquest]:
    """Two workers and this process."""
    with cf.ThreadPoolExecutor(2) as pool:
        solver = Solver(model, maximize or None, evidence=dict(evidence), time_limit=600.0, **options)
        conquest = Conquest(solver, Workers(pool, own=False), seen.append, seconds=600.0, road=True)
        return conquest.run(), conquest


class Loose:
    """A road whose bounds are loose, and whose proofs show a little less than what it has claimed."""

    def __init__(self, asked: BoxQuestion, allowed: Allowed, stage: int, rng: np.random.Generator) -> None:
        self._asked, self._job, self.stage, self._rng = asked, BoxJob(allowed=allowed, seconds=1.0), stage, rng
        self.cube, self.run = {v: state for v, (state,) in allowed.items()}, self
        self._oracle = Oracle(int(rng.integers(1000)))
        self.notes: tuple[str, ...] = ()
        self.turns, self.heard = 0, list[float]()
        maximize = [int(v) for v in asked.question.query.max_variables]
        self._value = truth(asked.question.model, maximize, {**dict(asked.question.evidence.states), **self.cube})
        self._report = BoxReport(log_upper=self._value + 1e-3, seconds=0.0)
        self.log_upper, self.log_lower = math.inf, -math.inf

    def lend_by(self, lender: Lender) -> None:
        """It has no boxes."""

    def states(self) -> IntArray:
        assert self._report.states is not None
        return self._report.states

    def hear(self, log_lower: float, states: IntArray) -> None:
        self.heard.append(log_lower)

    def turn(self) -> bool:
        self.turns += 1
        self.stage += bool(self._rng.random() < 0.5)
        loose = float(self._rng.exponential()) / self.turns
        self.log_upper = min(self.log_upper, self._value + loose + 1e-6)
        if self._asked.question.query.task != "PR":
            report = self._oracle(self._asked, self._job)
            if report.states is not None and report.log_lower > self.log_lower:
                self._report, self.log_lower = report, report.log_lower
        elif self._value > -math.inf:
            self.log_lower = max(self.log_lower, self._value - loose)
        return self.turns < 30

    def end(self) -> BoxReport:
        own = self._report
        log_proven = self.log_upper + 1e-3
        return BoxReport(
            log_upper=log_proven,
            log_lower=self.log_lower,
            states=own.states,
            seconds=1.0,
            log_claimed=self.log_upper,
        )


def never_worse(bounds: Sequence[ps.Snapshot | ps.Result]) -> bool:
    """Whether no bound is worse than the one before it, to the last digit."""
    return all(a.log_upper >= b.log_upper and a.log_lower <= b.log_lower for a, b in pairwise(bounds))


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_at_every_moment(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, maximize, evidence = question_of(seed)
    value, rng = truth(model, maximize, evidence), np.random.default_rng(seed)
    roads: list[Loose] = []

    def made(asked: BoxQuestion, allowed: Allowed, seconds: float, stage: int) -> Any:
        roads.append(Loose(asked, allowed, stage, rng))
        return roads[-1]

    monkeypatch.setattr(cubes, "bound_box", Oracle(seed))
    monkeypatch.setattr(cubes, "road_into", made)
    seen: list[ps.Snapshot] = []
    result, _ = conquered(model, maximize, evidence, seen=seen, schedule=SLOW)
    for snapshot in (*seen, *result.history):
        assert snapshot.log_lower - 1e-9 <= value <= snapshot.log_upper + 1e-9
    assert never_worse([*seen, result])
    assert set(seen) <= set(result.history)
    if not is_proven(result, model, maximize, evidence):
        return
    # Each road lies within the one before, and they go on counting stages.
    for before, after in pairwise(roads):
        assert before.cube.items() < after.cube.items()
        assert after.stage >= before.stage


@pytest.mark.parametrize("seed", range(100, 118))
def test_bounds_hold_with_tiny_slices(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real road and real slices, against brute force."""
    case: Case = drawn(seed)
    for name, value in (("FIRST_SECONDS", 0.02), ("CUBE_SECONDS", 0.02), ("LEAST_SECONDS", 0.005)):
        monkeypatch.setattr(cubes, name, value)
    roads_bounds_hold(case, 2)


@pytest.mark.parametrize("maximize", ["some", "all", None])
@pytest.mark.parametrize("silent", [0, 2])
def test_one_certificate_of_road_and_cubes(
    maximize: Any, silent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = grid(maximize)
    monkeypatch.setattr(cubes, "bound_box", Doubtful(1, silent=silent))
    chosen = [int(v) for v in asked.query.max_variables]
    result, _ = conquered(asked.model, chosen, {}, seen=[], schedule=Schedule(quick=0.0), certificate=True)
    assert result.status is ps.Status.OPTIMAL, result.reason
    checked(result, asked, tmp_path)


def unproven(seed: int, claim: Callable[[Loose], float], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Upper bounds of all snapshots where the road claims something at its end, and proves nothing."""
    model, maximize, evidence = question_of(seed)
    rng = np.random.default_rng(seed)

    class Unproven(Loose):
        def end(self) -> BoxReport:
            return replace(super().end(), log_upper=math.inf, log_claimed=claim(self))

    def made(asked: BoxQuestion, allowed: Allowed, seconds: float, stage: int) -> Any:
        return Unproven(asked, allowed, stage, rng)

    monkeypatch.setattr(cubes, "bound_box", Oracle(seed))
    monkeypatch.setattr(cubes, "road_into", made)
    seen: list[ps.Snapshot] = []
    result, _ = conquered(model, maximize, evidence, seen=seen, schedule=SLOW)
    return [*(snapshot.log_upper for snapshot in seen), result.log_upper]


@pytest.mark.parametrize("seed", range(20))
def test_that_nothing_is_possible_counts_with_its_proof_only(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    value = truth(*question_of(seed))
    assert all(upper >= value - 1e-9 for upper in unproven(seed, lambda road: -math.inf, monkeypatch))


@pytest.mark.parametrize("seed", range(40))
def test_what_the_road_has_shown_is_not_taken_back_where_it_cannot_be_proven(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not proven does not close a cube, and the bound of the next snapshot had been infinite."""
    model, maximize, evidence = question_of(seed)
    value = truth(model, maximize, evidence)
    uppers = unproven(seed, lambda road: road.log_upper, monkeypatch)
    assert all(after <= before for before, after in pairwise(uppers))
    assert all(upper >= value - 1e-9 for upper in uppers)


def test_bounds_of_a_part_as_bounds_of_the_whole() -> None:
    policy = CubePolicy(Board(2), np.array([2, 2]), sums=False)
    root = policy.root
    root.log_upper = 5.0
    policy.split(root, 0)
    first, second = root.parts
    second.log_upper, second.log_lower = 1.0, 0.5
    policy.split(first, 1)
    first.parts[1].log_upper = 0.0
    before = [node.log_upper for node in (root, first, second, *first.parts)]
    assert lifted(first.parts[0], 2.0, 1.5, sums=False) == (2.0, 1.5)
    assert lifted(first.parts[0], -1.0, -2.0, sums=False) == (1.0, 0.5)
    upper, lower = lifted(first.parts[0], 2.0, 1.5, sums=True)
    assert upper == pytest.approx(math.log(math.exp(2.0) + math.exp(0.0) + math.exp(1.0)))
    assert lower == pytest.approx(math.log(math.exp(1.5) + math.exp(0.5)))
    assert [node.log_upper for node in (root, first, second, *first.parts)] == before


def test_an_assignment_of_somebody_else_is_gone_on_from() -> None:
    """It becomes the solver's own, with the value that it has here."""
    model, query = ps.generate.grid(8, 8, strength=3.0, seed=5)
    best = ps.solve(model, query)
    assert best.status is ps.Status.OPTIMAL
    states = np.full(model.n_variables, -1, dtype=np.int64)
    for name, state in best.assignment.items():
        states[int(name)] = int(state)
    solver = Solver(model, query, time_limit=600.0, schedule=SLOW)
    solver.hear(states)
    while solver.log_lower < best.log_lower - 1e-9 and solver.turn():
        pass
    assert solver.log_lower == pytest.approx(best.log_lower, abs=1e-6)
    assert solver.log_lower <= best.log_upper


@pytest.mark.parametrize("seed", range(20))
def test_states_there_and_back(seed: int) -> None:
    model, maximize, evidence = question_of(seed)
    problem = simplified(Question.of(model, maximize or None, evidence=evidence))
    rng = np.random.default_rng(seed)
    if not problem.feasible:
        return
    reduced = np.array([int(rng.integers(-1, size)) for size in problem.model.cardinalities], dtype=np.int64)
    reduced = np.where(problem.tau == 0.0, reduced, -1)
    assert np.array_equal(problem.reduced_states(problem.restore(reduced)), reduced)
    # A state that is not possible is none.
    assert (problem.reduced_states(np.full(model.n_variables, 99)) == -1).all()


def test_one_process_is_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is started for it."""

    def refused(*_: Any, **__: Any) -> ps.Result:
        raise AssertionError("cubes")

    monkeypatch.setattr(cubes, "solve_by_cubes", refused)
    model, query = ps.generate.grid(5, 5, strength=2.0, seed=1)
    assert ps.solve(model, query, workers=1, schedule=SLOW, time_limit=600.0).status is ps.Status.OPTIMAL


@pytest.mark.parametrize("seconds", [1e-9, -1.0])
def test_a_road_that_begins_when_time_is_over(seconds: float) -> None:
    """Found by the soak: a stage may end with the time, and a cube be left to go on in."""
    model, query = ps.generate.grid(5, 5, strength=2.0, seed=1)
    value = ps.solve(model, query).log_lower
    with cf.ThreadPoolExecutor(1) as pool:
        solver = Solver(model, query, time_limit=1.0, schedule=SLOW)
        conquest = Conquest(solver, Workers(pool, own=False), seconds=seconds, road=True)
        conquest._follow(conquest._root, 2)
        result = conquest.run()
    assert result.log_lower - 1e-9 <= value <= result.log_upper + 1e-9
