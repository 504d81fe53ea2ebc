"""Policies: a table for each decision, found by single policy updates, and the model in which they decide."""

from __future__ import annotations

import string
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.decisions.accumulator import Accumulated, Table
from powersum.model.diagram import Diagram

MOST_ENTRIES = 1 << 22
"""Entries of the largest table while a policy is improved."""

GAIN = 1e-12
"""A round of updates that gains less than this share of the value is the last."""


class TooWide(Exception):
    """A table would have more than :data:`MOST_ENTRIES` entries."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What a decision does in each case that it sees.

    Parameters
    ----------
    variable
        The decision.
    view
        The variables that it goes by.
    chosen
        Its state for all states of these, one axis a variable.
    """

    variable: int
    view: tuple[int, ...]
    chosen: IntArray

    def table(self, states: int) -> Table:
        """The distribution of the decision as a log table."""
        chosen = np.arange(states) == self.chosen[..., None]
        return (*self.view, self.variable), np.where(chosen, 0.0, -np.inf)


def in_view(known: Sequence[int], cardinalities: Sequence[int], most: int) -> tuple[int, ...]:
    """What is seen last of what is known, as far as there are no more than so many cases."""
    view: list[int] = []
    cases = 1
    for v in reversed(known):
        cases *= int(cardinalities[v])
        if cases > most:
            break
        view.insert(0, v)
    return tuple(view)


class Improver:
    """Policies of one diagram, improved a decision at a time while all others stay as they are.

    Parameters
    ----------
    diagram, observed
        The diagram, and what is observed and decided already.
    product
        The same as one product.
    needed
        What of its knowledge matters to each open choice.
    """

    def __init__(
        self,
        diagram: Diagram,
        observed: Mapping[int, int],
        product: Accumulated,
        needed: Mapping[int, tuple[int, ...]],
    ) -> None:
        self._diagram, self._needed = diagram, needed
        self._cards = product.cardinalities
        self._tables = [
            _restricted(scope, np.exp(table), observed) for scope, table in (*product.chance, *product.links)
        ]

    def improved(self, most_cases: int, start: Mapping[int, Rule], deadline: float) -> tuple[dict[int, Rule], float]:
        """Rules that see up to so many cases each, and their value; those at the start see fewer, or are not there.

        Decisions without a rule are drawn at random until their turn comes: from the last to the first.
        """
        rules = dict(start)
        choices = sorted(self._needed, reverse=True)
        best = -np.inf
        while True:
            value = best
            for k in choices:
                rules[k], value = self._update(k, most_cases, rules)
                if time.monotonic() > deadline and len(rules) == len(choices):
                    return rules, value
            if value <= best + GAIN * abs(value):
                return rules, value
            best = value

    def _update(self, k: int, most_cases: int, rules: Mapping[int, Rule]) -> tuple[Rule, float]:
        """The best rule of one decision given those of all others, and the value."""
        decision = self._diagram.choices[k].variable
        others = []
        for other in self._needed:
            variable = self._diagram.choices[other].variable
            if other == k:
                continue
            if other in rules:
                scope, table = rules[other].table(self._cards[variable])
                others.append((scope, np.exp(table)))
            else:
                others.append(((variable,), np.full(self._cards[variable], 1.0 / self._cards[variable])))
        view = in_view(self._needed[k], self._cards, most_cases)
        values = contracted([*self._tables, *others], (*view, decision), self._cards)
        return Rule(decision, view, values.argmax(axis=-1)), float(values.max(axis=-1).sum())


def _restricted(scope: tuple[int, ...], table: FloatArray, observed: Mapping[int, int]) -> Table:
    """A table with the observed states put in."""
    index = tuple(observed.get(v, slice(None)) for v in scope)
    return tuple(v for v in scope if v not in observed), table[index]


def contracted(tables: Iterable[Table], keep: tuple[int, ...], cardinalities: Sequence[int]) -> FloatArray:
    """The product of tables, summed over all variables but those to keep; axes in their order.

    Variables go one after another, the one with the smallest table next.

    Raises
    ------
    TooWide
        Where a table would have more than :data:`MOST_ENTRIES` entries.
    """
    pool: dict[int, Table] = dict(enumerate(tables))
    at: dict[int, set[int]] = {}
    for number, (scope, _) in pool.items():
        for v in scope:
            at.setdefault(v, set()).add(number)
    waiting = set(at) - set(keep)
    sizes = {v: _size(_met(pool, at, v), cardinalities) for v in waiting}
    following = len(pool)
    while waiting:
        v = min(waiting, key=lambda u: (sizes[u], u))
        waiting.discard(v)
        if sizes[v] > MOST_ENTRIES:
            raise TooWide
        numbers = at.pop(v)
        parts = [pool.pop(number) for number in sorted(numbers)]
        scope = tuple(sorted({u for part, _ in parts for u in part} - {v}))
        pool[following] = scope, product_of(parts, scope)
        for u in scope:
            at[u] = (at[u] - numbers) | {following}
        for u in scope:
            if u in waiting:
                sizes[u] = _size(_met(pool, at, u), cardinalities)
        following += 1
    if _size(set(keep), cardinalities) > MOST_ENTRIES:
        raise TooWide
    missing: list[Table] = [((v,), np.ones(cardinalities[v])) for v in keep]
    return product_of([*pool.values(), *missing], keep)


def product_of(parts: Sequence[Table], keep: tuple[int, ...]) -> FloatArray:
    """The product of tables, summed over what is not kept; two at a time, so that none has too many axes."""
    scope, table = parts[0]
    for place, (other, values) in enumerate(parts[1:], 1):
        # What no later table has goes at once.
        needed = {*keep, *(v for later, _ in parts[place + 1 :] for v in later)}
        joint = dict.fromkeys((*scope, *other))
        out = tuple(v for v in joint if v in needed)
        table = np.einsum(_subscripts(scope, other, out=out), table, values)
        scope = out
    return np.asarray(np.einsum(_subscripts(scope, out=keep), table))


def _subscripts(*scopes: tuple[int, ...], out: tuple[int, ...]) -> str:
    """Scopes as ``numpy.einsum`` has them."""
    joint = dict.fromkeys(v for scope in scopes for v in scope)
    letters = dict(zip(joint, string.ascii_letters, strict=False))
    return ",".join("".join(letters[v] for v in scope) for scope in scopes) + "->" + "".join(letters[v] for v in out)


def _met(pool: Mapping[int, Table], at: Mapping[int, set[int]], v: int) -> set[int]:
    return {u for number in at[v] for u in pool[number][0]}


def _size(scope: Iterable[int], cardinalities: Sequence[int]) -> int:
    size = 1
    for v in scope:
        size *= int(cardinalities[v])
    return size
