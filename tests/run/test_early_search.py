"""Full configurations are searched before a good order is looked for: answers hold wherever that search ends."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.prepare.simplify import simplify
from powersum.run.board import Board
from powersum.run.tuning import Schedule
from powersum.run.workers.full_search import FullSearch
from powersum.search.costs import Costs, CostSearch
from tests.cases import Case
from tests.oracle import exact_value
from tests.run.test_certified_answers import checked
from tests.run.workers.test_workers import task_of

ROUNDING = 1e-9


def in_parts(seed: int, zeros: float) -> ps.Model:
    """Several components, the largest of them dense: a greedy order settles the small ones before the search."""
    rng = np.random.default_rng(seed)
    factors = []
    first = 0
    for size in (2, 3, 6):
        for a in range(first, first + size):
            for b in range(first, a):
                table = rng.uniform(0.05, 1.0, (3, 3)) ** 3.0
                table[rng.random((3, 3)) < zeros] = 0.0
                factors.append(((b, a), table))
        first += size
    return ps.Model.from_factors([3] * first, factors)


def schedule(seconds: float, settled: float) -> Schedule:
    """Early search for so many seconds, once components of so many seconds of elimination are settled."""
    return Schedule(quick=settled, early_full=seconds, early_full_share=1.0, early_full_from=0.0)


@pytest.mark.parametrize("seconds", [1e-9, 1e-3, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_and_meet_wherever_the_early_search_ends(seed: int, seconds: float) -> None:
    """Where it ends early, what it found is told in other variables than those of the work that follows."""
    model = in_parts(seed, 0.15 * (seed % 3))
    for maximized in (range(11), range(1, 11)):
        chosen = list(maximized)
        weights = np.ones(11)
        weights[chosen] = 0.0
        truth = exact_value(model, weights)
        for settled in (1e-9, 1e-5):
            result = ps.solve(model, chosen, schedule=schedule(seconds, settled), work=5.0)
            assert all(s.log_lower - ROUNDING <= truth <= s.log_upper + ROUNDING for s in result.history)
            assert result.log_lower == pytest.approx(truth, abs=ROUNDING)
            assert result.log_upper == pytest.approx(truth, abs=ROUNDING)


@pytest.mark.parametrize("seed", range(3))
def test_a_certificate_proves_what_the_early_search_has_proven(seed: int, tmp_path: Path) -> None:
    asked = Case(in_parts(seed, 0.1), ps.Query.of(in_parts(seed, 0.1), "all"), {})
    result = ps.solve(asked.model, "all", schedule=schedule(10.0, 1e-9), work=5.0, certificate=True)
    assert result.log_upper - result.log_lower <= 1e-6
    assert "soft arc consistency" in result.reason
    checked(result, asked, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_goes_on_with_the_order_whose_costs_at_the_root_are_highest(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.run.workers.full_search.LONGEST_RACE", math.inf)
    model = in_parts(seed, 0.0)
    problem = simplify(model, ps.Query.of(model, "all"))
    worker = FullSearch(task_of(problem, Board(model.n_variables)))
    costs = Costs(problem.model)
    bounds = []
    for order in (
        np.arange(11),
        np.arange(11)[::-1],
        np.argsort(-np.diff(costs.tables.incident_starts), kind="stable"),
    ):
        search = CostSearch(costs, np.ascontiguousarray(order))
        while not search.reach_root(-math.inf):
            assert search.nodes == 0
        bounds.append(search.bound)
    assert worker.begin(math.inf)
    worker.run(-math.inf)
    while worker._orders or worker._rival is not None:
        worker.run(-math.inf)
    assert worker._search is not None
    assert worker._search.bound == max(bounds)
    assert len(set(bounds)) > 1
