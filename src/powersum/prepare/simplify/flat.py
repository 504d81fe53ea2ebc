"""Axes on which a table does not depend: they leave its scope, and the graph loses edges that mean nothing."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.core.jit import compiled
from powersum.prepare.simplify.tables import Tables


def drop_flat_axes(tables: Tables) -> Tables:
    """The tables without the axes along which all entries are equal, to the last bit; the object itself if none is."""
    flat = _flat_axes(
        tables.cardinalities, tables.scope_starts, tables.scope_variables, tables.table_starts, tables.log_values
    )
    if not flat.any():
        return tables
    owner = np.repeat(np.arange(tables.n_factors), np.diff(tables.scope_starts))
    sizes = np.diff(tables.table_starts).copy()
    pieces: dict[int, FloatArray] = {}
    for factor in np.unique(owner[flat]).tolist():
        places = slice(int(tables.scope_starts[factor]), int(tables.scope_starts[factor + 1]))
        shape = tables.cardinalities[tables.scope_variables[places]]
        table = tables.log_values[tables.table_starts[factor] : tables.table_starts[factor + 1]].reshape(shape)
        first = tuple(0 if gone else slice(None) for gone in flat[places])
        pieces[factor] = np.asarray(table[first]).ravel()
        sizes[factor] = pieces[factor].size
    starts = starts_of(sizes)
    log_values = np.empty(int(starts[-1]))
    touched = np.zeros(tables.n_factors, dtype=np.bool_)
    touched[list(pieces)] = True
    log_values[np.repeat(~touched, sizes)] = tables.log_values[np.repeat(~touched, np.diff(tables.table_starts))]
    for factor, piece in pieces.items():
        log_values[starts[factor] : starts[factor + 1]] = piece
    lengths = np.bincount(owner[~flat], minlength=tables.n_factors)
    return Tables(
        tables.cardinalities, starts_of(lengths), tables.scope_variables[~flat], starts, log_values, tables.table_of
    )


@compiled
def _flat_axes(
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
) -> BoolArray:
    flat = np.zeros(scope_variables.size, np.bool_)
    for factor in range(scope_starts.size - 1):
        stride = 1
        for place in range(scope_starts[factor + 1] - 1, scope_starts[factor] - 1, -1):
            card = cardinalities[scope_variables[place]]
            # Entries one state apart along this axis; the first pair that differs ends it.
            same = card > 1
            step = stride * card
            entry = table_starts[factor]
            while same and entry < table_starts[factor + 1]:
                for at in range(entry, entry + step - stride):
                    if log_values[at] != log_values[at + stride]:
                        same = False
                        break
                entry += step
            flat[place] = same
            stride = step
    return flat
