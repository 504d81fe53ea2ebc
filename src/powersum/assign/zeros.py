"""Zeros of tables as clauses: configurations that no zero excludes, by conflict-driven search.

A variable of two states is one truth value, of more a truth value for each state, of which one holds. Each
clause excludes a largest box of zeros of one table, so that a constraint over many variables is a few clauses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.core.clauses import Clauses, Ended
from powersum.core.growing import grown
from powersum.core.jit import compiled, inner
from powersum.model.factors import Factors

LARGEST_TABLE = 1 << 16
"""Zeros of larger tables are left out: what is found must be evaluated."""

MOST_PAIRED = 100
"""States up to which clauses say that a variable has one of them only: their number is quadratic.

Without them a variable may be given several states. Any of them is right: a box of zeros is excluded by states that
a variable has not.
"""


class Literals(NamedTuple):
    """The literals of all states, state after state: that a variable has the state, and that it has not."""

    has: IntArray
    has_not: IntArray
    n: int
    """How many truth values there are."""


def literals_of(cardinalities: IntArray) -> Literals:
    """Truth values of the states of variables with so many."""
    starts = starts_of(cardinalities)
    sizes = np.where(cardinalities == 2, 1, cardinalities)
    first = starts_of(sizes)
    state = np.arange(starts[-1]) - np.repeat(starts[:-1], cardinalities)
    of_two = np.repeat(cardinalities == 2, cardinalities)
    own = np.repeat(first[:-1], cardinalities) + np.where(of_two, 0, state)
    has = 2 * own + np.where(of_two, 1 - state, 0)
    return Literals(has, has ^ 1, int(first[-1]))


def clauses_of(
    cardinalities: IntArray, factors: Factors, table_starts: IntArray
) -> tuple[Literals, IntArray, IntArray]:
    """Literals of all states, and clauses that hold where no zero excludes a configuration: starts and literals."""
    state_starts = starts_of(cardinalities)
    literals = literals_of(cardinalities)
    starts, states = _boxes(
        cardinalities,
        state_starts,
        factors.scope_starts,
        factors.scope_variables,
        factors.strides,
        table_starts,
        factors.log_values,
    )
    several = np.flatnonzero(cardinalities != 2)
    ranges = [state_starts[v] + np.arange(cardinalities[v]) for v in several.tolist()]
    some = [literals.has[own] for own in ranges]
    paired = [own for own in ranges if len(own) <= MOST_PAIRED]
    pairs = [literals.has_not[own[np.stack(np.triu_indices(len(own), 1), axis=-1).ravel()]] for own in paired]
    n_pairs = sum(len(own) for own in pairs) // 2
    lengths = np.concatenate([np.diff(starts), [len(own) for own in some], np.full(n_pairs, 2)])
    every = np.concatenate([literals.has_not[states], *some, *pairs])
    return literals, starts_of(lengths.astype(np.int64)), every.astype(np.int64)


class Zeros:
    """The zeros of a model, and what searches have learned of them.

    Parameters
    ----------
    cardinalities
        States of each variable.
    factors, table_starts
        The model's factors.
    """

    def __init__(self, cardinalities: IntArray, factors: Factors, table_starts: IntArray) -> None:
        self._state_starts = starts_of(cardinalities)
        self._literals, starts, every = clauses_of(cardinalities, factors, table_starts)
        self._clauses = Clauses(self._literals.n, starts, every)

    def impossible(self, first: IntArray, *, deadline: float) -> BoolArray:
        """For each state of each variable whether it is proven that every configuration with it has a zero.

        Parameters
        ----------
        first
            All variables; the states of the first are asked about first.
        deadline
            When to stop, on the clock of ``time.monotonic``: states that were not asked about count as possible.
        """
        starts, has = self._state_starts, self._literals.has
        gone, seen = np.zeros(len(has), dtype=np.bool_), np.zeros(len(has), dtype=np.bool_)
        for v in first.tolist():
            for state in range(starts[v], starts[v + 1]):
                if seen[state]:
                    continue
                ended = self._clauses.search(has[state : state + 1], deadline=deadline)
                if ended is Ended.GIVEN_UP:
                    return gone
                gone[state] = ended is Ended.IMPOSSIBLE
                if ended is Ended.SATISFIED:
                    # One configuration shows that all of its states are possible.
                    seen |= self._clauses.values[has >> 1] == 1 - (has & 1)
        return gone

    def search(self, preferences: FloatArray, priority: FloatArray, *, deadline: float) -> tuple[Ended, IntArray]:
        """A configuration that no zero excludes, near the preferred states.

        Parameters
        ----------
        preferences
            A number for each state of each variable; the state with the largest is tried first.
        priority
            A number from 0 to 1 for each variable: those of larger ones are set first, until conflicts say otherwise.
        deadline
            When to give up, on the clock of ``time.monotonic``.
        """
        starts, literals = self._state_starts, self._literals
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        # Sorted by variable, then by preference, so that the first of each variable is its best.
        best = np.lexsort((-preferences, owner))[starts[:-1]]
        phase = np.zeros(literals.n, dtype=np.int64)
        phase[literals.has[best] >> 1] = 1 - (literals.has[best] & 1)
        activity = np.zeros(literals.n)
        activity[literals.has >> 1] = priority[owner]
        self._clauses.prefer(phase, activity)
        ended = self._clauses.search(deadline=deadline)
        values = self._clauses.values
        holds = values[literals.has >> 1] == 1 - (literals.has & 1)
        states = np.zeros(len(starts) - 1, dtype=np.int64)
        states[owner[holds]] = np.flatnonzero(holds) - starts[owner[holds]]
        return ended, states


@compiled
def _boxes(
    cardinalities: IntArray,
    state_starts: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    strides: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
) -> tuple[IntArray, IntArray]:
    """Boxes of zeros that cover those of each table: their starts, and the states that they are made of."""
    widest, largest = 1, 1
    for k in range(scope_starts.size - 1):
        widest = max(widest, scope_starts[k + 1] - scope_starts[k])
        largest = max(largest, min(table_starts[k + 1] - table_starts[k], LARGEST_TABLE))
    covered = np.empty(largest, np.bool_)
    free, digits = np.empty(widest, np.int64), np.empty(widest, np.int64)
    starts, states = np.zeros(1024, np.int64), np.empty(4096, np.int64)
    n_boxes, filled = 0, 0
    for k in range(scope_starts.size - 1):
        low, high = scope_starts[k], scope_starts[k + 1]
        first, size = table_starts[k], table_starts[k + 1] - table_starts[k]
        if size > LARGEST_TABLE:
            continue
        for entry in range(size):
            covered[entry] = False
        for entry in range(size):
            if covered[entry] or log_values[first + entry] > -np.inf:
                continue
            # Each axis in turn becomes free where all of the larger box is zero.
            n_free, base = 0, entry
            for axis in range(high - low):
                stride = strides[low + axis]
                here = entry // stride % cardinalities[scope_variables[low + axis]]
                free[n_free] = axis
                lower = base - here * stride
                if _all_zero(
                    lower,
                    n_free + 1,
                    free,
                    digits,
                    low,
                    cardinalities,
                    scope_variables,
                    strides,
                    first,
                    log_values,
                    covered,
                    False,
                ):
                    n_free += 1
                    base = lower
            _all_zero(
                base,
                n_free,
                free,
                digits,
                low,
                cardinalities,
                scope_variables,
                strides,
                first,
                log_values,
                covered,
                True,
            )
            starts = grown(starts, n_boxes + 2)
            states = grown(states, filled + high - low)
            at = 0
            for axis in range(high - low):
                if at < n_free and free[at] == axis:
                    at += 1
                    continue
                v = scope_variables[low + axis]
                states[filled] = state_starts[v] + entry // strides[low + axis] % cardinalities[v]
                filled += 1
            n_boxes += 1
            starts[n_boxes] = filled
    return starts[: n_boxes + 1].copy(), states[:filled].copy()


@inner
def _all_zero(
    base: int,
    n_free: int,
    free: IntArray,
    digits: IntArray,
    low: int,
    cardinalities: IntArray,
    scope_variables: IntArray,
    strides: IntArray,
    first: int,
    log_values: FloatArray,
    covered: BoolArray,
    mark: bool,
) -> bool:
    """Whether all entries of a box are zero, from the one where its free axes have state 0 on; may mark them."""
    for i in range(n_free):
        digits[i] = 0
    entry = base
    while True:
        if log_values[first + entry] > -np.inf:
            return False
        if mark:
            covered[entry] = True
        i = n_free - 1
        while i >= 0:
            stride = strides[low + free[i]]
            digits[i] += 1
            entry += stride
            if digits[i] < cardinalities[scope_variables[low + free[i]]]:
                break
            entry -= digits[i] * stride
            digits[i] = 0
            i -= 1
        if i < 0:
            return True
