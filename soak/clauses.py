"""Models that are mostly zeros: formulas with weights, networks of functions, plans that must succeed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soak.shapes import Rng

Tables = list[tuple[tuple[int, ...], npt.NDArray[np.float64]]]


def formula(rng: Rng) -> tuple[list[int], Tables]:
    """Clauses of one to four literals, and weights of some variables."""
    n = int(rng.integers(1, 12))
    tables: Tables = []
    for _ in range(int(rng.integers(0, int(2.5 * n) + 1))):
        scope = rng.permutation(n)[: int(rng.integers(1, 5))].tolist()
        table = np.ones((2,) * len(scope))
        table[tuple(rng.integers(0, 2, len(scope)).tolist())] = 0.0
        tables.append((tuple(scope), table))
    tables += [((v,), rng.random(2)) for v in range(n) if rng.random() < 0.4]
    return [2] * n, tables


def deterministic(rng: Rng) -> tuple[list[int], Tables]:
    """A network whose tables are mostly functions of the parents, with axes in any order, and constraints."""
    n = int(rng.integers(2, 11))
    cards = rng.integers(2, 4, n).tolist()
    tables: Tables = []
    for v in range(n):
        parents = rng.permutation(v)[: int(rng.integers(0, 4))].tolist()
        table = rng.dirichlet(np.ones(cards[v]), tuple(cards[u] for u in parents))
        if rng.random() < 0.8 and parents:
            table = np.eye(cards[v])[table.argmax(axis=-1)]
        axes = rng.permutation(len(parents) + 1)
        scope = np.array([*parents, v])[axes]
        tables.append((tuple(scope.tolist()), table.transpose(axes)))
        if rng.random() < 0.15:
            some = rng.permutation(v + 1)[:2].tolist()
            tables.append((tuple(some), (rng.random([cards[u] for u in some]) < 0.8).astype(np.float64)))
    return cards, [tables[k] for k in rng.permutation(len(tables))]


def plan(rng: Rng) -> tuple[list[int], Tables]:
    """Actions that move a hidden state, which must end in a goal: chances at the start and of each action."""
    steps, states, actions = (int(x) for x in rng.integers((1, 2, 2), (4, 4, 4)))
    cards = [states] * (steps + 1) + [actions] * steps
    move = np.eye(states)[rng.integers(0, states, (actions, states))]
    fails = float(rng.choice([0.0, 0.1, 0.5]))
    move = (1.0 - fails) * move + fails * np.eye(states)
    tables: Tables = [((0,), rng.dirichlet(np.ones(states)))]
    tables += [((steps + 1 + t, t, t + 1), move) for t in range(steps)]
    tables.append(((steps,), (np.arange(states) == rng.integers(states)).astype(np.float64)))
    # What may be done at once, or after each other.
    allowed = (rng.random((actions, actions)) < 0.7).astype(np.float64)
    tables += [((steps + 1 + t, steps + 2 + t), allowed) for t in range(steps - 1)]
    return cards, tables


__all__ = ["Tables", "deterministic", "formula", "plan"]
