"""Random influence diagrams, small enough for brute force."""

from __future__ import annotations

import numpy as np

import powersum as ps


def random_diagram(rng: np.random.Generator, *, recall: bool = True, n: int = 6, decisions: int = 2) -> ps.Diagram:
    """Variables in the order of time: chance variables and decisions, each seen at random before later decisions."""
    cards = rng.integers(2, 4, n).tolist()
    chosen = sorted(rng.permutation(n)[:decisions].tolist())
    factors = []
    for v in range(n):
        if v in chosen:
            continue
        above = rng.permutation(v)[: int(rng.integers(0, 3))].tolist()
        table = rng.dirichlet(np.full(cards[v], 0.7), [cards[u] for u in above])
        # Some tables are functions.
        if rng.random() < 0.3:
            table = np.eye(cards[v])[table.argmax(axis=-1)]
        factors.append(([*above, v], table))
    seen = []
    for d in chosen:
        before = [v for v in range(d) if recall is False or v not in chosen]
        picked = [v for v in before if rng.random() < (0.5 if recall else 0.3)]
        seen.append((d, picked[:2]))
    utilities = []
    for _ in range(int(rng.integers(1, 4))):
        scope = rng.permutation(n)[: int(rng.integers(1, 4))].tolist()
        utilities.append((scope, np.round(rng.normal(0.0, 10.0, [cards[v] for v in scope]), int(rng.integers(0, 6)))))
    return ps.Diagram.of(ps.Model.from_factors(cards, factors), utilities, seen, recall=recall)
