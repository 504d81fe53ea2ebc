"""Conditioning as a certificate has it: the graph of components that were set apart (docs/certificates.md)."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import IntArray, starts_of
from powersum.exact.counting import Counting
from powersum.prepare.problem import Problem
from powersum.proof.format import Array, small


def conditioning_arrays(counting: Counting, problem: Problem, given: IntArray | None = None) -> dict[str, Array]:
    """Tables and graph of a search that is through and has kept a log; ``given`` are the states set at first."""
    model, variables = problem.model, problem.variables
    return _table_arrays(problem, given) | _graph(model.cardinalities, variables, *counting.log)


def _table_arrays(problem: Problem, given: IntArray | None) -> dict[str, Array]:
    """Which tables there are, and over which variables, without those that have one state given."""
    model = problem.model
    kept = np.ones(len(model.scope_variables), np.bool_) if given is None else given[model.scope_variables] < 0
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    return {
        "table_of": small(problem.fates.table_of),
        "table_starts": small(starts_of(np.bincount(owner[kept], minlength=model.n_factors))),
        "table_variables": small(problem.variables[model.scope_variables[kept]]),
    }


def _graph(
    cardinalities: IntArray, variables: IntArray, rows: IntArray, listed: IntArray, marks: IntArray
) -> dict[str, Array]:
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
    levels, frontier = [], np.zeros(1, dtype=np.int64)
    while len(frontier):
        levels.append(frontier)
        children = listed[_pieces(starts, own[_pieces(first, frontier)])]
        np.subtract.at(waiting, children, 1)
        frontier = np.unique(children[waiting[children] == 0])
    nodes = np.concatenate(levels)
    number[nodes] = np.arange(len(nodes))
    # States of nodes in their order: what each leaves.
    slots = starts_of(np.concatenate([[1], cardinalities[variable[nodes[1:]]]]))
    ordered = own[_pieces(first, nodes)]
    slot = slots[number[rows[ordered, 0]]] + np.where(rows[ordered, 0] == 0, 0, rows[ordered, 2])
    by_slot = np.argsort(slot, kind="stable")
    ordered, slot = ordered[by_slot], slot[by_slot]

    def counts(lengths: IntArray) -> Array:
        return small(np.bincount(slot, lengths, slots[-1]).astype(np.int64))

    lengths = rows[ordered, 5] - rows[ordered, 4]
    owner, mark = np.repeat(np.arange(len(ordered)), lengths), marks[_runs(rows[ordered, 4], lengths)]
    gone = mark >= 0
    return {
        "branching": small(variables[variable[nodes[1:]]]),
        "child_counts": counts(rows[ordered, 3]),
        "child_nodes": small(number[listed[_pieces(starts, ordered)]]),
        "gone_counts": counts(np.bincount(owner[gone], minlength=len(ordered))),
        "gone": small(mark[gone]),
        "settled_counts": counts(np.bincount(owner[~gone], minlength=len(ordered))),
        "settled": small(-1 - mark[~gone]),
    }


def _pieces(starts: IntArray, chosen: IntArray) -> IntArray:
    """The numbers from ``starts[k]`` to ``starts[k + 1]`` of all chosen k, one piece after another."""
    return _runs(starts[chosen], starts[chosen + 1] - starts[chosen])


def _runs(first: IntArray, lengths: IntArray) -> IntArray:
    """So many numbers from each first one on, one run after another."""
    begin = starts_of(lengths)
    return np.arange(begin[-1]) + np.repeat(first - begin[:-1], lengths)
