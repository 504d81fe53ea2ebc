"""The covering tree as a search heuristic: what setting a variable costs of the bound, by table look-up.

Max variables are set from the last eliminated to the first. When variable ``v`` is reached, all others in its
mini-buckets are set, so each of them offers one column of its table, and the message it sent was the maximum over that
column. Setting ``v`` to state ``s`` replaces these messages by the entries of ``s``, so that the bound falls by

    cost(s) = Σ message(column) - Σ table(s, column) >= 0

The sum over mini-buckets is over those of ``v`` alone. The bound of the root less all costs on a path is valid at its
end, because fixing a variable is one term of each maximum.

In the same way the bound of a whole part of the problem, given all around it, is the sum of the messages that leave it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.kernels import fill_tables, workspace_size
from powersum.bounds.buckets.tree_wiring import MESSAGE
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, positions_of, starts_of
from powersum.core.jit import bare, without_counting
from powersum.core.lanes import roomy
from powersum.core.speed import TABLE_COPY
from powersum.prepare.problem import Problem


class Heuristic(NamedTuple):
    """Tables of the mini-buckets of max variables, by depth: the last eliminated variable has depth 0.

    Mini-buckets of depth ``d``: ``bucket_starts[d]`` to ``bucket_starts[d + 1]``. Bucket ``b`` has the other variables
    ``others[other_starts[b]:other_starts[b + 1]]``, given by their depths, and ``columns[b]`` columns; its table starts
    at ``table_starts[b]`` in ``tables``, its message at ``message_starts[b]`` in the tree's own ``pool``.
    The tree must not be tightened while this is in use.
    """

    variables: IntArray
    cardinalities: IntArray
    bucket_starts: IntArray
    other_starts: IntArray
    others: IntArray
    columns: IntArray
    table_starts: IntArray
    tables: FloatArray
    message_starts: IntArray
    pool: FloatArray


def heuristic_seconds(tree: FixedTree, problem: Problem) -> float:
    """About what :func:`heuristic_of` will take for the variables that are maximised: nothing interrupts it."""
    layout, wiring = tree.layout, tree.layout.wiring
    nodes = np.flatnonzero((problem.tau[tree.order] == 0.0)[layout.bucket])
    entries = (wiring.columns[nodes] * wiring.states[nodes]).astype(np.float64)
    return TABLE_COPY * float(entries @ np.diff(wiring.input_starts)[nodes])


def heuristic_of(tree: FixedTree, problem: Problem, *, sums: bool = False) -> tuple[Heuristic, float]:
    """Read the heuristic off a tree, at its best point, and the bound of the root that goes with it.

    With ``sums`` it has all variables, not only those that are maximised: what it says of a sum variable's state is a
    bound on the share of the sum that has this state, given the states of all variables eliminated later.
    """
    order = tree.order
    root = tree.bound()
    passes, layout = tree.passes, tree.layout
    wiring = layout.wiring
    chosen = (problem.tau[order] == 0.0) | sums
    nodes = np.flatnonzero(chosen[layout.bucket])[::-1]
    node_positions = layout.bucket[nodes]
    positions = np.flatnonzero(chosen)[::-1]
    depth_of = positions_of(positions, len(order))
    lengths = layout.scope_starts[nodes + 1] - layout.scope_starts[nodes] - 1
    other_starts = starts_of(lengths)
    others = np.empty(int(other_starts[-1]), dtype=np.int64)
    for k, node in enumerate(nodes.tolist()):
        scope = layout.scope_positions[layout.scope_starts[node] + 1 : layout.scope_starts[node + 1]]
        others[other_starts[k] : other_starts[k + 1]] = depth_of[scope]
    columns = wiring.columns[nodes]
    table_starts = starts_of(columns * wiring.states[nodes])
    tables = np.empty(int(table_starts[-1]))
    workspace = roomy(workspace_size(wiring), np.float64)
    fill_tables(wiring, np.ascontiguousarray(nodes), passes.pool, tables, table_starts, workspace)
    heuristic = Heuristic(
        frozen(order[positions], np.int64),
        frozen(problem.model.cardinalities[order[positions]], np.int64),
        frozen(starts_of(np.bincount(depth_of[node_positions], minlength=len(positions))), np.int64),
        frozen(other_starts, np.int64),
        frozen(others, np.int64),
        frozen(columns, np.int64),
        frozen(table_starts, np.int64),
        frozen(tables, np.float64),
        frozen(wiring.message[nodes], np.int64),
        frozen(passes.pool, np.float64),
    )
    return heuristic, root


@bare
def costs_of(heuristic: Heuristic, depth: int, states: IntArray, costs: FloatArray, place: int) -> None:
    """What each state of the variable at a depth costs, from ``place`` on in ``costs``.

    ``states`` holds the states of the variables above it, by depth.
    """
    card = heuristic.cardinalities[depth]
    for s in range(card):
        costs[place + s] = 0.0
    for b in range(heuristic.bucket_starts[depth], heuristic.bucket_starts[depth + 1]):
        column = 0
        for i in range(heuristic.other_starts[b], heuristic.other_starts[b + 1]):
            other = heuristic.others[i]
            column = column * heuristic.cardinalities[other] + states[other]
        message = heuristic.pool[heuristic.message_starts[b] + column]
        at = heuristic.table_starts[b] + column
        for s in range(card):
            # Below 0 by rounding only.
            costs[place + s] += max(0.0, message - heuristic.tables[at + s * heuristic.columns[b]])


class Boundary:
    """The messages that leave one part of the problem: their sum bounds it, given the states around it.

    Parameters
    ----------
    tree
        The tree that the heuristic was read from.
    inside
        Which positions of its order belong to the part.
    cardinalities
        States of the variables by position.
    """

    def __init__(self, tree: FixedTree, inside: BoolArray, cardinalities: IntArray) -> None:
        layout = tree.layout
        above = np.where(layout.parent >= 0, layout.bucket[layout.parent], len(inside))
        leaves = inside[layout.bucket] & ~np.append(inside, False)[above]
        self._nodes = np.flatnonzero(leaves)
        self._layout, self._pool, self._cardinalities = layout, tree.passes.pool, cardinalities

    def log_bound(self, states: IntArray) -> float:
        """Their sum; ``states`` are by position."""
        layout = self._layout
        return float(
            _sum_messages(
                self._nodes,
                layout.scope_starts,
                layout.scope_positions,
                layout.wiring.nodes,
                self._pool,
                self._cardinalities,
                states,
            )
        )


@without_counting
def _sum_messages(
    nodes: IntArray,
    scope_starts: IntArray,
    scope_positions: IntArray,
    wired: IntArray,
    pool: FloatArray,
    cardinalities: IntArray,
    states: IntArray,
) -> float:
    total = 0.0
    for node in nodes:
        column = 0
        for i in range(scope_starts[node] + 1, scope_starts[node + 1]):
            column = column * cardinalities[scope_positions[i]] + states[scope_positions[i]]
        total += pool[wired[node, MESSAGE] + column]
    return total
