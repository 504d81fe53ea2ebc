"""Which entry of which factor lies under each entry of a covering tree's static tables, written down once.

:mod:`powersum.bounds.buckets.statics` finds that out while it adds the factors up. Where the same tree has to take new
numbers a thousand times, and to tell how the bound depends on each of them, walking along a list is ten times quicker.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray, positions_of, starts_of
from powersum.core.jit import compiled
from powersum.core.odometer import next_entry, set_strides
from powersum.model.model import Model

Links = NDArray[np.uint32]


class FactorLinks:
    """The way from the entries of factors to those of static tables, and back.

    Parameters
    ----------
    layout
        Wiring of the tree.
    model, order
        The factors and the elimination order that it was made for.
    """

    def __init__(self, layout: Layout, model: Model, order: IntArray) -> None:
        inside = np.flatnonzero(layout.factor_group >= 0)
        groups = layout.factor_group[inside]
        self._targets = layout.group_source[groups]
        self._starts = starts_of(np.diff(layout.group_source)[groups])
        self._alone = model.table_starts[:-1][layout.factor_group < 0]
        self._links: Links = np.empty(int(self._starts[-1]), dtype=np.uint32)
        _link(
            model.scope_starts,
            positions_of(order)[model.scope_variables],
            model.table_starts,
            model.cardinalities[order],
            inside,
            groups,
            layout.group_starts,
            layout.group_positions,
            self._starts,
            self._links,
        )
        # The same the other way round: the places under each entry, one after another.
        places = np.repeat(self._targets - self._starts[:-1], np.diff(self._starts)) + np.arange(len(self._links))
        self._places: Links = places[np.argsort(self._links, kind="stable")].astype(np.uint32)
        self._place_starts = starts_of(np.bincount(self._links, minlength=model.log_values.size))

    def fill(self, log_values: FloatArray, static: FloatArray) -> float:
        """Write all static tables; returns the sum of factors without variables."""
        _fill(log_values, self._targets, self._starts, self._links, static)
        return float(log_values[self._alone].sum())

    def gather(self, slopes: FloatArray, beliefs: FloatArray) -> None:
        """Derivatives by the factors' entries from those by the static tables' entries.

        A factor without variables has derivative 1.
        """
        _gather(slopes, self._place_starts, self._places, beliefs)
        beliefs[self._alone] = 1.0


@compiled
def _link(
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    cardinalities: IntArray,
    factors: IntArray,
    groups: IntArray,
    axis_starts: IntArray,
    axes: IntArray,
    starts: IntArray,
    links: Links,
) -> None:
    """For each factor, the entry of it that meets each entry of its static table."""
    widest = 0
    for table in range(axis_starts.size - 1):
        widest = max(widest, axis_starts[table + 1] - axis_starts[table])
    strides = np.empty(widest, np.int64)
    sizes = np.empty(widest, np.int64)
    digits = np.empty(widest, np.int64)
    for number in range(factors.size):
        factor, table = factors[number], groups[number]
        own = axes[axis_starts[table] : axis_starts[table + 1]]
        set_strides(scope_variables[scope_starts[factor] : scope_starts[factor + 1]], cardinalities, own, strides)
        for axis in range(own.size):
            sizes[axis] = cardinalities[own[axis]]
            digits[axis] = 0
        entry = table_starts[factor]
        for link in range(starts[number], starts[number + 1]):
            links[link] = entry
            entry = next_entry(entry, digits[: own.size], sizes[: own.size], strides[: own.size])


@compiled
def _fill(log_values: FloatArray, targets: IntArray, starts: IntArray, links: Links, static: FloatArray) -> None:
    # Places are unsigned here and below: no test whether they count from the end.
    for entry in range(static.size):
        static[entry] = 0.0
    for number in range(targets.size):
        target, first = np.uint64(targets[number]), np.uint64(starts[number])
        for entry in range(np.uint64(starts[number + 1] - starts[number])):
            static[target + entry] += log_values[links[first + entry]]


@compiled
def _gather(slopes: FloatArray, starts: IntArray, places: Links, beliefs: FloatArray) -> None:
    # Two sums that do not wait for each other, or for what was written a moment ago.
    for entry in range(beliefs.size):
        place, end = np.uint64(starts[entry]), np.uint64(starts[entry + 1])
        even, odd = 0.0, 0.0
        while place + np.uint64(1) < end:
            even += slopes[places[place]]
            odd += slopes[places[place + np.uint64(1)]]
            place += np.uint64(2)
        if place < end:
            even += slopes[places[place]]
        beliefs[entry] = even + odd
