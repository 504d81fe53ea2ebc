"""Boxes: a set of states for each variable; and the propagation that proves states impossible.

A state is impossible if in some table no tuple with it is positive among the states that are left. Every assignment
with an impossible state has a product of 0, so such states may leave the box without changing its value. Tables are the
factors, and then products of several that the certificate puts together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from powersum_check.archive import Archive
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import spend
from powersum_check.model import Factor, Model, Question
from powersum_check.numbers import MOST_AXES, FloatArray, IntArray, Table, add

Domains = list[IntArray]
Scope = tuple[int, ...]
Located = tuple[Scope, Table]
"""A table and the variables of its axes."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step of a certificate is about, and the arrays that it brings."""

    archive: Archive
    number: int
    model: Model
    question: Question
    domains: Domains
    kind: str

    @property
    def memory(self) -> int:
        """Bytes that are left to work with."""
        return self.archive.room.left

    def __contains__(self, name: str) -> bool:
        return f"{self.number}/{name}" in self.archive

    def integers(self, name: str, *, low: int = 0, high: int = 1 << 53, columns: int | None = None) -> IntArray:
        """Whole numbers from ``low`` to below ``high``, in rows of so many columns if given."""
        return self.archive.integers(f"{self.number}/{name}", low=low, high=high, columns=columns)

    def floats(self, name: str, *, infinite: bool = False) -> FloatArray:
        """Finite numbers, unless -inf is allowed."""
        return self.archive.floats(f"{self.number}/{name}", infinite=infinite)

    def starts(self, name: str, total: int) -> IntArray:
        """Where consecutive pieces of ``total`` things start, and the total."""
        return self.archive.starts(f"{self.number}/{name}", total)

    def pieces(self, starts: str, things: list[int]) -> list[Scope]:
        """A list in consecutive pieces."""
        return [tuple(things[a:b]) for a, b in pairwise(self.starts(starts, len(things)).tolist())]

    def states(self, name: str) -> dict[int, list[int]]:
        """The states that rows (variable, state) name, by variable; none where there is no such array."""
        named: dict[int, list[int]] = {}
        for v, s in self.integers(name, columns=2).tolist() if name in self else ():
            if v >= len(self.domains) or s >= self.model.cardinalities[v]:
                raise BadFile(f"{name} names state {s} of variable {v}, which does not exist")
            named.setdefault(v, []).append(s)
        return named

    def groups(self) -> list[list[int]]:
        """Factors that the certificate puts together; each is for itself where it says nothing."""
        n = len(self.model.factors)
        numbers = self.integers("groups", high=max(n, 1)).tolist() if "groups" in self else range(n)
        if len(numbers) != n:
            raise BadFile(f"{self.number}/groups has not one entry for each factor")
        members: dict[int, list[int]] = {}
        for k, group in enumerate(numbers):
            members.setdefault(group, []).append(k)
        return list(members.values())


def root_box(model: Model, question: Question) -> Domains:
    """All states that the evidence allows."""
    domains = [np.arange(c) for c in model.cardinalities]
    for v, s in question.evidence.items():
        domains[v] = np.array([s])
    return domains


def held_by(domains: Domains, root: Domains) -> int:
    """Bytes that are counted for a box beside the root."""
    return 256 + 8 * len(root) + sum(128 + a.nbytes for a, b in zip(domains, root, strict=True) if a is not b)


def restricted(step: Step) -> Domains:
    """The box with the variables that ``box`` names restricted to the states named there."""
    smaller = list(step.domains)
    for v, states in step.states("box").items():
        smaller[v] = np.intersect1d(smaller[v], states)
    return smaller


def without_removed(step: Step) -> Domains:
    """The box without the states that the certificate calls impossible, once propagation has proven that they are."""
    smaller = list(step.domains)
    removed = step.states("removed")
    possible = _propagated(step) if removed else smaller
    for v, states in removed.items():
        wrong = np.intersect1d(possible[v], states)
        if len(wrong):
            raise Rejected(f"state {wrong[0]} of variable {v} is called impossible, but propagation does not show it")
        smaller[v] = np.setdiff1d(smaller[v], states)
    return smaller


