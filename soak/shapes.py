"""Shapes and numbers of random models: scopes of every structure, tables of every awkward kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Scopes = list[tuple[int, ...]]
Rng = np.random.Generator
T = TypeVar("T")

MOST_STATES = 1 << 14
"""Joint states of a model: brute force takes a few milliseconds."""


HUGE = 0.0005
"""Share of models with one variable of very many states."""


def one_of(rng: Rng, options: Sequence[T]) -> T:
    """One of several, much quicker than by ``rng.choice``."""
    return options[int(rng.random() * len(options))]


def cardinalities(rng: Rng) -> list[int]:
    """Numbers of states, from 1 to 40, of as many variables as brute force allows, or fewer."""
    if rng.random() < HUGE:
        # More states than an unsigned number of 16 bits can tell apart.
        return [one_of(rng, [2, 3, 1]), 65_530 + int(rng.integers(5000))][:: one_of(rng, [1, -1])]
    choices = [[2], [2], [2], [2, 3], [1, 2, 3], [1, 2], [2, 3, 4, 5], [3], list(range(1, 41)), [2, 2, 2, 17, 40]]
    allowed = one_of(rng, choices)
    # Most faults show on small models, which are also quicker by far.
    most = int(2.0 ** rng.uniform(3.0, np.log2(MOST_STATES)))
    wanted = int(rng.integers(2, 15)) if rng.random() < 0.95 else int(rng.integers(0, 2))
    cards: list[int] = []
    for _ in range(wanted):
        card = one_of(rng, allowed)
        if math.prod(cards) * card > most:
            break
        cards.append(card)
    return cards


def _tree(rng: Rng, n: int) -> Scopes:
    return [(int(rng.integers(max(0, v - 4), v)), v) for v in range(1, n)]


def _chain(rng: Rng, n: int) -> Scopes:
    order = rng.permutation(n).tolist()
    return list(pairwise(order))


def _grid(rng: Rng, n: int) -> Scopes:
    width = int(rng.integers(2, 4))
    right: Scopes = [(v, v + 1) for v in range(n - 1) if (v + 1) % width]
    return right + [(v, v + width) for v in range(n - width)]


def _dense(rng: Rng, n: int) -> Scopes:
    return [pair for pair in combinations(range(n), 2) if rng.random() < 0.8]


def _random(rng: Rng, n: int) -> Scopes:
    widest = int(rng.integers(1, 5))
    count = int(rng.integers(0, 2 * n + 2))
    return [tuple(rng.permutation(n)[: int(rng.integers(1, widest + 1))].tolist()) for _ in range(count)]


def _hub(rng: Rng, n: int) -> Scopes:
    centre = int(rng.integers(n))
    spokes: Scopes = [(centre, v) if rng.random() < 0.5 else (v, centre) for v in range(n) if v != centre]
    return spokes + [(centre,)] * int(rng.integers(0, 3)) + [s for s in spokes if rng.random() < 0.3]


def _cycle(rng: Rng, n: int) -> Scopes:
    return [(v, (v + 1) % n) for v in range(n)] if n > 2 else _chain(rng, n)


def _wide(rng: Rng, n: int) -> Scopes:
    whole = tuple(rng.permutation(n)[:8].tolist())
    return [whole, *_tree(rng, n)]


def _repeated(rng: Rng, n: int) -> Scopes:
    some = _random(rng, n) or [(0,)]
    return [tuple(rng.permutation(some[int(rng.integers(len(some)))]).tolist()) for _ in range(2 * len(some))]


def _components(rng: Rng, n: int) -> Scopes:
    cut = sorted({0, n, *rng.integers(0, n + 1, size=int(rng.integers(1, 4))).tolist()})
    scopes: Scopes = []
    for a, b in pairwise(cut):
        inner = [_tree, _cycle, _dense, _random][int(rng.integers(4))](rng, b - a)
        scopes += [tuple(v + a for v in scope) for scope in inner]
    return scopes


def _bushy(rng: Rng, n: int) -> Scopes:
    more = [tuple(rng.permutation(n)[:2].tolist()) for _ in range(3)] if n > 1 else []
    return _tree(rng, n) + more


def _tangle(rng: Rng, n: int) -> Scopes:
    """Nothing but pairs and triples, and many: hard for its size, for nothing can be simplified away."""
    count = int(rng.integers(n, 2 * n + 1)) if n > 1 else 0
    return [tuple(rng.permutation(n)[: int(rng.integers(2, 4))].tolist()) for _ in range(count)]


def _none(rng: Rng, n: int) -> Scopes:
    del rng, n
    return []


def _network(rng: Rng, n: int) -> Scopes:
    """Parents first and the child last: a Bayesian network, with barren parts as chance has it."""
    most = int(rng.integers(1, 4))
    scopes: Scopes = []
    for v in range(n):
        parents = rng.permutation(v)[: int(rng.integers(0, most + 1))].tolist()
        scopes.append((*parents, v))
    return scopes


SHAPES: Mapping[str, Callable[[Rng, int], Scopes]] = MappingProxyType(
    {
        "tree": _tree,
        "chain": _chain,
        "grid": _grid,
        "dense": _dense,
        "random": _random,
        "hub": _hub,
        "cycle": _cycle,
        "wide": _wide,
        "repeated": _repeated,
        "components": _components,
        "bushy": _bushy,
        "tangle": _tangle,
        "none": _none,
        "network": _network,
    }
)
"""Name of each shape and what draws its scopes for a number of variables."""

HARD = ("tangle", "tangle", "dense", "grid", "cycle", "bushy")
"""Shapes that are not answered by simplification or by a tree without splits."""


def numbers(rng: Rng, kind: str, size: int) -> npt.NDArray[np.float64]:
    """The entries of one table, of one kind."""
    return np.asarray(_numbers(rng, kind, size), dtype=np.float64)


def _numbers(rng: Rng, kind: str, size: int) -> Any:
    match kind:
        case "normal":
            return np.exp(rng.normal(0.0, 1.5, size))
        case "flat":
            return 1.0 + 1e-3 * rng.random(size)
        case "strong":
            return np.exp(rng.normal(0.0, 10.0, size))
        case "zeros":
            share = one_of(rng, [0.1, 0.3, 0.5, 0.7])
            spread = one_of(rng, [1.0, 3.0, 8.0])
            return np.where(rng.random(size) < share, 0.0, np.exp(rng.normal(0.0, spread, size)))
        case "constraints":
            return rng.random(size) < one_of(rng, [0.4, 0.6, 0.8])
        case "ties":
            return rng.choice([0.0, 1.0, 1.0, 2.0], size)
        case "extreme":
            return 10.0 ** rng.uniform(-300.0, 300.0, size)
        case "spikes":
            return rng.choice([1.0, 1.0, 1.0, 0.5, 1e-300, 1e300, 0.0, 1e-16, 1e-9], size)
        case "limits":
            return rng.choice([5e-324, 2.2e-308, 1.7976931348623157e308, 1.0, 0.0], size)
        case "small":
            return 10.0 ** rng.uniform(-300.0, -200.0, size)
        case _:
            return 10.0 ** rng.uniform(200.0, 300.0, size)


NUMBERS = ("normal", "flat", "strong", "zeros", "constraints", "ties", "extreme", "spikes", "limits", "small", "large")
"""Kinds of entries; a model may mix them."""
