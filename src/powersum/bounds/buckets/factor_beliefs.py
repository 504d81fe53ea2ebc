"""Beliefs of factors: the derivatives of a covering tree's bound with respect to the entries of the model's tables.

The reverse of :mod:`powersum.bounds.buckets.statics`: each factor's table was added to a node's, so that the derivative
of the bound with respect to one of its entries is the belief that the node has in all entries it was added to.
"""

from __future__ import annotations

import numpy as np

from powersum.bounds.buckets.passes import Passes
from powersum.core.arrays import FloatArray, IntArray, positions_of
from powersum.core.jit import compiled
from powersum.core.odometer import next_entry, set_strides
from powersum.model.model import Model


def factor_beliefs(passes: Passes, model: Model, order: IntArray) -> FloatArray:
    """One number for each table entry of the model, in its order, from the latest gradient of the passes.

    ``model`` and ``order`` are those that the passes were made for; a factor without variables has derivative 1.
    """
    layout = passes.layout
    wiring = layout.wiring
    # Static tables are the inputs that have no slope, in the order of their numbers.
    owner = np.repeat(np.arange(layout.n_nodes), np.diff(wiring.input_starts))
    group_node = owner[wiring.slope < 0]
    inside = layout.factor_group >= 0
    node = np.full(model.n_factors, -1, dtype=np.int64)
    node[inside] = group_node[layout.factor_group[inside]]
    beliefs = np.zeros(model.log_values.size)
    beliefs[model.table_starts[:-1][~inside]] = 1.0
    _gather(
        model.scope_starts,
        positions_of(order)[model.scope_variables],
        model.table_starts,
        model.cardinalities[order],
        node,
        layout.scope_starts,
        layout.scope_positions,
        wiring.table,
        passes.tables,
        beliefs,
    )
    return beliefs


@compiled
def _gather(
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    cardinalities: IntArray,
    home: IntArray,
    axis_starts: IntArray,
    axes: IntArray,
    home_tables: IntArray,
    tables: FloatArray,
    beliefs: FloatArray,
) -> None:
    """Add every entry of each factor's home table to the factor's entry that it has inside."""
    widest = 0
    for table in range(axis_starts.size - 1):
        widest = max(widest, axis_starts[table + 1] - axis_starts[table])
    strides = np.empty(widest, np.int64)
    sizes = np.empty(widest, np.int64)
    digits = np.empty(widest, np.int64)
    for factor in range(home.size):
        table = home[factor]
        if table < 0:
            continue
        own = axes[axis_starts[table] : axis_starts[table + 1]]
        set_strides(scope_variables[scope_starts[factor] : scope_starts[factor + 1]], cardinalities, own, strides)
        size = 1
        for axis in range(own.size):
            sizes[axis] = cardinalities[own[axis]]
            digits[axis] = 0
            size *= sizes[axis]
        target = table_starts[factor]
        for entry in range(home_tables[table], home_tables[table] + size):
            beliefs[target] += tables[entry]
            target = next_entry(target, digits[: own.size], sizes[: own.size], strides[: own.size])
