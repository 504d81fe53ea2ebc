"""In which order a diagram is eliminated, and how much work that is: blocks of time, the cheapest variable next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from powersum.core import work_time as time

PLANNED = 2e-5
"""Seconds for each variable of an order that is tried, about."""

Scope = frozenset[int]


@dataclass(frozen=True, slots=True)
class PairPlan:
    """An elimination order, the entries of the largest table and of all tables, and of the largest of a decision."""

    order: tuple[int, ...]
    largest: float
    entries: float
    limit: float = math.inf


def grouped(scopes: Iterable[Scope], cards: Sequence[int], limit: float) -> list[tuple[Scope, list[Scope]]]:
    """Groups of scopes that have no more entries together than the limit, and what each group has: widest first."""

    def size(scope: Scope) -> float:
        return math.prod([float(cards[v]) for v in scope])

    groups: list[tuple[Scope, list[Scope]]] = []
    for scope in sorted(scopes, key=lambda one: (-size(one), sorted(one))):
        fits = [(size(joined | scope) - size(joined), n) for n, (joined, _) in enumerate(groups)]
        fits = [(more, n) for more, n in fits if size(groups[n][0] | scope) <= limit]
        if fits:
            _, n = min(fits)
            groups[n] = groups[n][0] | scope, [*groups[n][1], scope]
        else:
            groups.append((scope, [scope]))
    return groups


@dataclass(slots=True)
class _PlanState:
    """Scopes of what is left."""

    cards: Sequence[int]
    chance: list[tuple[Scope, frozenset[int]]]
    utilities: set[Scope]
    limit: float

    def size(self, scope: Scope) -> float:
        return math.prod([float(self.cards[v]) for v in scope])

    def cost(self, v: int, decided: bool) -> tuple[float, float]:
        """Entries of all tables, and of the largest one, that going on with a variable takes."""
        joint = frozenset().union(*(scope for scope, _ in self.chance if v in scope))
        concerned = [scope for scope in self.utilities if v in scope]
        sizes = [self.size(joint)] if joint else []
        if decided:
            sizes += [self.size(joined) for joined, _ in grouped(concerned, self.cards, self.limit)]
        else:
            sizes += [self.size(joint | scope) for scope in concerned]
        return sum(sizes), max(sizes, default=0.0)

    def after(self, v: int, decided: bool) -> None:
        """What is left when it is gone."""
        mine = [part for part in self.chance if v in part[0]]
        joint = frozenset().union(*(scope for scope, _ in mine))
        children = frozenset().union(*(own for _, own in mine)) - {v}
        self.chance = [part for part in self.chance if v not in part[0]]
        if mine and (children or decided):
            self.chance.append((joint - {v}, children))
        concerned = [scope for scope in self.utilities if v in scope]
        self.utilities = {scope for scope in self.utilities if v not in scope}
        if decided:
            new = {joined - {v} for joined, _ in grouped(concerned, self.cards, self.limit)}
        else:
            new = {(joint | scope) - {v} for scope in concerned}
        left = sorted(self.utilities | new, key=len, reverse=True)
        kept: list[Scope] = []
        for scope in left:
            if not any(scope <= other for other in kept):
                kept.append(scope)
        self.utilities = set(kept)


def planned(
    cards: Sequence[int],
    chance: Iterable[tuple[Iterable[int], frozenset[int]]],
    utilities: Iterable[Iterable[int]],
    blocks: Sequence[tuple[bool, Iterable[int]]],
    *,
    limit: float = math.inf,
    tries: int = 1,
    seconds: float = math.inf,
) -> PairPlan:
    """An order for blocks, the innermost first: whether it has decisions, and its variables.

    Parameters
    ----------
    cards, chance, utilities
        Numbers of states, scopes and children of the distributions, scopes of the utilities.
    blocks
        What goes first, whether these are decisions.
    limit
        Entries of the largest table of a decision; utilities that have more together are maximised apart.
    tries, seconds
        How many orders are tried, and how long; all but the first are drawn at random.
    """
    state = _PlanState(cards, [(frozenset(s), c) for s, c in chance], {frozenset(s) for s in utilities}, limit)
    in_order = [(decided, tuple(block)) for decided, block in blocks]
    rng = np.random.default_rng(0)
    best: PairPlan | None = None
    end = time.monotonic() + seconds
    for number in range(tries):
        found = _greedy(replace(state), in_order, rng if number else None)
        if best is None or (found.entries, found.largest) < (best.entries, best.largest):
            best = found
        if time.monotonic() > end:
            break
    assert best is not None
    return best


def _greedy(
    state: _PlanState, blocks: Sequence[tuple[bool, Sequence[int]]], rng: np.random.Generator | None
) -> PairPlan:
    order: list[int] = []
    entries = largest = 0.0
    for decided, block in blocks:
        waiting = dict.fromkeys(block)
        costs = {v: state.cost(v, decided) for v in waiting}
        while waiting:
            if rng is None:
                v = min(waiting, key=lambda u: (costs[u], u))
            else:
                noise = rng.gumbel(size=len(waiting))
                v = min(zip(waiting, noise, strict=True), key=lambda p: math.log1p(costs[p[0]][0]) + 0.5 * p[1])[0]
            del waiting[v]
            entries += costs[v][0]
            largest = max(largest, costs[v][1])
            touched = frozenset().union(
                *(s for s, _ in state.chance if v in s), *(s for s in state.utilities if v in s)
            )
            state.after(v, decided)
            order.append(v)
            time.spend(PLANNED)
            for u in waiting:
                if u in touched:
                    costs[u] = state.cost(u, decided)
    return PairPlan(tuple(order), largest, entries, state.limit)
