"""The smallest bound there is: every factor by itself. It needs no memory beside the model, and one pass through it.

Each sum variable is summed in one of its factors and maximised in all others, ``Σ f g ≤ (Σ f) max g``; max variables
are maximised in every factor.
"""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.core.jit import compiled
from powersum.core.odometer import next_entry
from powersum.core.speed import SINGLE_PASS
from powersum.model.model import Model
from powersum.model.result import Residuals
from powersum.model.rounding import certain, elimination_error
from powersum.prepare.problem import Problem


def single_seconds(model: Model) -> float:
    """About how long the bound takes."""
    return SINGLE_PASS * len(model.log_values)


def single_bound(model: Model, tau: FloatArray, *, gradient: FloatArray | None = None) -> float:
    """The bound for any numbers in the tables, rounding counted.

    Parameters
    ----------
    model, tau
        The model and the weight of each variable, as for :class:`SingleFactors`.
    gradient
        Overwritten by the derivative of the bound by each table entry, one of them where there are several.
    """
    return _bound_and_scores(model, tau, np.zeros(0) if gradient is None else gradient)[0]


def _bound_and_scores(model: Model, tau: FloatArray, gradient: FloatArray) -> tuple[float, FloatArray]:
    """The bound, and for each state of each variable the sum over factors of the largest entry with it."""
    log_value, scores = _single_factors(
        model.cardinalities,
        model.scope_starts,
        model.scope_variables,
        model.table_starts,
        model.log_values,
        tau,
        gradient,
    )
    # A weight between 0 and 1 gives no more than a sum does; one above 1 is bounded by as many equal states.
    log_above = float((np.maximum(tau - 1.0, 0.0) * np.log(model.cardinalities)).sum())
    return certain(log_value + log_above, elimination_error(model, float(tau.max(initial=1.0)))), scores


class SingleFactors:
    """Upper bound by single factors; follows :class:`powersum.bounds.protocol.Tightener`, with nothing to tighten.

    Parameters
    ----------
    problem
        The simplified problem; weights are 0 and 1, as far as they matter: others count as 1, which is no less.
    """

    exact = False

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.log_error = elimination_error(problem.model, float(problem.tau.max(initial=1.0)))
        self.log_upper, self._scores = _bound_and_scores(problem.model, problem.tau, np.zeros(0))

    def step(self, deadline: float) -> bool:
        """Nothing is left to gain."""
        del deadline
        return False

    def bound(self) -> float:
        """The bound, computed from the problem's own tables."""
        return single_bound(self._problem.model, self._problem.tau)

    def decode(self) -> IntArray:
        """For each max variable the state with the largest sum of its factors' maxima."""
        states = np.full(self._problem.model.n_variables, -1, dtype=np.int64)
        for v, scores in enumerate(self._by_variable()):
            if self._problem.tau[v] == 0.0:
                states[v] = int(np.argmax(scores))
        return states

    def configuration(self) -> IntArray:
        """For every variable the first state with the largest sum of its factors' maxima."""
        cardinalities = self._problem.model.cardinalities
        scores, starts = self._scores, starts_of(cardinalities)
        best = np.flatnonzero(scores == np.repeat(np.maximum.reduceat(scores, starts[:-1]), cardinalities))
        owners = np.repeat(np.arange(len(cardinalities)), cardinalities)
        found, first = np.unique(owners[best], return_index=True)
        return np.asarray(best[first] - starts[found])

    def beliefs(self) -> list[FloatArray]:
        """A rough guess at the distribution of each variable: its states by the sum of their factors' maxima."""
        return [_distribution(scores) for scores in self._by_variable()]

    def _by_variable(self) -> list[FloatArray]:
        """For each variable the sum of its factors' maxima with each state."""
        return np.split(self._scores, starts_of(self._problem.model.cardinalities)[1:-1])

    def residuals(self) -> Residuals | None:
        """There is no such measure."""
        return None

    def sizes(self) -> dict[str, int | float]:
        """Numbers of tables and entries, which are those of the model."""
        model = self._problem.model
        return {"clusters": model.n_factors, "table_entries": model.log_values.size}


def _distribution(scores: FloatArray) -> FloatArray:
    """Numbers that grow with these logs and add up to 1; equal ones where nothing is possible."""
    top = scores.max()
    weights = np.exp(scores - top) if top > -np.inf else np.ones(len(scores))
    return np.asarray(weights / weights.sum())


@compiled
def _single_factors(
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    tau: FloatArray,
    gradient: FloatArray,
) -> tuple[float, FloatArray]:
    """The bound, and for each state of each variable the sum over factors of the largest entry with it.

    The derivative goes into ``gradient``, unless that is empty.
    """
    gradient[:] = 0.0
    n_factors = len(scope_starts) - 1
    state_starts = np.zeros(len(cardinalities) + 1, np.int64)
    for v in range(len(cardinalities)):
        state_starts[v + 1] = state_starts[v] + cardinalities[v]
    scores = np.zeros(state_starts[-1])
    summed = np.zeros(len(cardinalities), np.bool_)
    widest, largest = 1, 1
    for k in range(n_factors):
        widest = max(widest, scope_starts[k + 1] - scope_starts[k])
        for place in range(scope_starts[k], scope_starts[k + 1]):
            largest = max(largest, cardinalities[scope_variables[place]])
    digits, sizes, strides = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest, np.int64)
    best = np.empty((widest, largest))
    total = 0.0
    for k in range(n_factors):
        first, axes = scope_starts[k], scope_starts[k + 1] - scope_starts[k]
        # Rows of what is summed here and not maximised: a max for each, then the sum of them.
        rows = 1
        for axis in range(axes - 1, -1, -1):
            v = scope_variables[first + axis]
            digits[axis], sizes[axis], strides[axis] = 0, cardinalities[v], 0
            if tau[v] > 0.0 and not summed[v]:
                strides[axis] = rows
                rows *= cardinalities[v]
                summed[v] = True
            for state in range(cardinalities[v]):
                best[axis, state] = -np.inf
        row_best, row_entry = np.full(rows, -np.inf), np.zeros(rows, np.int64)
        row = 0
        for entry in range(table_starts[k], table_starts[k + 1]):
            value = log_values[entry]
            if value > row_best[row]:
                row_best[row], row_entry[row] = value, entry
            for axis in range(axes):
                best[axis, digits[axis]] = max(best[axis, digits[axis]], value)
            row = next_entry(row, digits[:axes], sizes[:axes], strides[:axes])
        top = row_best.max()
        if top == -np.inf:
            return -np.inf, scores
        shares = np.exp(row_best - top)
        total += top + np.log(shares.sum())
        if gradient.size:
            for row in range(rows):
                # A row without any possible entry has no share.
                if shares[row] > 0.0:
                    gradient[row_entry[row]] = shares[row] / shares.sum()
        for axis in range(axes):
            v = scope_variables[first + axis]
            for state in range(cardinalities[v]):
                scores[state_starts[v] + state] += best[axis, state]
    return total, scores
