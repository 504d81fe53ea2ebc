"""Conditioning as a certificate has it: the graph of components that were set apart (docs/certificates.md)."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import IntArray, starts_of
from powersum.exact.counting import Counting
from powersum.prepare.problem import Problem
from powersum.prepare.proof import Array, small


def conditioning_arrays(counting: Counting, problem: Problem, given: IntArray | None = None) -> dict[str, Array]:
    """Tables and graph of a search that is through and has kept a log; ``given`` are the states set at first."""
    model, variables = problem.model, problem.variables
    return _table_arrays(problem, given) | _graph(model.cardinalities, variables, *counting.log)


def _table_arrays(problem: Problem, given: IntArray | None) -> dict[str, Array]:
    """The reduced problem's tables as they are, without the variables that have one state given."""
    model = problem.model
    left = np.ones(model.n_variables, dtype=np.bool_) if given is None else given < 0
    values = []
    for f in range(model.n_factors):
        scope = model.scope_variables[model.scope_starts[f] : model.scope_starts[f + 1]]
        table = model.log_values[model.table_starts[f] : model.table_starts[f + 1]]
        if given is not None:
            places = tuple(slice(None) if left[v] else int(given[v]) for v in scope)
            table = table.reshape(model.cardinalities[scope])[places].ravel()
        values.append(table)
    kept = left[model.scope_variables]
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    return {
        "table_of": small(problem.fates.table_of),
        "table_starts": small(starts_of(np.bincount(owner[kept], minlength=model.n_factors))),
        "table_variables": small(problem.variables[model.scope_variables[kept]]),
        "tables": np.concatenate([np.zeros(0), *values]),
    }


def _graph(cardinalities: IntArray, variables: IntArray, rows: IntArray, listed: IntArray) -> dict[str, Array]:
    """Levels of nodes from the log: what the root leads to, each node after all that lead to it."""
    starts = starts_of(rows[:, 3])
    number = np.full(int(max(rows[:, 0].max(initial=0), listed.max(initial=0))) + 1, -1, dtype=np.int64)
    # What was through last counts: a node of an earlier trial may have been begun again under another number.
    left = rows[:, 2] >= 0
    by_node = np.argsort(rows[left, 0], kind="stable")
    own, first = np.flatnonzero(left)[by_node], starts_of(np.bincount(rows[left, 0], minlength=len(number)))
    variable = np.full(len(number), -1, dtype=np.int64)
    variable[rows[~left, 0]] = rows[~left, 1]
    # Each node that can be reached, and how many ways lead to it.
    waiting = np.zeros(len(number), dtype=np.int64)
    seen = np.zeros(len(number), dtype=np.bool_)
    frontier, seen[0] = np.zeros(1, dtype=np.int64), True
    while len(frontier):
        children = listed[_pieces(starts, own[_pieces(first, frontier)])]
        np.add.at(waiting, children, 1)
        frontier = np.unique(children[~seen[children]])
        seen[frontier] = True
    ways = waiting.copy()
    levels, frontier = [], np.zeros(1, dtype=np.int64)
    while len(frontier):
        levels.append(frontier)
        children = listed[_pieces(starts, own[_pieces(first, frontier)])]
        np.subtract.at(waiting, children, 1)
        frontier = np.unique(children[waiting[children] == 0])
    # A node has the value 0 if every state that is through leaves one that has: what else it leaves is not listed.
    vanishes, nothing = np.zeros(len(rows), dtype=np.bool_), np.zeros(len(number), dtype=np.bool_)
    below = np.ones(len(number))
    for level in reversed(levels):
        states = own[_pieces(first, level)]
        children, owner = listed[_pieces(starts, states)], np.repeat(states, rows[states, 3])
        vanishes[owner[nothing[children]]] = True
        nothing[level] = True
        nothing[rows[states[~vanishes[states]], 0]] = False
        np.add.at(below, rows[owner, 0], below[children])
    # The checker gives the first child all that the others leave: that is quickest if it has most, and the value of one
    # that is 0 stays 0 whatever it is given. But if others lead to it, it must be the same each time.
    listed = listed[np.lexsort((-below[listed], ~nothing[listed], np.repeat(np.arange(len(rows)), rows[:, 3])))]
    vanishes[vanishes] = ways[listed[starts[:-1][vanishes]]] > 1
    nodes = np.concatenate(levels)
    number[nodes] = np.arange(len(nodes))
    # States of nodes in their order: how many components each leaves.
    slots = starts_of(np.concatenate([[1], cardinalities[variable[nodes[1:]]]]))
    counts = np.zeros(slots[-1], dtype=np.int64)
    ordered = own[_pieces(first, nodes)]
    place = slots[number[rows[ordered, 0]]] + np.where(rows[ordered, 0] == 0, 0, rows[ordered, 2])
    counts[place] = np.where(vanishes[ordered], -rows[ordered, 3], rows[ordered, 3])
    return {
        "levels": small(starts_of([len(level) for level in levels])),
        "branching": small(variables[variable[nodes[1:]]]),
        "child_counts": small(counts),
        "child_nodes": small(number[listed[_pieces(starts, ordered[np.argsort(place, kind="stable")])]]),
    }


def _pieces(starts: IntArray, chosen: IntArray) -> IntArray:
    """The numbers from ``starts[k]`` to ``starts[k + 1]`` of all chosen k, one piece after another."""
    lengths = starts[chosen + 1] - starts[chosen]
    begin = starts_of(lengths)
    return np.arange(begin[-1]) + np.repeat(starts[chosen] - begin[:-1], lengths)
