"""The compiled part of a search's proof: one walk that lists what has to be known for the root to cost enough.

A node costs at least what is needed if every state of it does: by itself, or together with its children, each of which
then has to cost its part. Components of sum variables, which elimination settles, end the walk. (What the search
settles below a max variable by one elimination would be a much larger table in the order of the tree; a search below
it, which sees bounds, lists less.)
What was found once is in the table of values; where that had to make room, the search works on the node again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.bounds.tree.losses import Losses
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import without_counting
from powersum.search.pseudo_tree import PseudoTree
from powersum.search.values import Values, find, keep
from powersum.search.walk import Walk, look_around

ARRIVED, FULL, LATE = -1, -2, -3
"""Why :func:`follow` came back, if not with a node to work on."""

UNSEEN = -1
"""State of a node that has just been entered."""

ROUNDING = 1e-12
"""Costs are sums of differences: what is needed may be missed by this share of it."""


class Trail(NamedTuple):
    """Where the walk stands, and what it has listed so far."""

    nodes: IntArray
    needs: FloatArray
    """What each node of the stack has to cost."""
    states: IntArray
    children: IntArray
    left: FloatArray
    """What the present state of each still lacks."""
    counts: IntArray
    """Height of the stack; nodes listed; numbers used of ``rows``; steps in all."""
    context_starts: IntArray
    context_nodes: IntArray
    listed: IntArray
    settled: NDArray[np.bool_]
    rows: NDArray[np.int32]
    """States of the contexts of the nodes listed, one after another."""


def new_trail(tree: PseudoTree, context_starts: IntArray, context_nodes: IntArray, room: int) -> Trail:
    """An empty trail with room for so many nodes and states."""
    n = len(tree.parents) + 1
    return Trail(
        np.zeros(n, dtype=np.int64),
        np.zeros(n),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(n),
        np.zeros(4, dtype=np.int64),
        context_starts,
        context_nodes,
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.bool_),
        np.zeros(max(room, int(np.diff(context_starts).max(initial=1))), dtype=np.int32),
    )


@without_counting
def follow(
    losses: Losses, tree: PseudoTree, values: Values, walk: Walk, proven: Values, trail: Trail, steps: int
) -> int:
    """Go on with the walk; returns a node of which too little is known, or why it came back.

    ``proven`` holds, for each context listed, how much was needed of it.
    """
    counts = trail.counts
    n_max = len(losses.variables)
    last = counts[3] + steps
    while counts[0] > 0:
        top = counts[0] - 1
        node = trail.nodes[top]
        first_child, end = tree.child_starts[node], tree.child_starts[node + 1]
        need = trail.needs[top]
        if trail.states[top] == UNSEEN:
            if counts[3] >= last:
                return LATE
            counts[3] += 1
            look_around(losses, tree, values, walk, node)
            least = np.inf
            for s in range(tree.cardinalities[node]):
                total = walk.costs[tree.state_starts[node] + s]
                for k in range(first_child, end):
                    total += walk.known[tree.value_starts[tree.children[k]] + s]
                least = min(least, total)
            # What is known for certain, should it not become more.
            trail.left[top] = least
            if least < need * (1.0 - ROUNDING):
                return int(node)
            trail.states[top] = 0
            trail.children[top] = first_child
            trail.left[top] = need - walk.costs[tree.state_starts[node]]
            walk.path[node] = 0
        state = trail.states[top]
        if trail.left[top] <= 0.0 or trail.children[top] == end:
            state += 1
            if state == tree.cardinalities[node]:
                counts[0] = top
                continue
            trail.states[top] = state
            walk.path[node] = state
            trail.children[top] = first_child
            trail.left[top] = need - walk.costs[tree.state_starts[node] + state]
            continue
        child = tree.children[trail.children[top]]
        give = min(walk.known[tree.value_starts[child] + state], trail.left[top])
        if give > 0.0:
            place = tree.state_starts[node] + state
            first = walk.words[child, 0] ^ tree.keys[place, 0] ^ tree.salts[child, 0]
            second = walk.words[child, 1] ^ tree.keys[place, 1] ^ tree.salts[child, 1]
            row = find(proven, first, second)
            if row < 0:
                low, high = trail.context_starts[child], trail.context_starts[child + 1]
                if counts[1] == len(trail.listed) or counts[2] + high - low > len(trail.rows):
                    return FULL
                trail.listed[counts[1]] = child
                trail.settled[counts[1]] = child >= n_max
                counts[1] += 1
                for i in range(low, high):
                    trail.rows[counts[2]] = walk.path[trail.context_nodes[i]]
                    counts[2] += 1
            if row < 0 or proven.numbers[row, 2] < give:
                keep(proven, first, second, give, False, 1)
                if child < n_max:
                    trail.nodes[top + 1] = child
                    trail.needs[top + 1] = give
                    trail.states[top + 1] = UNSEEN
                    counts[0] = top + 2
            trail.left[top] -= give
        trail.children[top] += 1
    return ARRIVED
