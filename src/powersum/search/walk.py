"""The compiled part of AND/OR search: recursive best-first steps with thresholds, as in depth-first proof search.

Every node has a *cost*, what it takes off the bound at least: of a variable the least over its states of what the
state costs and of what its children cost in it; of a component what its exact value is short of its bound. A node is
worked on while its cost is at most its threshold. The threshold passed on to a child makes it come back as soon as
another state of its parent, or another part of the problem, has become the better choice. So nodes are visited in
best-first order with the memory of a path, and a table remembers what was found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.bounds.tree.losses import Losses, costs_of
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import bare, without_counting
from powersum.search.pseudo_tree import PseudoTree
from powersum.search.values import Values, approach, find, keep

ENDED, PAUSED = -1, -2
"""Why :func:`explore` came back, if not with a node to settle."""

EFFORT_OF_SETTLING = 100
"""What settling a node counts as, in steps."""


class Walk(NamedTuple):
    """The present path and what is known around it.

    ``costs`` has an entry for each state of each node, ``known``, ``exact`` and ``efforts`` one for each node and state
    of its parent; they are up to date for nodes whose parents are on the stack.
    """

    path: IntArray
    """State of each node up to the top of the stack; of a node that was left, the one that was best then."""
    stack: IntArray
    thresholds: FloatArray
    begun: IntArray
    """Count of steps when each node of the stack was entered."""
    words: IntArray
    """Key of each node without its salt and its parent's state."""
    costs: FloatArray
    known: FloatArray
    exact: NDArray[np.bool_]
    efforts: IntArray
    settles: NDArray[np.bool_]
    """Nodes that exact elimination shall settle when they are met."""
    counts: IntArray
    """Height of the stack, steps in all."""


