"""Static tables of a covering tree: the factors of each node, their axes turned into elimination order and added up."""

from __future__ import annotations

import numpy as np

from powersum.bounds.buckets.wiring import Layout
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.model.model import Model


def fill_static(layout: Layout, model: Model, order: IntArray, pool: FloatArray) -> float:
    """Write all static tables into the pool; returns the sum of factors without variables."""
    position = np.empty(model.n_variables, dtype=np.int64)
    position[order] = np.arange(model.n_variables)
    pool[: layout.n_static] = 0.0
    _fill(
        layout.group_starts,
        layout.group_positions,
        layout.group_source,
        layout.factor_group,
        model.cardinalities[order],
        model.scope_starts,
        position[model.scope_variables],
        model.table_starts,
        model.log_values,
        pool,
    )
    alone = np.flatnonzero(layout.factor_group < 0)
    return float(model.log_values[model.table_starts[alone]].sum()) if alone.size else 0.0


@compiled
def _fill(
    group_starts: IntArray,
    group_positions: IntArray,
    group_source: IntArray,
    factor_group: IntArray,
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_positions: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    pool: FloatArray,
) -> None:
    for factor in range(factor_group.size):
        group = factor_group[factor]
        if group < 0:
            continue
        axes = group_positions[group_starts[group] : group_starts[group + 1]]
        strides = np.zeros(axes.size, np.int64)
        stride = 1
        for i in range(scope_starts[factor + 1] - 1, scope_starts[factor] - 1, -1):
            for axis in range(axes.size):
                if axes[axis] == scope_positions[i]:
                    strides[axis] = stride
            stride *= cardinalities[scope_positions[i]]
        digits = np.zeros(axes.size, np.int64)
        place = table_starts[factor]
        for entry in range(group_source[group], group_source[group + 1]):
            pool[entry] += log_values[place]
            axis = axes.size - 1
            while axis >= 0:
                digits[axis] += 1
                place += strides[axis]
                if digits[axis] < cardinalities[axes[axis]]:
                    break
                place -= digits[axis] * strides[axis]
                digits[axis] = 0
                axis -= 1
