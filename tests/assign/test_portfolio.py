"""Local search from many starts: what is tried, what is kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from powersum.assign.blocks import LocalSearch
from powersum.assign.evaluator import Evaluator
from powersum.assign.portfolio import (
    AFRESH,
    BLOCKS_REMEMBERED,
    DRAWN,
    LATEST,
    NEAR,
    RACES_REMEMBERED,
    Merit,
    Portfolio,
    Start,
)
from powersum.core.arrays import IntArray
from tests.cases import hard_case
from tests.clock import Ticks
from tests.oracle import exact_value


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    """One look for each step of local search."""
    ticks = Ticks()
    monkeypatch.setattr("powersum.assign.portfolio.time", ticks)
    monkeypatch.setattr("powersum.core.clauses.time", ticks)
    return ticks


def test_a_portfolio_takes_suggestions_and_reports_gains(clock: Ticks) -> None:
    problem = hard_case(2, zeros=0.1).problem()
    evaluator = Evaluator(problem, memory=2e7)
    portfolio = Portfolio(evaluator, seed=1)
    portfolio.suggest(np.where(evaluator.is_max, 0, -1))
    assert portfolio.improve(clock.now + 1000.0)
    assert evaluator.value(portfolio.assignment) == pytest.approx(portfolio.log_value, abs=1e-8)
    assert portfolio.log_value == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_states_read_off_a_bound_are_a_start_and_need_not_be_possible(seed: int, clock: Ticks) -> None:
    problem = hard_case(seed, zeros=0.3).problem()
    evaluator = Evaluator(problem, memory=2e7)
    portfolio = Portfolio(evaluator, seed=seed)
    rng = np.random.default_rng(seed)
    best = -np.inf
    for _ in range(10):
        portfolio.look_at(np.where(evaluator.is_max, rng.integers(problem.model.cardinalities), -1))
        portfolio.improve(clock.now + 50.0)
        assert portfolio.log_value >= best
        best = portfolio.log_value
    assert evaluator.value(portfolio.assignment) == pytest.approx(best, abs=1e-8)
    assert best <= exact_value(problem.model, problem.tau) + 1e-8


def test_starts_are_drawn_whenever_they_are_wanted_until_that_ends(clock: Ticks) -> None:
    problem = hard_case(4, zeros=0.3).problem()
    evaluator = Evaluator(problem, memory=2e7)
    portfolio = Portfolio(evaluator, seed=3)
    rng = np.random.default_rng(3)
    asked: list[tuple[float, int]] = []

    def draw(noise: float, seed: int) -> IntArray:
        asked.append((noise, seed))
        return np.where(evaluator.is_max, rng.integers(problem.model.cardinalities), -1)

    portfolio.draw_from(draw)
    portfolio.improve(clock.now + 3000.0)
    assert len(asked) > 3
    assert len(set(asked)) == len(asked)
    assert all(DRAWN[0] <= noise <= DRAWN[1] for noise, _ in asked)
    assert portfolio.log_value == pytest.approx(exact_value(problem.model, problem.tau), abs=1e-8)
    count = len(asked)
    portfolio.draw_from(None)
    portfolio.improve(clock.now + 500.0)
    assert len(asked) == count


def test_the_best_are_kept_in_order_and_apart() -> None:
    problem = hard_case(4).problem()
    evaluator = Evaluator(problem, memory=2e7)
    portfolio = Portfolio(evaluator, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(60):
        portfolio._keep(LocalSearch(evaluator, rng.integers(problem.model.cardinalities)))
    kept = portfolio._elite
    assert len(kept) > 1
    assert [value for value, _ in kept] == sorted((value for value, _ in kept), reverse=True)
    for value, states in kept:
        assert evaluator.value(states) == pytest.approx(value, abs=1e-8)
    for (_, one), (_, two) in itertools.combinations(kept, 2):
        assert np.count_nonzero(one != two) >= NEAR * evaluator.is_max.sum()


@pytest.mark.parametrize("drawn", [False, True])
def test_runs_look_at_the_best_and_at_the_latest_ends_where_starts_are_drawn(drawn: bool, clock: Ticks) -> None:
    problem = hard_case(3, zeros=0.1).problem()
    evaluator = Evaluator(problem, memory=2e7)
    portfolio = Portfolio(evaluator, seed=1)
    rng = np.random.default_rng(1)

    def draw(noise: float, seed: int) -> IntArray:
        return np.where(evaluator.is_max, rng.integers(problem.model.cardinalities), -1)

    portfolio.draw_from(draw if drawn else None)
    portfolio.improve(clock.now + 1500.0)
    search = portfolio._search
    assert search is not None
    assert 1 < len(portfolio._latest) <= LATEST
    others = [states.tolist() for states in search.others]
    assert all(states.tolist() in others for states in portfolio.kept) == drawn
    assert all(np.isfinite(evaluator.value(states)) for states in search.others)
    assert drawn or not others


def test_merit_forgets_by_the_work_done_and_not_by_the_number_of_runs() -> None:
    short, long = Merit(), Merit()
    for _ in range(400):
        short.add(0.0, 20.0)
    for _ in range(10):
        long.add(0.0, 800.0)
    # Without success both kinds have about the same time, though one takes forty times as long for a run.
    assert short.rate == pytest.approx(long.rate, rel=0.3)
    assert long.cost > 10.0 * short.cost
    before = short.rate
    short.add(1.0, 20.0)
    assert short.rate > 2.0 * before
    short.add(0.0, 10.0 * BLOCKS_REMEMBERED)
    assert short.rate < before


@pytest.mark.parametrize("best", AFRESH)
@pytest.mark.parametrize("drawn", [False, True])
def test_time_for_starts_afresh_goes_to_the_kind_that_ends_highest(best: Start, drawn: bool) -> None:
    portfolio = Portfolio(Evaluator(hard_case(4).problem(), memory=2e7), seed=1)
    if drawn:
        portfolio.draw_from(lambda noise, seed: portfolio.assignment)

    def counted() -> dict[Start, int]:
        kinds = []
        for _ in range(600):
            portfolio.look_at(portfolio.assignment)
            kinds.append(portfolio._drawn_kind())
        return {kind: kinds.count(kind) for kind in AFRESH}

    before = counted()
    # Starts that can be drawn are thought to be the best until there is more to go by.
    assert (before[Start.DECODED] > 0.6 * sum(before.values())) is drawn
    for _ in range(30):
        for kind in AFRESH:
            portfolio._compare(kind, 0.0 if kind is best else -1.0)
    after = counted()
    assert after[best] > 0.6 * sum(after.values())
    assert after[best] > 0.9 * before[best]
    # Problems change under way, as where a better bound is decoded: no kind is given up.
    assert all(after[kind] > 0 for kind in AFRESH)


def test_kinds_that_end_equally_high_share_alike_and_the_past_fades() -> None:
    first, second = Merit(), Merit()
    for _ in range(int(20 * RACES_REMEMBERED)):
        first.race(won=True)
    assert first.chance > 0.9
    for _ in range(int(10 * RACES_REMEMBERED)):
        first.race(won=False)
        second.race(won=False)
    assert first.chance == pytest.approx(second.chance, rel=1e-3)
    assert 0.0 < first.chance < 0.1
