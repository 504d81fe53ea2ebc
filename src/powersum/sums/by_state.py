"""The way down of a partial sum: both bounds on the sum with each state of each variable set, all at once.

What the kept arcs of a bucket that set a state stand for is part of the sum with that state: one pass down the arcs,
each with its share of what reaches its context, gives these parts for all variables. Their upper bounds are the same
with the tree's bound in place of what was dropped. What was dropped before the bucket may have any state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.bounds.tree.look_up import Heuristic
from powersum.core.arrays import FloatArray
from powersum.model.rounding import UNIT
from powersum.sums.wiring import SumBucket

if TYPE_CHECKING:
    from powersum.sums.partial_sum import Arcs

UNDERFLOW = 1e-280
"""More than all that products lose where they leave the doubles."""


class StateSums(NamedTuple):
    """Bounds on one component: on its sum, and on the sum with each state of each variable set (natural logs).

    ``explored`` is about the share of the sum that lower bounds have, as a covering tree judges it; 0 where there is no
    tree.
    """

    variables: list[int]
    log_lower: list[FloatArray]
    log_upper: list[FloatArray]
    whole: tuple[float, float]
    explored: float = 0.0


def root_bounds(heuristic: Heuristic, buckets: Sequence[SumBucket], log_upper: float, constant: float) -> FloatArray:
    """The tree's bound on the component of each bucket, by depth, where the bounds of all add up to ``log_upper``."""
    root = np.arange(len(buckets))
    for depth, bucket in enumerate(buckets):
        for handover in bucket.children:
            root[handover.child] = root[depth]
    n_others = np.diff(heuristic.other_starts)
    depths = np.repeat(np.arange(len(buckets)), np.diff(heuristic.bucket_starts))
    ends = np.flatnonzero(n_others == 0)
    messages = heuristic.pool[heuristic.message_starts[ends]]
    sums = np.bincount(root[depths[ends]], messages, len(buckets))
    # The rounding counted in the bound may be that of any component.
    rounding = max(log_upper - constant - float(messages.sum()), 0.0)
    return np.asarray(sums + rounding + 8.0 * UNIT * len(ends) * float(np.abs(messages).max(initial=1.0)))[root]


def state_sums(
    buckets: Sequence[SumBucket],
    roots: Sequence[int],
    arcs: Sequence[Arcs | None],
    log_sums: dict[int, FloatArray],
    upper_ratios: dict[int, FloatArray],
    tree_roots: FloatArray,
) -> list[StateSums]:
    """The way down, component by component.

    Parameters
    ----------
    buckets, roots
        All buckets, and the depths at which components begin.
    arcs
        The arcs of each bucket; None where those of its child take their place.
    log_sums, upper_ratios
        Of the contexts of each bucket: what was summed, and what they stand for at most, relative to the tree's bound.
    tree_roots
        The tree's bounds; see :func:`root_bounds`.
    """
    found = []
    reaches: dict[int, _Reach] = {}
    owner = {root: root for root in roots}
    parts: dict[int, list[_Part]] = {root: [] for root in roots}
    terms, dropped = dict.fromkeys(roots, 0.0), dict.fromkeys(roots, 0.0)
    for root in roots:
        reaches[root] = _Reach(np.ones(1), np.ones(1), 0.0)
    for depth, bucket in enumerate(buckets):
        root, reach, own = owner[depth], reaches.pop(depth), arcs[depth]
        for handover in bucket.children:
            owner[handover.child] = root
        if own is None:
            reaches[bucket.children[0].child] = reach
            continue
        below = [(log_sums[h.child], upper_ratios[h.child]) for h in bucket.children]
        handed, within = _spread(own, reach, log_sums[depth], below)
        reaches.update(zip((handover.child for handover in bucket.children), handed, strict=True))
        parts[root] += within
        terms[root] += len(own.contexts)
        dropped[root] += float(own.dropped.sum())
    for root in roots:
        error = UNIT * (4.0 * terms[root] + 400.0 * len(buckets))
        total, bound = float(log_sums[root][0]), float(tree_roots[root])
        with np.errstate(divide="ignore"):
            lowers = [total + np.log(np.maximum(part.share - UNDERFLOW, 0.0)) - error for part in parts[root]]
            if dropped[root]:
                uppers = [bound + np.log(part.most + UNDERFLOW) + error for part in parts[root]]
                whole = total - error, bound + float(np.log(upper_ratios[root][0])) + error
            else:
                # Ratios are in single precision: what is summed itself is known better.
                uppers = [
                    np.where(part.most > 0.0, total + np.log(part.share + UNDERFLOW) + error, -np.inf)
                    for part in parts[root]
                ]
                whole = total - error, total + error
        # Beside what was summed, the upper bound has what the tree gives to contexts that were dropped.
        dropped_share = np.exp(min(whole[1] - bound, 0.0)) - np.exp(min(whole[0] - bound, 0.0))
        explored = min(max(1.0 - float(dropped_share), 0.0), 1.0) if bound < np.inf else 0.0
        found.append(StateSums([part.variable for part in parts[root]], lowers, uppers, whole, explored))
    return found


class _Reach(NamedTuple):
    """What reaches the contexts of a bucket: shares of what was summed, of the upper bound, and what never does."""

    lower: FloatArray
    upper: FloatArray
    dropped: float


class _Part(NamedTuple):
    """For each state of a variable the share of what was summed, and the ratio of the upper bound to the tree's."""

    variable: int
    share: FloatArray
    most: FloatArray


def _spread(
    arcs: Arcs, reach: _Reach, log_sums: FloatArray, below: Sequence[tuple[FloatArray, FloatArray]]
) -> tuple[list[_Reach], list[_Part]]:
    """Divide what reaches the contexts of a bucket among its arcs: what reaches each child's contexts, and the parts.

    ``below`` has for each child what its contexts stand for, as ``log_sums`` and as ratios of the tree's bound.
    """
    at = arcs.contexts
    values = arcs.values.copy()
    for (sums, _), targets in zip(below, arcs.targets, strict=True):
        values += sums[targets]
    with np.errstate(invalid="ignore"):
        share = np.where(values > -np.inf, reach.lower[at] * np.exp(values - log_sums[at]), 0.0)
    ratios = [most[targets] for (_, most), targets in zip(below, arcs.targets, strict=True)]
    own = reach.upper[at] * arcs.ratios
    dropped = reach.dropped + float((reach.upper * arcs.dropped).sum())
    handed = []
    for k, ((sums, _), targets) in enumerate(zip(below, arcs.targets, strict=True)):
        beside = own.copy()
        for j, ratio in enumerate(ratios):
            if j != k:
                beside *= ratio
        n = len(sums)
        handed.append(_Reach(_added(targets, share, n), _added(targets, beside, n), dropped))
    for ratio in ratios:
        own *= ratio
    return handed, [
        _Part(v, _added(states, share, size), _added(states, own, size) + dropped) for v, size, states in arcs.set_to
    ]


def _added(places: NDArray[Any], values: FloatArray, n: int) -> FloatArray:
    """Values added up by place."""
    return np.bincount(places, values, n).astype(np.float64, copy=False)
