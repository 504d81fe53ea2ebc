"""Feasible completions and local search."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.assign.annealer import Annealer
from powersum.assign.blocks import LocalSearch
from powersum.assign.complete import complete, preferring
from powersum.assign.evaluator import Evaluator
from powersum.core.clauses import Ended
from tests.cases import case, hard_case
from tests.oracle import assignment_value, exact_value, joint_log_table


@pytest.mark.parametrize("seed", range(80))
def test_completion_finds_a_possible_configuration_or_proves_there_is_none(seed: int) -> None:
    problem = case(seed).problem()
    if not problem.model.n_variables:
        return
    evaluator = Evaluator(problem, memory=2e7)
    rng = np.random.default_rng(seed)
    ended, states = complete(
        evaluator, rng.random(int(evaluator.supports.state_starts[-1])), deadline=math.inf, seed=seed
    )
    joint = joint_log_table(problem.model)
    if np.isfinite(joint).any():
        assert ended is Ended.SATISFIED
        assert np.isfinite(joint[tuple(states)])
    else:
        assert ended is Ended.IMPOSSIBLE


def test_preferred_states_are_kept_where_nothing_forbids_them() -> None:
    evaluator = Evaluator(hard_case(1).problem(), memory=2e7)
    wanted = np.ones(len(evaluator.is_max), dtype=np.int64)
    _, states = complete(evaluator, preferring(evaluator, wanted), deadline=math.inf)
    assert (states == wanted).all()


@pytest.mark.parametrize("seed", range(25))
def test_local_search_keeps_count_and_ends_at_the_optimum_of_small_problems(seed: int) -> None:
    problem = hard_case(seed, zeros=0.2 * (seed % 2)).problem()
    evaluator = Evaluator(problem, memory=2e7)
    _, states = complete(evaluator, np.zeros(int(evaluator.supports.state_starts[-1])), deadline=math.inf, seed=seed)
    search = LocalSearch(evaluator, states, seed=seed)
    values = [search.log_value]
    for _ in range(30):
        search.step()
        values.append(search.log_value)
    assert (np.diff(values) >= -1e-9).all()
    chosen = {int(v): int(search.assignment[v]) for v in np.flatnonzero(evaluator.is_max)}
    assert assignment_value(problem.model, chosen) == pytest.approx(search.log_value, abs=1e-8)
    assert search.log_value == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-8)


def test_crossing_takes_the_better_pieces() -> None:
    problem = hard_case(5).problem()
    evaluator = Evaluator(problem, memory=2e7)
    chosen = np.flatnonzero(evaluator.is_max)
    rng = np.random.default_rng(0)
    for _ in range(10):
        one, two = (np.where(evaluator.is_max, rng.integers(problem.model.cardinalities), -1) for _ in range(2))
        search = LocalSearch(evaluator, one)
        before = search.log_value
        search.cross(two)
        assert search.log_value >= max(before, evaluator.value(two)) - 1e-9
        assert evaluator.value(search.assignment) == pytest.approx(search.log_value, abs=1e-9)
        assert (search.assignment[chosen] >= 0).all()


@pytest.mark.parametrize("seed", range(10))
def test_a_look_at_another_assignment_takes_what_is_better_there(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersum.assign.blocks.DIFFERING_SHARE", 1.0)
    problem = hard_case(seed, zeros=0.2 * (seed % 2)).problem()
    evaluator = Evaluator(problem, memory=2e7)
    n_states = int(evaluator.supports.state_starts[-1])
    rng = np.random.default_rng(seed)
    found = [complete(evaluator, rng.random(n_states), deadline=math.inf, seed=seed + k)[1] for k in range(2)]
    one, two = (np.where(evaluator.is_max, states, -1) for states in found)
    search = LocalSearch(evaluator, one, seed=seed)
    search.others = [two]
    before = search.log_value
    search.step()
    assert search.log_value >= max(before, evaluator.value(two)) - 1e-9
    assert evaluator.value(search.assignment) == pytest.approx(search.log_value, abs=1e-9)
    # Where both agree nothing changes.
    assert (search.assignment[one == two] == one[one == two]).all()
    # And of two that are the same there is nothing to be learned.
    search.restart(one)
    search.others = [one]
    assert not search.step()
    assert (search.assignment == one).all()


@pytest.mark.parametrize("seed", range(10))
def test_a_kick_keeps_count_and_violates_no_zero(seed: int) -> None:
    problem = hard_case(seed, zeros=0.2 * (seed % 2)).problem()
    evaluator = Evaluator(problem, memory=2e7)
    _, states = complete(evaluator, np.zeros(int(evaluator.supports.state_starts[-1])), deadline=math.inf, seed=seed)
    search = LocalSearch(evaluator, states, seed=seed)
    seen = set()
    for _ in range(10):
        search.kick(search.ball(int(np.flatnonzero(evaluator.is_max)[0]), 4), 5.0)
        assert np.isfinite(search.log_value)
        assert evaluator.value(search.assignment) == pytest.approx(search.log_value, abs=1e-9)
        seen.add(tuple(search.assignment.tolist()))
    assert len(seen) > 1


def test_the_same_seed_gives_the_same_search() -> None:
    problem = hard_case(7, zeros=0.1).problem()
    ends = []
    for _ in range(2):
        evaluator = Evaluator(problem, memory=2e7)
        search = LocalSearch(evaluator, np.where(evaluator.is_max, 0, -1), seed=3)
        for _ in range(5):
            search.step()
        ends.append((search.log_value, search.assignment.tolist()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("seed", range(30))
def test_a_region_too_wide_is_thinned_out(seed: int) -> None:
    problem = hard_case(seed, zeros=0.2 * (seed % 2)).problem()
    evaluator = Evaluator(problem, memory=2e7)
    _, states = complete(evaluator, np.zeros(int(evaluator.supports.state_starts[-1])), deadline=math.inf, seed=seed)
    start = np.where(evaluator.is_max, states, -1)
    variables, factors, _ = evaluator.region(np.flatnonzero(evaluator.is_max))
    values = set()
    for luck in range(1, 6):
        for work in (300.0, 2000.0, 1e6):
            found = start.copy()
            value = evaluator.maximise(found, variables, factors, work, luck)
            if value == np.inf:
                assert (found == start).all()
                continue
            values.add(round(value, 6))
            assert value >= evaluator.value(start) - 1e-9
            assert evaluator.value(found) == pytest.approx(value, abs=1e-9)
    # With room for everything nothing is held.
    assert max(values) == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_annealing_ends_at_good_states_and_keeps_count(seed: int) -> None:
    problem = hard_case(seed, zeros=0.1 * (seed % 2)).problem()
    model = problem.model
    evaluator = Evaluator(problem, memory=2e7)
    annealer = Annealer(evaluator.problem)
    first = np.zeros(model.n_variables, dtype=np.int64)
    value, states = annealer.run(first, 500, seed + 1, 5.0)
    assert (states >= 0).all()
    assert (states < model.cardinalities).all()
    joint = joint_log_table(model)
    if np.isfinite(joint[tuple(states)]):
        assert value == pytest.approx(joint[tuple(states)], abs=1e-9)
    assert joint[tuple(annealer.draw(np.random.default_rng(seed)))] > np.median(joint[np.isfinite(joint)])
    assert annealer.cost > 0
