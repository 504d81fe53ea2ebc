"""Scopes as rising sequences of positions in the elimination order: unions, intersections, sizes (compiled).

Plain loops throughout: slice assignments, sorts and fancy indices of Numba take seconds each to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, positions_of, starts_of
from powersum.core.jit import inner
from powersum.model.model import Model


class Scopes(NamedTuple):
    """The factors of a model by positions in the order; positions rise within a scope."""

    starts: IntArray
    positions: IntArray
    log_sizes: FloatArray
    """Log of the number of states of the variable at each position."""


def scopes_in_order(model: Model, order: IntArray) -> Scopes:
    """The scopes of all factors as positions in the elimination order, sorted."""
    position = positions_of(order)
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    places = position[model.scope_variables]
    places = places[np.lexsort((places, owner))]
    log_sizes = np.log(model.cardinalities[order].astype(np.float64))
    return Scopes(starts_of(np.diff(model.scope_starts)), places, log_sizes)


@inner
def union_of(first: IntArray, second: IntArray, out: IntArray) -> int:
    """Merge two scopes into ``out``; returns the length."""
    i, j, n = 0, 0, 0
    while i < first.size or j < second.size:
        if j == second.size or (i < first.size and first[i] < second[j]):
            value = first[i]
            i += 1
        else:
            value = second[j]
            if i < first.size and first[i] == value:
                i += 1
            j += 1
        out[n] = value
        n += 1
    return n


@inner
def intersection_of(first: IntArray, second: IntArray, out: IntArray) -> int:
    """Write what two scopes share into ``out``; returns the length."""
    i, j, n = 0, 0, 0
    while i < first.size and j < second.size:
        if first[i] == second[j]:
            out[n] = first[i]
            n += 1
            i += 1
            j += 1
        elif first[i] < second[j]:
            i += 1
        else:
            j += 1
    return n


@inner
def log_size_of(scope: IntArray, count: int, log_sizes: FloatArray) -> float:
    """Log of the number of table entries of the first ``count`` variables of a scope."""
    total = 0.0
    for i in range(count):
        total += log_sizes[scope[i]]
    return total
