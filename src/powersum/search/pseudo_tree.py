"""Where the problem falls apart once some max variables are set: the tree that AND/OR search walks.

Max variables are set from the last eliminated to the first. What is left below a variable depends on earlier ones only
through its *context*, the later neighbours that elimination would give it, and falls apart into the subtrees of its
children. Components of sum variables hang on the lowest max variable of their context as leaves.

Nodes are numbered: max variables by depth (the last eliminated has 0), then components, then a root above all of them,
with a single state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, positions_of, starts_of
from powersum.core.jit import compiled
from powersum.exact.wiring import wire


class PseudoTree(NamedTuple):
    """The nodes as kernels read them.

    Children of node ``n``: ``children[child_starts[n]:child_starts[n + 1]]``. Its context is its parent and those of
    its parent's context that are not among ``dropped[drop_starts[n]:drop_starts[n + 1]]``. What is known of it is kept
    from ``value_starts[n]`` on, one entry for each state of its parent. ``salts`` and ``keys``, two random words for
    each node and for each state of each node, make the keys under which values are found again.
    """

    parents: IntArray
    cardinalities: IntArray
    child_starts: IntArray
    children: IntArray
    drop_starts: IntArray
    dropped: IntArray
    value_starts: IntArray
    state_starts: IntArray
    salts: IntArray
    keys: IntArray


class Subtree(NamedTuple):
    """What lies below a max variable, itself included: variables and factors of the problem, positions in the order."""

    variables: IntArray
    factors: IntArray
    inside: BoolArray


class Shape:
    """The pseudo tree of an elimination order, and the parts of the problem that belong to its subtrees.

    Parameters
    ----------
    evaluator
        Knows the components of the sum variables.
    order
        All variables, first eliminated first, max variables last.
    seed
        Seed of the keys.
    """

    def __init__(self, evaluator: Evaluator, order: IntArray, *, seed: int = 0) -> None:
        problem = evaluator.problem
        model = problem.model
        n = len(order)
        self.order = order
        self.n_max = n_max = int(evaluator.is_max.sum())
        self._evaluator = evaluator
        position = positions_of(order)
        wiring, self._factor_position = wire(order, position, np.arange(model.n_factors), evaluator.factors)
        self._parent_position = wiring.parents
        # The position of a node: of the variable itself, or of the last eliminated variable of a component.
        parts = evaluator.parts
        tops: IntArray = np.zeros(0, dtype=np.int64)
        if len(parts.members):
            tops = np.maximum.reduceat(position[parts.members], parts.member_starts[:-1])
        self.positions = np.concatenate([n - 1 - np.arange(n_max), tops])
        self.root = len(self.positions)
        above = wiring.parents[self.positions]
        parents = np.where(above < 0, self.root, n - 1 - above)
        # Components first: what they tell is exact, and holds for everything beside them.
        sequence = np.concatenate([np.arange(n_max, self.root), np.arange(n_max)])
        children = sequence[np.argsort(parents[sequence], kind="stable")]
        # Contexts in the order of positions, as nodes; that of the root is empty.
        self.contexts = [
            n - 1 - position[wiring.axes[wiring.axis_starts[p] + 1 : wiring.axis_starts[p + 1]]]
            for p in self.positions.tolist()
        ]
        empty = np.zeros(0, dtype=np.int64)
        dropped = [
            np.setdiff1d(empty if p == self.root else self.contexts[p], context, assume_unique=True)
            for p, context in zip(parents.tolist(), self.contexts, strict=True)
        ]
        cards = np.concatenate([model.cardinalities[order[::-1][:n_max]], np.ones(self.root - n_max + 1, np.int64)])
        parents = np.append(parents, -1)
        rng = np.random.default_rng(seed)
        self.tree = PseudoTree(
            frozen(parents, np.int64),
            frozen(cards, np.int64),
            frozen(starts_of(np.bincount(parents[:-1], minlength=self.root + 1)), np.int64),
            frozen(children, np.int64),
            frozen(starts_of([len(d) for d in dropped] + [0]), np.int64),
            frozen(np.concatenate([*dropped, empty]), np.int64),
            frozen(starts_of(np.append(cards[parents[:-1]], 1)), np.int64),
            frozen(starts_of(cards), np.int64),
            frozen(_words(rng, self.root + 1), np.int64),
            frozen(_words(rng, int(cards.sum())), np.int64),
        )
        self.log_work = _log_work(
            wiring.axis_starts, wiring.axes, wiring.parents, position, np.log(model.cardinalities.astype(np.float64))
        )[self.positions]

    def subtree(self, node: int) -> Subtree:
        """All that is left of the problem at a node."""
        inside = _descendants(self._parent_position, int(self.positions[node]))
        factors = np.flatnonzero(np.append(inside, False)[self._factor_position])
        return Subtree(self.order[inside], factors, inside)


def _words(rng: np.random.Generator, n: int) -> IntArray:
    """Two random words for each of ``n`` things."""
    limits = np.iinfo(np.int64)
    return rng.integers(limits.min, limits.max, (n, 2), dtype=np.int64, endpoint=True)


@compiled
def _descendants(parents: IntArray, top: int) -> BoolArray:
    """Which positions are at or below ``top``."""
    inside = np.zeros(len(parents), np.bool_)
    inside[top] = True
    for p in range(top - 1, -1, -1):
        if parents[p] >= 0 and inside[parents[p]]:
            inside[p] = True
    return inside


@compiled
def _log_work(
    axis_starts: IntArray, axes: IntArray, parents: IntArray, position: IntArray, log_cards: FloatArray
) -> FloatArray:
    """Log of the entries of the largest bucket when all below a position is eliminated and all above it is given."""
    n = len(parents)
    largest = np.zeros(n)
    for b in range(n):
        size = 0.0
        at = axis_starts[b]
        above = b
        while above >= 0:
            # Axes follow the elimination order, and all of them are ancestors: the next one is met on the way up.
            if at < axis_starts[b + 1] and position[axes[at]] == above:
                size += log_cards[axes[at]]
                at += 1
            largest[above] = max(largest[above], size)
            above = parents[above]
    return largest
