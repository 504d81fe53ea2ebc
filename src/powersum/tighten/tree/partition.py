"""Mini-bucket partitioning: which factors and messages are eliminated together (wiring only, compiled, no tables).

Variables are spoken of by their position in the elimination order. Each bucket holds the factors and messages whose
first variable is its own; its items are put together into mini-buckets of limited size, and the message of each
mini-bucket goes on to the bucket of its next variable.

Mini-buckets of one variable exchange shifts over the variables they share. What they share by chance is little more
than the bucket's own variable, so they are *extended*: each takes in variables of its siblings, the last eliminated
first, while it stays within a limit of its own. Its table does not depend on them but through the shifts, and so the
shifts become functions of many variables. Measured at equal i-bound this is worth 1 to 2 nats on pedigrees and most of
the remaining gap on grids. Variables eliminated soon after would instead split the next buckets further.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.arrays import FloatArray, IntArray
from powersum.compiled import compiled
from powersum.tighten.tree.scopes import Scopes, copy_to, grown, intersection_of, log_size_of, union_of


class Limits(NamedTuple):
    """How large mini-buckets may be: numbers of variables and logs of table sizes."""

    variables: int
    log_size: float
    extended_variables: int
    """Mini-buckets are extended by variables of their siblings up to these sizes."""
    extended_log_size: float


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


def limits_of(ibound: int) -> Limits:
    """Mini-buckets of at most ``ibound + 1`` variables, extended to one less: to the full size costs twice the
    entries and gains little.
    """
    return Limits(ibound + 1, np.inf, ibound, np.inf)


def partition(scopes: Scopes, limits: Limits) -> Partition:
    """Partition every bucket into mini-buckets within the limits.

    An item that is too large by itself is a mini-bucket of its own. Items are taken by falling size, each is put
    where it shares most with what is already there.
    """
    # No scope within the limits is longer than this; the compiled code reserves as much for each mini-bucket.
    smallest = max(float(scopes.log_sizes.min(initial=np.inf)), 1e-6)
    room = min(float(limits.variables), limits.log_size / smallest + 1.0, float(len(scopes.log_sizes)))
    slack = 1e-9
    exact = Limits(
        int(max(room, 1.0)), limits.log_size + slack, int(limits.extended_variables), limits.extended_log_size + slack
    )
    bucket, starts, positions, parent, factor_home, edges = _partition(scopes, exact)
    return Partition(bucket, starts, positions, parent, factor_home, edges.reshape(-1, 2))


@compiled
def _sort_by_size(items: IntArray, sizes: FloatArray) -> None:
    """Larger sizes first, equal ones by number; an insertion sort, for buckets are short."""
    for i in range(1, items.size):
        item, size = items[i], sizes[i]
        j = i
        while j > 0 and (sizes[j - 1] < size or (sizes[j - 1] == size and items[j - 1] > item)):
            items[j], sizes[j] = items[j - 1], sizes[j - 1]
            j -= 1
        items[j], sizes[j] = item, size


@compiled
def _partition(scopes: Scopes, limits: Limits) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    starts, log_sizes = scopes.starts, scopes.log_sizes
    n_variables, n_factors = log_sizes.size, starts.size - 1
    # Items are factors, then the messages of mini-buckets by number: scopes in one buffer, a linked list a bucket.
    # A mini-bucket's own scope is its message's with the bucket's variable in front.
    low = np.empty(2 * n_factors + 16, np.int64)
    high = np.empty(2 * n_factors + 16, np.int64)
    home = np.empty(2 * n_factors + 16, np.int64)
    following = np.empty(2 * n_factors + 16, np.int64)
    bucket = np.empty(n_factors + 16, np.int64)
    edges = np.empty(n_factors + 16, np.int64)
    positions = np.empty(2 * scopes.positions.size + 16, np.int64)
    filled = scopes.positions.size
    copy_to(positions, 0, scopes.positions, filled)
    head = np.empty(n_variables, np.int64)
    for variable in range(n_variables):
        head[variable] = -1
    for factor in range(n_factors):
        low[factor], high[factor], home[factor] = starts[factor], starts[factor + 1], -1
        if starts[factor] < starts[factor + 1]:
            following[factor] = head[positions[starts[factor]]]
            head[positions[starts[factor]]] = factor
    n_nodes, n_edges = 0, 0
    union = np.empty(n_variables, np.int64)
    best_union = np.empty(n_variables, np.int64)
    for variable in range(n_variables):
        count = 0
        item = head[variable]
        while item >= 0:
            count += 1
            item = following[item]
        items = np.empty(count, np.int64)
        sizes = np.empty(count)
        item = head[variable]
        for i in range(count):
            items[i] = item
            sizes[i] = log_size_of(positions[low[item] : high[item]], high[item] - low[item], log_sizes)
            item = following[item]
        _sort_by_size(items, sizes)
        needed = n_factors + n_nodes + count
        low, high, home = grown(low, needed), grown(high, needed), grown(home, needed)
        following, bucket = grown(following, needed), grown(bucket, needed)
        edges = grown(edges, n_edges + 2 * count)
        first = n_nodes
        for item in items:
            scope = positions[low[item] : high[item]]
            best, best_score, best_length = -1, -1.0, 0
            for node in range(first, n_nodes):
                own = positions[low[n_factors + node] - 1 : high[n_factors + node]]
                length = union_of(own, scope, union)
                fits = length <= limits.variables and log_size_of(union, length, log_sizes) <= limits.log_size
                if fits or length == own.size:
                    # The smaller the union beside what goes in, the more is shared.
                    score = 1.0 + log_size_of(own, own.size, log_sizes) + log_size_of(scope, scope.size, log_sizes)
                    score -= log_size_of(union, length, log_sizes)
                    if score > best_score:
                        best, best_score, best_length = node, score, length
                        copy_to(best_union, 0, union, length)
            if best < 0:
                best, best_length = n_nodes, scope.size
                copy_to(best_union, 0, scope, best_length)
                bucket[best] = variable
                n_nodes += 1
                # Room for the largest scope this mini-bucket can grow to.
                room = max(limits.variables, best_length)
                positions = grown(positions, filled + room)
                low[n_factors + best] = filled + 1
                filled += room
            start = low[n_factors + best] - 1
            copy_to(positions, start, best_union, best_length)
            high[n_factors + best] = start + best_length
            home[item] = best
        if n_nodes - first > 1:
            _extend(low[n_factors:], high[n_factors:], first, n_nodes, positions, log_sizes, limits)
            n_edges = _span(low[n_factors:], high[n_factors:], first, n_nodes, positions, log_sizes, edges, n_edges)
        for node in range(first, n_nodes):
            item = n_factors + node
            home[item] = -1
            if low[item] < high[item]:
                following[item] = head[positions[low[item]]]
                head[positions[low[item]]] = item
    node_starts = np.empty(n_nodes + 1, np.int64)
    node_starts[0] = 0
    for node in range(n_nodes):
        node_starts[node + 1] = node_starts[node] + high[n_factors + node] - low[n_factors + node] + 1
    node_positions = np.empty(node_starts[n_nodes], np.int64)
    for node in range(n_nodes):
        start = low[n_factors + node] - 1
        copy_to(node_positions, node_starts[node], positions[start:], high[n_factors + node] - start)
    parent = home[n_factors : n_factors + n_nodes].copy()
    return bucket[:n_nodes].copy(), node_starts, node_positions, parent, home[:n_factors].copy(), edges[:n_edges].copy()


@compiled
def _extend(
    low: IntArray,
    high: IntArray,
    first: int,
    end: int,
    positions: IntArray,
    log_sizes: FloatArray,
    limits: Limits,
) -> None:
    """Extend mini-buckets ``first`` to ``end`` of one variable by variables of each other, last eliminated first."""
    total = 0
    for node in range(first, end):
        total += high[node] - low[node] + 1
    everything = np.empty(total, np.int64)
    union = np.empty(total, np.int64)
    count = 0
    for node in range(first, end):
        length = union_of(everything[:count], positions[low[node] - 1 : high[node]], union)
        copy_to(everything, 0, union, length)
        count = length
    for node in range(first, end):
        for k in range(count - 1, -1, -1):
            own = positions[low[node] - 1 : high[node]]
            if own.size >= min(limits.extended_variables, limits.variables):
                break
            length = union_of(own, everything[k : k + 1], union)
            if length > own.size and log_size_of(union, length, log_sizes) <= limits.extended_log_size:
                copy_to(positions, low[node] - 1, union, length)
                high[node] += 1


@compiled
def _span(
    low: IntArray,
    high: IntArray,
    first: int,
    end: int,
    positions: IntArray,
    log_sizes: FloatArray,
    edges: IntArray,
    n_edges: int,
) -> int:
    """Append a spanning tree of mini-buckets ``first`` to ``end``, of largest intersections (Prim's algorithm)."""
    count = end - first
    inside = np.zeros(count, np.bool_)
    nearest = np.zeros(count, np.int64)
    weight = np.zeros(count)
    newest = 0
    inside[0] = True
    for _ in range(count - 1):
        mine = positions[low[first + newest] - 1 : high[first + newest]]
        shared = np.empty(mine.size, np.int64)
        best = -1
        for k in range(count):
            if inside[k]:
                continue
            length = intersection_of(mine, positions[low[first + k] - 1 : high[first + k]], shared)
            size = log_size_of(shared, length, log_sizes)
            if size > weight[k]:
                weight[k] = size
                nearest[k] = newest
            if best < 0 or weight[k] > weight[best]:
                best = k
        inside[best] = True
        edges[n_edges] = first + nearest[best]
        edges[n_edges + 1] = first + best
        n_edges += 2
        newest = best
    return n_edges
