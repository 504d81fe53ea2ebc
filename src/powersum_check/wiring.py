"""How tables hang together, as flat arrays, and what is left of them while some states are gone."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from powersum_check.box import Located
from powersum_check.errors import Rejected, afford
from powersum_check.lanes import Bits, Words, owners, pieces, starts_of
from powersum_check.numbers import IntArray, Table, normalised
from powersum_check.tree import without_flat


class Wiring:
    """How tables hang together, as flat arrays. A *place* is a variable of a table, a *slot* a state of a place."""

    def __init__(self, sizes: list[int], tables: list[Located], memory: int) -> None:
        self.tables, self.sizes = tables, np.array(sizes, np.int64)
        self.states = starts_of(sizes)
        self.n_states = int(self.states[-1])
        self.owner = np.repeat(np.arange(len(sizes)), self.sizes)
        self.places = starts_of([len(scope) for scope, _ in tables])
        self.variable = np.array([v for scope, _ in tables for v in scope], np.int64)
        self.table = np.repeat(np.arange(len(tables)), np.diff(self.places))
        # Tuples that are not 0, by the states they have; shorter ones are filled up with their first.
        arity = max((len(scope) for scope, _ in tables), default=0)
        needed = 40 * (arity + 2) * sum(table.values.size for _, table in tables)
        afford("tables", needed, memory)
        tuples = [np.zeros((0, arity), np.int64)]
        for scope, table in tables:
            found = self.states[list(scope)] + np.argwhere(table.values > -math.inf)
            tuples.append(found[:, [*range(len(scope)), *[0] * (arity - len(scope))]])
        self.tuples = np.concatenate(tuples)
        self.tuple_table = owners(starts_of([len(rows) for rows in tuples[1:]]))
        # The tuples of each slot, one after another; slots are sorted by their states.
        of, axis = np.nonzero(np.arange(arity) < np.diff(self.places)[self.tuple_table, None])
        state, place = self.tuples[of, axis], self.places[self.tuple_table[of]] + axis
        order = np.lexsort((place, state))
        self.slot_tuple, state, place = of[order], state[order], place[order]
        first = np.flatnonzero(np.diff(state, prepend=-1) | np.diff(place, prepend=-1))
        self.slot_starts = np.append(first, len(state))
        self.slot_state, self.slot_table = state[first], self.table[place[first]]
        # A state is possible if it has a slot in each table of its variable.
        degree = np.bincount(self.variable, minlength=len(sizes))
        self.possible = np.bincount(self.slot_state, minlength=self.n_states) == degree[self.owner]
        # For keys of cuts: all states of a table's variables, filled up with the first, and a random number for each.
        widest = max((sum(sizes[v] for v in scope) for scope, _ in tables), default=0)
        self.scope_states = np.zeros((len(tables), widest), np.int64)
        for t, (scope, _) in enumerate(tables):
            row = [s for v in scope for s in range(self.states[v], self.states[v + 1])]
            self.scope_states[t] = row + row[:1] * (widest - len(row))
        self.random = np.random.default_rng(0).integers(1 << 63, size=(len(tables), widest), dtype=np.uint64) * 2 + 1

    def propagated(self, alive: Words, variables: IntArray, used: Bits) -> Words:
        """States in lanes less those without support in tables that are used, beginning with these variables'."""
        changed = np.zeros(len(self.sizes), np.bool_)
        changed[variables] = True
        while changed.any():
            chosen = np.zeros(len(self.tables), np.bool_)
            chosen[self.table[changed[self.variable]]] = True
            chosen &= used
            slots, inside = np.flatnonzero(chosen[self.slot_table]), chosen[self.tuple_table]
            if not len(slots):
                break
            first_states, *others = self.tuples[inside].T
            there = np.take(alive, first_states, axis=0)
            for states in others:
                there &= np.take(alive, states, axis=0)
            members, begin = pieces(self.slot_starts, slots)
            where = (np.cumsum(inside) - 1)[self.slot_tuple[members]]
            supported = np.bitwise_or.reduceat(np.take(there, where, axis=0), begin[:-1], axis=0)
            first = np.flatnonzero(np.diff(self.slot_state[slots], prepend=-1))
            states = self.slot_state[slots[first]]
            left = alive[states] & np.bitwise_and.reduceat(supported, first, axis=0)
            lost = states[(left != alive[states]).any(axis=1)]
            alive[states] = left
            changed[:] = False
            changed[self.owner[lost]] = True
        return alive


