"""A node of the search in rounds: costs move, then all states that cost too much go at once.

The search itself removes states as soon as they cost too much, and moves on. What it has moved in between cannot be
told from the end: a proof needs the costs as they were when a state went. So a proof searches once more, with the least
cost known from the beginning, in rounds that a certificate can tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.jit import without_counting
from powersum.search.costs.branching import Path, close, next_state, next_variable, open_level
from powersum.search.costs.cells import BEST, Cells, drop, has_room, keep_only, put
from powersum.search.costs.consistency import clean, propagate
from powersum.search.costs.tables import CostTables


@without_counting
def one_round(gone: IntArray, tables: CostTables, now: Cells) -> int:
    """Move costs, then remove what costs too much; how many states went, -1 where nothing better is left."""
    if not propagate(tables, now):
        clean(now)
        return -1
    return int(remove_dear(gone, tables, now))


@without_counting
def remove_dear(gone: IntArray, tables: CostTables, now: Cells) -> int:
    """Remove all states that cost too much, which ``gone`` then names; how many."""
    room = now.counts[BEST] - now.cells[0]
    n = 0
    for v in range(len(now.rank)):
        first, last = tables.state_starts[v], tables.state_starts[v + 1]
        left = now.cells[now.sizes + v]
        for s in range(first, last):
            if now.cells[now.alive + s] and now.cells[now.unary + s] >= room:
                put(now.alive + s, np.int64(0), now)
                gone[n] = s
                n += 1
                left -= 1
        if left < now.cells[now.sizes + v]:
            put(now.sizes + v, left, now)
            now.dirty[v] |= 2
    return n


@without_counting
def go_down(choice: IntArray, tables: CostTables, path: Path, now: Cells) -> bool:
    """Set a variable to a state, which ``choice`` then names; False where all are set or there is no room."""
    v = next_variable(path, now)
    if v < 0 or not has_room(2 * tables.state_starts[len(now.rank)] + len(now.rank) + 1, now):
        choice[0] = v
        return False
    choice[0], choice[1] = v, next_state(v, tables, now)
    open_level(now.cells[0], path, now)
    keep_only(v, choice[1], tables, now)
    return True


@without_counting
def go_back(v: Any, s: Any, tables: CostTables, path: Path, now: Cells) -> bool:
    """Back to before a variable was set, and exclude the state; False where that leaves none."""
    path.last[0] = v
    close(path, now)
    return drop(v, s, tables, now)
