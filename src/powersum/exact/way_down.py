"""All distributions of a model by elimination and the way back, some table entries at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.core.speed import ELIMINATION, WAY_BACK
from powersum.core.work_time import spend
from powersum.exact.distributions import spread_some
from powersum.exact.elimination import SLICE_ENTRIES, Elimination, Exact, full_domains
from powersum.exact.kernels import choice_type, new_scratch, reduce_some
from powersum.exact.wiring import EliminationWiring
from powersum.model.model import Model
from powersum.model.rounding import UNIT


class WayDown:
    """The distribution of every variable of a model, all of which are summed over.

    Parameters
    ----------
    model
        The model.
    order
        All variables, first eliminated first.

    Attributes
    ----------
    up
        The way up.
    work
        Table entries, on the way up and as many on the way back.
    bytes
        Memory that it takes: every message is kept until the way back has used it.
    log_error
        What sums on the way back add to relative errors of rounding.
    """

    def __init__(self, model: Model, order: IntArray) -> None:
        self.up = Elimination(model, order, np.ones(model.n_variables))
        self.work, self.bytes, self.log_error = self.up.work, math.inf, 0.0
        if self.work < math.inf:
            entries = self.up.entries
            # Not the sum of integers, which may leave them.
            self.bytes = 8.0 * (float(entries.sum(dtype=np.float64)) + self.up.needed)
            terms = _longest_sums(self.up.wiring, entries, model.cardinalities.copy())
            self.log_error = UNIT * (terms + 8.0 * model.n_variables)

    @property
    def seconds(self) -> float:
        """What it takes, as a rule."""
        return (ELIMINATION + WAY_BACK) * self.work

    def run(self) -> tuple[Exact, FloatArray]:
        """Both ways at once."""
        return next(found for found in self.slices(math.inf) if found is not None)

    def slices(self, entries: float = SLICE_ENTRIES) -> Iterator[tuple[Exact, FloatArray] | None]:
        """None while it is under way, then the sum and all distributions one after another.

        Distributions are zeros where nothing is possible.
        """
        elimination, model = self.up, self.up.model
        wiring, domains = elimination.wiring, full_domains(model)
        n = len(elimination.entries)
        places = np.cumsum(elimination.entries) - elimination.entries
        messages = np.empty(int(elimination.entries.sum()) + 1)
        scratch = new_scratch(int(model.cardinalities.max(initial=1)))
        nothing = np.empty(0, dtype=choice_type(int(model.cardinalities.max(initial=1))))
        bases = model.table_starts[:-1].copy()
        reached = np.zeros(2, dtype=np.int64)
        value = elimination.log_constant
        none = np.full(n, -1, dtype=np.int64)
        while reached[0] < n:
            value += reduce_some(
                elimination.tau,
                wiring,
                domains,
                bases,
                model.log_values,
                messages,
                places,
                nothing,
                none,
                scratch,
                reached,
                entries,
            )
            spend(ELIMINATION * min(entries, self.work))
            yield None
        beliefs = np.zeros(int(model.cardinalities.sum()))
        if value > -math.inf:
            above = np.empty(max(elimination.needed, 1))
            reached[:] = n - 1, 0
            while reached[0] >= 0:
                spread_some(
                    wiring,
                    domains,
                    bases,
                    model.log_values,
                    messages,
                    places,
                    scratch,
                    above,
                    elimination.places,
                    beliefs,
                    reached,
                    entries,
                )
                spend(WAY_BACK * min(entries, self.work))
                yield None
        yield Exact(value, np.full(model.n_variables, -1, dtype=np.int64)), beliefs


@compiled
def _longest_sums(wiring: EliminationWiring, entries: IntArray, cardinalities: IntArray) -> float:
    """The most terms that come together, one sum after another, in a number on the way back."""
    n = len(entries)
    terms = np.zeros(n)
    most = 0.0
    for b in range(n - 1, -1, -1):
        parent = wiring.parents[b]
        if parent >= 0:
            table = float(entries[parent]) * cardinalities[wiring.axes[wiring.axis_starts[parent]]]
            terms[b] = terms[parent] + table / max(entries[b], 1)
        most = max(most, terms[b] + entries[b])
    return most
