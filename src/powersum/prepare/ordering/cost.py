"""What an elimination order costs: bucket sizes counted without ever forming a bucket, in nearly linear time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, frozen
from powersum.core.jit import compiled
from powersum.model.graph import adjacency
from powersum.model.model import Model


@dataclass(frozen=True, slots=True)
class OrderCost:
    """Cost of exact elimination along an order.

    Parameters
    ----------
    width
        Induced width: the largest number of other variables in a bucket.
    log2_total
        Log to base 2 of the number of table entries over all buckets; ``-inf`` for no variables.
    log2_largest
        Log to base 2 of the entries of the largest table.
    """

    width: int
    log2_total: float
    log2_largest: float


def order_cost(model: Model, order: IntArray) -> OrderCost:
    """Width and table sizes of exact elimination along ``order``, for any model: a million variables take a second."""
    if not model.n_variables:
        return OrderCost(0, -np.inf, -np.inf)
    graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
    counts, log2_sizes = _bucket_sizes(
        frozen(graph.starts, np.int64),
        frozen(graph.neighbours, np.int64),
        frozen(order, np.int64),
        frozen(np.log2(model.cardinalities), np.float64),
    )
    largest = float(log2_sizes.max())
    total = largest + float(np.log2(np.exp2(log2_sizes - largest).sum()))
    return OrderCost(int(counts.max()) - 1, total, largest)


def induced_width(model: Model, order: IntArray) -> int:
    """The largest number of other variables in a bucket when variables are eliminated along ``order``."""
    return order_cost(model, order).width


@compiled
def _bucket_sizes(
    starts: IntArray, neighbours: IntArray, order: IntArray, log2_cardinalities: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Variables in each bucket, and the log of its table size, by the counting method of Gilbert, Ng and Peyton (1994).

    Variable i is in the buckets along the paths of the elimination tree from its earlier neighbours up to itself.
    Adding its weight at the leaves of that subtree, taking it off where two paths meet and above its root, makes every
    bucket's size the sum over its subtree: no bucket is ever formed.
    """
    n = len(order)
    position = np.empty(n, np.int64)
    for i in range(n):
        position[order[i]] = i

    parent = np.full(n, -1, np.int64)
    above = np.arange(n)
    for i in range(n):
        v = order[i]
        for at in range(starts[v], starts[v + 1]):
            k = position[neighbours[at]]
            while k < i:
                step = above[k]
                above[k] = i
                if step == k:
                    parent[k] = i
                    break
                k = step

    # Rank in a postorder of the tree: an equivalent order in which every subtree is an interval that ends at its root.
    size = np.ones(n, np.int64)
    for i in range(n):
        if parent[i] >= 0:
            size[parent[i]] += size[i]
    rank = np.empty(n, np.int64)
    cursor = np.empty(n, np.int64)
    free = 0
    for i in range(n - 1, -1, -1):
        if parent[i] < 0:
            cursor[i] = free
            free += size[i]
        else:
            cursor[i] = cursor[parent[i]]
            cursor[parent[i]] += size[i]
        rank[i] = cursor[i] + size[i] - 1
    by_rank = np.empty(n, np.int64)
    for i in range(n):
        by_rank[rank[i]] = i

    counts = np.zeros(n, np.float64)
    logs = np.zeros(n, np.float64)
    last_neighbour = np.full(n, -1, np.int64)
    last_leaf = np.full(n, -1, np.int64)
    for r in range(n):
        above[r] = r
    for r in range(n):
        i = by_rank[r]
        v = order[i]
        first = r - size[i] + 1
        if last_leaf[r] < 0:
            counts[r] += 1.0
            logs[r] += log2_cardinalities[v]
        if parent[i] >= 0:
            counts[rank[parent[i]]] -= 1.0
            logs[rank[parent[i]]] -= log2_cardinalities[v]
        for at in range(starts[v], starts[v + 1]):
            u = neighbours[at]
            row = rank[position[u]]
            if row <= r:
                continue
            if last_neighbour[row] < first:
                counts[r] += 1.0
                logs[r] += log2_cardinalities[u]
                if last_leaf[row] >= 0:
                    meet = last_leaf[row]
                    while above[meet] != meet:
                        above[meet] = above[above[meet]]
                        meet = above[meet]
                    counts[meet] -= 1.0
                    logs[meet] -= log2_cardinalities[u]
                last_leaf[row] = r
            last_neighbour[row] = r
        if parent[i] >= 0:
            above[r] = rank[parent[i]]
    for r in range(n):
        i = by_rank[r]
        if parent[i] >= 0:
            counts[rank[parent[i]]] += counts[r]
            logs[rank[parent[i]]] += logs[r]
    return counts, logs