def is_empty(domains: Domains) -> bool:
    """Whether some variable has no state: the value of such a box is 0."""
    return any(len(d) == 0 for d in domains)


def within(inner: Domains, outer: Domains) -> bool:
    """Whether a box lies within another."""
    spend(50 * len(inner))
    pairs = zip(inner, outer, strict=True)
    return all(a is b or a.tobytes() == b.tobytes() or not len(np.setdiff1d(a, b)) for a, b in pairs)


def local(factor: Factor, domains: Domains, position: dict[int, int]) -> Located:
    """A factor over the states of a box. Axes are in the order given; variables of one state without a place leave."""
    spend(2000 + factor.table.values.size)
    values = np.asarray(factor.table.values[np.ix_(*(domains[v] for v in factor.scope))])
    axes = sorted(range(len(factor.scope)), key=lambda a: position.get(factor.scope[a], len(domains)))
    scope = tuple(factor.scope[a] for a in axes if factor.scope[a] in position)
    values = values.transpose(axes).reshape([len(domains[v]) for v in scope])
    return scope, Table(values, factor.table.up, factor.table.down)


def placed(table: Table, scope: Scope, wider: Scope) -> Table:
    """A table with axes of length 1 for the variables that it lacks; both scopes are in the same order."""
    lengths = dict(zip(scope, table.values.shape, strict=True))
    return Table(table.values.reshape([lengths.get(v, 1) for v in wider]), table.up, table.down)


def product(tables: Sequence[Located], position: dict[int, int], memory: int) -> Located:
    """The product of tables, over all their variables."""
    lengths = {v: n for scope, table in tables for v, n in zip(scope, table.values.shape, strict=True)}
    union = tuple(sorted(lengths, key=lambda v: position[v]))
    shape = [lengths[v] for v in union]
    if len(union) > MOST_AXES or 48 * math.prod(shape) > memory:
        raise BadFile("groups: the product of a group of factors is too large")
    return union, add(shape, [placed(table, scope, union) for scope, table in tables])


def _propagated(step: Step) -> Domains:
    """The states that propagation leaves, over single factors first and over the groups then."""
    domains = _fixpoint(step.domains, [(f.scope, f.table.values > -math.inf) for f in step.model.factors])
    joined = [members for members in step.groups() if len(members) > 1]
    if not joined or is_empty(domains):
        return domains
    # Products over the states that are left, numbered anew from 0: variables of one state are in none.
    position = {v: v for v, d in enumerate(domains) if len(d) > 1}
    supports = []
    for members in step.groups():
        tables = [local(step.model.factors[k], domains, position) for k in members]
        scope, table = product(tables, position, step.memory)
        supports.append((scope, table.values > -math.inf))
    places = _fixpoint([np.arange(len(d)) for d in domains], supports)
    return [d[place] for d, place in zip(domains, places, strict=True)]


def _fixpoint(domains: Domains, supports: Sequence[tuple[Scope, NDArray[np.bool_]]]) -> Domains:
    """Remove states without a positive tuple in some table until nothing changes."""
    domains = list(domains)
    spend(sum(500 + support.size for _, support in supports))
    supports = [(scope, support) for scope, support in supports if not support.all()]
    tables_of: dict[int, list[int]] = {}
    for k, (scope, _) in enumerate(supports):
        for v in scope:
            tables_of.setdefault(v, []).append(k)
    waiting = set(range(len(supports)))
    while waiting:
        scope, support = supports[waiting.pop()]
        spend(1000 + (1 + len(scope)) * support.size)
        alive = np.asarray(support[np.ix_(*(domains[v] for v in scope))])
        if not alive.any():
            # Nothing at all is possible then.
            return [d[:0] for d in domains]
        for axis, v in enumerate(scope):
            left = alive.any(axis=tuple(a for a in range(len(scope)) if a != axis))
            if not left.all():
                domains[v] = domains[v][left]
                # The table itself as well: its other axes may have lost tuples already looked at.
                waiting.update(tables_of[v])
    return domains
