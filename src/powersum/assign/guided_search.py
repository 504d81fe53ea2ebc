"""Local search for assignments that asks the MAP road first, and for as long as its configurations lead somewhere.

A configuration of all variables bounds every question about the model from below, and what it says of the maximised
ones is an assignment. Each one that is better than those before is evaluated exactly, and searched from.
"""

from __future__ import annotations

import numpy as np

from powersum.assign.blocks import SMALLEST_GAIN
from powersum.assign.configurations import CONFIGURATION_BYTES, Configurations
from powersum.assign.evaluator import Evaluator
from powersum.assign.portfolio import Draw, Portfolio
from powersum.assign.regions import TOO_WIDE
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.prepare.problem import Problem

FIRST_SHARE, LATER_SHARE, BEHIND_SHARE = 0.6, 0.3, 0.03
"""Share of the time for configurations: at first, once better ones are hardly expected, and where the assignment of the
best is worse than the best assignment."""

STRONG_SHARE = 0.9
"""The same where tables are strong: blocks find nothing there that annealing does not, and no mixed question is to end
below the assignment of MAP."""

TRIAL = 1.0
"""Seconds of searching configurations before those may be said to lead nowhere."""

FEW = 0.5
"""Summed variables are few where their joint states are at most this power of those of the maximised ones: with half of
a pedigree summed, the best configurations say little about the best assignment."""

MOST_VARIABLES = 10_000
"""With more variables the search for configurations would take long to begin."""

TURN = 0.1
"""Seconds of either search before the other may have its turn."""


def is_guided(problem: Problem, *, memory: float) -> bool:
    """Whether configurations are likely to lead to assignments: few variables are summed, and memory fits."""
    is_max = problem.tau == 0.0
    sizes = np.log(problem.model.cardinalities)
    few = 0.0 < sizes[~is_max].sum() <= FEW * sizes[is_max].sum()
    return bool(few) and problem.model.n_variables <= MOST_VARIABLES and memory >= CONFIGURATION_BYTES


class GuidedSearch:
    """A portfolio of local searches and a search for configurations, by turns; used like a portfolio.

    Parameters
    ----------
    evaluator
        Values of assignments.
    seed
        Seed of all that is drawn at random.

    Attributes
    ----------
    log_value, assignment
        The best so far; ``-inf`` while nothing feasible is known.
    """

    def __init__(self, evaluator: Evaluator, *, seed: int = 0) -> None:
        self._portfolio = Portfolio(evaluator, seed=seed)
        self._configurations = Configurations(evaluator.problem, seed=seed)
        self._evaluator = evaluator
        self._debt = self._searched = 0.0
        """Seconds that the search for configurations is owed, and that it has had."""
        self._behind = False
        self.log_value = self._portfolio.log_value
        self.assignment = self._portfolio.assignment

    def suggest(self, assignment: IntArray) -> None:
        """Start from this assignment next; sum variables may be -1, and zeros may forbid it."""
        self._portfolio.suggest(assignment)
        self._configurations.suggest(assignment)

    def look_at(self, decoded: IntArray) -> None:
        """States read off an upper bound that is being tightened."""
        self._portfolio.look_at(decoded)
        self._configurations.look_at(decoded)

    def draw_from(self, draw: Draw | None) -> None:
        """Draw starts from an upper bound whenever one is wanted."""
        self._portfolio.draw_from(draw)

    def improve(self, deadline: float) -> bool:
        """Search until the deadline; True when a better assignment was found."""
        before = self.log_value
        while (now := time.monotonic()) < deadline:
            turn = min(deadline, now + TURN)
            if self._debt >= 0.0:
                if self._configurations.improve(turn):
                    self._take(self._configurations.best)
                seconds = time.monotonic() - now
                self._searched += seconds
                self._debt -= seconds
            else:
                self._portfolio.improve(turn)
                share = self._share
                self._debt += share / (1.0 - share) * (time.monotonic() - now)
        self.log_value, self.assignment = self._portfolio.log_value, self._portfolio.assignment
        return self.log_value > before

    @property
    def keen(self) -> bool:
        """True where time gains more for the value than for any bound."""
        return self._configurations.keen

    @property
    def _share(self) -> float:
        """Share of the time for configurations."""
        if self._configurations.strong:
            return STRONG_SHARE
        if self._behind and self._searched >= TRIAL:
            return BEHIND_SHARE
        return LATER_SHARE if self._configurations.late else FIRST_SHARE

    def _take(self, configuration: IntArray) -> None:
        """Evaluate what a configuration says of the maximised variables; whether it leads, and where it does, go on."""
        before = self._portfolio.log_value
        states = np.where(self._evaluator.is_max, configuration, -1)
        value = self._portfolio.consider(states)
        self._behind = value == TOO_WIDE or value < before - SMALLEST_GAIN
