"""Static tables of a covering tree: the factors of each node, their axes turned into elimination order and added up."""

from __future__ import annotations

import numpy as np

from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray, positions_of
from powersum.core.jit import compiled
from powersum.core.odometer import add_table, set_strides
from powersum.model.model import Model


def fill_static(
    layout: Layout, model: Model, order: IntArray, pool: FloatArray, log_values: FloatArray | None = None
) -> float:
    """Write all static tables into the pool; returns the sum of factors without variables.

    ``log_values`` stand in place of those of the model.
    """
    values = model.log_values if log_values is None else log_values
    position = positions_of(order)
    pool[: layout.n_static] = 0.0
    add_factors(
        model.scope_starts,
        position[model.scope_variables],
        model.table_starts,
        values,
        model.cardinalities[order],
        layout.factor_group,
        layout.group_starts,
        layout.group_positions,
        layout.group_source,
        pool,
    )
    alone = np.flatnonzero(layout.factor_group < 0)
    return float(values[model.table_starts[alone]].sum()) if alone.size else 0.0


@compiled
def add_factors(
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    cardinalities: IntArray,
    home: IntArray,
    axis_starts: IntArray,
    axes: IntArray,
    target_starts: IntArray,
    target: FloatArray,
) -> None:
    """Add every factor's table to the table that is its ``home`` (-1: to none), which may have more axes.

    ``target_starts`` are where these tables start in ``target``; ``axes[axis_starts[h]:axis_starts[h + 1]]`` are the
    variables of table ``h``, in the order of its axes.
    """
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
        for axis in range(own.size):
            sizes[axis] = cardinalities[own[axis]]
        add_table(
            log_values,
            table_starts[factor],
            digits[: own.size],
            sizes[: own.size],
            strides[: own.size],
            target[target_starts[table] : target_starts[table + 1]],
        )
