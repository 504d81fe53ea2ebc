"""How tables hang together, as flat arrays, and what is left of them while some states are gone."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

import numpy as np

from powersum_check.box import Located
from powersum_check.errors import Rejected, afford
from powersum_check.lanes import Bits, Words, owners, pieces, starts_of
from powersum_check.numbers import IntArray, Table, normalised


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
        # Tuples that are not 0, by the states they have; shorter ones are filled up.
        arity = max((len(scope) for scope, _ in tables), default=0)
        needed = 40 * (arity + 2) * sum(table.values.size for _, table in tables)
        afford("tables", needed, memory)
        tuples = [np.zeros((0, arity), np.int64)]
        for scope, table in tables:
            found = np.argwhere(table.values > -math.inf)
            tuples.append(np.full((len(found), arity), self.n_states, np.int64))
            tuples[-1][:, : len(scope)] = self.states[list(scope)] + found
        self.tuples = np.concatenate(tuples)
        self.tuple_table = owners(starts_of([len(rows) for rows in tuples[1:]]))
        # The tuples of each slot, one after another; slots are sorted by their states.
        of, axis = np.nonzero(self.tuples < self.n_states)
        state, place = self.tuples[of, axis], self.places[self.tuple_table[of]] + axis
        order = np.lexsort((place, state))
        self.slot_tuple, state, place = of[order], state[order], place[order]
        first = np.flatnonzero(np.diff(state, prepend=-1) | np.diff(place, prepend=-1))
        self.slot_starts = np.append(first, len(state))
        self.slot_state, self.slot_table = state[first], self.table[place[first]]
        # A state is possible if it has a slot in each table of its variable.
        degree = np.bincount(self.variable, minlength=len(sizes))
        self.possible = np.bincount(self.slot_state, minlength=self.n_states) == degree[self.owner]
        # For keys of cuts: all states of a table's variables, and a random number for each.
        widest = max((sum(sizes[v] for v in scope) for scope, _ in tables), default=0)
        self.scope_states = np.zeros((len(tables), widest), np.int64)
        self.in_scope = np.zeros((len(tables), widest), np.bool_)
        for t, (scope, _) in enumerate(tables):
            row = [s for v in scope for s in range(self.states[v], self.states[v + 1])]
            self.scope_states[t, : len(row)], self.in_scope[t, : len(row)] = row, True
        self.random = np.random.default_rng(0).integers(1 << 63, size=(len(tables), widest), dtype=np.uint64) * 2 + 1

    def propagated(self, alive: Words, variables: IntArray, used: Bits) -> Words:
        """States in lanes less those without support in tables that are used, beginning with these variables'."""
        changed = np.zeros(len(self.sizes), np.bool_)
        changed[variables] = True
        # What short tuples are filled up with is always there.
        alive = np.append(alive, np.full((1, alive.shape[1]), ~np.uint64(0)), axis=0)
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
        return alive[:-1]


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
        self.depends = np.zeros(0, np.bool_)
        """Whether it depends on anything."""
        self.places = np.zeros((0, wiring.tuples.shape[1]), np.int64)
        """The places on which each depends; rows are filled up with their first."""
        self._keys, self._numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        """Rising keys, and the cuts that they belong to."""
        self._shapes: dict[bytes, int] = {}
        self.rounding = 0.0
        """How far a shape is from the table less its largest entry, at most."""

    def find(self, tables: IntArray, lanes: IntArray, states: Bits) -> IntArray:
        """The cuts of tables, each in a lane; ``states`` has a row for each lane."""
        wiring = self.wiring
        bits = states[lanes[:, None], wiring.scope_states[tables]] & wiring.in_scope[tables]
        keys = (bits * wiring.random[tables]).sum(axis=1, dtype=np.uint64) + tables.astype(np.uint64)
        found, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        new = first[~np.isin(found, self._keys)]
        if len(new):
            self._add(keys[new], tables[new], bits[new])
        numbers = self._numbers[np.searchsorted(self._keys, found)][inverse]
        # Keys only find candidates.
        if (self.table[numbers] != tables).any() or (self.bits[numbers] != bits).any():
            raise Rejected("two different tables have the same key")
        return numbers

    def _add(self, keys: Words, tables: IntArray, bits: Bits) -> None:
        """Look at new cuts."""
        wiring, sizes = self.wiring, self.wiring.sizes.tolist()
        largest, shape, places = np.zeros(len(tables)), [], []
        for k, t in enumerate(tables.tolist()):
            scope, table = wiring.tables[t]
            axes, ends = range(len(scope)), [0, *accumulate(sizes[v] for v in scope)]
            left = [bits[k, a:b] for a, b in pairwise(ends)]
            values = table.values
            for a in axes:
                values = values.compress(left[a], axis=a)
            largest[k] = values.max(initial=-math.inf)
            on = [a for a in axes if values.size and (values != values[(slice(None),) * a + (slice(1),)]).any()]
            places.append([wiring.places[t] + a for a in (on + on[:1] * self.places.shape[1])[: self.places.shape[1]]])
            values = np.asarray(values[tuple(slice(None) if a in on else 0 for a in axes)])
            seen = [np.array([scope[a] for a in on]).tobytes(), *(left[a].tobytes() for a in on)]
            if largest[k] > -math.inf:
                less, _ = normalised(Table(values))
                self.rounding = max(self.rounding, less.up)
                # Minus zero is another number to bytes, but not to us.
                seen.append((less.values + 0.0).tobytes())
            shape.append(self._shapes.setdefault(b"|".join([str(len(on)).encode(), *seen]), len(self._shapes)))
        at = np.searchsorted(self._keys, keys)
        self._keys = np.insert(self._keys, at, keys)
        self._numbers = np.insert(self._numbers, at, len(self.table) + np.arange(len(tables)))
        self.table, self.bits = np.concatenate([self.table, tables]), np.concatenate([self.bits, bits])
        self.largest, self.shape = np.concatenate([self.largest, largest]), np.concatenate([self.shape, shape])
        self.depends = np.concatenate([self.depends, [bool(row) for row in places]])
        filled = [row or [0] * self.places.shape[1] for row in places]
        self.places = np.concatenate([self.places, np.array(filled, np.int64)])
