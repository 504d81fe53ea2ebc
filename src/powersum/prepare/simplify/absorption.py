"""Absorb every factor whose scope lies within another's: one table fewer, and a tighter bound."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, frozen
from powersum.core.jit import compiled
from powersum.core.odometer import add_table, set_strides
from powersum.model.graph import incidence
from powersum.prepare.simplify.tables import Tables


def absorb(tables: Tables) -> Tables:
    """Add each table whose scope is a subset of (or equal to) another scope to the smallest such table."""
    # Small scopes first: what a table absorbed goes on with it when it is absorbed itself.
    lengths = np.diff(tables.scope_starts)
    narrow = lengths.astype(np.uint16) if lengths.max(initial=0) < 2**16 else lengths
    by_length = np.argsort(narrow, kind="stable")
    places = incidence(len(tables.cardinalities), tables.scope_starts, tables.scope_variables, by_length)
    log_values = tables.log_values.copy()
    host = _absorb(
        tables.cardinalities,
        tables.scope_starts,
        tables.scope_variables,
        tables.table_starts,
        frozen(places.starts, np.int64),
        frozen(places.factors, np.int64),
        frozen(by_length, np.int64),
        log_values,
    )
    keep = host < 0
    if keep.all():
        return tables
    # A host may have been absorbed itself: on to the last.
    last = np.where(keep, np.arange(len(host)), host)
    while not keep[last].all():
        last = last[last]
    return Tables(
        tables.cardinalities,
        tables.scope_starts,
        tables.scope_variables,
        tables.table_starts,
        log_values,
        np.append(last, -1)[tables.table_of],
    ).select(keep)


@compiled
def _absorb(
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    incident_starts: IntArray,
    incident_factors: IntArray,
    by_length: IntArray,
    log_values: FloatArray,
) -> IntArray:
    """The table that each table was added to, -1 for those that are kept."""
    n_factors = len(by_length)
    hosts = np.full(n_factors, -1, np.int64)
    # A few bits for each scope: most pairs that are no subsets show it here already.
    sketch = np.zeros(n_factors, np.uint64)
    for k in range(n_factors):
        for place in range(scope_starts[k], scope_starts[k + 1]):
            sketch[k] |= np.uint64(1) << np.uint64((scope_variables[place] * 40503 >> 4) & 63)
    # Factors before this point of a variable's list are done: only longer scopes, and later equal ones, can be hosts.
    done = incident_starts[:-1].copy()
    widest = 0
    for k in range(n_factors):
        widest = max(widest, scope_starts[k + 1] - scope_starts[k])
    strides = np.empty(widest, np.int64)
    sizes = np.empty(widest, np.int64)
    digits = np.empty(widest, np.int64)
    for k in by_length:
        first, last = scope_starts[k], scope_starts[k + 1]
        if first == last:
            continue
        rarest = scope_variables[first]
        for place in range(first, last):
            v = scope_variables[place]
            done[v] += 1
            if incident_starts[v + 1] - done[v] < incident_starts[rarest + 1] - done[rarest]:
                rarest = v
        host = -1
        for at in range(done[rarest], incident_starts[rarest + 1]):
            other = incident_factors[at]
            if sketch[k] & ~sketch[other]:
                continue
            inside = True
            for place in range(first, last):
                found = False
                for there in range(scope_starts[other], scope_starts[other + 1]):
                    found = found or scope_variables[there] == scope_variables[place]
                inside = inside and found
            if inside:
                host = other
                break
        if host < 0:
            continue
        hosts[k] = host
        axes = scope_variables[scope_starts[host] : scope_starts[host + 1]]
        set_strides(scope_variables[first:last], cardinalities, axes, strides)
        for axis in range(axes.size):
            sizes[axis] = cardinalities[axes[axis]]
        add_table(
            log_values,
            table_starts[k],
            digits[: axes.size],
            sizes[: axes.size],
            strides[: axes.size],
            log_values[table_starts[host] : table_starts[host + 1]],
        )
    return hosts
