"""Depth-first branch and bound below one node: a state is tried, then excluded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.jit import bare, without_counting
from powersum.search.costs.cells import (
    BACKTRACKS,
    BEST,
    DEPTH,
    FULL,
    HEIGHT,
    LENGTH,
    NODES,
    SERIAL,
    Cells,
    cost_of,
    drop,
    has_room,
    keep_only,
    undo,
)
from powersum.search.costs.consistency import clean, make_consistent, propagate
from powersum.search.costs.tables import CostTables

EXHAUSTED, PAUSED, TOO_SHORT = 0, 1, 2
"""How a search below a node ends: nothing is left there, the dead ends allowed are used up, the trail is too short."""


CONSISTENT, DESCEND, BELOW, LEAVE = 0, 1, 2, 3
"""Steps of the search: propagate at the root, go to a node, search below it, and go back to the root."""


class Path(NamedTuple):
    """Decisions from the root to here, and the open levels among them.

    Decision ``i`` sets ``variables[i]`` to ``states[i]``, or excludes that state where ``excludes[i]``. Level ``d`` was
    opened by decision ``opened[d]``, with the trail at ``heights[d]`` and everything costing ``bounds[d]``.
    ``last`` is the variable of the latest dead end, -1 for none: it is tried first. ``whole`` has room for a
    configuration.
    """

    variables: IntArray
    states: IntArray
    excludes: IntArray
    opened: IntArray
    heights: IntArray
    bounds: IntArray
    last: IntArray
    whole: IntArray


def new_path(tables: CostTables) -> Path:
    """An empty path."""
    n = len(tables.cardinalities)
    most = int(tables.state_starts[-1]) + n + 1
    variables, states, excludes = (np.zeros(most, dtype=np.int64) for _ in range(3))
    opened, heights, bounds = (np.zeros(n + 2, dtype=np.int64) for _ in range(3))
    last, whole = np.full(1, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    return Path(variables, states, excludes, opened, heights, bounds, last, whole)


@bare
def open_level(bound: int, path: Path, now: Cells) -> None:
    """Open a level."""
    depth = now.counts[DEPTH]
    path.opened[depth] = now.counts[LENGTH]
    path.heights[depth] = now.counts[HEIGHT]
    path.bounds[depth] = bound
    now.counts[DEPTH] = depth + 1
    now.counts[SERIAL] += 1


@bare
def close(path: Path, now: Cells) -> None:
    """Undo the last level; what is changed from here on belongs to the one before."""
    depth = now.counts[DEPTH] - 1
    undo(path.heights[depth], now)
    now.counts[DEPTH] = depth
    now.counts[LENGTH] = path.opened[depth]
    now.counts[SERIAL] += 1
    clean(now)


@bare
def _note(variable: int, state: int, excludes: Any, path: Path, now: Cells) -> None:
    at = now.counts[LENGTH]
    path.variables[at], path.states[at], path.excludes[at] = variable, state, excludes
    now.counts[LENGTH] = at + 1


@bare
def next_variable(path: Path, now: Cells) -> Any:
    """The variable of the latest dead end, else one of few states whose tables led to many; -1 where all are set."""
    last = path.last[0]
    if last >= 0 and now.cells[now.sizes + last] > 1:
        return last
    best, least = -1, np.inf
    for v in range(len(now.rank)):
        size = now.cells[now.sizes + v]
        if size > 1 and size / now.weights[v] < least:
            best, least = v, size / now.weights[v]
    return best


@bare
def next_state(v: int, tables: CostTables, now: Cells) -> Any:
    """A state that costs nothing: that of the best configuration, else one that fits its neighbours, else the first."""
    start = tables.state_starts[v]
    for wished in (now.best_states[v], now.likely[v]):
        if wished >= 0 and now.cells[now.alive + start + wished] and now.cells[now.unary + start + wished] == 0:
            return wished
    best = -1
    for s in range(tables.cardinalities[v]):
        cheaper = best < 0 or now.cells[now.unary + start + s] < now.cells[now.unary + start + best]
        if cheaper and now.cells[now.alive + start + s]:
            best = s
    return best


@bare
def _take_configuration(states: IntArray, tables: CostTables, now: Cells) -> None:
    """All variables are set: their cost, by the tables themselves, may be the best."""
    for v in range(len(now.rank)):
        for s in range(tables.cardinalities[v]):
            if now.cells[now.alive + tables.state_starts[v] + s]:
                states[v] = s
    cost = cost_of(states, tables)
    if cost < now.counts[BEST]:
        now.counts[BEST] = cost
        for v in range(len(states)):
            now.best_states[v] = states[v]


@bare
def _descend(decisions: Any, tables: CostTables, path: Path, now: Cells) -> bool:
    """From the root to the node whose decisions are the first so many of the path; False at a dead end, at the root."""
    open_level(now.cells[0], path, now)
    path.opened[0] = 0
    now.counts[LENGTH] = decisions
    consistent = has_room(tables.state_starts[len(now.rank)] + len(now.rank) + 1, now)
    for i in range(decisions):
        v, s = path.variables[i], path.states[i]
        there = now.cells[now.alive + tables.state_starts[v] + s] != 0
        if path.excludes[i]:
            consistent = consistent and (not there or drop(v, s, tables, now))
        else:
            consistent = consistent and there
            if there:
                keep_only(v, s, tables, now)
    if consistent and propagate(tables, now):
        return True
    close(path, now)
    return False


@bare
def _search_below(backtracks: Any, nodes: Any, tables: CostTables, path: Path, now: Cells) -> int:
    """Search below the node that the path leads to, with so many dead ends and nodes at most; see the constants.

    Where it is paused, the levels that are open and the path itself say what is left.
    """
    n = len(now.rank)
    n_states = tables.state_starts[n]
    most, most_nodes = now.counts[BACKTRACKS] + backtracks, now.counts[NODES] + nodes
    while True:
        if now.counts[FULL]:
            return TOO_SHORT
        v = next_variable(path, now)
        consistent = v >= 0
        if v < 0:
            _take_configuration(path.whole, tables, now)
        else:
            s = next_state(v, tables, now)
            open_level(now.cells[0], path, now)
            _note(v, s, np.int64(0), path, now)
            now.counts[NODES] += 1
            if not has_room(2 * n_states + n + 1, now):
                return TOO_SHORT
            keep_only(v, s, tables, now)
            consistent = propagate(tables, now)
        while not consistent:
            now.counts[BACKTRACKS] += 1
            if now.counts[DEPTH] == 1:
                return EXHAUSTED
            tried = path.opened[now.counts[DEPTH] - 1]
            v, s = path.variables[tried], path.states[tried]
            path.last[0] = v
            close(path, now)
            _note(v, s, np.int64(1), path, now)
            now.counts[NODES] += 1
            consistent = drop(v, s, tables, now) and propagate(tables, now)
        if now.counts[BACKTRACKS] >= most or now.counts[NODES] >= most_nodes:
            return PAUSED


@without_counting
def take_step(step: Any, count: Any, nodes: Any, tables: CostTables, path: Path, now: Cells) -> int:
    """Take one step with so many decisions, or dead ends and nodes; 0 at a dead end, or how the search below ended.

    All steps have one entry, so that propagation is compiled once.
    """
    result = np.int64(1)
    if step == CONSISTENT:
        result = np.int64(make_consistent(tables, now))
    elif step == DESCEND:
        result = np.int64(_descend(count, tables, path, now))
    elif step == BELOW:
        result = np.int64(_search_below(count, nodes, tables, path, now))
    else:
        while now.counts[DEPTH] > 0:
            close(path, now)
    return int(result)
