"""Moving costs from tables to the states of a variable, as much as they bear: all costs stay at 0 or more."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.jit import bare
from powersum.search.costs.cells import Cells, has_room, put
from powersum.search.costs.tables import CostTables


@bare
def pull_pair(f: int, side: int, extends: bool, tables: CostTables, now: Cells) -> bool:
    """Move what a pair costs whatever the other variable does to the states of one; True when anything moved.

    With ``extends`` the other variable's own costs go into the pair first, as far as they are needed.
    """
    first = tables.scope_starts[f]
    here, there = first + side, first + 1 - side
    x, y = tables.scope_variables[here], tables.scope_variables[there]
    step_x, step_y = tables.strides[here], tables.strides[there]
    cells, gained, base = now.cells, now.gained, tables.table_starts[f]
    delta_x, delta_y = now.delta + tables.delta_starts[here], now.delta + tables.delta_starts[there]
    unary_x, unary_y = now.unary + tables.state_starts[x], now.unary + tables.state_starts[y]
    alive_x, alive_y = now.alive + tables.state_starts[x], now.alive + tables.state_starts[y]
    n_x, n_y = tables.cardinalities[x], tables.cardinalities[y]
    hints = tables.delta_starts[here]
    moved = False
    for a in range(n_x):
        gained[a] = 0
        if not cells[alive_x + a]:
            continue
        row = base + a * step_x
        out = cells[delta_x + a]
        b = now.supports[hints + a]
        if cells[alive_y + b]:
            cost = tables.tables[row + b * step_y] - out - cells[delta_y + b]
            if extends:
                cost += cells[unary_y + b]
            if cost == 0:
                continue
        least: Any = np.int64(1) << np.int64(61)
        for b in range(n_y):
            if cells[alive_y + b]:
                cost = tables.tables[row + b * step_y] - out - cells[delta_y + b]
                if extends:
                    cost += cells[unary_y + b]
                if cost < least:
                    least = cost
                    now.supports[hints + a] = b
                    if cost == 0:
                        break
        if least > 0:
            gained[a] = least
            moved = True
    if not moved or not has_room(2 * (n_x + n_y), now):
        return False
    if extends:
        for b in range(n_y):
            if not cells[alive_y + b] or cells[unary_y + b] == 0:
                continue
            needed = np.int64(0)
            for a in range(n_x):
                if gained[a] > 0 and cells[alive_x + a]:
                    cost = tables.tables[base + a * step_x + b * step_y] - cells[delta_x + a] - cells[delta_y + b]
                    needed = max(needed, gained[a] - cost)
            if needed > 0:
                put(unary_y + b, cells[unary_y + b] - needed, now)
                put(delta_y + b, cells[delta_y + b] - needed, now)
    for a in range(n_x):
        if gained[a] > 0:
            put(unary_x + a, cells[unary_x + a] + gained[a], now)
            put(delta_x + a, cells[delta_x + a] + gained[a], now)
    return True


@bare
def _least(f: int, target: int, behind: int, tables: CostTables, now: Cells) -> bool:
    """Fill ``gained`` with what a table costs at least for each state of one of its variables; True if any is above 0.

    Own costs of variables of rank above ``behind`` count as if they were in the table.
    """
    first, last = tables.scope_starts[f], tables.scope_starts[f + 1]
    cells, gained = now.cells, now.gained
    x = tables.scope_variables[first + target]
    for a in range(tables.cardinalities[x]):
        gained[a] = np.int64(1) << np.int64(61)
    for entry in range(tables.table_starts[f], tables.table_starts[f + 1]):
        cost = tables.tables[entry]
        rest = entry - tables.table_starts[f]
        own = 0
        there = True
        for i in range(first, last):
            v = tables.scope_variables[i]
            s = rest // tables.strides[i]
            rest -= s * tables.strides[i]
            if not cells[now.alive + tables.state_starts[v] + s]:
                there = False
                break
            cost -= cells[now.delta + tables.delta_starts[i] + s]
            if i == first + target:
                own = s
            elif now.rank[v] > behind:
                cost += cells[now.unary + tables.state_starts[v] + s]
        if there and cost < gained[own]:
            gained[own] = cost
    some = False
    for a in range(tables.cardinalities[x]):
        if not cells[now.alive + tables.state_starts[x] + a]:
            gained[a] = 0
        elif gained[a] > 0:
            some = True
    return some


@bare
def pull_table(f: int, target: Any, behind: int, tables: CostTables, now: Cells) -> bool:
    """The same for a table of any number of variables, with the own costs of those of rank above ``behind``."""
    if not _least(f, target, behind, tables, now):
        return False
    first, last = tables.scope_starts[f], tables.scope_starts[f + 1]
    cells = now.cells
    needed = 0
    for i in range(first, last):
        needed += 2 * tables.cardinalities[tables.scope_variables[i]]
    if not has_room(needed, now):
        return False
    for i in range(first, last):
        v = tables.scope_variables[i]
        if i == first + target or now.rank[v] <= behind:
            continue
        for s in range(tables.cardinalities[v]):
            at = now.unary + tables.state_starts[v] + s
            if cells[now.alive + tables.state_starts[v] + s] and cells[at] > 0:
                moved = now.delta + tables.delta_starts[i] + s
                put(moved, cells[moved] - cells[at], now)
                put(at, np.int64(0), now)
    _take(f, target, tables, now)
    # What was moved in and is not needed goes back, so that nothing else loses by it.
    nobody = len(now.rank)
    for i in range(first, last):
        v = tables.scope_variables[i]
        if i == first + target or now.rank[v] <= behind:
            continue
        if _least(f, i - first, nobody, tables, now):
            _take(f, i - first, tables, now)
    return True


@bare
def _take(f: int, target: int, tables: CostTables, now: Cells) -> None:
    """Move what :func:`_least` found to the states of the variable."""
    i = tables.scope_starts[f] + target
    v = tables.scope_variables[i]
    for s in range(tables.cardinalities[v]):
        if now.gained[s] > 0:
            at, moved = now.unary + tables.state_starts[v] + s, now.delta + tables.delta_starts[i] + s
            put(at, now.cells[at] + now.gained[s], now)
            put(moved, now.cells[moved] + now.gained[s], now)
