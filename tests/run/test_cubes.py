"""Cube and conquer: whatever workers say and in whichever order, both bounds hold at every moment."""

from __future__ import annotations

import concurrent.futures as cf
import math
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.cluster.executor import Workers
from powersum.divide.box import Allowed
from powersum.divide.join import log_sum_outward
from powersum.exact import small
from powersum.model.question import Question
from powersum.run import cube_frontier, cubes
from powersum.run.box_memory import Room
from powersum.run.box_run import BoxJob, BoxQuestion, BoxReport, bound_box, branch_variable
from powersum.run.cubes import Conquest
from powersum.run.solver import Solver
from powersum.run.tuning import Schedule
from tests.cluster.machines import SECONDS, cluster_of, environment, kill, kill_one_of_ours, machines, own_workers
from tests.oracle import assignment_value, exact_value
from tests.strategies import random_model

SLOW = Schedule(elimination_cost=1e3, order_search_from=math.inf)
"""Nothing is quick enough to be eliminated at once, and no time is spent on orders for slices that may be long."""

ROOM = Room(2e9, 2e9, tasks_here=1, tasks_elsewhere=1, process=os.getpid())

ROUNDING = 1e-12
"""The oracle has a rounding of its own."""


def question_of(seed: int) -> tuple[ps.Model, list[int], dict[int, int]]:
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=6, n_factors=8, zeros=float(rng.choice([0.0, 0.3])))
    chosen = [int(v) for v in rng.permutation(6)]
    maximize = chosen[: [0, 3, 6][seed % 3]]
    evidence = {chosen[3]: 0} if seed % 2 else {}
    return model, maximize, {v: s for v, s in evidence.items() if v not in maximize}


def truth(model: ps.Model, maximize: list[int], evidence: dict[int, int]) -> float:
    weights = np.ones(model.n_variables)
    weights[maximize] = 0.0
    return exact_value(model, weights, evidence=evidence)


def is_proven(result: ps.Result, model: ps.Model, maximize: list[int], evidence: dict[int, int]) -> bool:
    """Check an answer that has to be proven, by brute force; False where nothing is possible."""
    value = truth(model, maximize, evidence)
    if value == -math.inf:
        assert result.status is ps.Status.INFEASIBLE
        return False
    assert result.status is ps.Status.OPTIMAL, result.reason
    assert result.log_lower - 1e-9 <= value <= result.log_upper + 1e-9
    if maximize:
        chosen = {int(name): int(state) for name, state in result.assignment.items() if int(name) not in evidence}
        assert assignment_value(model, chosen, evidence=evidence) == pytest.approx(value, abs=1e-6)
    return True


def box(cube: dict[int, int]) -> Allowed:
    """A cube by the states that it allows."""
    return {v: frozenset((state,)) for v, state in cube.items()}


