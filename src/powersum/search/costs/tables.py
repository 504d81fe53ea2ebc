"""Costs in whole numbers: what each table entry loses against the best of its table, rounded down.

In whole numbers costs can be moved between tables as often as one likes without any rounding: what is found out about
them is exact. The one rounding is here. Every cost is at most what the entry truly loses, so that the least cost of all
configurations bounds the largest value from above.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, starts_of
from powersum.core.speed import COST_NODE, COST_SWEEP
from powersum.model.factors import factors_of
from powersum.model.graph import incidence
from powersum.model.model import Model

MOST_BITS = 60.0
"""No sum of costs over all tables has more bits than this, so that nothing overflows."""

MOST_PRECISE = 2.0**44
"""Units of a natural log at most: differences of double-precision tables mean nothing beyond."""

LOST = 2
"""Units by which a rounded cost may be below the true one: the one rounded down, and one for computing it."""


NODE_SWEEPS = 4.0
"""A node takes as long as so many sweeps, where every pair of variables has a table."""


class CostTables(NamedTuple):
    """Costs of a model's tables, and how they hang together; never changed.

    A *place* is one variable of one scope. ``tables`` is laid out as the model's own tables are, from
    ``table_starts[f]`` on. Numbers that move between tables are kept in cells (:mod:`powersum.search.costs.cells`):
    states of variable ``v`` from ``state_starts[v]`` on, states of a place from ``delta_starts[place]`` on.
    """

    cardinalities: IntArray
    state_starts: IntArray
    scope_starts: IntArray
    scope_variables: IntArray
    strides: IntArray
    delta_starts: IntArray
    table_starts: IntArray
    tables: IntArray
    incident_starts: IntArray
    incident: IntArray
    positions: IntArray


class Costs:
    """A model as a problem of least cost.

    Parameters
    ----------
    model
        The model; zeros are allowed.

    Attributes
    ----------
    tables
        The costs.
    hard
        More than any configuration without a zero costs; an entry of value 0 costs this much.
    scale
        Units of one natural log.
    """

    def __init__(self, model: Model) -> None:
        factors = factors_of(model)
        places = incidence(model.n_variables, model.scope_starts, model.scope_variables)
        sizes = np.diff(model.table_starts)
        values = model.log_values
        possible = values > -math.inf
        highest = np.zeros(model.n_factors)
        lowest = np.zeros(model.n_factors)
        if model.n_factors:
            highest = np.maximum.reduceat(values, model.table_starts[:-1])
            lowest = np.minimum.reduceat(np.where(possible, values, np.inf), model.table_starts[:-1])
        # A table of nothing but zeros has no best entry: all of its entries are as good as impossible.
        some = np.isfinite(highest)
        highest, lowest = np.where(some, highest, 0.0), np.where(some, lowest, 0.0)
        losses = float((highest - lowest).sum())
        with_zeros = 1 if not len(sizes) else int(np.logical_or.reduceat(~possible, model.table_starts[:-1]).sum()) + 1
        bits = MOST_BITS - math.log2(with_zeros) - math.log2(max(losses, 1.0))
        self.scale = 2.0 ** math.floor(min(bits - 1.0, math.log2(MOST_PRECISE)))
        self.hard = int(losses * self.scale) + model.n_factors + 2
        costs = _rounded_down(values, possible, np.repeat(highest, sizes), self.scale)
        costs[~possible] = self.hard
        self._log_best = math.fsum(highest)
        self._log_magnitude = float(np.abs(highest).sum())
        self.model = model
        self.tables = CostTables(
            frozen(model.cardinalities, np.int64),
            frozen(starts_of(model.cardinalities), np.int64),
            frozen(model.scope_starts, np.int64),
            frozen(model.scope_variables, np.int64),
            frozen(factors.strides, np.int64),
            frozen(starts_of(model.cardinalities[model.scope_variables]), np.int64),
            frozen(model.table_starts, np.int64),
            frozen(costs, np.int64),
            frozen(places.starts, np.int64),
            frozen(places.factors, np.int64),
            frozen(places.positions, np.int64),
        )

    @staticmethod
    def bytes_needed(model: Model) -> float:
        """Memory for the costs of a model, and for cells and trails of two searches, while they are built."""
        n_states = float(model.cardinalities.sum())
        n_moved = float(model.cardinalities[model.scope_variables].sum())
        return 24.0 * len(model.log_values) + 128.0 * (2.0 * n_states + n_moved + model.n_variables) + 6e6

    @staticmethod
    def sweep_seconds(model: Model) -> float:
        """About how long it takes to look at all tables of more than two variables once for each of these."""
        arities = np.diff(model.scope_starts).astype(np.float64)
        steps = arities * arities * np.diff(model.table_starts)
        return COST_SWEEP * float(steps[arities > 2].sum())

    def log_upper(self, cost: int) -> float:
        """The largest value that a configuration of at least this cost can have; ``-inf`` where that has a zero."""
        if cost >= self.hard:
            return -math.inf
        return self._log_best - cost / self.scale

    def cost_at(self, log_value: float) -> int:
        """A cost such that :meth:`log_upper` of it is about this value."""
        return int(min(max((self._log_best - log_value) * self.scale, 0.0), float(self.hard)))

    @property
    def log_error(self) -> float:
        """How far rounding can have moved :meth:`log_upper` downwards: the cost itself is rounded in the other way."""
        return 2.0**-50 * (abs(self._log_best) + self._log_magnitude + self.hard / self.scale + 1.0)

    @property
    def log_slack(self) -> float:
        """How far :meth:`log_upper` of a configuration's own cost can be above its value."""
        return LOST * self.model.n_factors / self.scale + self.log_error


def _rounded_down(values: FloatArray, possible: BoolArray, best: FloatArray, scale: float) -> IntArray:
    """What possible entries lose against the best, in units, rounded down; written over ``best``, tables are large."""
    best[~possible] = 0.0
    np.subtract(best, values, out=best, where=possible)
    # The difference was computed with one rounding; the product with a power of two has none.
    best *= scale * (1.0 - 2.0**-50)
    np.floor(best, out=best)
    best -= 1.0
    return np.maximum(best, 0.0, out=best).astype(np.int64)


def node_seconds(tables: CostTables) -> float:
    """What a node of the search takes, about: where all variables share tables, costs of all tables move at each."""
    n_variables, n_tables = len(tables.cardinalities), len(tables.table_starts) - 1
    pairs = 0.5 * n_variables * max(n_variables - 1, 1)
    return COST_NODE * n_variables + NODE_SWEEPS * COST_SWEEP * len(tables.tables) * min(
        1.0, n_tables / max(pairs, 1.0)
    )
