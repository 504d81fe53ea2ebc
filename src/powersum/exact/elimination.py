"""Exact answers by bucket elimination, for any weights, with the argmax of the max variables traced back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, positions_of, starts_of
from powersum.core.speed import ELIMINATION
from powersum.core.work_time import spend
from powersum.exact.kernels import Buckets, Domains, choice_type, new_scratch, reduce_some, trace_back
from powersum.exact.wiring import EliminationWiring, message_sizes, place_messages, wire
from powersum.model.factors import factors_of
from powersum.model.model import Model
from powersum.prepare.ordering.cost import order_cost

# Tables of more than two to this are not worth a number of their entries: no memory holds them. Any number of them,
# together, must be: the places of messages in one buffer would leave the integers.
_COUNTABLE = 48.0

SLICE_ENTRIES = 2e7
"""Table entries between two looks at the outside: 0.1 to 0.3 s."""


def full_domains(model: Model) -> Domains:
    """Every state of every variable alive."""
    starts = starts_of(model.cardinalities)
    states = np.arange(starts[-1]) - np.repeat(starts[:-1], model.cardinalities)
    return Domains(model.cardinalities.copy(), starts, states)


@dataclass(frozen=True, slots=True)
class Exact:
    """The exact value (natural log) and a best state of each max variable, -1 for all other variables."""

    log_value: float
    states: IntArray


class Elimination:
    """Bucket elimination along one order: what it costs, and its result.

    Parameters
    ----------
    model
        The model; every variable is eliminated.
    order
        All variables, first eliminated first.
    tau
        Weight of each variable.

    Attributes
    ----------
    wiring, entries
        The buckets, and the entries of their messages, where they can be listed.
    places, needed
        Where messages lie in one buffer, none longer than it is used, and how long that is.
    """

    def __init__(self, model: Model, order: Sequence[int] | IntArray, tau: FloatArray) -> None:
        self.model = model
        self.tau = np.ascontiguousarray(tau, dtype=np.float64)
        self._order = np.ascontiguousarray(order, dtype=np.int64)
        self._largest = int(model.cardinalities.max(initial=1))
        cost = order_cost(model, self._order)
        self.width = cost.width
        """Induced width of the order: variables of the largest bucket, less one."""
        self.log2_entries = cost.log2_total
        """Entries of all buckets' tables, as a logarithm to base 2."""
        self.work = self.bytes = math.inf
        if cost.log2_total > _COUNTABLE:
            # Buckets of very large models, were they listed, would take minutes and gigabytes by themselves.
            return
        self._factors = factors_of(model)
        position = positions_of(self._order, model.n_variables)
        wired, self._factor_buckets = wire(self._order, position, np.arange(model.n_factors), self._factors)
        self.wiring = EliminationWiring(*wired)
        self.entries, self.work = message_sizes(self.wiring, model.cardinalities.copy(), math.inf)
        self.bytes = self._plan()

    def run(self) -> Exact:
        """Eliminate. Takes :attr:`bytes` of memory and :attr:`work` times ``core.speed.ELIMINATION`` seconds, about."""
        return next(exact for exact in self.slices(math.inf) if exact is not None)

    def slices(self, entries: float = SLICE_ENTRIES) -> Iterator[Exact | None]:
        """The same, so many table entries at a time: None while it is under way, then the result."""
        model = self.model
        domains = full_domains(model)
        buffer = np.empty(max(self.needed, 1))
        choices = np.empty(self._choices_needed, dtype=choice_type(self._largest))
        bases = model.table_starts[:-1].copy()
        buckets = Buckets(self.wiring, domains, bases, model.log_values, new_scratch(self._largest))
        reached = np.zeros(2, dtype=np.int64)
        value = self.log_constant
        while True:
            value += reduce_some(self.tau, buckets, buffer, self.places, choices, self._choice_places, reached, entries)
            spend(ELIMINATION * min(entries, self.work))
            if reached[0] == len(self.places):
                break
            yield None
        states = np.full(model.n_variables, -1, dtype=np.int64)
        trace_back(self.wiring, domains, choices, self._choice_places, states)
        yield Exact(value, states)

    @property
    def log_constant(self) -> float:
        """The value of the factors without variables."""
        return float(self.model.log_values[self.model.table_starts[:-1][self._factor_buckets < 0]].sum())

    def _plan(self) -> float:
        """Lay out the messages; the bytes they need."""
        is_max = self.tau[self._order] == 0.0
        self.places, self.needed, self._choice_places, self._choices_needed = place_messages(
            self.wiring, self.entries, is_max
        )
        return 8.0 * self.needed + choice_type(self._largest).itemsize * float(self._choices_needed)