class Oracle:
    """Bounds cubes in place of a solver: as loosely as it likes, but never wrongly."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, asked: BoxQuestion, job: BoxJob) -> BoxReport:
        cube = {v: state for v, (state,) in job.allowed.items()}
        maximize = [int(v) for v in asked.question.query.max_variables]
        known = {**dict(asked.question.evidence.states), **cube}
        if any(asked.question.evidence.states.get(v, s) != s for v, s in cube.items()):
            return BoxReport(log_upper=-math.inf, seconds=0.0)
        value = truth(asked.question.model, maximize, known)
        free = [v for v in (maximize or range(asked.question.model.n_variables)) if v not in known]
        if not free or self._rng.random() < 0.2:
            loose = 0.0
        else:
            loose = float(self._rng.exponential())
        states = None
        lower = value
        if maximize and value > -math.inf:
            states = np.array([known.get(v, 0) for v in range(asked.question.model.n_variables)])
            own = {v: int(states[v]) for v in maximize if v not in asked.question.evidence.states}
            lower = assignment_value(asked.question.model, own, evidence=dict(asked.question.evidence.states))
            states = states if lower > -math.inf else None
        elif loose and value > -math.inf:
            lower = value - float(self._rng.exponential())
        upper = value + loose + ROUNDING
        branch = None if upper <= max(lower - ROUNDING, job.log_floor) or not free else int(self._rng.choice(free))
        return BoxReport(log_upper=upper, log_lower=lower - ROUNDING, states=states, branch=branch, seconds=0.0)


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold_at_every_moment(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, maximize, evidence = question_of(seed)
    value = truth(model, maximize, evidence)
    monkeypatch.setattr(cubes, "bound_box", Oracle(seed))
    seen: list[ps.Snapshot] = []
    with cf.ThreadPoolExecutor(3) as pool:
        solver = Solver(model, maximize or None, evidence=evidence, time_limit=600.0, schedule=SLOW)
        result = Conquest(solver, Workers(pool, own=False), seen.append, seconds=600.0).run()
    for snapshot in seen:
        assert snapshot.log_lower - 1e-9 <= value <= snapshot.log_upper + 1e-9
    is_proven(result, model, maximize, evidence)


@pytest.mark.parametrize("seed", range(6))
def test_a_floor_is_no_bound(seed: int) -> None:
    """What is known elsewhere may stop the work on a cube, but neither becomes its value nor hides it."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_variables=7, n_factors=10, zeros=0.0)
    maximize = list(range(4))
    query = ps.Query.of(model, maximize)
    asked = BoxQuestion(Question.of(model, evidence={}, weights=query), ROOM, SLOW)
    for state in range(int(model.cardinalities[0])):
        value = truth(model, maximize, {0: state})
        for log_floor in (value - 1.0, value - 1e-3, value, value + 1e-3, value + 1.0, value + 20.0):
            report = bound_box(asked, BoxJob(allowed=box({0: state}), log_floor=log_floor, seconds=600.0))
            assert report.log_upper >= value - ROUNDING
            assert report.log_lower <= value + ROUNDING
            assert report.log_upper <= max(value, log_floor) + 1e-6
            assert report.branch is None
            if log_floor < value - 1e-6:
                assert report.log_lower == pytest.approx(value, abs=1e-6)
            if report.states is not None:
                own = {v: int(report.states[v]) for v in maximize}
                assert own[0] == state
                assert assignment_value(model, own) >= report.log_lower - ROUNDING


def test_a_cube_that_evidence_excludes_is_empty() -> None:
    model, _ = ps.generate.grid(3, 3, seed=1)
    asked = BoxQuestion(Question.of(model, evidence={0: 1}, weights=ps.Query.of(model, [0, 1])), ROOM, SLOW)
    assert bound_box(asked, BoxJob(allowed=box({0: 0}), seconds=1.0)).log_upper == -math.inf


@pytest.mark.parametrize(("maximize", "seed"), [("some", 1), ("all", 2), (None, 3)])
def test_same_answer_as_one_process(maximize: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubes, "FIRST_SECONDS", 0.05)
    monkeypatch.setattr(cubes, "CUBE_SECONDS", 0.5)
    model, query = ps.generate.grid(5, 5, strength=2.0, seed=seed)
    chosen = query if maximize == "some" else maximize
    alone = ps.solve(model, chosen)
    with cf.ThreadPoolExecutor(2) as pool:
        result = ps.solve(model, chosen, workers=pool, schedule=SLOW, time_limit=600.0)
    assert alone.status is ps.Status.OPTIMAL
    assert result.log_lower - 1e-9 <= alone.log_upper
    assert result.log_upper + 1e-9 >= alone.log_lower
    assert result.status is ps.Status.OPTIMAL, result.reason
    assert result.assignment == alone.assignment
    assert (result.probability is None) == (alone.probability is None)
    assert ps.Result.from_json(result.to_json()) == result


def test_small_questions_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "MOST_ENTRIES", 1e6)
    model, query = ps.generate.grid(3, 3, seed=1)
    result = ps.solve(model, query, workers=1)
    assert result.status is ps.Status.OPTIMAL
    assert "cubes" not in result.sizes
    assert result.probability is not None


