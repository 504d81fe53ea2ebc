"""``solve`` of questions whose sums and maxima alternate: every road against brute force."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.prepare.simplify import simplify
from powersum.run import alternating
from powersum.run.tuning import Schedule
from powersum.search import scenarios
from tests.oracle import exact_value
from tests.strategies import random_model

ROADS = ("elimination", "conditioning", "scenarios", "tree")
PATIENT = Schedule(quick=0.0, late_elimination=0.0)


@pytest.fixture(params=ROADS)
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One road alone."""
    if request.param != "conditioning":
        monkeypatch.setattr(alternating, "worth_counting", lambda model: False)
    else:
        monkeypatch.setattr(alternating, "worth_counting", lambda model: True)
    if request.param != "scenarios":
        monkeypatch.setattr(alternating, "scenarios_of", lambda problem: None)
    return str(request.param)


def schedule_of(road: str) -> Schedule:
    return Schedule() if road == "elimination" else PATIENT


def value_of(model: ps.Model, query: ps.Query, evidence: dict[int, int]) -> float:
    order = np.argsort(query.rank, kind="stable").tolist()
    return exact_value(model, query.weights, evidence=evidence, order=order)


def check(model: ps.Model, query: ps.Query, evidence: dict[int, int], road: str) -> None:
    value = value_of(model, query, evidence)
    found = ps.solve(model, weights=query, evidence=evidence, time_limit=5, schedule=schedule_of(road))
    assert found.log_lower <= value + 1e-9
    assert value <= found.log_upper + 1e-9
    if value == -math.inf:
        assert found.status == "infeasible"
        return
    assert found.status == "optimal"
    assert found.log_upper - found.log_lower < 1e-8
    assert set(found.assignment) == {model.name(v) for v in query.max_variables.tolist()}
    chosen = {model.variable(name): int(state) for name, state in found.assignment.items()}
    assert value_of(model, query, evidence | chosen) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_any_blocks_have_the_value_of_brute_force(seed: int, road: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    model = random_model(rng, n_variables=n, n_factors=int(rng.integers(2, 9)), max_states=3, zeros=0.3)
    block = rng.integers(0, int(rng.integers(2, 5)), n)
    query = ps.Query(rng.integers(0, 2, int(block.max()) + 1).astype(float)[block], None, block)
    if query.blocks is not None:
        check(model, query, {int(v): 0 for v in np.flatnonzero(rng.random(n) < 0.15)}, road)


def constraints(rng: np.random.Generator) -> tuple[ps.Model, ps.Query]:
    """Constraints, weights of the sum variables, and a maximum on either side of the sum."""
    n = int(rng.integers(3, 9))
    cards = rng.choice([2, 2, 3], n).tolist()
    kind = rng.choice(3, n)
    factors = []
    for _ in range(int(rng.integers(2, 12))):
        scope = rng.permutation(n)[: int(rng.integers(1, 4))].tolist()
        factors.append((scope, (rng.random([cards[v] for v in scope]) < 0.8).astype(float)))
    random = np.flatnonzero(kind == 1).tolist()
    factors += [([v], rng.random(cards[v]) * (rng.random(cards[v]) < 0.9)) for v in random]
    weights = np.where(kind == 1, 1.0, 0.0)
    return ps.Model.from_factors(cards, factors), ps.Query(weights, None, np.array([2, 1, 0])[kind])


@pytest.mark.parametrize("seed", range(60))
def test_constraints_have_the_value_of_brute_force(seed: int, road: str) -> None:
    model, query = constraints(np.random.default_rng([seed, 1]))
    if query.blocks is not None:
        check(model, query, {}, road)


@pytest.mark.parametrize("seed", range(80))
def test_thinned_sums_bound_from_above(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MOST_SUMS", 2 + seed % 3)
    model, query = constraints(np.random.default_rng([seed, 2]))
    problem = simplify(model, query)
    search = scenarios.scenarios_of(problem) if problem.model.n_variables else None
    if search is None:
        return
    search.run(math.inf)
    value = value_of(model, query, {}) - problem.log_constant
    assert search.done
    assert search.log_lower <= value + 1e-9
    assert value <= search.log_upper + 1e-9


@pytest.mark.parametrize("seed", range(80))
def test_outcomes_that_are_not_copied_count_on_both_sides(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MOST_LITERALS", 20.0)
    model, query = constraints(np.random.default_rng([seed, 4]))
    problem = simplify(model, query)
    search = scenarios.scenarios_of(problem) if problem.model.n_variables else None
    if search is None:
        return
    search.run(math.inf)
    value = value_of(model, query, {}) - problem.log_constant
    assert search.done
    assert search.log_lower <= value + 1e-9
    assert value <= search.log_upper + 1e-9
    if search.log_lower > -math.inf:
        reached = problem.restore(search.states)
        outer = {v: int(reached[v]) for v in query.max_variables.tolist() if reached[v] >= 0}
        own = value_of(model, query, outer) - problem.log_constant
        assert search.log_lower == pytest.approx(own, abs=1e-9)


def test_a_weight_that_depends_on_the_choice_is_no_scenario() -> None:
    model = ps.Model.from_factors([2, 2, 2], [((0, 1), [[1, 2], [3, 4]]), ((1, 2), [[1, 0], [1, 1]])])
    query = ps.Query.along(model, [("max", [0]), ("sum", [1]), ("max", [2])])
    assert scenarios.scenarios_of(simplify(model, query)) is None


def test_bounds_that_are_not_finished_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, seconds in itertools.product(range(12), (1e-9, 0.02)):
        model, query = constraints(np.random.default_rng([seed, 3]))
        if query.blocks is None:
            continue
        value = value_of(model, query, {})
        found = ps.solve(model, weights=query, work=seconds, schedule=PATIENT)
        assert found.log_lower <= value + 1e-9
        assert value <= found.log_upper + 1e-9


def test_what_is_not_answered_along_blocks_is_refused_in_one_line(tmp_path: Path) -> None:
    model, _ = ps.generate.grid(2, 2, seed=1)
    query = ps.Query(np.array([0.0, 1.0, 1.0, 1.0]), None, np.array([0, 1, 1, 1]))
    for options in ({"certificate": True}, {"checkpoint": tmp_path / "c.pszip"}, {"k": 2}, {"workers": 2}):
        with pytest.raises(ps.InputError, match="maxima outside all sums only"):
            ps.solve(model, weights=query, **options)
