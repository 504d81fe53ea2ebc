"""Mini-bucket partitioning: which factors and messages are eliminated together (wiring only, compiled, no tables).

Variables are spoken of by their position in the elimination order. Each bucket holds the factors and messages whose
first variable is its own; its items are put together into mini-buckets of limited size, and the message of each
mini-bucket goes on to the bucket of its next variable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.arrays import FloatArray, IntArray, starts_of
from powersum.compiled import compiled
from powersum.model import Model


class Scopes(NamedTuple):
    """The factors of a model by positions in the order; positions rise within a scope."""

    starts: IntArray
    positions: IntArray
    log_sizes: FloatArray
    """Log of the number of states of the variable at each position."""


class Partition(NamedTuple):
    """Mini-buckets, numbered so that messages only go to larger numbers."""

    bucket: IntArray
    """Position of the variable that each mini-bucket eliminates."""
    starts: IntArray
    positions: IntArray
    """Scope of mini-bucket n: ``positions[starts[n]:starts[n + 1]]``, rising, the eliminated variable first."""
    parent: IntArray
    """Mini-bucket that receives the message; -1 where the message is a number."""
    factor_home: IntArray
    """Mini-bucket of each factor; -1 for a factor without variables."""
    edges: IntArray
    """Pairs of mini-buckets of one variable that exchange a shift: a spanning tree over those of each variable."""


def scopes_in_order(model: Model, order: IntArray) -> Scopes:
    """The scopes of all factors as positions in the elimination order, sorted."""
    position = np.empty(model.n_variables, dtype=np.int64)
    position[order] = np.arange(model.n_variables)
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    places = position[model.scope_variables]
    places = places[np.lexsort((places, owner))]
    log_sizes = np.log(model.cardinalities[order].astype(np.float64))
    return Scopes(starts_of(np.diff(model.scope_starts)), places, log_sizes)


def partition(scopes: Scopes, max_variables: int, max_log_size: float) -> Partition:
    """Partition every bucket into mini-buckets of at most so many variables and so many table entries.

    An item that is too large by itself is a mini-bucket of its own. Items are taken by falling size, each is put
    where it shares most with what is already there.
    """
    n_variables = len(scopes.log_sizes)
    smallest = max(float(scopes.log_sizes.min(initial=np.inf)), 1e-6)
    room = min(float(max_variables), max_log_size / smallest + 1.0, float(n_variables))
    return Partition(*_partition(scopes, int(max(room, 1.0)), max_log_size + 1e-9))


@compiled
def _union(buffer: IntArray, start: int, end: int, other: IntArray, out: IntArray) -> int:
    """Merge two rising sequences into ``out``; returns the length."""
    i, j, n = start, 0, 0
    while i < end or j < other.size:
        if j == other.size or (i < end and buffer[i] < other[j]):
            value = buffer[i]
            i += 1
        else:
            value = other[j]
            if i < end and buffer[i] == value:
                i += 1
            j += 1
        out[n] = value
        n += 1
    return n


@compiled
def _shared(first: IntArray, second: IntArray, log_sizes: FloatArray) -> float:
    """Log of the table size of the intersection of two rising scopes."""
    i, j, size = 0, 0, 0.0
    while i < first.size and j < second.size:
        if first[i] == second[j]:
            size += log_sizes[first[i]]
            i += 1
            j += 1
        elif first[i] < second[j]:
            i += 1
        else:
            j += 1
    return size


@compiled
def _grown(array: IntArray, needed: int) -> IntArray:
    """``array`` with room for ``needed`` entries."""
    if needed <= array.size:
        return array
    larger = np.empty(max(2 * array.size, needed), np.int64)
    larger[: array.size] = array
    return larger


@compiled
def _partition(
    scopes: Scopes, max_variables: int, max_log_size: float
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    starts, positions, log_sizes = scopes
    n_variables, n_factors = log_sizes.size, starts.size - 1
    # Each mini-bucket takes at least one variable away from the items alive, hence no more of them than this.
    most = positions.size
    bucket = np.empty(most, np.int64)
    parent = np.full(most, -1, np.int64)
    node_starts = np.zeros(most + 1, np.int64)
    node_positions = np.empty(2 * positions.size + 16, np.int64)
    factor_home = np.full(n_factors, -1, np.int64)
    edges = np.empty((most, 2), np.int64)
    # Items are factors, then messages by their mini-bucket; each bucket is a linked list of items.
    head = np.full(n_variables, -1, np.int64)
    following = np.full(n_factors + most, -1, np.int64)
    for factor in range(n_factors - 1, -1, -1):
        if starts[factor] < starts[factor + 1]:
            first = positions[starts[factor]]
            following[factor] = head[first]
            head[first] = factor
    n_nodes, n_edges, filled = 0, 0, 0
    union = np.empty(n_variables, np.int64)
    best_union = np.empty(n_variables, np.int64)
    for variable in range(n_variables):
        count = 0
        item = head[variable]
        while item >= 0:
            count += 1
            item = following[item]
        if count == 0:
            continue
        items = np.empty(count, np.int64)
        sizes = np.empty(count)
        item = head[variable]
        for i in range(count):
            items[i] = item
            if item < n_factors:
                scope = positions[starts[item] : starts[item + 1]]
            else:
                node = item - n_factors
                scope = node_positions[node_starts[node] + 1 : node_starts[node + 1]]
            sizes[i] = -log_sizes[scope].sum()
            item = following[item]
        ranks = np.argsort(sizes, kind="mergesort")
        # Mini-buckets of this variable: scopes in rows of a local buffer.
        room = np.empty(count + 1, np.int64)
        room[0] = 0
        local = np.empty(64, np.int64)
        lengths = np.zeros(count, np.int64)
        home = np.empty(count, np.int64)
        n_minis = 0
        for rank in ranks:
            item = items[rank]
            if item < n_factors:
                scope = positions[starts[item] : starts[item + 1]]
            else:
                node = item - n_factors
                scope = node_positions[node_starts[node] + 1 : node_starts[node + 1]]
            best, best_score, best_length = -1, -1.0, 0
            for mini in range(n_minis):
                length = _union(local, room[mini], room[mini] + lengths[mini], scope, union)
                size = log_sizes[union[:length]].sum()
                contained = length == lengths[mini]
                if contained or (length <= max_variables and size <= max_log_size):
                    score = _shared(local[room[mini] : room[mini] + lengths[mini]], scope, log_sizes)
                    if score > best_score:
                        best, best_score, best_length = mini, score, length
                        best_union[:length] = union[:length]
            if best < 0:
                best, best_length = n_minis, scope.size
                best_union[:best_length] = scope
                # Room for the largest scope this mini-bucket can grow to.
                room[n_minis + 1] = room[n_minis] + max(max_variables, scope.size)
                local = _grown(local, room[n_minis + 1])
                n_minis += 1
            local[room[best] : room[best] + best_length] = best_union[:best_length]
            lengths[best] = best_length
            home[rank] = best
        first_node = n_nodes
        for mini in range(n_minis):
            length = lengths[mini]
            node_positions = _grown(node_positions, filled + length)
            node_positions[filled : filled + length] = local[room[mini] : room[mini] + length]
            filled += length
            bucket[n_nodes] = variable
            n_nodes += 1
            node_starts[n_nodes] = filled
            if length > 1:
                target = local[room[mini] + 1]
                item = n_factors + n_nodes - 1
                following[item] = head[target]
                head[target] = item
        for i in range(count):
            if items[i] < n_factors:
                factor_home[items[i]] = first_node + home[i]
            else:
                parent[items[i] - n_factors] = first_node + home[i]
        n_edges = _span(first_node, n_nodes, node_starts, node_positions, log_sizes, edges, n_edges)
    return (
        bucket[:n_nodes].copy(),
        node_starts[: n_nodes + 1].copy(),
        node_positions[:filled].copy(),
        parent[:n_nodes].copy(),
        factor_home,
        edges[:n_edges].copy(),
    )


@compiled
def _span(
    first: int,
    end: int,
    starts: IntArray,
    positions: IntArray,
    log_sizes: FloatArray,
    edges: IntArray,
    n_edges: int,
) -> int:
    """Append a spanning tree of mini-buckets ``first`` to ``end``, of largest intersections (Prim's algorithm)."""
    count = end - first
    if count < 2:
        return n_edges
    inside = np.zeros(count, np.bool_)
    nearest = np.zeros(count, np.int64)
    weight = np.full(count, -1.0)
    newest = 0
    inside[0] = True
    for _ in range(count - 1):
        mine = positions[starts[first + newest] : starts[first + newest + 1]]
        best = -1
        for k in range(count):
            if inside[k]:
                continue
            size = _shared(mine, positions[starts[first + k] : starts[first + k + 1]], log_sizes)
            if size > weight[k]:
                weight[k] = size
                nearest[k] = newest
            if best < 0 or weight[k] > weight[best]:
                best = k
        inside[best] = True
        edges[n_edges, 0] = first + nearest[best]
        edges[n_edges, 1] = first + best
        n_edges += 1
        newest = best
    return n_edges
