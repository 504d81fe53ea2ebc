"""The sum beside the proof: whoever bounds it, the probability of the answer lies within what is said."""

from __future__ import annotations

import concurrent.futures as cf
import math
import time
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import powersum as ps
from powersum.cluster import executor
from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import Workers
from powersum.core.interrupt import Interrupt
from powersum.model.limits import Limits
from powersum.model.question import Question
from powersum.run import cubes, sum_beside
from powersum.run.box_run import BoxQuestion
from powersum.run.cubes import Conquest
from powersum.run.shares import UNKNOWN, sum_bounds
from powersum.run.solver import Solver
from powersum.run.sum_beside import SumBeside, awaited_sum, bound_sum
from tests.oracle import exact_value
from tests.run.test_cubes import ROOM, SLOW, Oracle, question_of, truth

NEAR = replace(SLOW, nearly=math.inf)
"""Every gap is near."""


def log_sum(model: ps.Model, evidence: dict[int, int]) -> float:
    return exact_value(model, np.ones(model.n_variables), evidence=evidence)


@pytest.mark.parametrize("seed", range(1, 24, 2))
def test_bounds_of_a_worker_hold(seed: int) -> None:
    model, _, evidence = question_of(seed)
    asked = BoxQuestion(Question.of(model, evidence=evidence, weights=ps.Query.of(model, None)), ROOM, SLOW)
    low, high = bound_sum(asked, 0.2)
    value = log_sum(model, evidence)
    assert low - 1e-12 <= value <= high + 1e-12


@pytest.mark.parametrize("road", [False, True])
@pytest.mark.parametrize("seed", range(1, 18))
def test_probabilities_hold(seed: int, road: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, maximize, evidence = question_of(seed)
    asked = list[float]()

    def counted(asked_: BoxQuestion, seconds: float, interrupt: Interrupt | None = None) -> tuple[float, float]:
        asked.append(seconds)
        return bound_sum(asked_, seconds, interrupt)

    monkeypatch.setattr(cubes, "bound_box", Oracle(seed))
    monkeypatch.setattr(cubes, "bound_sum", counted)
    monkeypatch.setattr(sum_beside, "bound_sum", counted)
    monkeypatch.setattr(cubes, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(executor, "others_of", lambda given: (given, road))
    solver = Solver(model, maximize or None, evidence=dict(evidence), time_limit=600.0, schedule=NEAR)
    with cf.ThreadPoolExecutor(2) as pool:
        result = cubes.solve_by_cubes(solver, pool)
    value = truth(model, maximize, evidence)
    if not maximize or value == -math.inf:
        assert result.probability is None
        assert not asked or maximize
        return
    assert asked
    assert result.probability is not None
    probability = math.exp(value - log_sum(model, evidence))
    assert result.probability.lower - 1e-9 <= probability <= result.probability.upper + 1e-9


@pytest.mark.parametrize("seconds", [0.0, -0.4])
def test_without_time_nothing_is_known_of_a_sum(seconds: float) -> None:
    """Found by the soak: an answer may come after the end of its time."""
    model, query = ps.generate.grid(4, 4, seed=1)
    question = Question.of(model, query, limits=Limits(memory=1e9))
    assert sum_bounds(question, seconds=seconds) == UNKNOWN


def test_nobody_waits_for_a_task_that_was_lost() -> None:
    """Found by the soak: the workers were gone when the sum was handed in."""
    model, query = ps.generate.grid(4, 4, seed=1)
    asked = BoxQuestion(Question.of(model, query), ROOM, SLOW)
    beside = SumBeside(wanted=True)
    beside.begin(1.0, 50.0)
    begun = time.monotonic()
    with cf.ThreadPoolExecutor(1) as pool:
        workers = Workers(pool, own=False)
        low, high = awaited_sum(beside, asked, workers, answer_seconds=60.0, seconds=60.0, interrupt=Interrupt())
    assert time.monotonic() - begun < 30.0
    assert low - 1e-12 <= log_sum(model, {}) <= high + 1e-12


def test_the_sum_is_bounded_again_only_when_the_run_is_twice_as_long() -> None:
    beside = SumBeside(wanted=True)
    assert beside.due(0.1, 50.0)
    assert beside.begin(0.1, 50.0) == 1.0
    assert beside.running
    assert not beside.due(9.0, 50.0)
    beside.take((-9.0, 3.0))
    assert not beside.due(1.9, 50.0)
    assert beside.due(2.0, 50.0)
    assert not beside.due(2.0, 0.0)
    assert beside.enough(4.0)
    assert not beside.enough(4.1)
    assert beside.begin(4.0, 3.0) == 3.0
    # What has ended before still counts.
    assert beside.enough(4.0)
    assert not beside.enough(4.1)
    # Each bound counts by itself.
    beside.take((-11.0, 2.0))
    assert beside.log_bounds == (-9.0, 2.0)
    assert beside.enough(12.0)
    assert not beside.enough(12.1)
    beside.take((2.0 - 1e-9, 2.0))
    assert beside.enough(math.inf)
    assert not beside.due(100.0, 50.0)
    assert not SumBeside(wanted=False).due(1.0, 50.0)


class Silent(Workers):
    """Workers whose sum never comes back, or who are gone."""

    def __init__(self, *, gone: bool = False) -> None:
        self._gone = gone
        self._running = {cast(Any, object()): cast(Any, object())}

    @property
    def size(self) -> int:
        return 1

    def finished(self, timeout: float = 0.0) -> list[tuple[Any, Any]]:
        if self._gone:
            raise ClusterError("nobody is there")
        self.waited = timeout
        return []


@pytest.mark.parametrize("gone", [False, True])
def test_nobody_waits_for_ever_for_a_sum(gone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, maximize, evidence = question_of(1)
    solver = Solver(model, maximize, evidence=dict(evidence), time_limit=600.0, schedule=SLOW)
    for _ in solver:
        pass
    result = solver.result()
    clock = iter(range(1000))
    monkeypatch.setattr(sum_beside, "working_time", lambda: float(next(clock)))
    conquest = Conquest(solver, Silent(gone=gone), seconds=600.0)
    conquest._sum.begin(1.0, 9.0)
    found = conquest.log_sum(result, left=20.0)
    assert found is not None
    # Where nobody can be asked, this process bounds the sum; where somebody is at it, time runs out.
    value = log_sum(model, evidence)
    assert found[0] - 1e-12 <= value <= found[1] + 1e-12
    if not gone:
        assert found == UNKNOWN