def new_walk(tree: PseudoTree) -> Walk:
    """An empty path."""
    n = len(tree.parents)
    return Walk(
        np.zeros(n, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros((n, 2), dtype=np.int64),
        np.zeros(int(tree.state_starts[-1])),
        np.zeros(int(tree.value_starts[-1])),
        np.zeros(int(tree.value_starts[-1]), dtype=np.bool_),
        np.zeros(int(tree.value_starts[-1]), dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
        np.zeros(2, dtype=np.int64),
    )


@bare
def look_around(losses: Losses, tree: PseudoTree, values: Values, walk: Walk, node: int) -> None:
    """Fill in what the states of a max variable cost and what is known of its children in each of them."""
    place = tree.state_starts[node]
    keys, words, path = tree.keys, walk.words, walk.path
    first_of_all, second_of_all = words[node, 0], words[node, 1]
    parent = tree.parents[node]
    if parent >= 0:
        state = tree.state_starts[parent] + path[parent]
        first_of_all ^= keys[state, 0]
        second_of_all ^= keys[state, 1]
    for k in range(tree.child_starts[node], tree.child_starts[node + 1]):
        child = tree.children[k]
        first, second = first_of_all, second_of_all
        for i in range(tree.drop_starts[child], tree.drop_starts[child + 1]):
            above = tree.dropped[i]
            state = tree.state_starts[above] + path[above]
            first ^= keys[state, 0]
            second ^= keys[state, 1]
        words[child, 0], words[child, 1] = first, second
        for s in range(tree.cardinalities[node]):
            approach(values, first ^ tree.salts[child, 0] ^ keys[place + s, 0])
    if node < len(losses.variables):
        costs_of(losses, node, path, walk.costs, place)
    for k in range(tree.child_starts[node], tree.child_starts[node + 1]):
        child = tree.children[k]
        first, second = words[child, 0] ^ tree.salts[child, 0], words[child, 1] ^ tree.salts[child, 1]
        for s in range(tree.cardinalities[node]):
            at = tree.value_starts[child] + s
            row = find(values, first ^ keys[place + s, 0], second ^ keys[place + s, 1])
            walk.known[at] = values.numbers[row, 2] if row >= 0 else 0.0
            walk.exact[at] = row >= 0 and values.words[row, 3] % 2 == 1
            walk.efforts[at] = values.words[row, 3] // 2 if row >= 0 else 0


@bare
def choose(tree: PseudoTree, walk: Walk, node: int) -> tuple[int, float, float, bool]:
    """The best state of a node, its cost, that of the second best, and whether the best is exact."""
    best = 0
    cost = np.inf
    second = np.inf
    best_exact = False
    for s in range(tree.cardinalities[node]):
        total = walk.costs[tree.state_starts[node] + s]
        exact = True
        for k in range(tree.child_starts[node], tree.child_starts[node + 1]):
            at = tree.value_starts[tree.children[k]] + s
            total += walk.known[at]
            exact = exact and walk.exact[at]
        if total < cost or (total == cost and exact and not best_exact):
            second = cost
            best, cost, best_exact = s, total, exact
        elif total < second:
            second = total
    return best, cost, second, best_exact


@bare
def enter(losses: Losses, tree: PseudoTree, values: Values, walk: Walk, node: int, threshold: float) -> None:
    """Put a node on the stack; the states of all above it are on the path."""
    height = walk.counts[0]
    walk.stack[height] = node
    walk.thresholds[height] = threshold
    walk.begun[height] = walk.counts[1]
    walk.counts[0] += 1
    look_around(losses, tree, values, walk, node)


@bare
def learn(tree: PseudoTree, values: Values, walk: Walk, node: int, cost: float, exact: bool, effort: int) -> None:
    """Note what has been found out about a node, for its parent and for later."""
    parent = tree.parents[node]
    if parent < 0:
        at = tree.value_starts[node]
        walk.known[at] = max(cost, walk.known[at])
        walk.exact[at] = exact
        return
    at = tree.value_starts[node] + walk.path[parent]
    walk.known[at] = cost if exact else max(cost, walk.known[at])
    walk.exact[at] = walk.exact[at] or exact
    walk.efforts[at] += effort
    state = tree.state_starts[parent] + walk.path[parent]
    first = walk.words[node, 0] ^ tree.keys[state, 0] ^ tree.salts[node, 0]
    second = walk.words[node, 1] ^ tree.keys[state, 1] ^ tree.salts[node, 1]
    keep(values, first, second, walk.known[at], walk.exact[at], effort)


@bare
def least_tried(tree: PseudoTree, walk: Walk, node: int, state: int) -> int:
    """The child on which the least work was spent, of those that are not exact; components before all others.

    By that a hard part of the problem cannot keep the search from the gains in all others.
    """
    chosen = -1
    effort = -1
    for k in range(tree.child_starts[node], tree.child_starts[node + 1]):
        child = tree.children[k]
        at = tree.value_starts[child] + state
        if not walk.exact[at] and (chosen < 0 or walk.efforts[at] < effort):
            chosen, effort = child, walk.efforts[at]
    return int(chosen)


@without_counting
def best_state(losses: Losses, tree: PseudoTree, values: Values, walk: Walk, node: int) -> tuple[int, bool]:
    """The best state of a node given the path above it, and whether that is certain."""
    look_around(losses, tree, values, walk, node)
    state, _, _, exact = choose(tree, walk, node)
    return state, exact


@without_counting
def explore(
    losses: Losses,
    tree: PseudoTree,
    values: Values,
    walk: Walk,
    start: int,
    threshold: float,
    settled: int,
    settled_cost: float,
    steps: int,
    slack: float,
    stop: bool,
) -> int:
    """Go on with what is on the stack; returns a node to settle, or why it came back.

    One entry for all, for entries take long to compile: the node ``start``, unless -1, is put on the stack first, with
    its threshold; of the node ``settled``, unless -1, the exact cost is now known. ``slack`` is how much worse than the
    second best a choice may become before it is changed: changing at every difference would spend most steps on ways
    already known. With ``stop`` everything on the stack is left, and what was found is kept.
    """
    counts = walk.counts
    if start >= 0:
        enter(losses, tree, values, walk, start, threshold)
    if settled >= 0:
        learn(tree, values, walk, settled, settled_cost, True, EFFORT_OF_SETTLING)
    last = counts[1] + steps
    while counts[0] > 0:
        top = counts[0] - 1
        node = walk.stack[top]
        state, cost, second, exact = choose(tree, walk, node)
        limit = walk.thresholds[top]
        walk.path[node] = state
        if exact or cost > limit or stop:
            counts[0] = top
            learn(tree, values, walk, node, cost, exact, counts[1] - walk.begun[top] + 1)
            continue
        if counts[1] >= last:
            return PAUSED
        counts[1] += 1
        child: Any = least_tried(tree, walk, node, state)
        if walk.settles[child]:
            return int(child)
        known = walk.known[tree.value_starts[child] + state]
        enter(losses, tree, values, walk, child, min(limit, second + slack) - cost + known)
    return ENDED
