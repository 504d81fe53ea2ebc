"""Read states of the max variables off the tables of a covering tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.bounds.buckets.inputs import place_of
from powersum.bounds.buckets.passes import Passes
from powersum.bounds.buckets.tree_wiring import (
    FIRST_INPUT,
    SIGN,
    STATES,
    TreeWiring,
)
from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.model.query import outermost_max
from powersum.prepare.problem import Problem


def decode(passes: Passes, problem: Problem, order: IntArray) -> IntArray:
    """A state for each variable of the answer, the last eliminated first: the best of the sum of its mini-buckets.

    Messages of the last forward pass must be there. Variables eliminated later are already set, so that of each
    mini-bucket's table only one column is looked at.
    """
    layout = passes.layout
    states = np.full(len(order), -1, dtype=np.int64)
    cardinalities = problem.model.cardinalities[order]
    is_max = outermost_max(problem.tau, problem.rank)[order]
    _decode(
        layout.wiring,
        layout.bucket,
        layout.scope_starts,
        layout.scope_positions,
        cardinalities,
        is_max,
        passes.pool,
        np.empty(int(cardinalities.max(initial=1))),
        states,
    )
    decoded = np.full(len(order), -1, dtype=np.int64)
    decoded[order] = states
    return decoded


@compiled
def _decode(
    wiring: TreeWiring,
    bucket: IntArray,
    scope_starts: IntArray,
    scope_positions: IntArray,
    cardinalities: IntArray,
    is_max: BoolArray,
    pool: FloatArray,
    score: FloatArray,
    states: IntArray,
) -> None:
    node = bucket.size - 1
    while node >= 0:
        variable = bucket[node]
        for a in range(cardinalities[variable]):
            score[a] = 0.0
        while node >= 0 and bucket[node] == variable:
            if is_max[variable]:
                # Typed: for a literal 0 Numba would compile `add_column` once more.
                column: Any = np.int64(0)
                for i in range(scope_starts[node] + 1, scope_starts[node + 1]):
                    position = scope_positions[i]
                    column = column * cardinalities[position] + states[position]
                add_column(wiring, node, column, pool, score)
            node -= 1
        if is_max[variable]:
            best = 0
            for a in range(1, cardinalities[variable]):
                if score[a] > score[best]:
                    best = a
            states[variable] = best


@inner
def add_column(wiring: TreeWiring, node: int, column: int, pool: FloatArray, score: FloatArray) -> None:
    """Add one column of a node's table to ``score``."""
    for k in range(wiring.nodes[node, FIRST_INPUT], wiring.nodes[node + 1, FIRST_INPUT]):
        for a in range(wiring.nodes[node, STATES]):
            score[a] += wiring.inputs[k, SIGN] * pool[place_of(wiring, node, k, a, column)]
