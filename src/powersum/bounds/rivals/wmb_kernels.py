"""Compiled passes of weighted mini-bucket: matching on the way forward, beliefs on the way back.

For sum variables a node's *belief on its columns* is a probability; for max variables it is a max-marginal in logs,
0 at the best column. Seen from a sum variable, the max variables after it stand at their best states: the
argmax-product rule, which is the limit of vanishing weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from powersum.bounds.buckets.inputs import place_of
from powersum.bounds.buckets.kernels import forward
from powersum.bounds.buckets.tree_wiring import (
    COLUMNS,
    ENTROPY,
    FIRST_INPUT,
    MESSAGE,
    SOURCE,
    STATES,
    TABLE,
    TreeWiring,
)
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled, inner

LEAST_BELIEF = 1e-12
"""Beliefs below this count as this: a shift towards a belief of 0 would be infinite."""

FARTHEST = 50.0
"""Max-marginals further than this below the best count as this far, for the same reason."""

LEAST_MATCHED_SHARE = 1e-6
"""No weight falls below this share of its variable's, so that nothing is divided by 0."""

TIE = 1e-9
"""Max-marginals this near to the best are best, too."""


@compiled
def backward_beliefs(
    wiring: TreeWiring,
    tau: FloatArray,
    n_static: int,
    n_messages: int,
    pool: FloatArray,
    tables: FloatArray,
    beliefs: FloatArray,
) -> None:
    """Beliefs on the columns of every node, from the last to the first, laid out like the messages.

    ``tables`` holds what :func:`forward` kept: conditionals of sum variables, plain tables of max variables.
    """
    for node in range(tau.size - 1, -1, -1):
        columns = wiring.nodes[node, COLUMNS]
        own = wiring.nodes[node, MESSAGE]
        if columns == 1:
            beliefs[own - n_static] = 1.0 if tau[node] > 0.0 else 0.0
        for k in range(wiring.nodes[node, FIRST_INPUT], wiring.nodes[node + 1, FIRST_INPUT]):
            child = wiring.inputs[k, SOURCE] - n_static
            if child < 0 or child >= n_messages:
                continue
            sender = np.searchsorted(wiring.nodes[:, MESSAGE], wiring.inputs[k, SOURCE], side="right") - 1
            size = wiring.nodes[sender, COLUMNS]
            for i in range(child, child + size):
                beliefs[i] = 0.0 if tau[sender] > 0.0 else -np.inf
            for state in range(wiring.nodes[node, STATES]):
                start = wiring.nodes[node, TABLE] + state * columns
                for column in range(columns):
                    place = place_of(wiring, node, k, state, column) - n_static
                    mine = beliefs[own - n_static + column]
                    if tau[node] > 0.0:
                        beliefs[place] += tables[start + column] * mine
                        continue
                    best = tables[start + column] - pool[own + column] + mine
                    if tau[sender] == 0.0:
                        beliefs[place] = max(beliefs[place], best)
                    elif best >= -TIE:
                        beliefs[place] = 1.0
            if tau[sender] > 0.0:
                _normalise(beliefs[child : child + size])


@inner
def _normalise(values: FloatArray) -> None:
    total = 0.0
    for value in values:
        total += value
    if total > 0.0:
        for i in range(values.size):
            values[i] /= total


@inner
def _sum_marginal(
    wiring: TreeWiring, node: int, weight: float, now: FloatArray, before: FloatArray, belief: FloatArray,
    tables: FloatArray, entropies: FloatArray, scaled: FloatArray,
) -> Any:  # fmt: skip
    """Weighted log-belief of a sum variable in one mini-bucket; returns its conditional entropy there.

    ``belief`` on the columns came from the last backward pass with the messages ``before``; it is brought up to date
    with the present ones.
    """
    columns = now.size
    share = np.empty(columns)
    top = -np.inf
    for c in range(columns):
        share[c] = math.log(belief[c]) + (now[c] - before[c]) / weight if belief[c] > 0.0 else -np.inf
        top = max(top, share[c])
    total = 0.0
    for c in range(columns):
        share[c] = math.exp(share[c] - top) if top > -np.inf else 1.0
        total += share[c]
    entropy = 0.0
    for c in range(columns):
        share[c] /= total
        entropy += share[c] * entropies[wiring.nodes[node, ENTROPY] + c]
    for x in range(scaled.size):
        start = wiring.nodes[node, TABLE] + x * columns
        mass = 0.0
        for c in range(columns):
            mass += share[c] * tables[start + c]
        scaled[x] = weight * math.log(max(mass, LEAST_BELIEF))
    return entropy


