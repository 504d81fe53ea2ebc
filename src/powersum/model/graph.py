"""Graphs behind a set of scopes: incidence, adjacency, components, colours. Flat arrays in, flat arrays out.

Every function takes ``(n_variables, scope_starts, scope_variables)`` as in
:class:`powersum.model.model.Model`, so that it serves the cliques of any structure, not only the factors of a model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import IntArray, frozen
from powersum.core.jit import compiled


class Incidence(NamedTuple):
    """Where each variable occurs: variable ``v`` owns the entries from ``starts[v]`` to ``starts[v + 1]``.

    ``factors`` holds the number of the factor, ``positions`` the axis of the variable in its scope.
    """

    starts: IntArray
    factors: IntArray
    positions: IntArray


class Adjacency(NamedTuple):
    """The primal graph: the neighbours of ``v``, ascending, are ``neighbours[starts[v]:starts[v + 1]]``."""

    starts: IntArray
    neighbours: IntArray


class ColourClasses(NamedTuple):
    """A proper colouring: the variables of colour ``c``, ascending, are ``variables[starts[c]:starts[c + 1]]``."""

    starts: IntArray
    variables: IntArray


def incidence(
    n_variables: int, scope_starts: IntArray, scope_variables: IntArray, factor_order: IntArray | None = None
) -> Incidence:
    """Factors of each variable, listed in ``factor_order`` (by number unless given)."""
    order = np.arange(len(scope_starts) - 1) if factor_order is None else factor_order
    return Incidence(*_incidence(n_variables, *_read_only(scope_starts, scope_variables, order)))


def adjacency(n_variables: int, scope_starts: IntArray, scope_variables: IntArray) -> Adjacency:
    """The primal graph: two variables are neighbours when some scope holds both."""
    places = incidence(n_variables, scope_starts, scope_variables)
    return Adjacency(*_adjacency(*_read_only(scope_starts, scope_variables, places.starts, places.factors)))


def components(n_variables: int, scope_starts: IntArray, scope_variables: IntArray) -> IntArray:
    """Number of the connected component of each variable; components are numbered by their first variable."""
    return _components(n_variables, *_read_only(scope_starts, scope_variables))


def colour_classes(n_variables: int, scope_starts: IntArray, scope_variables: IntArray) -> ColourClasses:
    """Greedy colouring in the order of the variables: no two variables of one scope share a colour."""
    places, factors = incidence(n_variables, scope_starts, scope_variables)[:2]
    colour = _colours(*_read_only(scope_starts, scope_variables, places, factors))
    del places, factors
    starts = np.zeros(int(colour.max(initial=-1)) + 2, dtype=np.int64)
    np.cumsum(np.bincount(colour, minlength=len(starts) - 1), out=starts[1:])
    # The narrowest type lets NumPy sort by radix; the sort is stable, so each class stays ascending.
    narrow = colour.astype(np.uint16) if len(starts) < 2**16 else colour
    return ColourClasses(starts, np.argsort(narrow, kind="stable"))


def _read_only(*arrays: IntArray) -> tuple[IntArray, ...]:
    """The arrays as read-only views: Numba compiles a kernel again for each mixture of writable and not."""
    return tuple(frozen(array, np.int64) for array in arrays)


@compiled
def _incidence(
    n_variables: int, scope_starts: IntArray, scope_variables: IntArray, factor_order: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    starts = np.zeros(n_variables + 1, np.int64)
    for v in scope_variables:
        starts[v + 1] += 1
    for v in range(n_variables):
        starts[v + 1] += starts[v]
    fill = starts.copy()
    factors = np.empty(len(scope_variables), np.int64)
    positions = np.empty(len(scope_variables), np.int64)
    for k in factor_order:
        for place in range(scope_starts[k], scope_starts[k + 1]):
            at = fill[scope_variables[place]]
            factors[at] = k
            positions[at] = place - scope_starts[k]
            fill[scope_variables[place]] = at + 1
    return starts, factors, positions


@compiled
def _adjacency(
    scope_starts: IntArray, scope_variables: IntArray, starts: IntArray, factors: IntArray
) -> tuple[IntArray, IntArray]:
    n_variables = len(starts) - 1
    seen_by = np.full(n_variables, -1, np.int64)
    rows = np.zeros(n_variables + 1, np.int64)
    neighbours = np.empty(0, np.int64)
    for counting in (True, False):
        for v in range(n_variables):
            seen_by[v] = -1
        for v in range(n_variables):
            seen_by[v] = v
            for at in range(starts[v], starts[v + 1]):
                k = factors[at]
                for place in range(scope_starts[k], scope_starts[k + 1]):
                    u = scope_variables[place]
                    if seen_by[u] == v:
                        continue
                    seen_by[u] = v
                    if counting:
                        rows[u + 1] += 1
                    else:
                        # Written to the neighbour's row, for v ascends: every row comes out sorted.
                        neighbours[rows[u]] = v
                        rows[u] += 1
        if counting:
            for v in range(n_variables):
                rows[v + 1] += rows[v]
            neighbours = np.empty(rows[n_variables], np.int64)
    # Filling moved each start to the next one.
    for v in range(n_variables, 0, -1):
        rows[v] = rows[v - 1]
    rows[0] = 0
    return rows, neighbours


@compiled
def _components(n_variables: int, scope_starts: IntArray, scope_variables: IntArray) -> IntArray:
    parent = np.arange(n_variables)
    for k in range(len(scope_starts) - 1):
        for place in range(scope_starts[k] + 1, scope_starts[k + 1]):
            a = scope_variables[place - 1]
            b = scope_variables[place]
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            # The smaller number is the root, so that a root comes before all of its variables below.
            if a < b:
                parent[b] = a
            else:
                parent[a] = b
    label = np.empty(n_variables, np.int64)
    count = 0
    for v in range(n_variables):
        if parent[v] == v:
            label[v] = count
            count += 1
        else:
            # parent[v] < v holds for all v, so its label is known.
            label[v] = label[parent[v]]
    return label


@compiled
def _colours(scope_starts: IntArray, scope_variables: IntArray, starts: IntArray, factors: IntArray) -> IntArray:
    n_variables = len(starts) - 1
    colour = np.full(n_variables, -1, np.int64)
    used_by = np.full(n_variables + 1, -1, np.int64)
    for v in range(n_variables):
        for at in range(starts[v], starts[v + 1]):
            k = factors[at]
            for place in range(scope_starts[k], scope_starts[k + 1]):
                c = colour[scope_variables[place]]
                if c >= 0:
                    used_by[c] = v
        c = 0
        while used_by[c] == v:
            c += 1
        colour[v] = c
    return colour
