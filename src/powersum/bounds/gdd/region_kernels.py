"""Compiled loops that build the wiring of :mod:`powersum.bounds.gdd.regions`; run once for each problem."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled, inner


@inner
def next_entry(entry: int, state: IntArray, stride: IntArray, axis_card: IntArray, first: int, n_axes: int) -> int:
    """Count ``state`` of the axes from ``first`` on up by one, last axis fastest; ``entry`` of a table with ``stride``.

    After the last state it begins anew.
    """
    for a in range(n_axes - 1, -1, -1):
        state[a] += 1
        entry += stride[a]
        if state[a] < axis_card[first + a]:
            break
        entry -= stride[a] * state[a]
        state[a] = 0
    return entry


@inner
def widest_of(axis_start: IntArray) -> int:
    """The largest number of axes that a region has."""
    widest = 0
    for region in range(len(axis_start) - 1):
        widest = max(widest, axis_start[region + 1] - axis_start[region])
    return widest


@compiled
def add_factors(
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    cardinalities: IntArray,
    factor_cluster: IntArray,
    axis_start: IntArray,
    axis_variable: IntArray,
    axis_card: IntArray,
    table_start: IntArray,
    theta: FloatArray,
) -> None:
    """Add every factor's table into its cluster's table, whose axes may be more and in another order."""
    widest = widest_of(axis_start)
    stride = np.zeros(widest, dtype=np.int64)
    state = np.zeros(widest, dtype=np.int64)
    for k in range(len(scope_starts) - 1):
        cluster = factor_cluster[k]
        first = axis_start[cluster]
        n_axes = axis_start[cluster + 1] - first
        for a in range(n_axes):
            stride[a] = 0
            state[a] = 0
        step = 1
        for j in range(scope_starts[k + 1] - 1, scope_starts[k] - 1, -1):
            variable = scope_variables[j]
            for a in range(n_axes):
                if axis_variable[first + a] == variable:
                    stride[a] = step
            step *= cardinalities[variable]
        source = table_starts[k]
        for target in range(table_start[cluster], table_start[cluster + 1]):
            theta[target] += log_values[source]
            source = next_entry(source, state, stride, axis_card, first, n_axes)


@compiled
def fill_separator_maps(
    block_start: IntArray,
    member_region: IntArray,
    block_size: IntArray,
    block_variable: IntArray,
    n_clusters: int,
    axis_start: IntArray,
    axis_variable: IntArray,
    axis_card: IntArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """For each member: first touched axis, entries from there on, and the separator entry each of them belongs to.

    One-variable separators need no map: they are the leading axis of what remains.
    """
    n_members = len(member_region)
    member_first = np.zeros(n_members, dtype=np.int64)
    member_entries = np.ones(n_members, dtype=np.int64)
    member_map = np.full(n_members, -1, dtype=np.int64)
    total = 0
    for b in range(len(block_start) - 1):
        separator = member_region[block_start[b]]
        shifts = block_size[b] > 0
        leading = axis_variable[axis_start[separator]] if shifts else block_variable[b]
        wide = shifts and axis_start[separator + 1] - axis_start[separator] > 1
        for m in range(block_start[b], block_start[b + 1]):
            region = member_region[m]
            for a in range(axis_start[region], axis_start[region + 1]):
                if axis_variable[a] == leading:
                    member_first[m] = a - axis_start[region]
            for a in range(axis_start[region] + member_first[m], axis_start[region + 1]):
                member_entries[m] *= axis_card[a]
            if wide:
                member_map[m] = total
                total += member_entries[m]
    separator_map = np.zeros(total, dtype=np.int64)
    widest = widest_of(axis_start)
    stride = np.zeros(widest, dtype=np.int64)
    state = np.zeros(widest, dtype=np.int64)
    for b in range(len(block_start) - 1):
        separator = member_region[block_start[b]]
        for m in range(block_start[b], block_start[b + 1]):
            if member_map[m] < 0:
                continue
            region = member_region[m]
            first = axis_start[region] + member_first[m]
            n_axes = axis_start[region + 1] - first
            for a in range(n_axes):
                stride[a] = 0
                state[a] = 0
            step = 1
            for j in range(axis_start[separator + 1] - 1, axis_start[separator] - 1, -1):
                for a in range(n_axes):
                    if axis_variable[first + a] == axis_variable[j]:
                        stride[a] = step
                step *= axis_card[j]
            index = 0
            for j in range(member_map[m], member_map[m] + member_entries[m]):
                separator_map[j] = index
                index = next_entry(index, state, stride, axis_card, first, n_axes)
    return member_first, member_entries, member_map, separator_map


@compiled
def remove_impossible_tuples(
    block_start: IntArray,
    block_size: IntArray,
    member_region: IntArray,
    member_entries: IntArray,
    member_map: IntArray,
    separator_map: IntArray,
    table_start: IntArray,
    theta: FloatArray,
) -> None:
    """Make a separator's tuple ``-inf`` in all its regions once any of them excludes it, to a fixpoint.

    Afterwards every max-marginal and every belief of a block is either positive in all its members or in none, so
    that no shift is ever infinite. Tuples of one variable are states, which simplification has already removed.
    """
    largest = 1
    for b in range(len(block_size)):
        largest = max(largest, block_size[b])
    possible = np.empty(largest, dtype=np.bool_)
    supported = np.empty(largest, dtype=np.bool_)
    again = True
    while again:
        again = False
        for b in range(len(block_size)):
            if block_size[b] == 0 or member_map[block_start[b]] < 0:
                continue
            possible[: block_size[b]] = True
            for m in range(block_start[b], block_start[b + 1]):
                supported[: block_size[b]] = False
                start = table_start[member_region[m]]
                for j in range(table_start[member_region[m] + 1] - start):
                    if theta[start + j] > -np.inf:
                        supported[separator_map[member_map[m] + j % member_entries[m]]] = True
                for x in range(block_size[b]):
                    possible[x] &= supported[x]
            for m in range(block_start[b], block_start[b + 1]):
                start = table_start[member_region[m]]
                for j in range(table_start[member_region[m] + 1] - start):
                    supports = possible[separator_map[member_map[m] + j % member_entries[m]]]
                    if not supports and theta[start + j] > -np.inf:
                        theta[start + j] = -np.inf
                        again = True
