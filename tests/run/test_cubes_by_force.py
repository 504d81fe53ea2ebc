"""Cubes with real slices against brute force: random questions, tiny slices, roads that never close a cube at once."""

from __future__ import annotations

import concurrent.futures as cf
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum.cluster.executor import Workers
from powersum.exact import small
from powersum.model.model import Model
from powersum.run import cube_frontier, cubes
from powersum.run.solver import Solver
from powersum.run.tuning import Schedule
from tests.oracle import assignment_value, exact_value
from tests.strategies import random_model

NOTHING_AT_ONCE: dict[str, Any] = {"elimination_cost": 1e3, "ibound": 1, "tighten": False}
"""Nothing is eliminated, and trees are loose: cubes have to be split."""

ROADS = (
    Schedule(**NOTHING_AT_ONCE),
    # No sum below an assignment is ever exact: cubes without max variables stay open.
    Schedule(**NOTHING_AT_ONCE, evaluation_cost=math.inf),
    Schedule(**NOTHING_AT_ONCE, evaluation_cost=math.inf, most_variables=0),
)

KINDS = ("sum", "max", "both")


@dataclass(frozen=True, slots=True)
class Case:
    """A question with everything that may go wrong in it: zeros, one state, likelihoods, observed max variables."""

    model: Model
    weights: np.ndarray[tuple[int], np.dtype[np.float64]]
    evidence: dict[int, Any]
    schedule: Schedule

    @property
    def weighted(self) -> Model:
        """The model with the likelihoods as factors of their own."""
        factors = [(tuple(f.scope), np.exp(f.log_table)) for f in self.model.factors()]
        factors += [((v,), np.array(given)) for v, given in self.evidence.items() if isinstance(given, list)]
        return Model.from_factors(self.model.cardinalities.tolist(), factors)

    @property
    def observed(self) -> dict[int, int]:
        """What is known for certain."""
        return {v: given for v, given in self.evidence.items() if not isinstance(given, list)}

    @property
    def truth(self) -> float:
        """By brute force."""
        return exact_value(self.weighted, self.weights, evidence=self.observed)


def all_holds(case: Case, seen: list[ps.Snapshot], result: ps.Result) -> None:
    """Both bounds in every snapshot, the value of the assignment and what the status says, by brute force."""
    truth = case.truth
    for snapshot in (*seen, *result.history):
        assert snapshot.log_lower - 1e-11 <= truth <= snapshot.log_upper + 1e-11
    assert result.log_lower - 1e-11 <= truth <= result.log_upper + 1e-11
    if result.status is ps.Status.INFEASIBLE:
        assert truth == -math.inf
    if result.status is ps.Status.OPTIMAL:
        assert result.log_upper - result.log_lower <= 1e-6
    if (case.weights == 0.0).any() and result.log_lower > -math.inf:
        own = {int(v): int(s) for v, s in result.assignment.items() if int(v) not in case.observed}
        assert assignment_value(case.weighted, own, evidence=case.observed) >= result.log_lower - 1e-11


def roads_bounds_hold(case: Case, workers: int) -> None:
    """What a road and its workers tell of a case in a second holds."""
    seen: list[ps.Snapshot] = []
    with cf.ThreadPoolExecutor(workers) as pool:
        solver = Solver(
            case.model, evidence=case.evidence, weights=ps.Query(case.weights), time_limit=1.0, schedule=case.schedule
        )
        result = cubes.Conquest(solver, Workers(pool, own=False), seen.append, seconds=1.0, road=True).run()
    all_holds(case, seen, result)


def drawn(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    model = random_model(
        rng,
        n_variables=n,
        n_factors=int(rng.integers(n, 2 * n)),
        max_states=3,
        zeros=float(rng.choice([0.0, 0.0, 0.3])),
    )
    kind = KINDS[seed % len(KINDS)]
    choices = {"sum": [1.0], "max": [0.0], "both": [0.0, 1.0]}[kind]
    weights = rng.choice(choices, n)
    evidence: dict[int, Any] = {}
    for v in rng.permutation(n)[: int(rng.integers(0, 3))].tolist():
        size = int(model.cardinalities[v])
        if rng.random() < 0.5:
            evidence[v] = rng.choice([0.0, 0.3, 1.0, 2.5], size).tolist()
            evidence[v][int(rng.integers(size))] = 1.0
        else:
            evidence[v] = int(rng.integers(size))
    return Case(model, weights, evidence, ROADS[int(rng.integers(len(ROADS)))])


def check(case: Case, monkeypatch: pytest.MonkeyPatch, *, workers: int = 2, seconds: float = 2.0) -> ps.Result:
    """Both bounds hold in every snapshot, the assignment has the value that is claimed, and a proof is a proof."""
    for name, value in (
        ("FIRST_SECONDS", 0.02), ("CUBE_SECONDS", 0.02), ("LEAST_SECONDS", 0.02),
    ):  # fmt: skip
        monkeypatch.setattr(cubes, name, value)
    monkeypatch.setattr(cube_frontier, "YOUNG", 0.01)
    monkeypatch.setattr(small, "MOST_ENTRIES", 0.0)
    seen: list[ps.Snapshot] = []
    with cf.ThreadPoolExecutor(workers) as pool:
        result = ps.solve(
            case.model, evidence=case.evidence, weights=ps.Query(case.weights), workers=pool, time_limit=seconds,
            schedule=case.schedule, callback=seen.append,
        )  # fmt: skip
    all_holds(case, seen, result)
    return result


@pytest.mark.parametrize("seed", range(24))
def test_bounds_hold_with_tiny_slices(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(drawn(seed), monkeypatch)