def test_a_killed_worker_costs_one_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubes, "FIRST_SECONDS", 0.5)
    monkeypatch.setattr(cubes, "CUBE_SECONDS", 0.5)
    model, query = ps.generate.grid(6, 6, strength=2.0, seed=2)
    seen: list[ps.Snapshot] = []
    with cluster_of(tmp_path, 2) as (here, client):

        def killing(snapshot: ps.Snapshot) -> None:
            seen.append(snapshot)
            if len(seen) == 1:
                kill(here.workers[0])

        result = ps.solve(model, query, workers=client, schedule=SLOW, time_limit=600.0, callback=killing)
    assert seen
    uppers = [snapshot.log_upper for snapshot in result.history]
    assert uppers == sorted(uppers, reverse=True)
    alone = ps.solve(model, query)
    assert alone.status is ps.Status.OPTIMAL
    assert result.status is ps.Status.OPTIMAL, result.reason
    assert result.log_lower == pytest.approx(alone.log_lower, abs=1e-6)


def test_a_killed_process_costs_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of our own: one is killed after the first slice, and its cube is begun again by another."""
    monkeypatch.setattr(cubes, "FIRST_SECONDS", 0.5)
    monkeypatch.setattr(cubes, "CUBE_SECONDS", 0.5)
    model, query = ps.generate.grid(6, 6, strength=2.0, seed=3)
    killed: list[int] = []
    others = own_workers()

    def killing(snapshot: ps.Snapshot) -> None:
        if not killed:
            # It may not have begun: this process has bounds before others are there.
            killed.append(kill_one_of_ours(others))

    result = ps.solve(model, query, workers=2, schedule=SLOW, time_limit=600.0, callback=killing)
    alone = ps.solve(model, query)
    assert killed
    assert result.status is ps.Status.OPTIMAL, result.reason
    assert result.log_lower == pytest.approx(alone.log_lower, abs=1e-6)
    assert result.log_lower <= alone.log_upper
    assert alone.log_lower <= result.log_upper


def test_a_slow_worker_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker stands still for a while; what it was at is split by the other one, or waited for."""
    monkeypatch.setattr(cubes, "FIRST_SECONDS", 0.5)
    monkeypatch.setattr(cubes, "CUBE_SECONDS", 0.5)
    monkeypatch.setattr(cube_frontier, "YOUNG", 0.1)
    model, query = ps.generate.grid(6, 6, strength=2.0, seed=4)
    seen: list[ps.Snapshot] = []
    with cluster_of(tmp_path, 2) as (here, client):

        def stopping(snapshot: ps.Snapshot) -> None:
            seen.append(snapshot)
            if len(seen) == 1:
                here.pause(here.workers[0], 1.0)

        result = ps.solve(model, query, workers=client, schedule=SLOW, time_limit=600.0, callback=stopping)
    assert seen
    assert result.status is ps.Status.OPTIMAL, result.reason
    assert result.log_lower == pytest.approx(ps.solve(model, query).log_lower, abs=1e-6)


def test_a_killed_client_leaves_a_cluster_that_works(tmp_path: Path) -> None:
    """What a client was at is given up by its scheduler, and the next one is answered."""
    from powersum.cluster.dask_workers import connected

    program = tmp_path / "client.py"
    program.write_text(
        "import sys, powersum as ps\n"
        "from powersum.cluster import dask_workers\n"
        f"dask_workers.CONNECT_SECONDS = {SECONDS}\n"
        "model, query = ps.generate.grid(30, 30, strength=2.0, seed=1)\n"
        "def told(snapshot): print('bound', flush=True)\n"
        "with dask_workers.connected(sys.argv[1]) as client:\n"
        "    ps.solve(model, query, workers=client, time_limit=10.0, callback=told)\n"
    )
    model, query = ps.generate.grid(5, 5, strength=2.0, seed=1)
    with machines(tmp_path, 1) as here:
        first = subprocess.Popen(
            [sys.executable, str(program), here.address], env=environment(), stdout=subprocess.PIPE, text=True
        )
        assert first.stdout is not None
        with first.stdout as said:
            assert said.readline() == "bound\n"
        kill(first)
        with connected(here.address) as client:
            result = ps.solve(model, query, workers=client, schedule=SLOW, time_limit=600.0)
    assert result.status is ps.Status.OPTIMAL, result.reason
    assert result.log_lower == pytest.approx(ps.solve(model, query).log_lower, abs=1e-6)


