"""Soft arc consistency: costs move between neighbours until what everything costs no longer rises.

Directional (towards the first variable of an order) and full for what a lost state changes, existential for pairs
(every variable has a state that costs nothing with all its neighbours, or its least cost is taken); see the literature
on weighted constraint satisfaction under EDAC. At the root, sweeps to and fro that share each variable's costs among
its tables evenly come before, as in sequential message passing: they see what single moves do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.jit import bare, without_counting
from powersum.search.costs.cells import BEST, FULL, Cells, has_room, put, settle
from powersum.search.costs.moves import pull_pair, pull_table
from powersum.search.costs.tables import CostTables

PASSES = 20
"""Passes over the variables at one node at most; what is left to move then stays where it is."""


@bare
def _mark(v: int, now: Cells) -> None:
    now.dirty[v] |= 1


@bare
def _blame(f: int, tables: CostTables, now: Cells) -> None:
    """Count a dead end where it came from."""
    for i in range(tables.scope_starts[f], tables.scope_starts[f + 1]):
        now.weights[tables.scope_variables[i]] += 1.0


@bare
def _push(v: int, flags: int, tables: CostTables, now: Cells) -> bool:
    """Move costs over all tables of a variable whose costs or states changed; False at a dead end."""
    for at in range(tables.incident_starts[v], tables.incident_starts[v + 1]):
        f = tables.incident[at]
        first, last = tables.scope_starts[f], tables.scope_starts[f + 1]
        if last - first == 1:
            if pull_table(f, np.int64(0), now.rank[v], tables, now):
                _mark(v, now)
                if not settle(v, tables, now):
                    _blame(f, tables, now)
                    return False
        elif last - first == 2:
            side = 1 - tables.positions[at]
            u = tables.scope_variables[first + side]
            down = now.rank[u] < now.rank[v]
            if (down or flags & 2) and pull_pair(f, side, down, tables, now):
                _mark(u, now)
                if not settle(u, tables, now):
                    _blame(f, tables, now)
                    return False
        else:
            lowest = first
            for i in range(first + 1, last):
                if now.rank[tables.scope_variables[i]] < now.rank[tables.scope_variables[lowest]]:
                    lowest = i
            for i in range(first, last):
                u = tables.scope_variables[i]
                if u == v:
                    continue
                behind = now.rank[u] if i == lowest else len(now.rank)
                if (i == lowest or flags & 2) and pull_table(f, i - first, behind, tables, now):
                    _mark(u, now)
                    if not settle(u, tables, now):
                        _blame(f, tables, now)
                        return False
    return True


@bare
def _costs_nothing(v: int, state: int, tables: CostTables, now: Cells) -> bool:
    """Whether a state, with the best state of each neighbour, costs nothing; tables of more than two are not asked."""
    cells = now.cells
    for at in range(tables.incident_starts[v], tables.incident_starts[v + 1]):
        f = tables.incident[at]
        first = tables.scope_starts[f]
        if tables.scope_starts[f + 1] - first != 2:
            continue
        here, there = first + tables.positions[at], first + 1 - tables.positions[at]
        u = tables.scope_variables[there]
        row = tables.table_starts[f] + state * tables.strides[here]
        out = cells[now.delta + tables.delta_starts[here] + state]
        delta, unary = now.delta + tables.delta_starts[there], now.unary + tables.state_starts[u]
        alive, step = now.alive + tables.state_starts[u], tables.strides[there]
        found = False
        for b in range(tables.cardinalities[u]):
            free = cells[alive + b] and cells[unary + b] == 0
            if free and tables.tables[row + b * step] - out - cells[delta + b] == 0:
                found = True
                break
        if not found:
            return False
    return True


@bare
def _exists(v: int, tables: CostTables, now: Cells) -> bool:
    """Whether some state of a variable costs nothing with its neighbours."""
    cells = now.cells
    start = tables.state_starts[v]
    s = now.likely[v]
    if cells[now.alive + start + s] and cells[now.unary + start + s] == 0 and _costs_nothing(v, s, tables, now):
        return True
    for s in range(tables.cardinalities[v]):
        if cells[now.alive + start + s] and cells[now.unary + start + s] == 0 and _costs_nothing(v, s, tables, now):
            now.likely[v] = s
            return True
    return False


@bare
def _gather(v: int, tables: CostTables, now: Cells) -> bool:
    """Move what the neighbours of a variable cost to its states; False at a dead end."""
    for at in range(tables.incident_starts[v], tables.incident_starts[v + 1]):
        f = tables.incident[at]
        first = tables.scope_starts[f]
        if tables.scope_starts[f + 1] - first == 2 and pull_pair(f, tables.positions[at], True, tables, now):
            _mark(v, now)
    return settle(v, tables, now)


@bare
def _settle_all(tables: CostTables, now: Cells) -> bool:
    """Settle every variable; False at a dead end."""
    possible = True
    for v in range(len(now.rank)):
        possible = possible and settle(v, tables, now)
    return possible


@bare
def clean(now: Cells) -> None:
    """Forget what was still to be looked at, after a dead end."""
    for v in range(len(now.dirty)):
        now.dirty[v] = 0
        now.waiting[v] = 0


@bare
def _wake(v: int, tables: CostTables, now: Cells) -> None:
    """A variable has changed: its neighbours and itself are asked again."""
    now.waiting[v] = 1
    for at in range(tables.incident_starts[v], tables.incident_starts[v + 1]):
        f = tables.incident[at]
        for i in range(tables.scope_starts[f], tables.scope_starts[f + 1]):
            now.waiting[tables.scope_variables[i]] = 1


@bare
def propagate(tables: CostTables, now: Cells) -> bool:
    """Move costs until nothing changes, or for so many passes; False where nothing better than the best is left.

    What is left undone, for want of passes or of room on the trail, makes the bound weaker and never wrong.
    """
    n = len(now.rank)
    n_states = tables.state_starts[n]
    for _ in range(PASSES):
        if not has_room(2 * n_states + n + 1, now):
            return True
        if not _settle_all(tables, now):
            return False
        busy = False
        for k in range(n - 1, -1, -1):
            v = now.order[k]
            flags = now.dirty[v]
            if flags:
                busy = True
                now.dirty[v] = 0
                _wake(v, tables, now)
                if not _push(v, flags, tables, now):
                    return False
        if now.counts[FULL]:
            return True
        for k in range(n):
            if now.dirty[k]:
                break
        else:
            for v in range(n):
                if now.waiting[v]:
                    now.waiting[v] = 0
                    if not _exists(v, tables, now):
                        busy = True
                        if not _gather(v, tables, now):
                            return False
        if not busy:
            break
    return bool(now.cells[0] < now.counts[BEST])


@without_counting
def sweep(backwards: bool, tables: CostTables, now: Cells) -> bool:
    """One sweep of sequential message passing at the root; False where nothing better than the best is left.

    Each variable in turn takes what all its tables cost and gives an equal share to each of those that go on.
    """
    n = len(now.rank)
    for k in range(n):
        v = now.order[n - 1 - k if backwards else k]
        ahead = behind = 0
        for at in range(tables.incident_starts[v], tables.incident_starts[v + 1]):
            f = tables.incident[at]
            arity = tables.scope_starts[f + 1] - tables.scope_starts[f]
            if arity == 2:
                pull_pair(f, tables.positions[at], False, tables, now)
            else:
                pull_table(f, tables.positions[at], n, tables, now)
            if arity > 1:
                goes_on, came = _direction(v, f, backwards, tables, now)
                ahead += goes_on
                behind += came
        if not settle(v, tables, now):
            return False
        shares = max(ahead, behind)
        if ahead == 0:
            continue
        for s in range(tables.state_starts[v], tables.state_starts[v + 1]):
            now.gained[s - tables.state_starts[v]] = now.cells[now.unary + s] // shares
        for at in range(tables.incident_starts[v], tables.incident_starts[v + 1]):
            f = tables.incident[at]
            if tables.scope_starts[f + 1] - tables.scope_starts[f] == 1:
                continue
            if not _direction(v, f, backwards, tables, now)[0]:
                continue
            place = now.delta + tables.delta_starts[tables.scope_starts[f] + tables.positions[at]]
            for s in range(tables.cardinalities[v]):
                own = now.unary + tables.state_starts[v] + s
                if now.cells[own - now.unary + now.alive] and now.gained[s] > 0:
                    put(own, now.cells[own] - now.gained[s], now)
                    put(place + s, now.cells[place + s] - now.gained[s], now)
    return bool(now.cells[0] < now.counts[BEST])


@bare
def _direction(v: int, f: int, backwards: bool, tables: CostTables, now: Cells) -> tuple[Any, Any]:
    """Whether a table has variables that come later in this sweep, and whether it has earlier ones."""
    later = earlier = np.int64(0)
    for i in range(tables.scope_starts[f], tables.scope_starts[f + 1]):
        u = tables.scope_variables[i]
        if u != v:
            if (now.rank[u] > now.rank[v]) != backwards:
                later = np.int64(1)
            else:
                earlier = np.int64(1)
    return later, earlier


@bare
def make_consistent(tables: CostTables, now: Cells) -> bool:
    """Propagate at the root, from everything; False where nothing better than the best is left."""
    for v in range(len(now.dirty)):
        now.dirty[v] = 3
        now.waiting[v] = 1
    consistent = propagate(tables, now)
    if not consistent:
        clean(now)
    return consistent
