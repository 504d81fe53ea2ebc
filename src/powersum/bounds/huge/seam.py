"""What the parts of a model share: how much of each variable at the seam every part has, and how that is moved.

The ledger here is the truth: a part is told what it has in full, never a change, so that a worker that starts again
from an old checkpoint, or does the same work twice, stands where all others think it does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powersum.bounds.gdd.method import GDD
from powersum.bounds.gdd.regions import junction_graph
from powersum.bounds.huge.part import Seam, SweepReport
from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.model.model import Model
from powersum.model.rounding import UNIT
from powersum.prepare.problem import Problem


class Ledger:
    """Tables and weights of all parts at the seam.

    Parameters
    ----------
    cardinalities, tau
        Of the variables at the seam, in rising order of their numbers.
    part, variable
        The pairs of a part and a variable at the seam (counted among those), sorted by variable, then by part.
    shares
        The first share of each pair in its variable's weight; those of a variable add up to 1.
    n_parts
        How many parts there are.
    """

    def __init__(
        self, cardinalities: IntArray, tau: FloatArray, part: IntArray, variable: IntArray, shares: FloatArray,
        n_parts: int,
    ) -> None:  # fmt: skip
        self._cardinalities, self._tau, self._variable = cardinalities, tau, variable
        self._n_parts = n_parts
        n = len(cardinalities)
        # The first part of each variable stands as the separator of a block, its others as the clusters around it.
        first = np.flatnonzero(np.diff(variable, prepend=-1))
        rest = np.setdiff1d(np.arange(len(variable)), first)
        problem = Problem.whole(_without_factors(cardinalities), tau.copy(), {})
        wiring = junction_graph(
            problem,
            np.argsort(tau == 0, kind="stable"),
            cluster_starts=np.arange(len(rest) + 1),
            cluster_variables=variable[rest],
            factor_cluster=np.zeros(0, dtype=np.int64),
            separator_starts=np.arange(n + 1),
            separator_variables=np.arange(n),
            edge_separator=variable[rest],
            edge_cluster=np.arange(len(rest)),
        )
        self._blocks = GDD(problem, problem.variables, wiring=wiring)
        region = np.empty(len(variable), dtype=np.int64)
        region[rest], region[first] = np.arange(len(rest)), len(rest) + variable[first]
        cards = cardinalities[variable]
        starts = wiring.regions.table_start[region]
        ends = starts_of(cards)
        entries = np.arange(int(ends[-1])) + np.repeat(starts - ends[:-1], cards)
        of_pair = np.repeat(np.arange(len(variable)), cards)
        self._entries = [entries[part[of_pair] == number] for number in range(n_parts)]
        # A region here has one axis, whose number is its own.
        self._axes = [region[part == number] for number in range(n_parts)]
        self._entry_variable = np.empty(len(entries), dtype=np.int64)
        self._entry_variable[entries] = variable[of_pair]
        self._entry_state = np.empty(len(entries), dtype=np.int64)
        self._entry_state[entries] = np.arange(len(entries)) - ends[of_pair]
        self.shifts = np.zeros(len(entries))
        self.weights = np.empty(len(variable))
        self.weights[region] = shares * tau[variable]
        self._axis_variable = np.empty(len(variable), dtype=np.int64)
        self._axis_variable[region] = variable

    def of_part(self, number: int) -> Seam:
        """What a part has, in full."""
        return Seam(self.shifts[self._entries[number]], self.weights[self._axes[number]])

    def exchange(self, reports: Sequence[SweepReport]) -> None:
        """Bring the parts' separators of every variable together by one step of block descent.

        The reports must all be of this ledger.
        """
        if not len(self._cardinalities):
            return
        state, blocks = self._blocks._state, self._blocks
        for entries, axes, report in zip(self._entries, self._axes, reports, strict=True):
            state.tables[entries] = report.tables
            state.weights[axes] = report.weights
        tables, weights = state.tables.copy(), state.weights.copy()
        tau = blocks._problem.tau
        tau[:] = np.bincount(self._axis_variable, weights, minlength=len(tau))
        for first, last in blocks._portions():
            blocks._update(first, last)
        # A state that one part excludes is nowhere moved: there the difference is none of two infinities.
        moved = np.subtract(state.tables, tables, out=np.zeros(len(tables)), where=np.isfinite(tables))
        self.shifts += moved
        self.weights = np.maximum(self.weights + (state.weights - weights), 0.0)

    def log_deficit(self) -> float:
        """By how much the parts' values together may fall short of a bound.

        Shifts that add up to less than 0 and weights that add up to less than the variable's own have been rounded;
        more than that does no harm.
        """
        if not len(self._cardinalities):
            return 0.0
        n, most = len(self._cardinalities), int(self._cardinalities.max())
        totals, sizes = np.zeros((2, n, most))
        np.add.at(totals, (self._entry_variable, self._entry_state), self.shifts)
        np.add.at(sizes, (self._entry_variable, self._entry_state), np.abs(self.shifts))
        rounding = 2.0 * self._n_parts * UNIT
        missing = np.maximum(rounding * sizes - totals, 0.0).max(axis=1).sum()
        weight = np.bincount(self._axis_variable, self.weights, minlength=n)
        short = np.maximum(self._tau * (1.0 + rounding) - weight, 0.0)
        return float(missing + (short * np.log(self._cardinalities)).sum()) * (1.0 + 1e-9)


def total_of(reports: Sequence[SweepReport], ledger: Ledger) -> tuple[float, float]:
    """The sum of the parts' values, and how far the bound may be above it: the rounding of all, and of adding up."""
    value = math.fsum(report.value for report in reports)
    error = math.fsum(report.error for report in reports) + ledger.log_deficit()
    return value, error + 4.0 * UNIT * math.fsum(abs(report.value) for report in reports if math.isfinite(report.value))


def _without_factors(cardinalities: IntArray) -> Model:
    nothing, start = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Model(cardinalities, start, nothing, start, np.zeros(0))
