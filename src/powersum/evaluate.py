"""Exact values of assignments: log Q(x_B), the sum over everything else, thousands of times on one structure.

Given all max variables, the sum variables fall apart into components. The value of an assignment is the sum of what
each component contributes, which depends only on the max variables next to it, and of the factors between max
variables. A change of a few max variables therefore concerns a few components only.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from powersum.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.eliminate import factors_of
from powersum.eliminate_kernels import Domains, new_scratch
from powersum.evaluate_regions import TOO_WIDE, maximise_region
from powersum.evaluate_supports import new_queue, supports_of
from powersum.graph import components, incidence
from powersum.problem import Problem


class Evaluator:
    """Values of assignments of one problem's max variables, and exact maximisation over few of them.

    Values leave out the problem's constant. Assignments are arrays over all variables of the reduced model; entries of
    sum variables are ignored.

    Parameters
    ----------
    problem
        The simplified problem.
    memory
        Bytes that tables may take.
    """

    def __init__(self, problem: Problem, *, memory: float = 5e8) -> None:
        model = problem.model
        self.problem = problem
        self.is_max: BoolArray = problem.tau == 0.0
        self.weights: FloatArray = np.ascontiguousarray(problem.tau, dtype=np.float64)
        self.factors = factors_of(model)
        self.supports = supports_of(model)
        self._queue = new_queue(model)
        n_states = int(model.cardinalities.sum())
        self.base_alive: IntArray = np.ones(n_states, dtype=np.int64)
        self._alive = np.zeros(n_states, dtype=np.int64)
        self._domains = Domains(
            np.zeros(model.n_variables, dtype=np.int64), starts_of(model.cardinalities), np.zeros(n_states, np.int64)
        )
        self._position = np.full(model.n_variables, -1, dtype=np.int64)
        self._bases = np.zeros(model.n_factors, dtype=np.int64)
        self._buffer = np.empty(int(memory * 0.7) // 8)
        self._choices = np.empty(int(memory * 0.3) // 2, dtype=np.uint16)
        self._scratch = new_scratch(int(model.cardinalities.max(initial=1)))
        self._split()

    def _split(self) -> None:
        """Components of the sum variables, the max variables around each, and the factors of each."""
        model = self.problem.model
        owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
        is_sum_place = ~self.is_max[model.scope_variables]
        sum_starts = starts_of(np.bincount(owner[is_sum_place], minlength=model.n_factors))
        label = components(model.n_variables, sum_starts, model.scope_variables[is_sum_place])
        label[self.is_max] = -1
        _, numbered = np.unique(label, return_inverse=True)
        # Max variables, if any, come first among the labels with -1.
        self.component: IntArray = numbered.astype(np.int64) - int(self.is_max.any())
        self.n_components = int(self.component.max(initial=-1)) + 1
        places = incidence(model.n_variables, model.scope_starts, model.scope_variables)
        self._incident_starts, self._incident_factors = places.starts, places.factors
        # Component of each factor: that of any of its sum variables; -1 for factors between max variables.
        self.factor_component: IntArray = np.full(model.n_factors, -1, dtype=np.int64)
        self.factor_component[owner[is_sum_place]] = self.component[model.scope_variables[is_sum_place]]
        self.members = _grouped(self.component, self.n_components)
        self.component_factors = _grouped(self.factor_component, self.n_components)
        self._is_plain: BoolArray = self.factor_component < 0

    def factors_at(self, variable: int) -> IntArray:
        """Factors of one variable."""
        return self._incident_factors[self._incident_starts[variable] : self._incident_starts[variable + 1]]

    def region(self, free: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """What freeing these max variables concerns: variables, factors, and the components next to them."""
        chosen = np.unique(free)
        touched = np.unique(np.concatenate([self.factors_at(v) for v in chosen.tolist()] or [np.zeros(0, np.int64)]))
        parts = np.unique(self.factor_component[touched])
        parts = parts[parts >= 0]
        variables = np.concatenate([chosen, *(self.members[c] for c in parts.tolist())])
        plain = touched[self.factor_component[touched] < 0]
        return variables, np.concatenate([plain, *(self.component_factors[c] for c in parts.tolist())]), parts

    def maximise(
        self, assignment: IntArray, variables: IntArray, factors: IntArray, work_limit: float = np.inf, seed: int = 0
    ) -> float:
        """Maximise over the free max variables of a region in place; the value of the region's factors.

        Returns ``inf`` when the region is too wide for memory or ``work_limit``; the assignment is then unchanged.
        With a ``seed`` above 0, some of the free max variables then keep their states, so that the rest is narrow.
        """
        return maximise_region(
            variables,
            factors,
            len(factors),
            assignment,
            self.base_alive,
            self.weights,
            self.problem.model.table_starts,
            self.factors,
            self.supports,
            self._queue,
            self._alive,
            self._domains,
            self._position,
            self._bases,
            self._buffer,
            self._choices,
            min(work_limit, 1e15),
            seed,
            self._scratch,
        )

    def component_value(self, component: int, assignment: IntArray, work_limit: float = np.inf) -> float:
        """Contribution of one component."""
        return self.maximise(assignment, self.members[component], self.component_factors[component], work_limit)

    def plain_value(self, assignment: IntArray, factors: IntArray | None = None) -> float:
        """Contribution of the factors between max variables alone, or of those among ``factors``."""
        chosen = self._is_plain if factors is None else self._is_plain[factors]
        numbers = np.flatnonzero(chosen) if factors is None else factors[chosen]
        if not len(numbers):
            return 0.0
        model = self.problem.model
        lengths = model.scope_starts[numbers + 1] - model.scope_starts[numbers]
        ends = np.cumsum(lengths)
        places = np.arange(int(ends[-1])) + np.repeat(model.scope_starts[numbers] - (ends - lengths), lengths)
        steps = assignment[model.scope_variables[places]] * self.factors.strides[places]
        # Every factor has a variable: no segment of the sum is empty.
        offsets = np.add.reduceat(steps, ends - lengths)
        return float(model.log_values[model.table_starts[numbers] + offsets].sum())

    def value(self, assignment: IntArray, work_limit: float = np.inf) -> float:
        """Exact log Q of an assignment; ``inf`` where a component is too wide for memory or for ``work_limit``."""
        total = self.plain_value(assignment)
        for c in range(self.n_components):
            value = self.component_value(c, assignment, work_limit)
            if value == TOO_WIDE:
                return TOO_WIDE
            total += value
        return total


def _grouped(label: IntArray, n_labels: int) -> list[IntArray]:
    """The places of each label, ascending; -1 is none. One sort: there can be as many labels as places."""
    places = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[places], np.arange(n_labels + 1))
    return [places[a:b] for a, b in pairwise(starts.tolist())]
