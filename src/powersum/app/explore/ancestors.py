"""The part of a large Bayesian network that some beliefs depend on: the ancestors of what is drawn and observed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from powersum.core.arrays import IntArray
from powersum.model.model import Model

TOLERANCE = 1e-12
"""How far a distribution may be from summing to one: what is left out is then worth no digit that anybody sees."""


class Ancestors:
    """Finds the part; see :meth:`of`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        ends = model.scope_starts[1:] - 1
        children = model.scope_variables[ends] if model.n_factors else np.zeros(0, dtype=np.int64)
        self._factor: IntArray = np.full(model.n_variables, -1, dtype=np.int64)
        self._factor[children] = np.arange(model.n_factors)
        self.apply = (
            model.directed
            and model.n_factors == model.n_variables
            and bool((self._factor >= 0).all())
            and _sum_to_one(model, children)
        )
        """False where a part would not do: no network, or distributions that do not sum to one."""

    def of(self, variables: Iterable[int]) -> tuple[Model, dict[int, int]]:
        """A network of these variables and all their ancestors, and the number that each has in it."""
        place: dict[int, int] = {}
        waiting = list(variables)
        while waiting:
            v = waiting.pop()
            if v not in place:
                place[v] = len(place)
                waiting += self._model.scope(int(self._factor[v])).tolist()
        factors = []
        for v in place:
            scope, log_table = self._model.factor(int(self._factor[v]))
            factors.append(([place[u] for u in scope], log_table))
        sizes = self._model.cardinalities[list(place)].tolist()
        return Model.from_factors(sizes, factors, log=True, directed=True), place


def _sum_to_one(model: Model, children: IntArray) -> bool:
    """Whether each factor is the distribution of the last variable of its scope."""
    sizes = model.cardinalities[children]
    rows = np.diff(model.table_starts) // sizes
    before = np.cumsum(rows) - rows
    starts = np.repeat(model.table_starts[:-1] - sizes * before, rows) + np.repeat(sizes, rows) * np.arange(rows.sum())
    sums = np.add.reduceat(np.exp(model.log_values), starts) if len(starts) else np.ones(0)
    return bool(np.abs(sums - 1.0).max(initial=0.0) <= TOLERANCE)
