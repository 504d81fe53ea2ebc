"""What a run finds out about the distribution of every variable: both sides of each probability, which only tighten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from powersum.bounds.protocol import FAULT
from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.model.interval import SAME
from powersum.model.rounding import UNIT, elimination_error
from powersum.prepare.problem import Problem

if TYPE_CHECKING:
    from powersum.sums.by_state import StateSums

UNDERFLOW = 1e-290
"""More than all that is lost where products of probabilities leave the doubles."""

BACKWARD = 8.0
"""An exact distribution is a forward and a backward pass, each of which rounds as often as an elimination does, about
twice: with room to spare, so many times its error, relatively."""

NEAR = 7.0
"""Gap of a partial sum, in nats, beyond which what it explored counts less in estimates, by a factor of e for each so
many nats more. Measured on pedigrees and diagnoses: dev/marginals.md."""


class Distributions:
    """Intervals for the states of all original variables, one after another.

    Parameters
    ----------
    problem
        The simplified problem, with all variables that have a distribution: none is left out as barren.
    cardinalities
        States of the original variables.

    Attributes
    ----------
    log_lower, log_upper
        Both sides of each probability, as natural logs.
    beliefs
        One number for each state, within its interval.
    settled_variables
        Variables whose distribution is known exactly.
    changes
        How often something was found out.
    """

    def __init__(self, problem: Problem, cardinalities: IntArray) -> None:
        self.starts = starts_of(cardinalities)
        self._owner = np.repeat(np.arange(len(cardinalities)), cardinalities)
        self._possible = problem.possible
        number = np.bincount(self._owner[self._possible], minlength=len(cardinalities))
        self._guesses = self._possible / np.maximum(number, 1)[self._owner]
        self._explored = self._guesses.copy()
        self._gaps, self._shares = np.full(len(cardinalities), np.inf), np.zeros(len(cardinalities))
        self.changes = 0
        # A variable's only possible state is certain.
        self.log_lower = np.where(self._possible & (number == 1)[self._owner], 0.0, -np.inf)
        self.log_upper = np.where(self._possible, 0.0, -np.inf)
        self.settled_variables = np.ones(len(cardinalities), dtype=np.bool_)
        self.settled_variables[problem.variables] = False
        # What simplification has removed was observed, or its possible states are equally likely.
        removed = np.flatnonzero(self.settled_variables)
        self._take(removed, self._guesses[self._states_of(removed)], 0.0)

    @property
    def settled(self) -> bool:
        """True where all distributions are known exactly."""
        return bool(self.settled_variables.all())

    @property
    def beliefs(self) -> FloatArray:
        """The distributions where they are exact, else guesses that are within their intervals."""
        lower, upper = np.exp(self.log_lower), np.exp(self.log_upper)
        weights = np.where(self.settled_variables, 0.0, self._shares)[self._owner]
        found = (1.0 - weights) * self._guesses + weights * self._explored
        found = np.clip(found / np.maximum(self._sums(found), 1e-300)[self._owner], lower, upper)
        # Within the intervals there is a distribution: what is missing is made up in proportion to the room left.
        missing = 1.0 - self._sums(found)
        room = np.where(missing[self._owner] > 0.0, upper - found, found - lower)
        rooms = np.maximum(self._sums(room), 1e-300)
        return np.asarray(
            np.clip(found + missing[self._owner] * np.minimum(room / rooms[self._owner], 1.0), lower, upper)
        )

    def exact(self, problem: Problem, beliefs: FloatArray, log_error: float = 0.0) -> None:
        """The distributions of all variables of a problem, one after another, are known up to relative errors.

        An elimination and the way back are counted here, what else there is in ``log_error``.
        """
        error = BACKWARD * (elimination_error(problem.model) + problem.log_error) + log_error
        whole = np.zeros(len(self._guesses))
        whole[self._places(problem)] = beliefs
        self._take(problem.variables, whole[self._states_of(problem.variables)], error)

    def within(self, problem: Problem, found: Sequence[StateSums]) -> None:
        """Bounds on sums with states set, component by component; what was explored is worth a guess, too."""
        error = BACKWARD * (elimination_error(problem.model) + problem.log_error)
        for sums in found:
            self._within(problem, sums, error)

    def parts(self, places: slice, log_lower: FloatArray, log_upper: FloatArray, whole: tuple[float, float]) -> None:
        """Bounds on the sums with each state set, of all states of some original variables, and on the whole sum."""
        owner = self._owner[places]
        sizes = np.bincount(owner - owner[0]) if len(owner) else owner
        lower, upper = shares_of_parts(log_lower, log_upper, whole, sizes)
        self._tighten(places, lower, upper)
        self.agree()

    def estimate(self, beliefs: FloatArray) -> None:
        """Estimates of all probabilities of original variables, which promise nothing."""
        chosen = ~self.settled_variables[self._owner]
        self._guesses[chosen] = beliefs[chosen]

    def between(self, problem: Problem, variable: int, log_lower: FloatArray, log_upper: FloatArray) -> None:
        """Bounds on the distribution of one variable of a problem; :meth:`agree` is to be called after the last."""
        own = slice(int(problem.kept_state_starts[variable]), int(problem.kept_state_starts[variable + 1]))
        places = self.starts[problem.variables[variable]] + problem.kept_states[own]
        error = problem.log_error
        self._tighten(places, log_lower - error, np.minimum(log_upper + error, 0.0))

    def width(self, variable: int, state: int) -> float:
        """How far apart the two sides of one probability are."""
        place = int(self.starts[variable]) + state
        return float(np.exp(self.log_upper[place]) - np.exp(self.log_lower[place]))

    def states(self, variable: int) -> slice:
        """The places of the states of an original variable."""
        return slice(int(self.starts[variable]), int(self.starts[variable + 1]))

    def sums(self, places: slice, whole: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
        """What the intervals at some places say of the sums with each of these states set."""
        error = 8.0 * UNIT * (1.0 + abs(whole[1])) if whole[1] < np.inf else 0.0
        lower = self.log_lower[places] + whole[0] if whole[0] > -np.inf else np.full(len(self._owner[places]), -np.inf)
        return lower - error, self.log_upper[places] + whole[1] + error

    def guess(self, problem: Problem, beliefs: Sequence[FloatArray]) -> None:
        """Beliefs that promise nothing, of all variables of a problem."""
        unknown = ~self.settled_variables
        places = self._places(problem)
        self._guesses[self._states_of(problem.variables[unknown[problem.variables]])] = 0.0
        chosen = unknown[self._owner[places]]
        self._guesses[places[chosen]] = np.concatenate([*beliefs, np.zeros(0)])[chosen]

    def _within(self, problem: Problem, sums: StateSums, error: float) -> None:
        variables = np.asarray(sums.variables, dtype=np.int64)
        sizes = np.array([len(own) for own in sums.log_lower], dtype=np.int64)
        first = problem.kept_state_starts[variables]
        runs = np.arange(int(sizes.sum())) - np.repeat(starts_of(sizes)[:-1], sizes)
        reduced = np.repeat(first, sizes) + runs
        places = np.repeat(self.starts[problem.variables[variables]], sizes) + problem.kept_states[reduced]
        lower, upper = shares_of_parts(
            np.concatenate(sums.log_lower) - error,
            np.concatenate(sums.log_upper) + error,
            (sums.whole[0] - error, sums.whole[1] + error),
            sizes,
        )
        self._tighten(places, lower, upper)
        originals = problem.variables[variables]
        gap = sums.whole[1] - sums.whole[0]
        better = gap < self._gaps[originals]
        if sums.explored > 0.0 and gap < np.inf:
            chosen = np.repeat(better, sizes)
            logs = np.concatenate(sums.log_lower) - sums.whole[0]
            self._explored[self._states_of(originals[better])] = 0.0
            self._explored[places[chosen]] = np.exp(np.minimum(logs[chosen], 0.0))
            # A loose tree takes the share that is explored for less than it is; over a wide gap it says little.
            share = math.sqrt(sums.explored) * min(1.0, math.exp(1.0 - gap / NEAR))
            self._gaps[originals[better]], self._shares[originals[better]] = gap, share
        self.agree()

    def _tighten(self, places: IntArray | slice, lower: FloatArray, upper: FloatArray) -> None:
        self.log_lower[places] = np.maximum(self.log_lower[places], lower)
        self.log_upper[places] = np.minimum(self.log_upper[places], upper)

    def _take(self, variables: IntArray, beliefs: FloatArray, error: float) -> None:
        """Exact distributions of some original variables, over all of their states."""
        states = self._states_of(variables)
        lower, upper = sides_of(beliefs, error)
        self.log_lower[states] = np.where(self._possible[states], np.maximum(self.log_lower[states], lower), -np.inf)
        self.log_upper[states] = np.where(self._possible[states], np.minimum(self.log_upper[states], upper), -np.inf)
        self._guesses[states] = beliefs
        self.settled_variables[variables] = True
        self._refuse_contradiction()

    def agree(self) -> None:
        """Probabilities of a variable add up to 1: each end may say more about the others."""
        lower, upper = np.exp(self.log_lower), np.exp(self.log_upper)
        error = UNIT * 16.0 * (np.diff(self.starts) + 4.0)[self._owner]
        least = 1.0 - (self._sums(upper)[self._owner] - upper) - error
        most = 1.0 - (self._sums(lower)[self._owner] - lower) + error
        with np.errstate(divide="ignore", invalid="ignore"):
            self.log_lower = np.maximum(self.log_lower, np.log(np.maximum(least, 0.0)))
            self.log_upper = np.minimum(self.log_upper, np.log(np.maximum(most, UNDERFLOW)))
        self.log_lower[~self._possible] = self.log_upper[~self._possible] = -np.inf
        self._refuse_contradiction()
        known = exactly_known(self.log_lower, self.log_upper)
        settled = np.ones(len(self.settled_variables), dtype=np.bool_)
        settled[self._owner[~known & self._possible]] = False
        new = settled & ~self.settled_variables
        self.settled_variables |= settled
        if new.any():
            states = new[self._owner]
            self._guesses[states] = 0.5 * (lower[states] + upper[states])

    def _refuse_contradiction(self) -> None:
        """Both sides have their rounding counted: where they contradict each other there is no answer."""
        self.changes += 1
        wrong = self.log_lower > self.log_upper
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            raise RuntimeError(
                f"the bounds on a probability contradict each other: variable {int(self._owner[place])}, "
                f"log lower {self.log_lower[place]!r}, log upper {self.log_upper[place]!r}. {FAULT}"
            )

    def _sums(self, values: FloatArray) -> FloatArray:
        """Of each variable the sum over its states."""
        return np.bincount(self._owner, values, len(self.starts) - 1).astype(np.float64, copy=False)

    def _states_of(self, variables: IntArray) -> IntArray:
        """The places of all states of some original variables."""
        sizes = self.starts[variables + 1] - self.starts[variables]
        runs = np.arange(int(sizes.sum())) - np.repeat(starts_of(sizes)[:-1], sizes)
        return np.asarray(np.repeat(self.starts[variables], sizes) + runs, dtype=np.int64)

    def _places(self, problem: Problem) -> IntArray:
        """The place of each state of a problem's variables."""
        sizes = np.diff(problem.kept_state_starts)
        return np.asarray(np.repeat(self.starts[problem.variables], sizes) + problem.kept_states, dtype=np.int64)


