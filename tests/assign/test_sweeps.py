"""Sweeps: maximisation over a narrow part of all variables, and good pieces of other assignments."""

from __future__ import annotations

import numpy as np
import pytest

import powersum as ps
from powersum.assign.blocks import LocalSearch
from powersum.assign.configurations import Configurations
from powersum.assign.evaluator import Evaluator
from powersum.core import work_time
from powersum.core.arrays import FloatArray
from powersum.model.factors import configuration_value
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplified
from tests.oracle import exact_value


def torus(side: int, *, seed: int, states: int = 2, strength: float = 5.0) -> Problem:
    """A spin glass on a torus: a table of random entries for each variable and for each pair of neighbours."""
    rng = np.random.default_rng(seed)
    cells = np.arange(side * side).reshape(side, side)
    pairs = [(cells, np.roll(cells, 1, axis)) for axis in (0, 1)]
    factors: list[tuple[tuple[int, ...], FloatArray]] = [
        ((v,), np.exp(rng.normal(size=states))) for v in range(side * side)
    ]
    for one, other in pairs:
        for u, v in zip(one.ravel(), other.ravel(), strict=True):
            factors.append(((int(u), int(v)), np.exp(strength * rng.uniform(-1.0, 1.0, (states, states)))))
    model = ps.Model.from_factors([states] * (side * side), factors)
    return simplified(Question.of(model, "all"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("states", [2, 3])
def test_sweeps_rise_keep_count_and_free_most_of_a_torus(seed: int, states: int) -> None:
    problem = torus(9 if states == 2 else 6, seed=seed, states=states)
    rng = np.random.default_rng(seed)
    search = LocalSearch(Evaluator(problem, memory=2e7), rng.integers(problem.model.cardinalities), seed=seed)
    assert search.sweeps
    values = [search.log_value]
    while not search.exhausted:
        search.step()
        values.append(search.log_value)
        assert configuration_value(problem.model, search.assignment) == pytest.approx(values[-1], abs=1e-8)
    assert (np.diff(values) >= -1e-9).all()


@pytest.mark.parametrize("seed", range(4))
def test_crossing_takes_exactly_the_pieces_that_gain(seed: int) -> None:
    problem = torus(12, seed=seed)
    model, rng = problem.model, np.random.default_rng(seed)
    one = rng.integers(model.cardinalities)
    search = LocalSearch(Evaluator(problem, memory=2e7), one, seed=seed)
    search.restart(one)
    other = one.copy()
    # Far apart, so that each is a piece by itself.
    for v in (0, 5, 6 * 12 + 3):
        other[v] = 1 - other[v]
    gains = []
    for v in (0, 5, 6 * 12 + 3):
        single = one.copy()
        single[v] = other[v]
        gains.append(configuration_value(model, single) - configuration_value(model, one))
    search.cross(other)
    assert [int(search.assignment[v]) == int(other[v]) for v in (0, 5, 6 * 12 + 3)] == [gain > 0.0 for gain in gains]
    expected = configuration_value(model, one) + sum(max(gain, 0.0) for gain in gains)
    assert search.log_value == pytest.approx(expected, abs=1e-8)


def test_seeds_agree_on_the_best_of_a_torus_that_no_sweep_sees_as_a_whole() -> None:
    problem = torus(24, seed=1, strength=3.0)
    # Seeds begin in different random states; where all end alike, that is the best, as far as anybody knows.
    found = set()
    for seed in range(3):
        search = Configurations(problem, seed=seed)
        with work_time.counted_by(work_time.Meter()):
            search.improve(work_time.monotonic() + 3.0)
        found.add(round(configuration_value(problem.model, search.best), 6))
    assert len(found) == 1


def test_a_sweep_of_a_narrow_model_is_exact() -> None:
    problem = torus(4, seed=3)
    search = LocalSearch(Evaluator(problem, memory=2e7), np.zeros(16, dtype=np.int64))
    assert search.log_value == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-8)
