"""The MAP road as a source of assignments: the best configurations of *all* variables, and what they say of the others.

A move there concerns its neighbourhood alone, whatever is summed, so it is quick; where few variables are summed, or
tables are strong, the best configurations lie where the best assignments are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.assign.portfolio import Portfolio
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.prepare.problem import Problem

CONFIGURATION_BYTES = 5e7
"""Memory for the blocks of the search for configurations, which are small."""

PATIENCE, PAUSE = 2.0, 1.0
"""No better configurations are expected once none was found for so many times as long as until then, and so many
seconds."""


class Configurations:
    """Local search for the best configuration of all variables.

    Parameters
    ----------
    problem
        The simplified problem, with any weights.
    seed
        Seed of all that is drawn at random.
    hasty
        True for many short searches in place of fewer long ones.
    """

    def __init__(self, problem: Problem, *, seed: int = 0, hasty: bool = False) -> None:
        everything = Evaluator(replace(problem, tau=np.zeros_like(problem.tau)), memory=CONFIGURATION_BYTES)
        self._portfolio = Portfolio(everything, seed=seed, hasty=hasty)
        self._searched = self._latest_find = 0.0

    def suggest(self, states: IntArray) -> None:
        """Start from these states next; those of summed variables may be -1."""
        self._portfolio.suggest(states)

    def look_at(self, decoded: IntArray) -> None:
        """States read off an upper bound that is being tightened."""
        self._portfolio.look_at(decoded)

    @property
    def kept(self) -> list[IntArray]:
        """The best configurations that are kept, the best first."""
        return self._portfolio.kept

    @property
    def best(self) -> IntArray:
        """The best configuration; states are -1 before there is one."""
        return self._portfolio.assignment

    @property
    def keen(self) -> bool:
        """True where time gains more for the value than for any bound."""
        return self._portfolio.keen

    @property
    def strong(self) -> bool:
        """Whether tables are strong: dense models with entries of hundreds."""
        return self._portfolio.strong

    @property
    def late(self) -> bool:
        """True once better ones are hardly expected."""
        return self._searched > PATIENCE * self._latest_find + PAUSE

    def improve(self, deadline: float) -> bool:
        """Search until the deadline; True when a better configuration was found."""
        begun = time.monotonic()
        found = self._portfolio.improve(deadline)
        self._searched += time.monotonic() - begun
        if found:
            self._latest_find = self._searched
        return found
