"""Best-first search by short depth-first dives: a bound that falls all the while, and good configurations early.

Open nodes are lists of decisions with what they cost at least. The cheapest is searched depth first for a number of
dead ends; what that leaves open goes back among them. The least cost of all open nodes bounds the whole.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.progress import Progress
from powersum.core.speed import COST_SWEEP
from powersum.search.costs.branching import (
    BELOW,
    CONSISTENT,
    DESCEND,
    LEAVE,
    PAUSED,
    TOO_SHORT,
    new_path,
    take_step,
)
from powersum.search.costs.cells import BACKTRACKS, BEST, DEPTH, FULL, LENGTH, NODES, cost_of, new_cells
from powersum.search.costs.consistency import sweep
from powersum.search.costs.tables import Costs, node_seconds

FIRST_DIVE, LONGEST_DIVE = 8, 2048
"""Dead ends of a dive, at first and at most."""

LEAST_BACK, MOST_BACK = 0.05, 0.1
"""Times that an open node is gone back to, for each node searched: dives are shorter below, longer above."""

NODES_AT_ONCE = 50
"""Nodes between two looks at the clock."""

SWEEPS = 20
"""Pairs of sweeps at the root before the first dive, and in each later spell."""

SMALLEST_RISE = 1e-4
"""Sweeps that raise the bound by less than this share of what is left are the last."""

SWEEPING = 0.5
"""Share of the time that later sweeps take, as long as they raise the bound."""

TRAIL = 1 << 16
"""Cells of the first trail, beyond twice the number of all cells."""


class _Node(NamedTuple):
    bound: int
    depth: int
    number: int
    variables: IntArray
    states: IntArray
    excludes: IntArray


class CostSearch:
    """A search for the configuration of least cost.

    Parameters
    ----------
    costs
        The problem.
    order
        All variables; costs are moved towards the first.
    states
        A configuration to begin with; None for none.
    memory
        Bytes for open nodes and the trail.

    Attributes
    ----------
    best, states
        Least cost found, and its configuration; None as long as only zeros are known.
    bound
        No configuration costs less.
    done
        True once nothing is left to search.
    now
        Cells, and what steers the search.
    proven
        True once nothing is left that is better than the best; False where memory alone ended the search.
    """

    def __init__(self, costs: Costs, order: IntArray, *, states: IntArray | None = None, memory: float = 2e8) -> None:
        self.costs = costs
        self._tables = costs.tables
        n_cells = int(2 * self._tables.state_starts[-1] + self._tables.delta_starts[-1]) + len(order) + 1
        self._node_seconds = node_seconds(self._tables)
        self.now = new_cells(self._tables, order, costs.hard, trail=2 * n_cells + TRAIL)
        self._path = new_path(self._tables)
        # Half of the memory for longer trails (two words a cell), half for open nodes.
        self._most_trail = 2 * n_cells + TRAIL + int(memory / 32.0)
        self._bytes, self._most_bytes = 0, memory / 2.0
        self._open: list[_Node] = []
        self._number = 0
        self._dive = FIRST_DIVE
        self._dives_until = 0
        self._standing: _Node | None = None
        self._spent = self._back = 0
        self._sweeps = SWEEPS
        self._sweeping = self._diving = 0.0
        self._begun = self.done = self.proven = False
        self._rises = True
        self.bound = 0
        self._at_root = costs.hard
        if states is not None:
            self.offer(states)

    @property
    def best(self) -> int:
        """Least cost known."""
        return int(self.now.counts[BEST])

    @property
    def states(self) -> IntArray | None:
        """Its configuration."""
        return self.now.best_states.copy() if self.now.best_states[0] >= 0 else None

    @property
    def nodes(self) -> int:
        """Nodes in all."""
        return int(self.now.counts[NODES])

    def offer(self, states: IntArray) -> None:
        """A configuration found elsewhere."""
        cost = int(cost_of(states.astype(np.int64), self._tables))
        if cost < self.best:
            self.now.counts[BEST] = cost
            self.now.best_states[:] = states

    def only_below(self, cost: int) -> None:
        """Look only for what costs less than this; if there is nothing, that is what the search proves."""
        if cost < self.best:
            self.now.counts[BEST] = cost
            self.now.best_states[:] = -1

    def run(self, deadline: float) -> Progress:
        """Search until the deadline, for one step at least."""
        while not self.done:
            self._step()
            if time.monotonic() >= deadline:
                break
        return Progress.DONE if self.done else Progress.MORE

    def reach_root(self, deadline: float) -> bool:
        """Sweep until the deadline, once at least; True when sweeps at the root are through and nothing is searched."""
        while not (self._begun or self.done):
            self._step()
            if time.monotonic() >= deadline:
                break
        return self._begun or self.done

    def _step(self) -> None:
        """A pair of sweeps at the root, or a piece of a dive."""
        begun = time.monotonic()
        if self._sweeps > 0:
            self._sweep()
            self._sweeping += time.monotonic() - begun
            return
        if not self._begun:
            self._begin()
        elif not self._open and self._standing is None:
            self._finish()
        else:
            self._search_one()
        self._diving += time.monotonic() - begun
        if self._rises and self._standing is None and self._sweeping < SWEEPING * self._diving:
            self._sweeps = SWEEPS

    def _sweep(self) -> None:
        """Two sweeps at the root, to and fro."""
        now, before = self.now, int(self.now.cells[0])
        better = sweep(False, self._tables, now) and sweep(True, self._tables, now)
        time.spend(2.0 * COST_SWEEP * len(self._tables.tables))
        self._raise(int(now.cells[0]))
        self._sweeps -= 1
        if not better:
            self._finish()
            return
        if now.cells[0] - before <= max(SMALLEST_RISE * min(self.best - self.bound, self.bound), 1.0):
            self._sweeps, self._rises = 0, False
        if self._sweeps == 0 and self._begun:
            self._tidy_root()

    def _begin(self) -> None:
        """Make the root consistent: it is the first open node."""
        self._begun = True
        if self._tidy_root():
            nothing = np.zeros(0, dtype=np.int64)
            self._push(int(self.now.cells[0]), nothing, nothing, nothing)

    def _tidy_root(self) -> bool:
        """What is found at the root holds for good; False where nothing better is left."""
        self._at_root = self.best
        if not self._take(CONSISTENT):
            self._finish()
            return False
        self._raise(int(self.now.cells[0]))
        return True

    def _finish(self) -> None:
        """Nothing better than the best is left."""
        if self._standing is not None:
            self._leave()
        self._open, self.done, self.proven = [], True, True
        self.bound = self.best

    def _raise(self, bound: int) -> None:
        self.bound = max(self.bound, min(bound, self.best))

    def _push(self, bound: int, variables: IntArray, states: IntArray, excludes: IntArray) -> None:
        if bound < self.best:
            self._number += 1
            self._push_again(
                _Node(bound, -len(variables), self._number, variables.copy(), states.copy(), excludes.copy())
            )

    def _push_again(self, node: _Node) -> None:
        heapq.heappush(self._open, node)
        self._bytes += _bytes_of(node)

    def _search_one(self) -> None:
        """A piece of a dive, from the cheapest open node unless one is under way."""
        if self._standing is None and not self._stand_at_next():
            return
        node, before = self._standing, self.nodes
        assert node is not None
        now = self.now
        left = max(self._dives_until - int(now.counts[BACKTRACKS]), 1)
        ended = self._take(BELOW, left, NODES_AT_ONCE)
        self._spent += self.nodes - before
        time.spend(self._node_seconds * (self.nodes - before + 1))
        if ended == PAUSED and (now.counts[BACKTRACKS] < self._dives_until or self._bytes > self._most_bytes):
            return
        if ended == PAUSED:
            self._keep_open(node)
        elif ended == TOO_SHORT:
            self._push_again(node)
        self._leave()
        if ended == TOO_SHORT:
            self._lengthen()
        self._note_bound()
        if self._back > MOST_BACK * self._spent and self._dive < LONGEST_DIVE:
            self._dive *= 2
        elif self._back < LEAST_BACK * self._spent and self._dive > FIRST_DIVE:
            self._dive //= 2

    def _stand_at_next(self) -> bool:
        """Go to the cheapest open node; False where there is nothing to search below it."""
        if self.best < self._at_root and not self._tidy_root():
            return False
        path, node = self._path, heapq.heappop(self._open)
        self._bytes -= _bytes_of(node)
        if node.bound >= self.best:
            self._finish()
            return False
        self._standing = node
        self._note_bound()
        n = len(node.variables)
        path.variables[:n], path.states[:n], path.excludes[:n] = node.variables, node.states, node.excludes
        self._back += 1
        if not self._take(DESCEND, n):
            self._standing = None
            if self.now.counts[FULL]:
                # It was not the node that failed.
                self._push_again(node)
                self._lengthen()
            return False
        self._dives_until = int(self.now.counts[BACKTRACKS]) + self._dive
        return True

    def _take(self, step: int, count: int = 0, nodes: int = 0) -> int:
        """See :func:`take_step`."""
        return take_step(np.int64(step), np.int64(count), np.int64(nodes), self._tables, self._path, self.now)

    def _leave(self) -> None:
        """Back to the root."""
        self._take(LEAVE)
        self._standing = None

    def _keep_open(self, node: _Node) -> None:
        """What a dive leaves: the node it stands at, and what each open level has not tried."""
        path, now = self._path, self.now
        length = int(now.counts[LENGTH])
        bound = max(node.bound, int(now.cells[0]))
        self._push(bound, path.variables[:length], path.states[:length], path.excludes[:length])
        for level in range(1, int(now.counts[DEPTH])):
            at = int(path.opened[level]) + 1
            excludes = path.excludes[:at].copy()
            excludes[-1] = 1
            bound = max(node.bound, int(path.bounds[level]))
            self._push(bound, path.variables[:at], path.states[:at], excludes)

    def _note_bound(self) -> None:
        """The bound of all that is open."""
        bounds = [node.bound for node in (self._standing, *self._open[:1]) if node is not None]
        if bounds:
            self._raise(min(bounds))

    def _lengthen(self) -> None:
        """A longer trail, where memory allows; else there is nothing more to be done."""
        now = self.now
        now.counts[FULL] = 0
        length = 2 * len(now.trail_places)
        if length > self._most_trail:
            self.done = True
            return
        self.now = now._replace(
            trail_places=np.empty(length, dtype=np.int64), trail_values=np.empty(length, dtype=np.int64)
        )


def _bytes_of(node: _Node) -> int:
    """Memory of an open node, about."""
    return 500 + 24 * len(node.variables)