class Cuts:
    """What tables are while some states are left: a *cut* is a table and the states of its variables.

    Its *shape* is what others see of it: the variables on which it depends, their states, and the table on them less
    its largest entry. Equal shapes have the same number.
    """

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.table, self.shape = np.zeros((2, 0), np.int64)
        self.bits = np.zeros((0, wiring.scope_states.shape[1]), np.bool_)
        self.largest = np.zeros(0)
        self.places = np.zeros((0, wiring.tuples.shape[1]), np.int64)
        """The places on which each depends; rows are filled up with their first, or with -1 where there is none."""
        self._keys, self._numbers = np.array([np.iinfo(np.uint64).max]), np.zeros(1, np.int64)
        """Rising keys, and the cuts that they belong to. The last one is there so that there is always a next one."""
        self._shapes: dict[tuple[Any, ...], int] = {}
        self.rounding = 0.0
        """How far a shape is from the table less its largest entry, at most."""

    def find(self, tables: IntArray, lanes: IntArray, states: Bits) -> IntArray:
        """The cuts of tables, each in a lane; ``states`` has a row for each lane."""
        wiring = self.wiring
        bits = states[lanes[:, None], wiring.scope_states[tables]]
        keys = (bits * wiring.random[tables]).sum(axis=1, dtype=np.uint64) + tables.astype(np.uint64)
        new = np.flatnonzero(self._keys[np.searchsorted(self._keys, keys)] != keys)
        if len(new):
            new = new[np.unique(keys[new], return_index=True)[1]]
            self._add(keys[new], tables[new], bits[new])
        numbers: IntArray = self._numbers[np.searchsorted(self._keys, keys)]
        # Keys only find candidates.
        if (self.table[numbers] != tables).any() or (self.bits[numbers] != bits).any():
            raise Rejected("two different tables have the same key")
        return numbers

    def _add(self, keys: Words, tables: IntArray, bits: Bits) -> None:
        """Look at new cuts. Each has some states of every variable."""
        wiring, arity = self.wiring, self.places.shape[1]
        largest, shape, places = [], [], []
        for t, row in zip(tables.tolist(), bits, strict=True):
            scope, table = wiring.tables[t]
            ends = [0, *accumulate(table.values.shape)]
            left = {v: row[a:b] for v, (a, b) in zip(scope, pairwise(ends), strict=True)}
            on, cut = without_flat(scope, Table(table.values[np.ix_(*left.values())]), keep=())
            less, top = normalised(cut)
            largest.append(top)
            self.rounding = max(self.rounding, less.up)
            # Minus zero is another number to bytes, but not to us.
            seen = (on, *(left[v].tobytes() for v in on), (less.values + 0.0).tobytes())
            shape.append(self._shapes.setdefault(seen, len(self._shapes)))
            first = [int(wiring.places[t]) + scope.index(v) for v in on] or [-1]
            places.append(first + first[:1] * (arity - len(first)))
        at = np.searchsorted(self._keys, keys)
        self._keys = np.insert(self._keys, at, keys)
        self._numbers = np.insert(self._numbers, at, len(self.table) + np.arange(len(tables)))
        self.table, self.bits = np.concatenate([self.table, tables]), np.concatenate([self.bits, bits])
        self.largest, self.shape = np.concatenate([self.largest, largest]), np.concatenate([self.shape, shape])
        self.places = np.concatenate([self.places, places])
        self.variables = wiring.variable[self.places]
