"""The race of trees: the better half goes on, one is left, and what it costs is known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from powersum.bounds.tree.race import Race, race_cost


class Runner:
    """What a race sees of a tree."""

    def __init__(self, log_upper: float) -> None:
        self.log_upper, self.steps = log_upper, 0

    def rest(self) -> None:
        """Nothing to give back."""


def run(bounds: list[float], growth: float) -> tuple[Runner, list[Runner], float]:
    """The winner of a race in which all gain alike, all who took part, and the cost in first steps."""
    race, runners, cost = Race(), [Runner(bound) for bound in bounds], 0.0
    for runner in runners:
        race.arrive(runner)  # type: ignore[arg-type]
        cost += 1.0
    while (tree := race.next()) is not None:
        assert isinstance(tree, Runner)
        tree.steps += 1
        tree.log_upper -= 1.0
        cost += growth**tree.steps
        race.arrive(tree)
    winner = race.winner()
    assert isinstance(winner, Runner)
    return winner, runners, cost


@pytest.mark.parametrize("n", range(1, 14))
@pytest.mark.parametrize("growth", [1.5, 2.0])
def test_the_best_wins_and_the_cost_is_as_planned(n: int, growth: float) -> None:
    bounds = np.random.default_rng(n).permutation(n).astype(float).tolist()
    winner, runners, cost = run(bounds, growth)
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
    assert race.winner() is quick  # type: ignore[comparison-overlap]
