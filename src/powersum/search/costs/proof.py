"""What a search in whole numbers has proven, as a certificate has it (docs/certificates.md)."""

from __future__ import annotations

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.speed import COST_SWEEP
from powersum.prepare.problem import Problem
from powersum.proof.format import Array, small
from powersum.search.costs.branching import new_path
from powersum.search.costs.cells import BEST, FULL, WAITS, new_cells
from powersum.search.costs.consistency import sweep
from powersum.search.costs.hybrid import SMALLEST_RISE, CostSearch
from powersum.search.costs.rounds import go_back, go_down, one_round, remove_dear
from powersum.search.costs.tables import node_seconds

GOES_ON, CLOSED, BRANCHES = 0, 1, 2
"""How a round ends: another follows at the same node, nothing is left there, or a variable is set."""

MOST_SWEEPS = 60
"""Pairs of sweeps at the root at most."""

REMOVING = (2, 16)
"""Pairs after which states go that cost too much: sweeps are quicker without them, but what was moved until then must
be written down."""


class CostProof:
    """The search once more, depth first, with the cost that is to be proven known from the beginning.

    Parameters
    ----------
    search
        A search, from which the hints are taken where to branch.
    memory
        Bytes for the way back and for what is written down.

    Attributes
    ----------
    cost
        No configuration costs less: what is proven, once :meth:`run` is through.
    """

    def __init__(self, search: CostSearch, *, memory: float) -> None:
        self._costs, self._tables = search.costs, search.costs.tables
        n_cells = len(search.now.cells)
        self._now = new_cells(
            self._tables, search.now.order, search.costs.hard, trail=2 * n_cells + min(int(memory / 32.0), 64 * n_cells)
        )
        self.cost = search.bound
        self._now.counts[BEST], self._now.counts[WAITS] = self.cost, 1
        self._now.weights[:] = search.now.weights
        self._now.best_states[:] = search.now.best_states
        self._node_seconds = node_seconds(self._tables)
        self._path = new_path(self._tables)
        self._most = int(memory / 2.0)
        self._bytes = 0
        self._gone = np.empty(int(self._tables.state_starts[-1]), dtype=np.int64)
        self._kinds: list[int] = []
        self._moves: list[tuple[IntArray, IntArray]] = []
        self._removed: list[IntArray] = []
        self._branches: list[tuple[int, int]] = []
        self._last = self._moved()
        self._at_root = self._root_rounds = 0

    def run(self, deadline: float) -> bool:
        """Search and write down; False where time or memory is not enough: then the root alone is proven."""
        if not self._walk(deadline):
            last = self._root_rounds - 1
            self.cost = min(self._at_root, self.cost)
            self._kinds, self._branches = [GOES_ON] * last + [CLOSED], []
            self._moves, self._removed = self._moves[: last + 1], [*self._removed[:last], self._gone[:0]]
            return False
        return True

    def _walk(self, deadline: float) -> bool:
        now, tables = self._now, self._tables
        stack: list[tuple[int, int]] = []
        choice = np.zeros(2, dtype=np.int64)
        self._sweep(deadline)
        possible = True
        while True:
            number = int(one_round(self._gone, tables, now)) if possible else -1
            time.spend(self._node_seconds)
            self._note_moves(self._gone[: max(number, 0)])
            if not self._branches:
                self._at_root, self._root_rounds = int(now.cells[0]), len(self._moves)
            if now.counts[FULL] or self._bytes > self._most or time.monotonic() >= deadline:
                return False
            if number > 0:
                self._kinds.append(GOES_ON)
            elif number < 0:
                self._kinds.append(CLOSED)
                if not stack:
                    return True
                v, s = stack.pop()
                possible = bool(go_back(np.int64(v), np.int64(s), tables, self._path, now))
                self._last = self._moved()
            elif go_down(choice, tables, self._path, now):
                self._kinds.append(BRANCHES)
                stack.append((int(choice[0]), int(choice[1])))
                self._branches.append(stack[-1])
            else:
                return False

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """The parts, in terms of the original model: a state that goes is a part that is closed at once."""
        tables, scale = self._tables, self._costs.scale
        places = np.concatenate([np.zeros(0, dtype=np.int64), *(place for place, _ in self._moves)])
        values = np.concatenate([np.zeros(0, dtype=np.int64), *(value for _, value in self._moves)])
        owner = np.repeat(np.arange(len(tables.cardinalities)), tables.cardinalities)
        variables, first = problem.variables.tolist(), problem.kept_state_starts.tolist()
        branches, starts = iter(self._branches), [0]
        rows: list[tuple[int, int, int]] = []
        n_moves = 0
        for kind, (moved, _), gone in zip(self._kinds, self._moves, self._removed, strict=True):
            # What was moved waits for the next row, together with what was moved after it.
            n_moves += len(moved)
            at = len(starts) - 1 if n_moves > starts[-1] else -1
            ends = [(int(owner[k]), int(k - tables.state_starts[owner[k]])) for k in gone]
            ends += [next(branches)] if kind == BRANCHES else []
            for number, (v, s) in enumerate(ends):
                rows.append((variables[v], int(problem.kept_states[first[v] + s]), at))
                at = -1
                if number < len(gone):
                    rows.append((-1, -1, -1))
            if kind == CLOSED:
                rows.append((-1, -1, at))
            if ends or kind == CLOSED:
                starts += [n_moves] if n_moves > starts[-1] else []
        return {
            "table_of": small(problem.fates.table_of),
            "table_starts": small(tables.scope_starts),
            "table_variables": small(problem.variables[tables.scope_variables]),
            "parts": small(np.array(rows, dtype=np.int64)),
            "move_starts": small(np.array(starts, dtype=np.int64)),
            "move_places": small(places),
            # Costs are losses: what a variable's state gains in the log is what it costs less.
            "moves": -values / scale,
        }

    def _sweep(self, deadline: float) -> None:
        """Sweeps at the root, as long as they help; now and then what costs too much goes: less is left to do."""
        now, tables = self._now, self._tables
        for number in range(1, MOST_SWEEPS + 1):
            before = int(now.cells[0])
            time.spend(2.0 * COST_SWEEP * len(tables.tables))
            if not (sweep(False, tables, now) and sweep(True, tables, now)) or time.monotonic() >= deadline:
                return
            if now.cells[0] - before <= max(SMALLEST_RISE * min(self.cost - now.cells[0], now.cells[0]), 1.0):
                return
            if number in REMOVING and (gone := int(remove_dear(self._gone, tables, now))):
                self._note_moves(self._gone[:gone])
                self._kinds.append(GOES_ON)

    def _moved(self) -> IntArray:
        return self._now.cells[self._now.delta : self._now.alive].copy()

    def _note_moves(self, gone: IntArray) -> None:
        """What was moved since the last round, and what goes at its end."""
        moved = self._moved()
        places = np.flatnonzero(moved != self._last)
        self._moves.append((places, moved[places]))
        self._removed.append(gone.copy())
        self._bytes += 16 * len(places) + 8 * len(gone) + 200
        self._last = moved
