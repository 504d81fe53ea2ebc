"""The race of trees: the better half goes on, one is left, and what it costs is known beforehand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersum.bounds.tree.race import (
    LAST_FEW,
    LATER_SEARCH,
    LEAST_RACERS,
    MOST_ENTRIES,
    MOST_RACERS,
    Race,
    race_cost,
    racers_of,
)


class Runner:
    """What a race sees of a tree."""

    def __init__(self, log_upper: float) -> None:
        self.log_upper, self.steps = log_upper, 0

    def rest(self) -> None:
        """Nothing to give back."""


def run(runners: list[Runner], growth: float, race: Race) -> tuple[Runner, float]:
    """The winner of a race in which all gain alike, and the cost in first steps."""
    cost = 0.0
    for runner in runners:
        race.arrive(runner)  # type: ignore[arg-type]
        cost += 1.0
    while (tree := race.next()) is not None:
        assert isinstance(tree, Runner)
        tree.steps += 1
        tree.log_upper -= 1.0
        cost += growth**tree.steps
        race.arrive(tree)
    (winner,) = race.left
    assert isinstance(winner, Runner)
    return winner, cost


@pytest.mark.parametrize("n", range(1, 14))
@pytest.mark.parametrize("growth", [1.5, 2.0])
def test_the_best_wins_and_the_cost_is_as_planned(n: int, growth: float) -> None:
    bounds = np.random.default_rng(n).permutation(n).astype(float).tolist()
    runners = [Runner(bound) for bound in bounds]
    winner, cost = run(runners, growth, Race())
    assert winner is runners[bounds.index(0.0)]
    assert cost == pytest.approx(race_cost(n, growth))
    # No better one has had fewer steps than a worse one.
    steps = [runner.steps for _, runner in sorted(zip(bounds, runners, strict=True), key=lambda pair: pair[0])]
    assert steps == sorted(steps, reverse=True)


def test_who_falls_behind_is_out() -> None:
    race, (slow, quick) = Race(), (Runner(0.0), Runner(0.5))
    for runner in (slow, quick, Runner(3.0)):
        race.arrive(runner)  # type: ignore[arg-type]
    for gain in (0.1, 2.0):
        tree = race.next()
        assert tree is not None
        tree.log_upper -= gain
        race.arrive(tree)
    assert race.next() is None
    (left,) = race.left
    assert left is quick  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("n", [2, LAST_FEW, LAST_FEW + 1, 3 * LAST_FEW])
def test_of_the_last_few_each_is_judged_by_what_a_search_would_take_off_as_well(n: int) -> None:
    asked: list[float] = []
    runners = [Runner(float(k)) for k in range(n)]

    def outlook(tree: Runner, seconds: float) -> float:
        asked.append(seconds)
        # The second of all leads to more than what it is behind.
        return 1.5 / LATER_SEARCH if tree is runners[1] else 0.0

    winner, cost = run(runners, 2.0, Race(outlook, 0.25))  # type: ignore[arg-type]
    assert winner is runners[1]
    assert cost == pytest.approx(race_cost(n, 2.0))
    few, left = 0, n
    while left > 1:
        few += left if left <= LAST_FEW else 0
        left = (left + 1) // 2
    assert asked == [0.25] * few


@pytest.mark.parametrize("time", [1e3, 1e6, 2e7, math.inf])
@pytest.mark.parametrize("room", [1e3, 1e6, 2e7, math.inf])
@pytest.mark.parametrize("largest", [0.0, 5e5, math.inf])
def test_who_takes_part_fits_time_and_memory(time: float, room: float, largest: float) -> None:
    small = 1e5
    n, entries = racers_of(20, 1.75, small=small, time=time, room=room, largest=largest)
    assert 1 <= n <= 20
    assert n == 1 or (race_cost(n, 1.75) * entries <= 1.000001 * time and n * entries <= 1.000001 * room)
    if largest > small:
        assert n <= MOST_RACERS
        assert small <= entries <= min(largest, MOST_ENTRIES)
        # Rather smaller trees than very few of them.
        assert n >= LEAST_RACERS or entries == small
    else:
        assert entries == small
    if time == room == math.inf:
        assert (n, entries) == ((20, small) if largest <= small else (MOST_RACERS, min(largest, MOST_ENTRIES)))
