"""What moves while costs are searched: one array of cells, and the way back.

Cells are, one after another: the cost of everything (what any configuration costs at least); a cost for each state of
each variable; what was moved between a table and each state of each of its variables; whether each state is still
there; and how many states each variable has left. The cost of a table's entry is

    tables[entry] - Σ over its variables of what was moved out to the state that the entry has.

Whatever is moved, the sum over all tables and variables is the same for every configuration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import bare, compiled
from powersum.search.costs.tables import CostTables

BEST, HEIGHT, SERIAL, FULL, LENGTH, DEPTH, BACKTRACKS, NODES, WAITS = range(9)
"""Places in ``counts``: the least cost known, cells on the trail, number of the present level, 1 where the trail was
too short, decisions on the path, open levels, dead ends and nodes in all, 1 where what costs too much waits to go."""


class Cells(NamedTuple):
    """Cells, the trail of their former values, and what steers the search without being undone.

    ``unary``, ``delta``, ``alive`` and ``sizes`` say where each kind begins. ``order`` lists the variables from first
    to last, ``rank`` is where each stands in it; costs are moved towards the first. ``dirty`` has 1 where the costs of
    a variable's states rose, 2 more where it lost states; ``waiting`` marks those whose neighbours changed.
    ``supports`` remembers which state of the other side made a pair cost nothing, ``likely`` a state that costs nothing
    with all neighbours; both are hints. ``weights`` count tables, and dead ends that came from them.
    """

    cells: IntArray
    stamps: IntArray
    trail_places: IntArray
    trail_values: IntArray
    counts: IntArray
    unary: int
    delta: int
    alive: int
    sizes: int
    order: IntArray
    rank: IntArray
    dirty: IntArray
    waiting: IntArray
    supports: IntArray
    likely: IntArray
    weights: FloatArray
    gained: IntArray
    best_states: IntArray


def new_cells(tables: CostTables, order: IntArray, hard: int, *, trail: int) -> Cells:
    """Cells with nothing moved yet, all states there."""
    n, n_states, n_moved = len(tables.cardinalities), int(tables.state_starts[-1]), int(tables.delta_starts[-1])
    unary = 1
    delta = unary + n_states
    alive = delta + n_moved
    sizes = alive + n_states
    cells = np.zeros(sizes + n, dtype=np.int64)
    cells[alive:sizes] = 1
    cells[sizes:] = tables.cardinalities
    counts = np.zeros(9, dtype=np.int64)
    counts[BEST] = hard
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    return Cells(
        cells,
        np.full(len(cells), -1, dtype=np.int64),
        np.empty(trail, dtype=np.int64),
        np.empty(trail, dtype=np.int64),
        counts,
        unary,
        delta,
        alive,
        sizes,
        order.astype(np.int64),
        rank,
        np.full(n, 3, dtype=np.int64),
        np.ones(n, dtype=np.int64),
        np.zeros(max(n_moved, 1), dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        1.0 + np.diff(tables.incident_starts),
        np.zeros(int(tables.cardinalities.max(initial=1)), dtype=np.int64),
        np.full(n, -1, dtype=np.int64),
    )


@bare
def put(place: int, value: Any, now: Cells) -> None:
    """Change a cell; at the first change since a level was opened its value before goes on the trail."""
    serial = now.counts[SERIAL]
    if now.counts[DEPTH] > 0 and now.stamps[place] != serial:
        height = now.counts[HEIGHT]
        now.stamps[place] = serial
        now.trail_places[height] = place
        now.trail_values[height] = now.cells[place]
        now.counts[HEIGHT] = height + 1
    now.cells[place] = value


@bare
def undo(height: int, now: Cells) -> None:
    """Give all cells the values that they had when the trail was this high."""
    for i in range(now.counts[HEIGHT] - 1, height - 1, -1):
        now.cells[now.trail_places[i]] = now.trail_values[i]
    now.counts[HEIGHT] = height


@bare
def has_room(cells: int, now: Cells) -> bool:
    """Whether so many more cells can be changed; else it is noted that the trail is too short.

    Beyond them there is always room to settle two variables and to drop a state, which do not ask.
    """
    if now.counts[HEIGHT] + cells + 4 * len(now.gained) + 16 < len(now.trail_places):
        return True
    now.counts[FULL] = 1
    return False


@bare
def settle(v: int, tables: CostTables, now: Cells) -> bool:
    """What all states of a variable cost becomes a cost of everything; what costs too much goes. False at the end."""
    first, last = tables.state_starts[v], tables.state_starts[v + 1]
    cells = now.cells
    least: Any = np.int64(1) << np.int64(62)
    for s in range(first, last):
        if cells[now.alive + s]:
            least = min(least, cells[now.unary + s])
    if least > 0:
        put(0, cells[0] + least, now)
        for s in range(first, last):
            if cells[now.alive + s]:
                put(now.unary + s, cells[now.unary + s] - least, now)
    room = now.counts[BEST] - cells[0]
    if room <= 0 or now.counts[WAITS]:
        return bool(room > 0)
    size = cells[now.sizes + v]
    left = size
    for s in range(first, last):
        if cells[now.alive + s] and cells[now.unary + s] >= room:
            put(now.alive + s, np.int64(0), now)
            left -= 1
    if left < size:
        put(now.sizes + v, left, now)
        now.dirty[v] |= 2
    return bool(left > 0)


@bare
def drop(v: int, state: int, tables: CostTables, now: Cells) -> bool:
    """Remove a state of a variable; False where none is left."""
    put(now.alive + tables.state_starts[v] + state, np.int64(0), now)
    put(now.sizes + v, now.cells[now.sizes + v] - 1, now)
    now.dirty[v] |= 2
    return bool(now.cells[now.sizes + v] > 0)


@bare
def keep_only(v: int, state: int, tables: CostTables, now: Cells) -> None:
    """Remove all other states of a variable."""
    for s in range(tables.cardinalities[v]):
        at = now.alive + tables.state_starts[v] + s
        if s != state and now.cells[at]:
            put(at, np.int64(0), now)
    put(now.sizes + v, np.int64(1), now)
    now.dirty[v] |= 2


@compiled
def cost_of(states: IntArray, tables: CostTables) -> Any:
    """What a configuration costs, by the tables as they were given."""
    total = np.int64(0)
    for f in range(len(tables.table_starts) - 1):
        entry = tables.table_starts[f]
        for i in range(tables.scope_starts[f], tables.scope_starts[f + 1]):
            entry += tables.strides[i] * states[tables.scope_variables[i]]
        total += tables.tables[entry]
    return total
