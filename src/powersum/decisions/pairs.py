"""Elimination of an influence diagram with probabilities and utilities apart: utilities are added, never multiplied.

What is left of a diagram is a product of distributions and a sum of utilities, each of them an expectation given what
is left. A chance variable changes only the utilities that have it; a decision adds up those that have it. Every
utility is at least 0, so no digits cancel.

How rounding is counted. Each table has a number e: its entries are the true ones times 1 + d with |d| ≤ e, up to terms
of second order. A product adds the e of its parts and U for each, a sum of n numbers that are at least 0 adds n U, a
quotient adds both e and U, and a maximum adds nothing. :meth:`Eliminator.utility` multiplies by 1.01, which is more
than all terms of second order while e is at most :data:`MOST_ERROR`; beyond, there is no bound. Entries that underflow
are off by 5e-324 at most. A share is divided by more than :data:`TINY`, so underflow moves it by less than 1e-40, and
:data:`SLACK` allows for more than all of them. Where the sum is not above :data:`TINY`, shares are 1 for an upper bound
and 0 for a lower one: an expectation is at most the sum of all values, and at least 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray
from powersum.decisions.plan import grouped

U = 2.0**-53
"""Rounding of one operation, relative."""

MOST_ERROR = 1e-6
"""A relative error above this is no longer small."""

SLACK = 1e-18
"""What underflow may take of a value, in units of the largest utility."""

PAIR_ENTRY = 3e-8
"""Seconds for each entry of all tables of an elimination, where tables are large."""

TINY = 1e-280
"""A probability below this may have lost digits to underflow: it is not divided by."""

Scope = tuple[int, ...]


class NotDone(Exception):
    """A table would have more than the entries that are allowed, or time is over."""


@dataclass(frozen=True, slots=True, eq=False)
class PairPart:
    """A distribution or a utility.

    Parameters
    ----------
    scope
        Its variables, the first eliminated first.
    table
        Its numbers; all are at least 0.
    error
        How far each of them may be from the true one, relative to it.
    children
        Of a distribution: the variables that it is of. With nothing observed the sum over all of them is one.
    """

    scope: Scope
    table: FloatArray
    error: float
    children: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Pairs:
    """Distributions and utilities that are left, and what the decisions do that are eliminated.

    Parameters
    ----------
    place
        The place of each variable in the elimination order.
    cards
        Numbers of states.
    side
        1 for an upper bound, -1 for a lower one.
    ended
        Tells when to stop.
    most
        Entries of the largest table.
    limit
        Entries of the largest table of a decision; utilities that have more together are maximised apart.
    """

    place: Sequence[int]
    cards: Sequence[int]
    side: float
    ended: Callable[[], bool]
    most: int
    limit: float = math.inf
    split: bool = False
    chance: list[PairPart] = field(default_factory=list)
    utilities: list[PairPart] = field(default_factory=list)
    chosen: dict[int, tuple[Scope, IntArray]] = field(default_factory=dict)

    def add(self, scope: Iterable[int], table: FloatArray, error: float, child: int | None = None) -> None:
        """A distribution of a child, or a utility."""
        given = tuple(scope)
        order = sorted(range(len(given)), key=lambda axis: self.place[given[axis]])
        part = PairPart(
            tuple(given[axis] for axis in order),
            np.asarray(np.transpose(table, order), order="C"),
            error,
            frozenset() if child is None else frozenset([child]),
        )
        if child is None:
            self.utilities.append(part)
        else:
            self.chance.append(scaled(part))

    def sum_out(self, v: int) -> None:
        """Take the expectation over a chance variable."""
        mine, self.chance = _parted(self.chance, v)
        concerned, self.utilities = _parted(self.utilities, v)
        joint = self._product(mine)
        rest = joint.table.sum(axis=0)
        error = joint.error + U * (joint.table.shape[0] + 2)
        children = joint.children - {v}
        if children:
            self.chance.append(scaled(PairPart(joint.scope[1:], rest, error, children)))
        if not concerned:
            return
        # Where nothing is left to divide by, the weights of an upper bound are 1, those of a lower one 0.
        shares = np.full_like(joint.table, max(self.side, 0.0))
        np.divide(joint.table, rest, out=shares, where=np.broadcast_to(rest > TINY, joint.table.shape))
        weights = PairPart(joint.scope, shares, 2.0 * error)
        for part in concerned:
            self.utilities.append(self._expectation(weights, part))
        self._absorb()

    def decide(self, v: int) -> None:
        """Take the best state of a decision in each case."""
        mine, self.chance = _parted(self.chance, v)
        concerned, self.utilities = _parted(self.utilities, v)
        if mine:
            # What is known by now does not depend on the decision: all its states give the same, but for rounding.
            joint = self._product(mine)
            self.chance.append(PairPart(joint.scope[1:], joint.table.max(axis=0), joint.error, joint.children))
        if not concerned:
            self.chosen[v] = (), np.zeros((), dtype=np.int64)
            return
        groups = grouped([frozenset(part.scope) for part in concerned], self.cards, self.limit)
        # Where each group has a best state of its own the value is a bound, and there is no policy.
        self.split = self.split or len(groups) > 1
        for joined, members in groups:
            parts = [part for part in concerned if frozenset(part.scope) in members]
            total = self._total(parts, tuple(sorted(joined, key=lambda u: self.place[u])))
            if not self.split:
                self.chosen[v] = total.scope[1:], total.table.argmax(axis=0)
            self.utilities.append(PairPart(total.scope[1:], total.table.max(axis=0), total.error))
        self._absorb()

    def total(self, keep: Scope = ()) -> tuple[FloatArray, float]:
        """What the utilities add up to for each state of what is kept, and how far it may be off, relative to it."""
        kept = tuple(sorted(keep, key=lambda v: self.place[v]))
        if not self.utilities:
            return np.zeros([self.cards[v] for v in keep]), 0.0
        total = self._total(self.utilities, kept)
        return np.transpose(total.table, [kept.index(v) for v in keep]), total.error

    def weight(self, keep: Scope) -> tuple[FloatArray, float]:
        """In proportion to the probability of each state of what is kept, and how far it may be off."""
        kept = tuple(sorted(keep, key=lambda v: self.place[v]))
        joint = self._product(self.chance, kept)
        return np.transpose(joint.table, [kept.index(v) for v in keep]), joint.error

    def _union(self, parts: Iterable[PairPart]) -> Scope:
        return tuple(sorted({v for part in parts for v in part.scope}, key=lambda v: self.place[v]))

    def _shape(self, scope: Scope) -> list[int]:
        shape = [self.cards[v] for v in scope]
        if math.prod(shape) > self.most or self.ended():
            raise NotDone
        time.spend(PAIR_ENTRY * math.prod(shape))
        return shape

    def _product(self, parts: Sequence[PairPart], scope: Scope | None = None) -> PairPart:
        out = self._union(parts) if scope is None else scope
        table = np.ones(self._shape(out))
        for part in parts:
            table *= _aligned(part, out)
        error = math.fsum(part.error for part in parts) + U * len(parts)
        return PairPart(out, table, error, frozenset().union(*(part.children for part in parts)))

    def _total(self, parts: Sequence[PairPart], scope: Scope) -> PairPart:
        table = np.zeros(self._shape(scope))
        for part in parts:
            table += _aligned(part, scope)
        return PairPart(scope, table, max(part.error for part in parts) + U * len(parts))

    def _expectation(self, weights: PairPart, part: PairPart) -> PairPart:
        """The sum over the first variable of both."""
        out = self._union([weights, part])[1:]
        shape = self._shape(out)
        table, term = np.zeros(shape), np.empty(shape)
        a, b = _aligned(weights, (weights.scope[0], *out)), _aligned(part, (part.scope[0], *out))
        for state in range(weights.table.shape[0]):
            np.multiply(a[state], b[state], out=term)
            table += term
        return PairPart(out, table, weights.error + part.error + U * (weights.table.shape[0] + 2))

    def _absorb(self) -> None:
        """Add a utility to another one that has all its variables."""
        self.utilities.sort(key=lambda part: -part.table.ndim)
        kept: list[PairPart] = []
        for part in self.utilities:
            place = next((k for k, other in enumerate(kept) if set(part.scope) <= set(other.scope)), None)
            if place is None:
                kept.append(part)
            else:
                kept[place] = self._total([kept[place], part], kept[place].scope)
        self.utilities = kept


def scaled(part: PairPart) -> PairPart:
    """A distribution times a power of two, which brings its largest entry near 1: only proportions matter."""
    _, exponent = np.frexp(part.table.max(initial=0.0))
    return part if exponent in (0, 1) else replace(part, table=np.ldexp(part.table, -int(exponent)))


def _parted(parts: Iterable[PairPart], v: int) -> tuple[list[PairPart], list[PairPart]]:
    """Those with a variable, and the others."""
    mine: list[PairPart] = []
    others: list[PairPart] = []
    for part in parts:
        (mine if v in part.scope else others).append(part)
    return mine, others


def _aligned(part: PairPart, scope: Scope) -> FloatArray:
    """A view with an axis for each variable of a larger scope in the same order."""
    sizes = dict(zip(part.scope, part.table.shape, strict=True))
    return part.table.reshape([sizes.get(v, 1) for v in scope])