def test_a_killed_scheduler_leaves_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from powersum.cluster.dask_workers import connected

    monkeypatch.setattr(cubes, "FIRST_SECONDS", 0.5)
    model, query = ps.generate.grid(30, 30, strength=2.0, seed=2)
    with machines(tmp_path, 1) as here, connected(here.address) as client:

        def killing(snapshot: ps.Snapshot) -> None:
            if snapshot.log_upper < math.inf:
                kill(here.scheduler)

        result = ps.solve(model, query, workers=client, time_limit=3600.0, callback=killing)
    assert result.status is ps.Status.INTERRUPTED
    assert "the cluster is gone" in result.reason
    assert "\n" not in result.reason
    assert result.log_lower <= result.log_upper < math.inf


def test_a_cube_that_is_being_worked_on_is_split_for_those_without_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker is at the whole and never gets done; the other one splits it, and its parts prove the answer."""
    model, maximize, evidence = question_of(1)
    value = truth(model, maximize, evidence)
    oracle, over = Oracle(1), threading.Event()

    def stuck(asked: BoxQuestion, job: BoxJob) -> BoxReport:
        if not job.allowed:
            over.wait(600.0)
            return BoxReport(seconds=0.0)
        return oracle(asked, job)

    monkeypatch.setattr(cubes, "bound_box", stuck)
    with cf.ThreadPoolExecutor(2) as pool:
        solver = Solver(model, maximize, evidence=evidence, time_limit=600.0, schedule=SLOW)
        result = Conquest(solver, Workers(pool, own=False), seconds=600.0).run()
        over.set()
    assert result.status is ps.Status.OPTIMAL, result.reason
    assert result.log_lower - 1e-9 <= value <= result.log_upper + 1e-9


def test_branching_by_what_simplifies_most() -> None:
    # A star: its middle decides everything, whichever number it has.
    tables = [((3, v), [[0.6, 0.4], [0.3, 0.7]]) for v in (0, 1, 2, 4, 5)]
    star = ps.Model.from_factors([2] * 6, tables)
    assert branch_variable(Question.of(star, "all"), seed=0) == 3
    assert branch_variable(Question.of(star), seed=0) in {None, 3}


def test_the_sums_of_a_maximum_are_never_split() -> None:
    # Cubes of a maximum join by the largest: that of a sum's terms would be below their sum.
    model, query = ps.generate.grid(4, 4, seed=1)
    chosen = [int(v) for v in query]
    asked = Question.of(model, chosen, evidence=dict.fromkeys(chosen, 0))
    assert branch_variable(asked, seed=0) is None
    assert branch_variable(Question.of(model, chosen, evidence=dict.fromkeys(chosen[1:], 0)), seed=0) in {
        None,
        chosen[0],
    }


def test_sums_of_logs_are_rounded_outward() -> None:
    from fractions import Fraction

    rng = np.random.default_rng(1)
    for _ in range(200):
        logs = list(rng.normal(scale=rng.choice([1.0, 50.0]), size=int(rng.integers(1, 9))))
        top = max(logs)
        exact = sum(Fraction(math.exp(value - top)) for value in logs)
        value = top + math.log(float(exact))
        assert log_sum_outward(logs, -1) < value < log_sum_outward(logs, 1)
        assert log_sum_outward(logs, 1) - log_sum_outward(logs, -1) < 1e-12 * max(1.0, abs(top))
    assert log_sum_outward([-math.inf, -math.inf], 1) == -math.inf
    assert log_sum_outward([math.inf, 0.0], 1) == math.inf


def test_what_must_be_known_of_the_lower_bound_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the soak: a bound on the assignment's value, where the sum is too wide, looked like the value itself."""
    model, maximize, evidence = question_of(1)
    oracle = Oracle(1)

    def noted(*asked: Any) -> BoxReport:
        report = oracle(*asked)
        return replace(report, notes=("Not the value itself.",))

    monkeypatch.setattr(cubes, "bound_box", noted)
    with cf.ThreadPoolExecutor(2) as pool:
        result = ps.solve(model, maximize, evidence=evidence, time_limit=600.0, workers=pool, schedule=SLOW)
    assert result.log_lower > -math.inf
    assert result.notes == ("Not the value itself.",)
