"""How large a covering tree may be: what a partition costs in bytes, and the largest one within a budget."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.partition import Partition, SizeLimits, partition
from powersum.bounds.buckets.scopes import Scopes
from powersum.bounds.buckets.wiring import intersections, products
from powersum.bounds.tree.descent import STEPS_REMEMBERED
from powersum.core.arrays import IntArray

DEFAULT_BYTES = 2**30
"""Bytes for a tree where nobody says."""

_VECTORS = 2 * STEPS_REMEMBERED + 4
"""Vectors of the length of the parameters in single precision: history of the descent, gradients, direction, …"""
_PER_NODE, _PER_INPUT = 200, 120
"""Bytes of wiring for each mini-bucket and for each of its inputs, bases and patterns included."""
_STEP = 0.5 * float(np.log(2.0))
_EXTENSION = float(np.log(4.0))
"""Mini-buckets are extended up to this much less than they may be merged to: half as many entries as with log 2, for
the same bound."""


class Cost(NamedTuple):
    """What a partition takes."""

    entries: int
    bytes: int
    exact: bool
    """True where no variable is split."""


def cost_of(parts: Partition, scopes: Scopes, cardinalities: IntArray) -> Cost:
    """Entries and bytes of a partition, tables and everything else that is allocated for it."""
    sizes = products(parts.starts, parts.positions, cardinalities).astype(np.float64)
    messages = float((sizes / cardinalities[parts.bucket]).sum())
    shifts = float(products(*intersections(parts.edges, parts.starts, parts.positions), cardinalities).sum())
    ends = np.flatnonzero(np.bincount(parts.edges.ravel(), minlength=len(parts.bucket)))
    entropies = float((sizes[ends] / cardinalities[parts.bucket[ends]]).sum())
    n_nodes, n_factors = len(parts.bucket), len(parts.factor_home)
    n_inputs = n_nodes + n_factors + 2 * len(parts.edges)
    parameters = shifts + len(ends)
    static = float(np.minimum(products(scopes.starts, scopes.positions, cardinalities), 2**20).sum()) * 4.0
    # What is claimed is evaluated in double precision, with no tables kept; the point found is kept beside it.
    size = 8.0 * (static + messages) + _PER_NODE * n_nodes + _PER_INPUT * n_inputs
    if len(parts.edges):
        # The descent has a pool of its own, where gradients take the place of messages, and one row for two states, all
        # in single precision. When the tree is grown, all beliefs take the place of its history.
        kept = float(np.where(cardinalities[parts.bucket] == 2, 0.5 * sizes, sizes).sum())
        guide = kept + static + messages + entropies + 2.0 * shifts + parameters
        guide += max(_VECTORS * parameters, float(sizes.sum()))
        size += 4.0 * guide + 8.0 * 3.0 * parameters
    return Cost(int(min(sizes.sum(), 2.0**62)), int(min(size, 2.0**62)), len(parts.edges) == 0)


def limits_for(log_size: float) -> SizeLimits:
    """Mini-buckets of tables up to a size."""
    return SizeLimits(2**31, log_size, 2**31, log_size - _EXTENSION)


def largest_within(
    scopes: Scopes, cardinalities: IntArray, *, entries: float, size: float
) -> tuple[float, Partition, Cost] | None:
    """The largest limit on the log size of tables whose tree has at most so many entries and bytes.

    Returns the limit with its partition and cost; None where nothing fits. Searches upwards in wide steps and goes
    back by halves, for a partition takes time.
    """
    found: tuple[float, Partition, Cost] | None = None
    logs = scopes.log_sizes
    # Where all variables have equally many states, only whole powers of that make a difference.
    uniform = bool(logs.size) and float(logs.max() - logs.min()) < 1e-12
    step = float(logs[0]) if uniform else _STEP
    stride = 2.0 * step if uniform else 4.0 * step
    low, high = 0.0, np.inf
    limit = 2.0 * step
    while True:
        parts = partition(scopes, limits_for(limit))
        cost = cost_of(parts, scopes, cardinalities)
        if cost.bytes <= size and (cost.entries <= entries or cost.exact):
            low, found = limit, (limit, parts, cost)
            if cost.exact:
                return found
            if high == np.inf:
                limit += stride
        else:
            high = limit
        if high < np.inf:
            if high - low <= 1.01 * step:
                return found
            limit = 0.5 * (low + high)


def exact_within(scopes: Scopes, cardinalities: IntArray, *, entries: float, size: float) -> Partition | None:
    """The partition without any split, if its one pass touches at most so many entries and its messages fit."""
    # No message within the bytes is larger than this, and no table more than twice that with two states.
    parts = partition(scopes, limits_for(float(np.log(max(size, 2.0)))))
    cost = cost_of(parts, scopes, cardinalities)
    return parts if cost.exact and cost.entries <= entries and cost.bytes <= size else None
