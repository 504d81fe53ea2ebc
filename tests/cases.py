"""Random questions of every mix, small enough for brute force."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from tests.strategies import random_model


class Case(NamedTuple):
    """A question about a small model."""

    model: Model
    query: Query
    evidence: dict[int, int]

    def problem(self) -> Problem:
        """The question, simplified."""
        return simplify(self.model, self.query, self.evidence)


def case(seed: int) -> Case:
    """Everything varies with the seed: size, zeros, evidence, the share of max variables from none to all."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    model = random_model(
        rng,
        n_variables=n,
        n_factors=int(rng.integers(0, 2 * n + 2)),
        max_states=int(rng.integers(2, 4)),
        zeros=float(rng.choice([0.0, 0.0, 0.2, 0.4])),
        spread=float(rng.choice([0.5, 2.0, 6.0])),
    )
    share = float(rng.choice([0.0, 0.3, 0.5, 0.8, 1.0]))
    weights = (rng.random(n) >= share).astype(np.float64)
    observed = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.2]))
    evidence = {int(v): int(rng.integers(model.cardinalities[v])) for v in observed}
    return Case(model, Query(weights), evidence)


def hard_case(seed: int, *, zeros: float = 0.0) -> Case:
    """A denser question with one component, so that every part of the solver has something to do."""
    rng = np.random.default_rng(seed)
    n = 11
    cards = rng.integers(2, 4, n)
    factors = []
    for _ in range(16):
        scope = rng.permutation(n)[: int(rng.integers(2, 4))]
        table = np.exp(rng.normal(0.0, 1.5, tuple(cards[scope])))
        factors.append((scope, np.where(rng.random(table.shape) < zeros, 0.0, table)))
    factors.extend((np.array([v, v + 1]), np.exp(rng.normal(0.0, 1.0, (cards[v], cards[v + 1])))) for v in range(n - 1))
    weights = np.ones(n)
    weights[rng.permutation(n)[:6]] = 0.0
    return Case(Model.from_factors(cards.tolist(), factors), Query(weights), {})


def bushy_case(seed: int, *, zeros: float = 0.0) -> Case:
    """A random tree with a few edges more: it falls apart as soon as some variables are set."""
    rng = np.random.default_rng(seed)
    n = 13
    cards = rng.integers(2, 4, n)
    pairs = [(int(rng.integers(max(0, v - 4), v)), v) for v in range(1, n)]
    pairs += [(int(a), int(b)) for a, b in (rng.permutation(n)[:2] for _ in range(3))]
    factors = []
    for pair in pairs:
        table = np.exp(rng.normal(0.0, 1.5, tuple(cards[list(pair)])))
        factors.append((np.array(pair), np.where(rng.random(table.shape) < zeros, 0.0, table)))
    weights = (rng.random(n) < 0.4).astype(np.float64)
    return Case(Model.from_factors(cards.tolist(), factors), Query(weights), {})
