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

from powersum.bounds.buckets.scopes import Scopes, intersection_of, log_size_of, union_of
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.core.growing import copy_to, grown
from powersum.core.jit import compiled, inner

# Columns of the table of items while partitioning.
LOW, HIGH, HOME, NEXT = 0, 1, 2, 3


MOST_COMPARED = 256
"""Mini-buckets of its variable, the latest ones, that a new item or mini-bucket is compared with: with all of them a
variable that has ten thousand neighbours would cost minutes. Any choice is valid; only tightness is at stake."""

MOST_DIGITS = 15.0
"""Tables of more than ten to this are refused in words, before their sizes leave the integers."""


class SizeLimits(NamedTuple):
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


def limits_of(ibound: int) -> SizeLimits:
    """Mini-buckets of at most ``ibound + 1`` variables, extended to one less: to the full size costs twice the
    entries and gains little.
    """
    return SizeLimits(ibound + 1, np.inf, ibound, np.inf)


def partition_by_ibound(scopes: Scopes, limits: SizeLimits) -> Partition:
    """As :func:`partition`, for limits on numbers of variables alone; refuses tables that no memory holds.

    Raises
    ------
    InputError
        With one line that says how large a table would be.
    """
    parts = partition(scopes, limits)
    log_sizes = np.add.reduceat(np.append(scopes.log_sizes[parts.positions], 0.0), parts.starts[:-1])
    digits = float(log_sizes.max(initial=0.0)) / np.log(10.0)
    if digits > MOST_DIGITS:
        raise InputError(f"ibound {limits.variables - 1} makes a table of 10^{digits:.0f} entries: no memory holds it")
    return parts


def partition(scopes: Scopes, limits: SizeLimits) -> Partition:
    """Partition every bucket into mini-buckets within the limits.

    An item that is too large by itself is a mini-bucket of its own. Items are taken by falling size, each is put
    where it shares most with what is already there. The work grows little faster than the number of items, also where
    one variable has them all.
    """
    # No scope within the limits is longer than this; the compiled code reserves as much for each mini-bucket.
    smallest = max(float(scopes.log_sizes.min(initial=np.inf)), 1e-6)
    room = min(float(limits.variables), limits.log_size / smallest + 1.0, float(len(scopes.log_sizes)))
    slack = 1e-9
    exact = SizeLimits(
        int(max(room, 1.0)), limits.log_size + slack, int(limits.extended_variables), limits.extended_log_size + slack
    )
    bucket, starts, positions, parent, factor_home = _partition(scopes, exact)
    edges = _span(bucket, starts, positions, scopes.log_sizes)
    return Partition(bucket, starts, positions, parent, factor_home, edges)


@inner
def _sort_by_size(items: IntArray, sizes: FloatArray) -> None:
    """Larger sizes first, equal ones by number (Shell's sort: an insertion sort where few are sorted, as mostly)."""
    gap = 1
    while gap < items.size // 16:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, items.size):
            item, size = items[i], sizes[i]
            j = i
            while j >= gap and (sizes[j - gap] < size or (sizes[j - gap] == size and items[j - gap] > item)):
                items[j], sizes[j] = items[j - gap], sizes[j - gap]
                j -= gap
            items[j], sizes[j] = item, size
        gap //= 3


@inner
def _grown_rows(rows: IntArray, needed: int) -> IntArray:
    """Like :func:`grown` for the rows of a matrix."""
    if needed <= rows.shape[0]:
        return rows
    larger = np.empty((2 * needed, rows.shape[1]), np.int64)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            larger[i, j] = rows[i, j]
    return larger


