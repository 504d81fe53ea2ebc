"""Growing a covering tree where its bound is loose, from a point that never loosens.

There are two ways, and they help each other: mini-buckets of one variable are merged
(:mod:`powersum.bounds.tree.merging`), or extended by what the others know (:mod:`powersum.bounds.tree.extending`), so
that shifts between them can depend on it. By turns they take three nats more off the bound of pedigree19.Q0.5.I4 at
five million entries than merges alone (dev/tree.md). Where extensions have gained little, they have their turn
less often; where little is maximised merges alone are better.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.sweeps import LEAST_WEIGHT_SHARE, Sweeps, shares_of
from powersum.bounds.buckets.wiring import Layout, intersections, products
from powersum.bounds.tree.extending import extend
from powersum.bounds.tree.forest import GrowingForest
from powersum.bounds.tree.merging import merge
from powersum.core.arrays import FloatArray, IntArray, starts_of

LITTLE = 0.35
"""An extension that gains less than this share of what merges did, for each doubling, has gained little."""

LONGEST_PAUSE = 8
"""Merges before the next extension, at most."""

LEAST_MAX = 0.25
"""Share of variables that must be maximised to say that many are."""


def many_are_maximised(tau: FloatArray) -> bool:
    """Whether much of what makes a bound loose is likely to depend on max variables, rather than on sums alone.

    Then extensions help a tree, and boxes take more off its bound than further growth would (dev/tree.md).
    """
    return bool((tau == 0.0).mean() >= LEAST_MAX) if len(tau) else False


class Way(enum.Enum):
    """How a tree grows."""

    MERGING = enum.auto()
    EXTENDING = enum.auto()


@dataclass(frozen=True, slots=True)
class Turns:
    """Which way a tree grows next, by what the ways have gained so far.

    Attributes
    ----------
    extends
        Whether extensions are among them.
    latest
        How it has grown last; None where it has not.
    merged
        What the latest merges gained for each doubling of its entries.
    pause, merges_left
        Merges between two extensions, and how many of them are left before the next one.
    """

    extends: bool = True
    latest: Way | None = None
    merged: float = 0.0
    pause: int = 1
    merges_left: int = 1

    @property
    def next(self) -> list[Way]:
        """The way to grow, and the one to try where there is nothing to gain by that."""
        if not self.extends:
            return [Way.MERGING]
        return [Way.MERGING, Way.EXTENDING] if self.merges_left > 0 else [Way.EXTENDING, Way.MERGING]

    def gained(self, gain: float) -> Turns:
        """The latest growth has gained so much for each doubling."""
        if self.latest is Way.MERGING:
            return replace(self, merged=gain)
        if self.latest is Way.EXTENDING:
            pause = min(2 * self.pause, LONGEST_PAUSE) if gain < LITTLE * self.merged else 1
            return replace(self, pause=pause, merges_left=pause)
        return self

    def grown(self, way: Way) -> Turns:
        """It grows this way, be it its turn or not."""
        left = max(self.merges_left - 1, 0) if way is Way.MERGING else self.pause
        return replace(self, latest=way, merges_left=left)


def grow(
    way: Way, parts: Partition, passes: Sweeps, cardinalities: IntArray, *, entries: float, seed: int
) -> tuple[Partition, IntArray]:
    """Merge or extend where that promises most for each entry added, until the tree has so many entries.

    The beliefs of the latest pass must be there. Returns the new partition and the new number of each old node.
    """
    forest = GrowingForest(parts, cardinalities)
    room = entries - sum(forest.size)
    if way is Way.MERGING:
        merge(forest, parts, passes, cardinalities, room=room, seed=seed)
    else:
        extend(forest, parts, passes, cardinalities, room=room, seed=seed)
    return forest.partition(parts)


def carry(
    old: Layout,
    old_edges: IntArray,
    point: FloatArray,
    new: Layout,
    new_edges: IntArray,
    number: IntArray,
    cards: IntArray,
) -> FloatArray:
    """Parameters of the new tree at which it has the tables of the old one, and its bound is no higher."""
    result = np.zeros(new.n_parameters)
    old_starts, old_scopes = intersections(old_edges, old.scope_starts, old.scope_positions)
    new_starts, new_scopes = intersections(new_edges, new.scope_starts, new.scope_positions)
    source = starts_of(products(old_starts, old_scopes, cards))
    target = starts_of(products(new_starts, new_scopes, cards))
    place = {(a, b): e for e, (a, b) in enumerate(new_edges.tolist())}
    for e, (one, two) in enumerate(number[old_edges].tolist()):
        if one == two:
            continue
        f = place[min(one, two), max(one, two)]
        axes = new_scopes[new_starts[f] : new_starts[f + 1]]
        held = np.isin(axes, old_scopes[old_starts[e] : old_starts[e + 1]])
        shift = point[source[e] : source[e + 1]].reshape(np.where(held, cards[axes], 1))
        whole = result[target[f] : target[f + 1]].reshape(cards[axes])
        whole += shift if one < two else -shift
    shares = np.zeros(new.n_nodes)
    np.add.at(shares, number[old.shared_nodes], shares_of(point[old.n_shifts :], old.shared_starts))
    result[new.n_shifts :] = np.log(
        np.maximum(shares[new.shared_nodes] - LEAST_WEIGHT_SHARE, 1e-3 * LEAST_WEIGHT_SHARE)
    )
    return result
