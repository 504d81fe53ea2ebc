"""Exact values of assignments: log Q(x_B), the sum over everything else, thousands of times on one structure.

Given all max variables, the sum variables fall apart into components. The value of an assignment is the sum of what
each component contributes, which depends only on the max variables next to it, and of the factors between max
variables. A change of a few max variables therefore concerns a few components only.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from powersum.assign.kept_orders import LEAST_ENTRIES, MOST_MEMBERS, KeptOrder
from powersum.assign.parts import parts_of, plain_sum, region_of
from powersum.assign.regions import TOO_WIDE, maximise_region
from powersum.assign.supports import new_queue, supports_of
from powersum.assign.zeros import Zeros
from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, starts_of
from powersum.core.speed import ELIMINATION, REGION
from powersum.core.work_time import spend
from powersum.exact.kernels import Domains, choice_type, new_scratch
from powersum.model.factors import factors_of
from powersum.prepare.problem import Problem


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
        largest = int(model.cardinalities.max(initial=1))
        chosen = choice_type(largest)
        self._choices = np.empty(int(memory * 0.3) // chosen.itemsize, dtype=chosen)
        self._scratch = new_scratch(largest)
        self._work = np.zeros(2)
        self.parts = parts_of(model, self.is_max)
        self.n_components = len(self.parts.member_starts) - 1
        self._orders: dict[int, KeptOrder] = {}
        self._no_order: IntArray = np.zeros(0, dtype=np.int64)

    @cached_property
    def zeros(self) -> Zeros:
        """The zeros as clauses, and what searches have learned of them."""
        model = self.problem.model
        return Zeros(model.cardinalities, self.factors, model.table_starts)

    def region(self, free: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """What freeing these max variables concerns: variables, factors, and the components next to them."""
        return region_of(free, self.parts)

    def maximise(
        self,
        assignment: IntArray,
        variables: IntArray,
        factors: IntArray,
        work_limit: float = np.inf,
        seed: int = 0,
        log_values: FloatArray | None = None,
        order: IntArray | None = None,
    ) -> float:
        """Maximise over the free max variables of a region in place; the value of the region's factors.

        Returns ``inf`` when the region is too wide for memory or ``work_limit``; the assignment is then unchanged.
        With a ``seed`` above 0, some of the free max variables then keep their states, so that the rest is narrow.
        Other tables than the model's, with the same zeros, can be given as ``log_values``; an elimination order for
        where all its variables have a choice as ``order``.
        """
        value = maximise_region(
            variables,
            factors,
            len(factors),
            assignment,
            self.base_alive,
            self.weights,
            self.problem.model.table_starts,
            # Read-only as the model's own: Numba would compile everything again for tables that can be written to.
            self.factors if log_values is None else self.factors._replace(log_values=frozen(log_values, np.float64)),
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
            self._no_order if order is None else order,
            self._scratch,
            self._work,
        )
        spend(ELIMINATION * self._work[0] + REGION * (len(variables) + len(factors)))
        return value

    @property
    def n_free(self) -> int:
        """How many variables the latest maximisation was over; 0 where it was too wide."""
        return int(self._work[1])

    def component_value(self, component: int, assignment: IntArray, work_limit: float = np.inf) -> float:
        """Contribution of one component."""
        parts = self.parts
        members = parts.members[parts.member_starts[component] : parts.member_starts[component + 1]]
        factors = parts.factors[parts.factor_starts[component] : parts.factor_starts[component + 1]]
        kept = self._orders.get(component)
        value = self.maximise(assignment, members, factors, work_limit, order=None if kept is None else kept.order)
        entries, n_choices = self._work.tolist()
        if kept is not None and n_choices == len(kept.order):
            kept.used(entries)
        elif kept is None and entries >= LEAST_ENTRIES and n_choices <= MOST_MEMBERS:
            several = members[self.problem.model.cardinalities[members] > 1]
            if n_choices == len(several):
                # Nothing was excluded by zeros: it will often be so.
                self._orders[component] = KeptOrder(self.problem.model, several, factors, seed=component)
        return value

    def plain_value(self, assignment: IntArray, factors: IntArray | None = None) -> float:
        """Contribution of the factors between max variables alone, or of those among ``factors``."""
        numbers = self.parts.plain if factors is None else factors
        return plain_sum(
            assignment, numbers, self.parts.component_of_factor, self.problem.model.table_starts, self.factors
        )

    def value(self, assignment: IntArray, work_limit: float = np.inf) -> float:
        """Exact log Q of an assignment; ``inf`` where a component is too wide for memory or for ``work_limit``."""
        total = self.plain_value(assignment)
        for c in range(self.n_components):
            value = self.component_value(c, assignment, work_limit)
            if value == TOO_WIDE:
                return TOO_WIDE
            total += value
        return total