def exactly_known(log_lower: FloatArray, log_upper: FloatArray) -> BoolArray:
    """Which probabilities are one number, or too small for a double."""
    same = log_upper - np.maximum(log_lower, -1e300) <= SAME
    return np.asarray(same | (log_upper <= np.log(10.0 * UNDERFLOW)))


def sides_of(beliefs: FloatArray, error: float) -> tuple[FloatArray, FloatArray]:
    """Logs of both sides of probabilities that were computed with relative errors of so much at most."""
    with np.errstate(divide="ignore"):
        lower = np.log(np.maximum(beliefs - UNDERFLOW, 0.0)) - error
    return lower, np.minimum(np.log(beliefs + UNDERFLOW) + error, 0.0)


def shares_of_parts(
    log_lower: FloatArray, log_upper: FloatArray, whole: tuple[float, float], sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Both sides of the share that each part has of a whole, as logs, for many divisions of it at once.

    Parameters
    ----------
    log_lower, log_upper
        Bounds on the parts: the first ``sizes[0]`` of them add up to the whole, so do the next ``sizes[1]``, and so on.
    whole
        Bounds on the whole, which is not 0.
    """
    owner = np.repeat(np.arange(len(sizes)), sizes)
    if whole[1] == np.inf:
        return np.full(len(log_lower), -np.inf), np.where(log_upper == -np.inf, -np.inf, 0.0)
    # Relative to the upper bound nothing overflows; what underflows makes intervals wider by no more than UNDERFLOW.
    error = UNIT * (16.0 * sizes[owner] + 4.0 * abs(whole[1]) + 4000.0)
    lower = np.exp(np.minimum(log_lower - whole[1], 0.0)) * (1.0 - error)
    # Subnormal numbers have fewer digits than the error counts.
    lower[lower < UNDERFLOW] = 0.0
    upper = np.minimum(np.exp(np.minimum(log_upper - whole[1], 0.0)) * (1.0 + error) + UNDERFLOW, 1.0)
    upper[log_upper == -np.inf] = 0.0
    floor = np.exp(min(whole[0] - whole[1], 0.0)) * (1.0 - error)
    other_lower = np.maximum((np.bincount(owner, lower, len(sizes))[owner] - lower) - error, 0.0)
    other_upper = (np.bincount(owner, upper, len(sizes))[owner] - upper) + error
    with np.errstate(divide="ignore"):
        least = np.log(lower / np.minimum(lower + other_upper, 1.0 + error)) - error
        most = np.log(upper / np.maximum(np.maximum(upper + other_lower, floor), UNDERFLOW)) + error
    most = np.minimum(most, 0.0)
    most[log_upper == -np.inf] = -np.inf
    return np.minimum(least, most), most