@compiled
def _partition(scopes: Scopes, limits: SizeLimits) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    starts, log_sizes = scopes.starts, scopes.log_sizes
    n_variables, n_factors = log_sizes.size, starts.size - 1
    # Items are factors, then the messages of mini-buckets by number: where their scope starts and ends in one buffer,
    # their home, and the next item of their bucket. A mini-bucket's own scope is its message's with the bucket's
    # variable in front.
    items = np.empty((2 * n_factors + 16, 4), np.int64)
    positions = np.empty(2 * scopes.positions.size + 16, np.int64)
    filled = scopes.positions.size
    copy_to(positions, scopes.positions, filled)
    head = np.empty(n_variables, np.int64)
    for variable in range(n_variables):
        head[variable] = -1
    for factor in range(n_factors):
        items[factor, LOW], items[factor, HIGH], items[factor, HOME] = starts[factor], starts[factor + 1], -1
        if starts[factor] < starts[factor + 1]:
            items[factor, NEXT] = head[positions[starts[factor]]]
            head[positions[starts[factor]]] = factor
    n_nodes = 0
    union = np.empty(n_variables, np.int64)
    best_union = np.empty(n_variables, np.int64)
    for variable in range(n_variables):
        count = 0
        item = head[variable]
        while item >= 0:
            count += 1
            item = items[item, NEXT]
        here = np.empty(count, np.int64)
        sizes = np.empty(count)
        item = head[variable]
        # Backwards, for a list has the latest item first: items of equal size are then in order already.
        for i in range(count - 1, -1, -1):
            here[i] = item
            low, high = items[item, LOW], items[item, HIGH]
            sizes[i] = log_size_of(positions[low:high], high - low, log_sizes)
            item = items[item, NEXT]
        _sort_by_size(here, sizes)
        items = _grown_rows(items, n_factors + n_nodes + count)
        first = n_nodes
        for i in range(count):
            scope = positions[items[here[i], LOW] : items[here[i], HIGH]]
            best, best_score, best_length = -1, 0.0, 0
            for node in range(max(first, n_nodes - MOST_COMPARED), n_nodes):
                own = positions[items[n_factors + node, LOW] - 1 : items[n_factors + node, HIGH]]
                length = union_of(own, scope, union)
                size = log_size_of(union, length, log_sizes)
                if (length <= limits.variables and size <= limits.log_size) or length == own.size:
                    # The smaller the union beside the two that go in, the more they share.
                    score = log_size_of(own, own.size, log_sizes) + sizes[i] - size
                    if best < 0 or score > best_score:
                        best, best_score, best_length = node, score, length
                        copy_to(best_union, union, length)
            if best < 0:
                best, best_length = n_nodes, scope.size
                copy_to(best_union, scope, best_length)
                n_nodes += 1
                # Room for the largest scope this mini-bucket can grow to.
                room = max(limits.variables, best_length)
                positions = grown(positions, filled + room)
                items[n_factors + best, LOW] = filled + 1
                filled += room
            start = items[n_factors + best, LOW] - 1
            copy_to(positions[start:], best_union, best_length)
            items[n_factors + best, HIGH] = start + best_length
            items[here[i], HOME] = best
        if n_nodes - first > 1:
            _extend(items, n_factors + first, n_factors + n_nodes, positions, log_sizes, limits)
        for item in range(n_factors + first, n_factors + n_nodes):
            items[item, HOME] = -1
            if items[item, LOW] < items[item, HIGH]:
                following = positions[items[item, LOW]]
                items[item, NEXT] = head[following]
                head[following] = item
    bucket = np.empty(n_nodes, np.int64)
    parent = np.empty(n_nodes, np.int64)
    node_starts = np.zeros(n_nodes + 1, np.int64)
    for node in range(n_nodes):
        item = n_factors + node
        node_starts[node + 1] = node_starts[node] + items[item, HIGH] - items[item, LOW] + 1
        parent[node] = items[item, HOME]
    node_positions = np.empty(node_starts[n_nodes], np.int64)
    for node in range(n_nodes):
        start = items[n_factors + node, LOW] - 1
        copy_to(node_positions[node_starts[node] :], positions[start:], items[n_factors + node, HIGH] - start)
        bucket[node] = positions[start]
    home = np.empty(n_factors, np.int64)
    for factor in range(n_factors):
        home[factor] = items[factor, HOME]
    return bucket, node_starts, node_positions, parent, home


@inner
def _extend(
    items: IntArray, first: int, end: int, positions: IntArray, log_sizes: FloatArray, limits: SizeLimits
) -> None:
    """Extend mini-buckets ``first`` to ``end`` of one variable by variables of each other, last eliminated first."""
    total = 0
    for item in range(first, end):
        total += items[item, HIGH] - items[item, LOW] + 1
    everything = np.empty(total, np.int64)
    count = 0
    for item in range(first, end):
        for k in range(items[item, LOW] - 1, items[item, HIGH]):
            everything[count] = positions[k]
            count += 1
    _sort_by_size(everything, np.zeros(total))
    count = 1
    smallest = log_sizes[everything[0]]
    for k in range(1, total):
        if everything[k] != everything[count - 1]:
            everything[count] = everything[k]
            smallest = min(smallest, log_sizes[everything[k]])
            count += 1
    union = np.empty(count, np.int64)
    most = min(limits.extended_variables, limits.variables)
    for item in range(first, end):
        start = items[item, LOW] - 1
        size = log_size_of(positions[start:], items[item, HIGH] - start, log_sizes)
        for k in range(count - 1, -1, -1):
            own = positions[start : items[item, HIGH]]
            if own.size >= most or size + smallest > limits.extended_log_size:
                break
            length = union_of(own, everything[k : k + 1], union)
            if length > own.size:
                extended = log_size_of(union, length, log_sizes)
                if extended <= limits.extended_log_size:
                    copy_to(positions[start:], union, length)
                    items[item, HIGH] = start + length
                    size = extended


@compiled
def _span(bucket: IntArray, starts: IntArray, positions: IntArray, log_sizes: FloatArray) -> IntArray:
    """Spanning trees over the mini-buckets of each variable, of largest intersections (Prim's algorithm)."""
    edges = np.empty((bucket.size, 2), np.int64)
    shared = np.empty(log_sizes.size, np.int64)
    n_edges, first = 0, 0
    while first < bucket.size:
        end = first + 1
        while end < bucket.size and bucket[end] == bucket[first] and end - first < MOST_COMPARED:
            end += 1
        # Counted from the variable's first mini-bucket, so that 0 is right where nothing larger is shared.
        nearest = np.zeros(end - first, np.int64)
        # What is already in the tree has a negative weight.
        weight = np.zeros(end - first)
        weight[0] = -1.0
        newest = first
        for _ in range(end - first - 1):
            mine = positions[starts[newest] : starts[newest + 1]]
            best = first
            for k in range(first + 1, end):
                if weight[k - first] < 0.0:
                    continue
                length = intersection_of(mine, positions[starts[k] : starts[k + 1]], shared)
                size = log_size_of(shared, length, log_sizes)
                if size > weight[k - first]:
                    weight[k - first] = size
                    nearest[k - first] = newest - first
                if best == first or weight[k - first] > weight[best - first]:
                    best = k
            weight[best - first] = -1.0
            edges[n_edges, 0], edges[n_edges, 1] = first + nearest[best - first], best
            n_edges += 1
            newest = best
        # The rest of a crowded variable begins with the last one so far, so that the two trees join to one.
        first = end - 1 if end < bucket.size and bucket[end] == bucket[first] else end
    return edges[:n_edges].copy()
