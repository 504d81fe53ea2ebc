"""Remove states from tables for good: fewer entries, and as a rule no axis where only one state is left."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, starts_of
from powersum.core.jit import compiled
from powersum.prepare.simplify.tables import Tables


def restrict(tables: Tables, possible: BoolArray, *, keep_axes: bool = False) -> Tables:
    """The tables over the ``possible`` states alone; variables with a single state leave every scope.

    With ``keep_axes`` they stay, as axes of length 1: every scope is then what it was.
    """
    if possible.all() and (keep_axes or bool((tables.cardinalities[tables.scope_variables] > 1).all())):
        return tables
    owner = np.repeat(np.arange(len(tables.cardinalities)), tables.cardinalities)
    kept = np.flatnonzero(possible)
    cardinalities = np.bincount(owner[kept], minlength=len(tables.cardinalities))
    # Numbers of the kept states within their variables.
    kept -= starts_of(tables.cardinalities)[owner[kept]]
    scope_starts, scope_variables, table_starts, log_values = _restrict(
        tables.cardinalities,
        tables.scope_starts,
        tables.scope_variables,
        tables.table_starts,
        tables.log_values,
        frozen(cardinalities, np.int64),
        frozen(starts_of(cardinalities), np.int64),
        frozen(kept, np.int64),
        0 if keep_axes else 1,
    )
    return Tables(cardinalities, scope_starts, scope_variables, table_starts, log_values, tables.table_of)


@compiled
def _restrict(
    old_cardinalities: IntArray,
    old_scope_starts: IntArray,
    old_scope_variables: IntArray,
    old_table_starts: IntArray,
    old_log_values: FloatArray,
    cardinalities: IntArray,
    kept_starts: IntArray,
    kept: IntArray,
    shortest: int,
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Axes of at most ``shortest`` states leave the scopes; 0 keeps all of them."""
    n_factors = len(old_scope_starts) - 1
    scope_starts = np.zeros(n_factors + 1, np.int64)
    table_starts = np.zeros(n_factors + 1, np.int64)
    widest = 0
    for k in range(n_factors):
        length, size = 0, 1
        for place in range(old_scope_starts[k], old_scope_starts[k + 1]):
            v = old_scope_variables[place]
            length += cardinalities[v] > shortest
            size *= cardinalities[v]
        scope_starts[k + 1] = scope_starts[k] + length
        table_starts[k + 1] = table_starts[k] + size
        widest = max(widest, length)

    scope_variables = np.empty(scope_starts[-1], np.int64)
    log_values = np.empty(table_starts[-1], np.float64)
    strides = np.empty(widest, np.int64)
    digits = np.empty(widest, np.int64)
    for k in range(n_factors):
        source = old_table_starts[k]
        stride = 1
        axis = scope_starts[k + 1] - scope_starts[k]
        for place in range(old_scope_starts[k + 1] - 1, old_scope_starts[k] - 1, -1):
            v = old_scope_variables[place]
            source += kept[kept_starts[v]] * stride
            if cardinalities[v] > shortest:
                axis -= 1
                scope_variables[scope_starts[k] + axis] = v
                strides[axis] = stride
                digits[axis] = 0
            stride *= old_cardinalities[v]
        # An odometer over the kept states alone: unlike those of `core.odometer`, its steps differ in length.
        for entry in range(table_starts[k], table_starts[k + 1]):
            log_values[entry] = old_log_values[source]
            axis = scope_starts[k + 1] - scope_starts[k] - 1
            while axis >= 0:
                v = scope_variables[scope_starts[k] + axis]
                at = kept_starts[v] + digits[axis]
                if digits[axis] + 1 < cardinalities[v]:
                    digits[axis] += 1
                    source += (kept[at + 1] - kept[at]) * strides[axis]
                    break
                digits[axis] = 0
                source -= (kept[at] - kept[kept_starts[v]]) * strides[axis]
                axis -= 1
    return scope_starts, scope_variables, table_starts, log_values
