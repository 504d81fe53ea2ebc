"""Boxes: which states each variable may have. Evidence, restrictions, and states that cannot be.

A *box* has a set of states for each variable; the value of a box is that of the question with only these states. A
state may be left out of a box without any change of its value if every assignment with this state has the product 0.
That is proven by propagation: a state of which no tuple is positive in some table, all other variables within the box,
is impossible; and so on, to the fixpoint. Tables are single factors, or products of several that the certificate puts
together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from powersum_check.archive import Archive
from powersum_check.errors import BadFile, Rejected
from powersum_check.model import IntArray, Model, Question

Domains = list[IntArray]
Support = tuple[tuple[int, ...], NDArray[np.bool_]]


def root_box(model: Model, question: Question) -> Domains:
    """All states that the evidence allows."""
    domains = [np.arange(c) for c in model.cardinalities]
    for v, s in question.evidence.items():
        domains[v] = np.array([s])
    return domains


def restricted(domains: Domains, archive: Archive, name: str, model: Model) -> Domains:
    """The box with the variables in the rows (variable, state) of an array restricted to the states named there."""
    if name not in archive:
        return domains
    chosen: dict[int, list[int]] = {}
    for v, s in _pairs(archive, name, model):
        chosen.setdefault(v, []).append(s)
    smaller = list(domains)
    for v, states in chosen.items():
        smaller[v] = np.intersect1d(domains[v], states)
    return smaller


def without_removed(domains: Domains, archive: Archive, prefix: str, model: Model, memory: int) -> Domains:
    """The box without the states that the certificate calls impossible, once propagation has proven that they are."""
    if prefix + "removed" not in archive:
        return domains
    gone: dict[int, list[int]] = {}
    for v, s in _pairs(archive, prefix + "removed", model):
        gone.setdefault(v, []).append(s)
    possible = _propagated(model, domains, read_groups(archive, prefix, model), memory)
    smaller = list(domains)
    for v, states in gone.items():
        wrong = np.intersect1d(possible[v], states)
        if len(wrong):
            raise Rejected(f"state {wrong[0]} of variable {v} is called impossible, but propagation does not show it")
        smaller[v] = np.setdiff1d(domains[v], states)
    return smaller


def read_groups(archive: Archive, prefix: str, model: Model) -> IntArray:
    """Factors that the certificate puts together have the same number; otherwise each is for itself."""
    if prefix + "groups" not in archive:
        return np.arange(len(model.factors))
    groups = archive.integers(prefix + "groups", high=max(len(model.factors), 1))
    if len(groups) != len(model.factors):
        raise BadFile(f"{prefix}groups has not one entry for each factor")
    return groups


def is_empty(domains: Domains) -> bool:
    """Whether some variable has no state: the value of such a box is 0."""
    return any(len(d) == 0 for d in domains)


def _pairs(archive: Archive, name: str, model: Model) -> list[tuple[int, int]]:
    pairs = [(v, s) for v, s in archive.integers(name, columns=2).tolist()]
    for v, s in pairs:
        if v >= len(model.cardinalities) or s >= model.cardinalities[v]:
            raise BadFile(f"{name} names state {s} of variable {v}, which does not exist")
    return pairs


def _propagated(model: Model, domains: Domains, groups: IntArray, memory: int) -> Domains:
    """The states that propagation leaves, over single factors first and over the groups then."""
    supports: list[Support] = []
    for factor in model.factors:
        support = factor.table.values > -math.inf
        if not support.all():
            supports.append((factor.scope, support))
    domains = _fixpoint(domains, supports)
    if len(np.unique(groups)) == len(groups) or is_empty(domains):
        return domains
    joined: dict[int, list[int]] = {}
    for k, group in enumerate(groups.tolist()):
        joined.setdefault(group, []).append(k)
    supports = []
    for members in joined.values():
        if len(members) > 1:
            supports.append(_product([model.factors[k].scope for k in members], members, model, domains, memory))
        else:
            support = model.factors[members[0]].table.values > -math.inf
            if not support.all():
                supports.append((model.factors[members[0]].scope, support))
    return _fixpoint(domains, supports)


def _product(scopes: list[tuple[int, ...]], members: list[int], model: Model, domains: Domains, memory: int) -> Support:
    """Where the product of some factors is positive, as a table over the states that are left and no others."""
    union = tuple(dict.fromkeys(v for scope in scopes for v in scope))
    free = tuple(v for v in union if len(domains[v]) > 1)
    shape = [model.cardinalities[v] for v in free]
    if len(free) > 30 or math.prod(shape) > memory // 4:
        raise BadFile("groups: the product of a group of factors is too large")
    positive = np.ones(shape, dtype=np.bool_)
    for k, scope in zip(members, scopes, strict=True):
        # A variable with one state left is looked up there and leaves; the other axes are put in the order of `free`.
        index = tuple(slice(None) if len(domains[v]) > 1 else int(domains[v][0]) for v in scope)
        table = model.factors[k].table.values[index] > -math.inf
        own = [v for v in scope if len(domains[v]) > 1]
        axes = sorted(range(len(own)), key=lambda a: free.index(own[a]))
        positive &= np.transpose(table, axes).reshape([model.cardinalities[v] if v in own else 1 for v in free])
    return free, positive


def _fixpoint(domains: Domains, supports: Sequence[Support]) -> Domains:
    """Remove states without a positive tuple in some table until nothing changes."""
    domains = list(domains)
    tables_of: dict[int, list[int]] = {}
    for k, (scope, _) in enumerate(supports):
        for v in scope:
            tables_of.setdefault(v, []).append(k)
    waiting = list(range(len(supports)))
    is_waiting = [True] * len(supports)
    while waiting:
        k = waiting.pop()
        is_waiting[k] = False
        scope, support = supports[k]
        alive = support[np.ix_(*(domains[v] for v in scope))] if scope else support
        for axis, v in enumerate(scope):
            left = domains[v][alive.any(axis=tuple(a for a in range(len(scope)) if a != axis))]
            if len(left) < len(domains[v]):
                if len(left) == 0:
                    # Nothing at all is possible then.
                    return [d[:0] for d in domains]
                domains[v] = left
                for other in tables_of[v]:
                    # The table itself as well: its other axes may have lost tuples already looked at.
                    if not is_waiting[other]:
                        is_waiting[other] = True
                        waiting.append(other)
        if not scope and not support:
            # A constant of 0.
            return [d[:0] for d in domains]
    return domains
