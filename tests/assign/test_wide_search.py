"""Local search on messages that are kept."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.assign.sum_tree import SumTree
from powersum.assign.wide_search import MOST_JUDGED, WideSearch, sum_tree_for
from tests.cases import bushy_case, hard_case
from tests.clock import Ticks
from tests.oracle import assignment_value, exact_value


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    """One look for each step."""
    ticks = Ticks()
    for module in ("wide_search", "portfolio", "repair"):
        monkeypatch.setattr(f"powersum.assign.{module}.time", ticks)
    monkeypatch.setattr("powersum.assign.wide_search.TURN", 30.0)
    return ticks


@pytest.mark.parametrize("seed", range(8))
def test_the_best_assignment_of_a_small_problem_is_found_and_its_value_is_right(seed: int, clock: Ticks) -> None:
    problem = (hard_case if seed % 2 else bushy_case)(seed, zeros=0.1 * (seed % 3)).problem()
    search = WideSearch(problem, SumTree(problem, seed=seed), seed=seed)
    before = search.log_value
    for _ in range(20):
        gained = search.improve(clock.now + 100.0)
        assert gained == (search.log_value > before)
        before = search.log_value
    chosen = np.flatnonzero(problem.tau == 0.0)
    truth = assignment_value(problem.model, {int(v): int(search.assignment[v]) for v in chosen})
    assert search.log_value == pytest.approx(truth, abs=1e-9)
    assert search.log_value == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-8)


def test_a_suggestion_is_evaluated_first(clock: Ticks) -> None:
    problem = hard_case(3).problem()
    search = WideSearch(problem, SumTree(problem))
    states = np.zeros(problem.model.n_variables, dtype=np.int64)
    search.suggest(states)
    assert search.improve(clock.now + 3.0)
    chosen = np.flatnonzero(problem.tau == 0.0)
    value = assignment_value(problem.model, dict.fromkeys(chosen.tolist(), 0))
    assert search.log_value >= value - 1e-9


def test_what_an_upper_bound_likes_is_evaluated_before_others_are_gone_on_from(clock: Ticks) -> None:
    problem = hard_case(3).problem()
    search = WideSearch(problem, SumTree(problem))
    decoded = np.where(problem.tau == 0.0, 1, -1)
    search.look_at(decoded)
    assert search.improve(clock.now + 3.0)
    chosen = np.flatnonzero(problem.tau == 0.0)
    value = assignment_value(problem.model, dict.fromkeys(chosen.tolist(), 1))
    assert search.log_value == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_of_many_suggestions_the_best_is_known_and_few_are_kept(seed: int, clock: Ticks) -> None:
    """Each is evaluated before the search goes on from any; only so many wait for that."""
    problem = hard_case(seed).problem()
    search = WideSearch(problem, SumTree(problem))
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(problem.tau == 0.0)
    values = []
    for _ in range(3 * MOST_JUDGED):
        states = rng.integers(problem.model.cardinalities)
        values.append(assignment_value(problem.model, {int(v): int(states[v]) for v in chosen}))
        search.suggest(states)
    while search._unknown:
        search.improve(clock.now + 2.0)
        assert len(search._judged) <= MOST_JUDGED
    assert search.log_value >= max(values) - 1e-9


def test_messages_are_kept_only_where_sums_are_large_and_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = hard_case(3).problem()
    assert sum_tree_for(problem, memory=1e9, seed=0) is None
    monkeypatch.setattr("powersum.assign.wide_search.LEAST_WORK", 1.0)
    assert sum_tree_for(problem, memory=1e9, seed=0) is not None
    assert sum_tree_for(problem, memory=1e6, seed=0) is None
    with_zeros = hard_case(3, zeros=0.2).problem()
    assert sum_tree_for(with_zeros, memory=1e9, seed=0) is None
