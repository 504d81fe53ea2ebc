"""Local search for assignments that begins with the best configurations of all variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from powersum.assign.configurations import CONFIGURATION_BYTES
from powersum.assign.evaluator import Evaluator
from powersum.assign.guided_search import BEHIND_SHARE, MOST_VARIABLES, GuidedSearch, is_guided
from powersum.assign.regions import TOO_WIDE
from tests.cases import bushy_case, hard_case
from tests.clock import Ticks
from tests.oracle import assignment_value, exact_value


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    """One look for each step."""
    ticks = Ticks()
    for module in ("assign.guided_search", "assign.configurations", "assign.portfolio", "core.clauses"):
        monkeypatch.setattr(f"powersum.{module}.time", ticks)
    monkeypatch.setattr("powersum.assign.guided_search.TURN", 30.0)
    return ticks


@pytest.mark.parametrize("seed", range(8))
def test_the_best_assignment_of_a_small_problem_is_found_and_its_value_is_right(seed: int, clock: Ticks) -> None:
    problem = (hard_case if seed % 2 else bushy_case)(seed, zeros=0.1 * (seed % 3)).problem()
    search = GuidedSearch(Evaluator(problem, memory=2e7), seed=seed)
    before = search.log_value
    for _ in range(20):
        gained = search.improve(clock.now + 100.0)
        assert gained == (search.log_value > before)
        before = search.log_value
    chosen = np.flatnonzero(problem.tau == 0.0)
    truth = assignment_value(problem.model, {int(v): int(search.assignment[v]) for v in chosen})
    assert search.log_value == pytest.approx(truth, abs=1e-9)
    assert search.log_value == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-8)


def test_the_assignment_of_the_first_configuration_is_evaluated_by_the_whole_sum(clock: Ticks) -> None:
    """A configuration's own value, which is one term of that sum, is never the value of its assignment."""
    problem = hard_case(3).problem()
    search = GuidedSearch(Evaluator(problem, memory=2e7))
    assert search.improve(clock.now + 20.0)
    assert (search.assignment[problem.tau > 0.0] == -1).all()
    chosen = np.flatnonzero(problem.tau == 0.0)
    truth = assignment_value(problem.model, {int(v): int(search.assignment[v]) for v in chosen})
    assert search.log_value == pytest.approx(truth, abs=1e-9)


def test_what_is_too_wide_to_evaluate_is_no_value(clock: Ticks, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = hard_case(3).problem()
    evaluator = Evaluator(problem, memory=2e7)
    search = GuidedSearch(evaluator)
    monkeypatch.setattr(evaluator, "value", lambda states, limit=np.inf: TOO_WIDE)
    search._take(np.zeros(problem.model.n_variables, dtype=np.int64))
    assert search._portfolio.log_value == -np.inf
    search._searched = 1e9
    assert search._share == BEHIND_SHARE


def test_configurations_have_little_time_once_their_assignments_are_worse(clock: Ticks) -> None:
    problem = hard_case(5).problem()
    evaluator = Evaluator(problem, memory=2e7)
    search = GuidedSearch(evaluator)
    search.improve(clock.now + 2000.0)
    best = search.assignment.copy()
    worse = np.where(best >= 0, (best + 1) % problem.model.cardinalities, 0)
    search._take(worse)
    search._searched = 1e9
    assert search._share == BEHIND_SHARE
    search._take(np.where(best >= 0, best, 0))
    assert search._share > BEHIND_SHARE
    assert np.array_equal(search._portfolio.assignment, best)


def test_only_questions_that_sum_few_variables_are_guided_and_only_where_memory_fits() -> None:
    problem = hard_case(5).problem()
    n = problem.model.n_variables
    assert n <= MOST_VARIABLES
    few = replace(problem, tau=np.where(np.arange(n) < 2, 1.0, 0.0))
    assert is_guided(few, memory=CONFIGURATION_BYTES)
    assert not is_guided(few, memory=CONFIGURATION_BYTES - 1.0)
    for summed in (0, n - 2, n):
        other = replace(problem, tau=np.where(np.arange(n) < summed, 1.0, 0.0))
        assert not is_guided(other, memory=1e12)
