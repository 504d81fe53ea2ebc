"""The covering tree as a search heuristic: what setting a variable costs of the bound, by table look-up.

Max variables are set from the last eliminated to the first. When variable ``v`` is reached, all others in its
mini-buckets are set, so each of them offers one column of its table, and the message it sent was the maximum over that
column. Setting ``v`` to state ``s`` replaces these messages by the entries of ``s``, so that the bound falls by

    cost(s) = Σ message(column) - Σ table(s, column) >= 0

The sum over mini-buckets is over those of ``v`` alone. The bound of the root less all costs on a path is valid at its
end, because fixing a variable is one term of each maximum.

A search is as quick as memory is: what one look needs of a mini-bucket, the losses of all states in one column, lies
side by side, not a whole row of the table apart.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.kernels import fill_tables, workspace_size
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.bounds.tree.look_up import scopes_of
from powersum.core.arrays import FloatArray, IntArray, frozen
from powersum.core.jit import bare, without_counting
from powersum.core.lanes import roomy
from powersum.core.speed import TABLE_COPY
from powersum.prepare.problem import Problem

AT_ONCE = 1 << 16
"""Entries of tables that are written out before they are turned: as many as stay near the processor."""


class Losses(NamedTuple):
    """What states lose of the messages of mini-buckets, by depth: the last eliminated variable has depth 0.

    Mini-buckets of depth ``d``: ``bucket_starts[d]`` to ``bucket_starts[d + 1]``. Bucket ``b`` has the other variables
    ``others[other_starts[b]:other_starts[b + 1]]``, given by their depths; from ``table_starts[b]`` on
    ``losses`` has one column after another, of one number for each state.
    """

    variables: IntArray
    cardinalities: IntArray
    bucket_starts: IntArray
    other_starts: IntArray
    others: IntArray
    table_starts: IntArray
    losses: FloatArray


def losses_seconds(tree: FixedTree, problem: Problem) -> float:
    """About what :func:`losses_of` will take: nothing interrupts it."""
    layout, wiring = tree.layout, tree.layout.wiring
    nodes = np.flatnonzero((problem.tau[tree.order] == 0.0)[layout.bucket])
    entries = (wiring.columns[nodes] * wiring.states[nodes]).astype(np.float64)
    return TABLE_COPY * float(entries @ np.diff(wiring.input_starts)[nodes])


def losses_of(tree: FixedTree, problem: Problem) -> tuple[Losses, float]:
    """Read off a tree, at its best point, what max variables lose, and the bound of the root that goes with it."""
    root = tree.bound()
    wiring, pool = tree.layout.wiring, tree.passes.pool
    scopes = scopes_of(tree, problem.model.cardinalities, problem.tau[tree.order] == 0.0)
    nodes, starts = scopes.nodes, scopes.table_starts
    losses, workspace = np.empty(int(starts[-1])), roomy(workspace_size(wiring), np.float64)
    # Pieces begin where a mini-bucket does, the last before each multiple.
    cuts = np.searchsorted(starts, np.arange(0, int(starts[-1]) + AT_ONCE, AT_ONCE), side="right") - 1
    cuts = np.unique(np.append(cuts, len(nodes)))
    tables = np.empty(int(np.diff(starts[cuts]).max(initial=0)))
    for first, end in pairwise(cuts.tolist()):
        places = frozen(starts[first : end + 1] - starts[first], np.int64)
        fill_tables(wiring, nodes[first:end], pool, tables, places, workspace)
        messages = wiring.message[nodes[first:end]]
        _turn(tables, places, scopes.columns[first:end], pool, messages, losses[starts[first] : starts[end]])
    return Losses(
        scopes.variables,
        scopes.cardinalities,
        scopes.bucket_starts,
        scopes.other_starts,
        scopes.others,
        starts,
        frozen(losses, np.float64),
    ), root


@without_counting
def _turn(
    tables: FloatArray, starts: IntArray, columns: IntArray, pool: FloatArray, messages: IntArray, losses: FloatArray
) -> None:
    """Losses of tables, column by column."""
    for b in range(len(columns)):
        states = (starts[b + 1] - starts[b]) // columns[b]
        for column in range(columns[b]):
            message = pool[messages[b] + column]
            for s in range(states):
                # Below 0 by rounding only.
                loss = max(0.0, message - tables[starts[b] + s * columns[b] + column])
                losses[starts[b] + column * states + s] = loss


@bare
def costs_of(losses: Losses, depth: int, states: IntArray, costs: FloatArray, place: int) -> None:
    """What each state of the variable at a depth costs, from ``place`` on in ``costs``.

    ``states`` holds the states of the variables above it, by depth.
    """
    card = losses.cardinalities[depth]
    for s in range(card):
        costs[place + s] = 0.0
    for b in range(losses.bucket_starts[depth], losses.bucket_starts[depth + 1]):
        column = 0
        for i in range(losses.other_starts[b], losses.other_starts[b + 1]):
            other = losses.others[i]
            column = column * losses.cardinalities[other] + states[other]
        at = losses.table_starts[b] + column * card
        for s in range(card):
            costs[place + s] += losses.losses[at + s]