@inner
def _max_marginal(
    wiring: TreeWiring, node: int, before: FloatArray, belief: FloatArray, tables: FloatArray, scaled: FloatArray
) -> None:
    """Max-marginal of a max variable in one mini-bucket."""
    columns = before.size
    top = -np.inf
    for x in range(scaled.size):
        start = wiring.nodes[node, TABLE] + x * columns
        best = -np.inf
        for c in range(columns):
            best = max(best, tables[start + c] + (belief[c] - before[c]))
        scaled[x] = best
        top = max(top, best)
    for x in range(scaled.size):
        scaled[x] = max(scaled[x], top - FARTHEST)


@inner
def _share_weights(weights: FloatArray, entropies: FloatArray, tau: float, step: float) -> None:
    """Exponentiated gradient step of one variable's weights (paper, eq. 12)."""
    mean = 0.0
    for r in range(weights.size):
        mean += weights[r] * entropies[r] / tau
    total = 0.0
    for r in range(weights.size):
        share = weights[r] / tau
        weights[r] = max(share * math.exp(-step * share * (entropies[r] - mean)), LEAST_MATCHED_SHARE)
        total += weights[r]
    for r in range(weights.size):
        weights[r] *= tau / total


@compiled
def matching_pass(
    wiring: TreeWiring,
    starts: IntArray,
    edges: IntArray,
    shift_starts: IntArray,
    tau: FloatArray,
    n_static: int,
    damping: float,
    weights: FloatArray,
    pool: FloatArray,
    before: FloatArray,
    beliefs: FloatArray,
    tables: FloatArray,
    entropies: FloatArray,
    workspace: FloatArray,
) -> None:
    """One forward pass in which the mini-buckets of every variable are matched before they are eliminated.

    Parameters
    ----------
    starts
        First node of each variable, with the number of nodes at the end.
    edges, shift_starts
        Pairs of nodes that exchange a shift, variable by variable, and where each shift starts in the pool.
    damping
        Share of the way to the fixed point that is gone: small numbers are heavily damped.
    before, beliefs
        Messages and beliefs of the last backward pass, laid out like the messages.
    """
    edge = 0
    numbers = np.arange(weights.size)
    offsets = np.empty(0)
    for group in range(starts.size - 1):
        first, end = starts[group], starts[group + 1]
        forward(wiring, numbers[first:end], weights, pool, tables, entropies, offsets, workspace)
        count = end - first
        if count == 1:
            continue
        states = wiring.nodes[first, STATES]
        scaled = np.empty((count, states))
        own_entropy = np.zeros(count)
        for r in range(count):
            node = first + r
            low = wiring.nodes[node, MESSAGE]
            high = low + wiring.nodes[node, COLUMNS]
            belief, past = beliefs[low - n_static : high - n_static], before[low - n_static : high - n_static]
            if tau[node] > 0.0:
                own_entropy[r] = _sum_marginal(
                    wiring, node, weights[node], pool[low:high], past, belief, tables, entropies, scaled[r]
                )
            else:
                _max_marginal(wiring, node, past, belief, tables, scaled[r])
        # Moves towards the common belief; they add up to 0 over the mini-buckets, which keeps the bound valid.
        move = np.empty((count, states))
        for x in range(states):
            total = 0.0
            for r in range(count):
                total += scaled[r, x]
            for r in range(count):
                part = weights[first + r] / tau[first] if tau[first] > 0.0 else 1.0 / count
                move[r, x] = damping * (part * total - scaled[r, x])
        # Edges of a variable grow a tree from its first node: from the last to the first, each carries all that lies
        # beyond it.
        for e in range(edge + count - 2, edge - 1, -1):
            near, far = edges[e, 0] - first, edges[e, 1] - first
            rest = (shift_starts[e + 1] - shift_starts[e]) // states
            for x in range(states):
                for j in range(shift_starts[e] + x * rest, shift_starts[e] + (x + 1) * rest):
                    pool[j] -= move[far, x]
                move[near, x] += move[far, x]
        edge += count - 1
        if tau[first] > 0.0:
            _share_weights(weights[first:end], own_entropy, tau[first], damping)
        forward(wiring, numbers[first:end], weights, pool, tables, entropies, offsets, workspace)
