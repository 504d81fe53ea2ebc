"""Policies: a rule for each decision, improved a decision at a time while all others stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from powersum.decisions.eliminator import Eliminator, Rule
from powersum.decisions.pairs import NotDone

GAIN = 1e-12
"""A round of updates that gains less than this share of the value is the last."""

Rules = dict[int, Rule]
"""Rules by the numbers of the choices."""


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


def updated(
    eliminator: Eliminator, views: Mapping[int, tuple[int, ...]], start: Mapping[int, Rule], ended: Callable[[], bool]
) -> tuple[Rules, float]:
    """Rules that go by these views, each the best given all others, and their value.

    Decisions without a rule are drawn at random until their turn comes: from the last to the first.
    """
    rules = dict(start)
    best = -math.inf
    while True:
        value = best
        for k in sorted(views, reverse=True):
            rules[k], value = eliminator.response(k, views[k], rules)
            if ended() and len(rules) == len(views):
                return rules, value
        if not value - best > GAIN * abs(value):
            return rules, value
        best = value


def widened(
    eliminator: Eliminator,
    needed: Mapping[int, tuple[int, ...]],
    cardinalities: Sequence[int],
    most: int,
    start: Mapping[int, Rule],
    value: float,
    seed: int,
    ended: Callable[[], bool],
) -> tuple[Rules, float]:
    """Rules that go by more, where one more variable makes a rule better: the best of those that are tried."""
    rules, rng = dict(start), np.random.default_rng(seed)
    while True:
        before = value
        for k in sorted(needed, reverse=True):
            view = rules[k].view
            room = most // math.prod([int(cardinalities[v]) for v in view])
            others = [v for v in needed[k] if v not in view and int(cardinalities[v]) <= room]
            for v in rng.permutation(others).tolist():
                if ended():
                    return rules, value
                try:
                    rule, found = eliminator.response(k, (*view, v), rules)
                except NotDone:
                    if ended():
                        return rules, value
                    continue
                if found > value + 1e-9 * abs(value):
                    rules[k], value, view = rule, found, (*view, v)
                    if math.prod([int(cardinalities[u]) for u in view]) * 2 > most:
                        break
        if value <= before + 1e-6 * abs(value):
            return rules, value
