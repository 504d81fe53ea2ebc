"""Where the work on a question stands, from slice to slice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from powersum.core.arrays import IntArray
from powersum.model.rounding import certain
from powersum.prepare.problem import Problem


@dataclass(slots=True)
class State:
    """Where the work stands; values include the problem's constant, and every rounding since the model was read.

    Numbers become bounds here and nowhere else: whoever computed one hands it over with how far rounding can have
    moved it.
    """

    log_lower: float = -math.inf
    log_upper: float = math.inf
    states: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    settled: bool = False
    exhausted: bool = False
    reason: str = "Upper and lower bound met."
    sizes: dict[str, int | float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    recompute: Callable[[], float] | None = None
    """Computes ``log_upper`` again at the point it comes from; None where it does not come from a tree."""

    def offer_upper(
        self, problem: Problem, log_value: float, log_error: float, recompute: Callable[[], float] | None = None
    ) -> None:
        """A bound on the problem's value from above; it counts if it is better. What is no number never is."""
        log_upper = certain(log_value + problem.log_constant, log_error + problem.log_error)
        if log_upper < self.log_upper:
            self.log_upper = log_upper
            self.recompute = None
            if recompute is not None:
                self.recompute = lambda: recompute() + problem.log_constant + problem.log_error

    def offer_lower(self, problem: Problem, log_value: float, log_error: float, states: IntArray) -> bool:
        """The value of an assignment of the problem's variables; True if it is the best so far."""
        log_lower = log_value + problem.log_constant - log_error - problem.log_error
        # Infinity stands for "too wide to evaluate", which is no value; neither is what is no number.
        if log_value == math.inf or not log_lower > self.log_lower:
            return False
        self.log_lower = log_lower
        self.states = problem.restore(states)
        return True

    def impossible(self) -> None:
        """Nothing has positive probability, as was proven."""
        self.log_lower = self.log_upper = -math.inf
        self.recompute, self.settled = None, True

    def confirm(self) -> float:
        """Compute the upper bound once more at the point it comes from; the least that may be claimed.

        The point, which takes memory, is given up by that.
        """
        recompute, self.recompute = self.recompute, None
        if recompute is None:
            return -math.inf
        again = recompute()
        again = math.inf if math.isnan(again) else again
        self.log_upper = max(self.log_upper, again)
        return again
