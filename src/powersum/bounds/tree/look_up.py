"""What is read off a covering tree by table look-up: the tables of its mini-buckets, and bounds of parts.

The bound of a whole part of the problem, given all around it, is the sum of the messages that leave it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.kernels import fill_tables, workspace_size
from powersum.bounds.buckets.tree_wiring import MESSAGE
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, positions_of, starts_of
from powersum.core.jit import without_counting
from powersum.core.lanes import roomy
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


class LookUpScopes(NamedTuple):
    """Which mini-buckets variables have, and who is in them.

    ``nodes`` are those of the tree; all else is as in :class:`Heuristic`.
    """

    nodes: IntArray
    variables: IntArray
    cardinalities: IntArray
    bucket_starts: IntArray
    other_starts: IntArray
    others: IntArray
    columns: IntArray
    table_starts: IntArray


def scopes_of(tree: FixedTree, cardinalities: IntArray, chosen: BoolArray) -> LookUpScopes:
    """The mini-buckets of variables, chosen by their positions in the tree's order."""
    order, layout = tree.order, tree.layout
    wiring = layout.wiring
    nodes = np.ascontiguousarray(np.flatnonzero(chosen[layout.bucket])[::-1])
    positions = np.flatnonzero(chosen)[::-1]
    depth_of = positions_of(positions, len(order))
    lengths = layout.scope_starts[nodes + 1] - layout.scope_starts[nodes] - 1
    other_starts = starts_of(lengths)
    others = np.empty(int(other_starts[-1]), dtype=np.int64)
    for k, node in enumerate(nodes.tolist()):
        scope = layout.scope_positions[layout.scope_starts[node] + 1 : layout.scope_starts[node + 1]]
        others[other_starts[k] : other_starts[k + 1]] = depth_of[scope]
    return LookUpScopes(
        nodes,
        frozen(order[positions], np.int64),
        frozen(cardinalities[order[positions]], np.int64),
        frozen(starts_of(np.bincount(depth_of[layout.bucket[nodes]], minlength=len(positions))), np.int64),
        frozen(other_starts, np.int64),
        frozen(others, np.int64),
        frozen(wiring.columns[nodes], np.int64),
        frozen(starts_of(wiring.columns[nodes] * wiring.states[nodes]), np.int64),
    )


def heuristic_of(tree: FixedTree, problem: Problem, *, sums: bool = False) -> tuple[Heuristic, float]:
    """Read the heuristic off a tree, at its best point, and the bound of the root that goes with it.

    With ``sums`` it has all variables, not only those that are maximised: what it says of a sum variable's state is a
    bound on the share of the sum that has this state, given the states of all variables eliminated later.
    """
    root = tree.bound()
    wiring, pool = tree.layout.wiring, tree.passes.pool
    scopes = scopes_of(tree, problem.model.cardinalities, (problem.tau[tree.order] == 0.0) | sums)
    nodes, table_starts = scopes.nodes, scopes.table_starts
    tables = np.empty(int(table_starts[-1]))
    fill_tables(wiring, nodes, pool, tables, table_starts, roomy(workspace_size(wiring), np.float64))
    return Heuristic(
        scopes.variables,
        scopes.cardinalities,
        scopes.bucket_starts,
        scopes.other_starts,
        scopes.others,
        scopes.columns,
        table_starts,
        frozen(tables, np.float64),
        frozen(wiring.message[nodes], np.int64),
        frozen(pool, np.float64),
    ), root


class Boundary:
    """The messages that leave one part of the problem: their sum bounds it, given the states around it.

    Parameters
    ----------
    tree
        The tree of a search: its messages are read as they are, so that it must stay at its best point.
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
