"""Conditioning with caching: set one variable after another, remove what is impossible, value what falls apart apart.

A *node* is a component: some variables, the states that each has left, and tables over them. Its value is the power sum
over the states of its branching variable; given a state, propagation removes what is impossible, and what is left falls
into components again, which are other nodes. The certificate says which: it is a graph of nodes in levels, each with
its variable, and for each state the nodes that are left. A node that several states lead to must be the same each time.

Nothing is believed. For every node and state the checker sets the variable, propagates, finds the tables that are left,
follows the tables from the branching variable of each child to all that is connected with it, and compares that with
what the child was when it was met first: variables, states, and tables less their largest entries, number for number.

A *lane* is one state of one node. Many lanes are worked on at once: 64 lanes are the bits of a word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersum_check.box import Located, Step
from powersum_check.errors import BadFile, Rejected
from powersum_check.model import IntArray
from powersum_check.numbers import FloatArray, Table, add, groups_added, normalised, outward, power_sum
from powersum_check.remainder import Remainder, as_written, read_remainder

Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]

LANES = 512
"""Lanes worked on at once, at most."""

OVERLAP = "a state leaves two nodes that have a variable in common"


def packed(bits: Bits) -> Words:
    """Rows of lanes as words; the transposed of a matrix with a row for each lane."""
    n_lanes = bits.shape[0]
    wide = np.zeros((-(-n_lanes // 64) * 64, bits.shape[1]), np.bool_)
    wide[:n_lanes] = bits
    return np.packbits(np.ascontiguousarray(wide.T), axis=1, bitorder="little").view(np.uint64)


def unpacked(words: Words, n_lanes: int) -> Bits:
    """A row for each lane again."""
    flat = np.unpackbits(words.view(np.uint8), axis=1, count=n_lanes, bitorder="little")
    return np.ascontiguousarray(flat.T).view(np.bool_)


def starts_of(lengths: Any) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)


def runs(first: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """So many numbers from each first one on, one run after another, and where each begins among them."""
    begin = starts_of(lengths)
    return np.arange(begin[-1]) + np.repeat(first - begin[:-1], lengths), begin


def pieces(starts: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers from ``starts[k]`` to ``starts[k + 1]`` of all chosen k, and where each piece begins among them."""
    return runs(starts[chosen], starts[chosen + 1] - starts[chosen])


def owners(begin: IntArray) -> IntArray:
    """Which run each number belongs to, of runs that begin there."""
    return np.repeat(np.arange(len(begin) - 1), np.diff(begin))


class Lists:
    """A list of numbers for each node that waits to be valued, one after another in one array."""

    def __init__(self, n_nodes: int) -> None:
        self.first, self.length = np.zeros((2, n_nodes), np.int64)
        self.flat, self.used, self.idle = np.zeros(0, np.int32), 0, 0

    def put(self, nodes: IntArray, numbers: IntArray, lengths: IntArray) -> None:
        """The lists of some nodes that have none yet."""
        end = self.used + len(numbers)
        if end > len(self.flat):
            self.flat = np.concatenate([self.flat[: self.used], np.zeros(end, np.int32)])
        self.flat[self.used : end] = numbers
        self.first[nodes], self.length[nodes] = self.used + starts_of(lengths)[:-1], lengths
        self.used = end

    def get(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """The lists of some nodes, one after another, and where each begins."""
        at, begin = runs(self.first[nodes], self.length[nodes])
        return self.flat[at].astype(np.int64), begin

    def drop(self, nodes: IntArray) -> None:
        """These are done with: where that makes up half of all, the others move together."""
        self.idle += int(self.length[nodes].sum())
        self.length[nodes] = 0
        if 2 * self.idle > self.used:
            left = np.flatnonzero(self.length)
            self.flat = self.get(left)[0].astype(np.int32)
            self.first[left] = starts_of(self.length[left])[:-1]
            self.used, self.idle = len(self.flat), 0


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
        if needed > memory:
            raise BadFile(f"tables take {needed} bytes, and --memory allows {memory}")
        tuples = [np.zeros((0, arity), np.int64)]
        for scope, table in tables:
            found = np.argwhere(table.values > -math.inf)
            tuples.append(np.full((len(found), arity), self.n_states, np.int64))
            tuples[-1][:, : len(scope)] = self.states[list(scope)] + found
        self.tuples = np.concatenate(tuples)
        self.tuple_table = owners(starts_of([len(rows) for rows in tuples[1:]]))
        self.arity = np.diff(self.places)[self.tuple_table]
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
        # For keys of contexts: all states of a table's variables, and a random number for each.
        widest = max((sum(sizes[v] for v in scope) for scope, _ in tables), default=0)
        self.scope_states = np.zeros((len(tables), widest), np.int64)
        self.in_scope = np.zeros((len(tables), widest), np.bool_)
        for t, (scope, _) in enumerate(tables):
            row = [s for v in scope for s in range(self.states[v], self.states[v + 1])]
            self.scope_states[t, : len(row)], self.in_scope[t, : len(row)] = row, True
        self.random = np.random.default_rng(0).integers(1 << 63, size=(len(tables), widest), dtype=np.uint64) * 2 + 1

    def propagate(self, alive: Words, variables: IntArray, used: Bits) -> None:
        """Remove states without support in tables that are used, in all lanes, beginning with these variables'."""
        changed = np.zeros(len(self.sizes), np.bool_)
        changed[variables] = True
        while changed.any():
            chosen = np.zeros(len(self.tables), np.bool_)
            chosen[self.table[changed[self.variable]]] = True
            chosen &= used
            slots, inside = np.flatnonzero(chosen[self.slot_table]), chosen[self.tuple_table]
            if not len(slots):
                return
            rows = np.flatnonzero(inside)
            there = np.take(alive, self.tuples[rows, 0], axis=0)
            for a in range(1, self.tuples.shape[1]):
                longer = np.flatnonzero(self.arity[rows] > a)
                there[longer] &= np.take(alive, self.tuples[rows[longer], a], axis=0)
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


@dataclass(slots=True)
class Contexts:
    """What tables are while some states are left: a *context* is a table and the states of its variables.

    Its *shape* is what others see of it: the variables on which it depends, their states, and the table on them less
    its largest entry. Equal shapes have the same number.
    """

    wiring: Wiring
    table: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    bits: Bits = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    largest: FloatArray = field(default_factory=lambda: np.zeros(0))
    shape: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    starts: IntArray = field(default_factory=lambda: np.zeros(1, np.int64))
    places: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """The places on which each depends, one after another."""
    keys: Words = field(default_factory=lambda: np.zeros(0, np.uint64))
    numbers: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rising keys, and the contexts that they belong to."""
    shapes: dict[bytes, int] = field(default_factory=dict)
    rounding: float = 0.0
    """How far a shape is from the table less its largest entry, at most."""

    def find(self, tables: IntArray, lanes: IntArray, states: Bits) -> IntArray:
        """The contexts of tables, each in a lane; ``states`` has a row for each lane."""
        wiring = self.wiring
        bits = states[lanes[:, None], wiring.scope_states[tables]] & wiring.in_scope[tables]
        keys = (bits * wiring.random[tables]).sum(axis=1, dtype=np.uint64) + tables.astype(np.uint64)
        found, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        place = np.minimum(np.searchsorted(self.keys, found), max(len(self.keys) - 1, 0))
        known = self.keys[place] == found if len(self.keys) else np.zeros(len(found), np.bool_)
        if not known.all():
            new = first[~known]
            self._add(found[~known], tables[new], bits[new])
            place = np.searchsorted(self.keys, found)
        numbers = self.numbers[place][inverse]
        # Keys only find candidates.
        if (self.table[numbers] != tables).any() or (self.bits[numbers] != bits).any():
            raise Rejected("two different tables have the same key")
        return numbers

    def _add(self, keys: Words, tables: IntArray, bits: Bits) -> None:
        """Look at new contexts."""
        wiring, begin = self.wiring, len(self.table)
        largest, shape, counts = np.zeros(len(tables)), [], []
        places = [self.places]
        for k, t in enumerate(tables.tolist()):
            scope, table = wiring.tables[t]
            left = np.split(bits[k], np.cumsum(wiring.sizes[list(scope)]))[: len(scope)]
            values = table.values[np.ix_(*left)]
            largest[k] = values.max(initial=-math.inf)
            on = [a for a in range(len(scope)) if (values != values.take([0], a)).any()] if values.size else []
            counts.append(len(on))
            places.append(wiring.places[t] + np.array(on, np.int64))
            values = np.asarray(values[tuple(slice(None) if a in on else 0 for a in range(len(scope)))])
            seen = [np.array([scope[a] for a in on]).tobytes(), *(left[a].tobytes() for a in on)]
            if largest[k] > -math.inf:
                less, _ = normalised(Table(values))
                self.rounding = max(self.rounding, less.up)
                # Minus zero is another number to bytes, but not to us.
                seen.append((less.values + 0.0).tobytes())
            shape.append(self.shapes.setdefault(b"|".join([str(len(on)).encode(), *seen]), len(self.shapes)))
        self.table = np.concatenate([self.table, tables])
        self.bits = np.concatenate([self.bits.reshape(-1, bits.shape[1]), bits])
        self.largest = np.concatenate([self.largest, largest])
        self.shape = np.concatenate([self.shape, np.array(shape, np.int64)])
        self.starts = np.concatenate([self.starts, self.starts[-1] + np.cumsum(counts)])
        self.places = np.concatenate(places)
        order = np.argsort(merged := np.concatenate([self.keys, keys]), kind="stable")
        self.keys = merged[order]
        self.numbers = np.concatenate([self.numbers, begin + np.arange(len(tables))])[order]


@dataclass(slots=True)
class Graph:
    """Nodes in levels, as the certificate has them; the first is everything, before any variable is set."""

    levels: IntArray
    variable: IntArray
    slots: IntArray
    """Where the states of each node begin, all nodes one after another; the first node has one slot."""
    children: IntArray
    """Where the children of each slot begin."""
    nodes: IntArray


def _read_graph(step: Step, rest: Remainder) -> Graph:
    variables, sizes = rest.variables, rest.sizes
    named = step.integers("branching", high=len(step.domains))
    if len(set(named.tolist()) - set(variables)):
        raise Rejected("a node branches on a variable that is not left")
    variable = np.concatenate([[-1], np.searchsorted(variables, named)]).astype(np.int64)
    slots = starts_of([1, *np.array(sizes, np.int64)[variable[1:]].tolist()])
    counts = step.integers("child_counts")
    nodes = step.integers("child_nodes", low=1, high=len(variable))
    levels = step.archive.starts(f"{step.number}/levels", len(variable))
    if len(counts) != slots[-1] or counts.sum() != len(nodes) or levels[1:2].tolist() != [1]:
        raise BadFile("branching, child_counts, child_nodes and levels do not fit together")
    if counts.max(initial=0) > len(variables):
        raise Rejected(OVERLAP)
    children = starts_of(counts)
    level = np.repeat(np.arange(len(levels) - 1), np.diff(levels))
    above = np.repeat(np.repeat(np.arange(len(variable)), np.diff(slots)), counts)
    if (level[above] >= level[nodes]).any():
        raise Rejected("a node is not below the one that leads to it")
    return Graph(levels, variable, slots, children, nodes)


class Conditioning:
    """The walk down through the levels, and what it finds for the way up."""

    def __init__(self, wiring: Wiring, graph: Graph, weight: float, memory: int) -> None:
        self.wiring, self.graph, self.weight, self.memory = wiring, graph, weight, memory
        self.contexts = Contexts(wiring)
        n_slots, n_nodes = int(graph.slots[-1]), len(graph.variable)
        self.offset = np.full(n_slots, -math.inf)
        self.error = np.zeros(n_slots)
        self.complete = np.ones(n_slots, np.bool_)
        # What each node is, from when it is met first until it has been valued: its variables, the contexts of its
        # tables, and a row of states (of all variables), which is used again.
        self.variables, self.held = Lists(n_nodes), Lists(n_nodes)
        self.row = np.full(n_nodes, -1, np.int64)
        self.states = np.zeros((0, wiring.n_states), np.bool_)
        self.free: list[int] = []
        whole, tables = np.zeros(1, np.int64), np.arange(len(wiring.tables))
        some = np.unique(wiring.variable)
        found = self.contexts.find(tables, 0 * tables, wiring.possible[None])
        self.variables.put(whole, some, np.array([len(some)]))
        self._meet(whole, wiring.possible[None], found, np.array([len(found)]))
        self.largest = self.contexts.largest[found].tolist()

    def _meet(self, nodes: IntArray, states: Bits, held: IntArray, counts: IntArray) -> None:
        """Keep what nodes are that are met for the first time; their variables are known."""
        self.held.put(nodes, held, counts)
        have = len(self.states)
        more = max(have, 64, len(nodes)) if len(nodes) > len(self.free) else 0
        lists = self.variables.flat.nbytes + self.held.flat.nbytes
        needed = 3 * self.wiring.n_states * (have + more) + 4 * lists
        if needed > self.memory:
            raise BadFile(f"nodes take {needed} bytes, and --memory allows {self.memory}")
        if more:
            self.states = np.concatenate([self.states, np.zeros((more, self.wiring.n_states), np.bool_)])
            self.free += range(have, have + more)
        rows = np.array([self.free.pop() for _ in range(len(nodes))], np.int64)
        self.row[nodes], self.states[rows] = rows, states

    def down(self) -> None:
        """All levels."""
        graph, wiring = self.graph, self.wiring
        # Bytes of a lane: bits of tuples and states, numbers of places, and keys of all tables.
        entry = len(wiring.slot_tuple) // 4 + 64 * len(wiring.variable) + wiring.n_states + 16 * wiring.random.size
        lanes = max(min(LANES, self.memory // (4 * entry)) // 64 * 64, 64)
        for level in range(len(graph.levels) - 1):
            nodes = np.arange(graph.levels[level], graph.levels[level + 1])
            if not len(nodes):
                raise BadFile("a level has no nodes")
            if (self.row[nodes] < 0).any():
                raise Rejected("a node is led to by nothing that is possible")
            slots, begin = pieces(graph.slots, nodes)
            node = nodes[owners(begin)]
            state = slots - graph.slots[node]
            there = np.ones(len(node), np.bool_)
            if level:
                there = self.states[self.row[node], wiring.states[graph.variable[node]] + state]
            node, slots, state = node[there], slots[there], state[there]
            # Lanes that have much in common are worked on together.
            held, begin = self.held.get(node)
            tables = np.append(self.contexts.table[held], 0)
            order = np.lexsort((tables[begin[1:] - 1], tables[begin[:-1]]))
            for first in range(0, len(order), lanes):
                at = order[first : first + lanes]
                self._lanes(node[at], slots[at], state[at])
            self.free += self.row[nodes].tolist()
            self.variables.drop(nodes)
            self.held.drop(nodes)

    def _lanes(self, node: IntArray, slot: IntArray, state: IntArray) -> None:
        """Some states of some nodes."""
        wiring, graph, contexts = self.wiring, self.graph, self.contexts
        n_lanes = len(node)
        held, begin = self.held.get(node)
        lane, table = owners(begin), contexts.table[held]
        before = self.states[self.row[node]]
        states, variable = before.copy(), graph.variable[node]
        if variable[0] >= 0:
            states &= wiring.owner != variable[:, None]
            states[np.arange(n_lanes), wiring.states[variable] + state] = True
            first = np.unique(variable)
        else:
            first = np.arange(len(wiring.sizes))
        words = packed(states)
        wiring.propagate(words, first, np.bincount(table, minlength=len(wiring.tables)) > 0)
        by_variable = np.bitwise_or.reduceat(words, wiring.states[:-1], axis=0)
        alive = unpacked(np.bitwise_and.reduce(by_variable, axis=0, keepdims=True), n_lanes)[:, 0]
        if not alive.any():
            return
        # Tables of which some variable has lost a state since the node.
        lost = np.bitwise_or.reduceat(words ^ packed(before), wiring.states[:-1], axis=0)
        changed = unpacked(np.bitwise_or.reduceat(lost[wiring.variable], wiring.places[:-1], axis=0), n_lanes)
        states = unpacked(words, n_lanes)[alive]
        held, table, was = held[alive[lane]], table[alive[lane]], lane[alive[lane]]
        node, slot, lane = node[alive], slot[alive], (np.cumsum(alive) - 1)[was]
        at = np.flatnonzero(changed[was, table])
        new = contexts.find(table[at], lane[at], states)
        changes = [contexts.largest[new], -contexts.largest[held[at]]]
        owner, held[at] = lane[at], new
        depends = contexts.starts[held + 1] > contexts.starts[held]
        child_of = self._children(slot, states, lane[depends], held[depends])
        within, begin = self.variables.get(node)
        alone = owners(begin)
        inside = child_of[alone, within] > 0
        if np.count_nonzero(inside) < np.count_nonzero(child_of):
            raise Rejected("a state leaves a variable that its node does not have")
        # Variables of the node that nothing depends on any more count with the states that they have left.
        alone, within = alone[~inside], within[~inside]
        left, begin = pieces(wiring.states, within)
        count = np.bincount(owners(begin), states[alone[owners(begin)], left], len(within)).astype(np.int64)
        logs = [power_sum(Table(np.zeros(max(k, 1))), self.weight) for k in range(int(wiring.sizes.max()) + 1)]
        terms = np.concatenate([*changes, np.array([float(log.values) for log in logs])[count]])
        self.offset[slot], error = groups_added(np.concatenate([owner, owner, alone]), terms, len(slot))
        self.error[slot] = error + np.bincount(alone, minlength=len(slot)) * max(log.up for log in logs)

    def _children(self, slot: IntArray, states: Bits, lane: IntArray, held: IntArray) -> IntArray:
        """Follow what lanes leave, the contexts ``held``, into their children.

        Children of all lanes are numbered from 1. Returns the one that has each variable in each lane, 0 for none.
        """
        wiring, graph, contexts = self.wiring, self.graph, self.contexts
        at, begin = pieces(graph.children, slot)
        child, lane_of = graph.nodes[at], owners(begin)
        # A child that is met for the first time is all that is connected with its variable.
        fresh, first = np.unique(np.where(self.row[child] < 0, child, 0), return_index=True)
        fresh, first = fresh[fresh > 0], first[fresh > 0]
        at, begin = pieces(contexts.starts, held)
        place, entry = contexts.places[at], owners(begin)
        for k in range(0, len(fresh) + 1, LANES):
            some = slice(k, k + LANES)
            inside = self._connected(graph.variable[fresh[some]], lane_of[first[some]], lane[entry], place)
            self.variables.put(fresh[some], np.nonzero(inside)[1], inside.sum(axis=1))
            if (np.bincount(lane_of, self.variables.length[child]) > len(wiring.sizes)).any():
                raise Rejected(OVERLAP)
        within, limits = self.variables.get(child)
        pair = owners(limits)
        child_of = np.zeros((len(slot), len(wiring.sizes)), np.min_scalar_type(len(child)))
        child_of[lane_of[pair], within] = pair + 1
        if np.count_nonzero(child_of) < len(within):
            raise Rejected(OVERLAP)
        # A context is in a child with all variables that it depends on, or in none.
        own = child_of[lane[entry], wiring.variable[place]]
        owner = own[begin[:-1]]
        if (own != owner[entry]).any():
            raise Rejected("a node is led to with more variables than before")
        self.complete[slot[lane[owner == 0]]] = False
        counts = np.bincount(owner, minlength=len(child) + 1)[1:]
        now = held[np.argsort(owner, kind="stable")[len(held) - int(counts.sum()) :]]
        self._meet(fresh, states[lane_of[first]], now[pieces(starts_of(counts), first)[0]], counts[first])
        left, begin = pieces(wiring.states, within)
        of = pair[owners(begin)]
        if (states[lane_of[of], left] != self.states[self.row[child[of]], left]).any():
            raise Rejected("a node is led to with other states left than before")
        self._compare(child, now, counts)
        return child_of

    def _connected(self, seeds: IntArray, lanes: IntArray, lane: IntArray, place: IntArray) -> Bits:
        """All variables connected with some, each in a lane, by places on which contexts depend in lanes."""
        wiring = self.wiring
        inside = np.zeros((len(seeds), len(wiring.sizes)), np.bool_)
        inside[np.arange(len(seeds)), seeds] = True
        if not len(place) or not len(seeds):
            return inside
        seen = np.bincount(place, minlength=len(wiring.variable)) > 0
        used = np.flatnonzero(seen)
        depends = np.zeros((max(int(lane.max()), int(lanes.max())) + 1, len(used)), np.bool_)
        depends[lane, (np.cumsum(seen) - 1)[place]] = True
        words, joins = packed(inside), packed(depends[lanes])
        variable, by_variable = wiring.variable[used], np.argsort(wiring.variable[used], kind="stable")
        tables, of_table = np.unique(wiring.table[used], return_index=True)
        number = np.searchsorted(tables, wiring.table[used])
        some, of_variable = np.unique(variable[by_variable], return_index=True)
        while True:
            touched = np.bitwise_or.reduceat(words[variable] & joins, of_table, axis=0)
            by_place = (touched[number] & joins)[by_variable]
            grown = words[some] | np.bitwise_or.reduceat(by_place, of_variable, axis=0)
            if np.array_equal(grown, words[some]):
                return unpacked(words, len(inside))
            words[some] = grown

    def _compare(self, child: IntArray, now: IntArray, counts: IntArray) -> None:
        """Check that children have contexts of the same shapes as when they were met first."""
        held, begin = self.held.get(child)
        if (np.diff(begin) != counts).any():
            raise Rejected("a node is led to with other tables left than before")
        owner = owners(begin)
        before, after = self.contexts.shape[held], self.contexts.shape[now]
        # The same tables may come from other factors, in another order.
        others = np.zeros(len(child), np.bool_)
        others[owner[before != after]] = True
        at = others[owner]
        before, after = (np.sort(owner[at] * len(self.contexts.shape) + shape[at]) for shape in (before, after))
        if (before != after).any():
            raise Rejected("a node is led to with something else left than before")

    def up(self) -> tuple[float, float]:
        """The value of the first node, and its error: from the last level to the first."""
        graph = self.graph
        values, errors = np.zeros(len(graph.variable)), np.zeros(len(graph.variable))
        for level in range(len(graph.levels) - 2, -1, -1):
            nodes = np.arange(graph.levels[level], graph.levels[level + 1])
            slots, begin = pieces(graph.slots, nodes)
            places, starts = pieces(graph.children, slots)
            counts = np.diff(starts)
            needed = 32 * len(slots) * (int(counts.max(initial=0)) + 1) + 32 * len(nodes) * int(np.diff(begin).max())
            if needed > self.memory:
                raise BadFile(f"a level takes {needed} bytes, and --memory allows {self.memory}")
            terms = np.zeros((int(counts.max(initial=0)) + 1, len(slots)))
            terms[0] = self.offset[slots]
            owner = np.repeat(np.arange(len(slots)), counts)
            terms[np.arange(len(places)) - starts[owner] + 1, owner] = values[graph.nodes[places]]
            total = add(terms.shape[1:], [Table(row) for row in terms])
            sums = total.values
            error = self.error[slots] + np.bincount(owner, errors[graph.nodes[places]], len(slots)) + total.up
            if (~self.complete[slots] & (sums > -math.inf)).any():
                raise Rejected("a state leaves tables that no child has, or children that have the same")
            error[sums == -math.inf] = 0.0
            owner = np.repeat(np.arange(len(nodes)), np.diff(begin))
            matrix = np.full((int(np.diff(begin).max()), len(nodes)), -math.inf)
            matrix[np.arange(len(slots)) - begin[owner], owner] = sums
            result = power_sum(Table(matrix), self.weight)
            values[nodes] = result.values
            errors[nodes] = np.maximum.reduceat(error, begin[:-1]) + result.up
        return float(values[0]), float(errors[0])


def conditioning(step: Step) -> tuple[float, float]:
    """Bounds on the value of a box: a tree, and the tables that it leaves by conditioning."""
    rest = read_remainder(step)
    written, up, down = as_written(step, rest)
    constants = [float(table.values) for scope, table in written if not scope]
    tables = [(scope, table) for scope, table in written if scope]
    used = {v for scope, _ in tables for v in scope}
    alone = [power_sum(Table(np.zeros(n)), rest.weight) for v, n in enumerate(rest.sizes) if v not in used]
    constants += [float(states.values) for states in alone]
    error = sum(states.up for states in alone)
    if tables:
        wiring = Wiring(rest.sizes, tables, step.memory)
        walk = Conditioning(wiring, _read_graph(step, rest), rest.weight, step.memory)
        walk.down()
        value, own = walk.up()
        constants += [value, *walk.largest]
        # Nodes have shapes for tables. Where a table changes, the new shape is compared with the old one less what the
        # largest entry has changed: each is rounded once. A change takes a state from a variable that the table depends
        # on, and a shape knows these, so that there are no more changes than states to lose.
        changes = int((wiring.sizes[wiring.variable] - 1).sum())
        error += own + 2.0 * changes * walk.contexts.rounding
    low, high = outward(constants, up + error, down + error)
    if high == -math.inf:
        return -math.inf, -math.inf
    return math.nextafter(low + rest.low, -math.inf), math.nextafter(high + rest.high, math.inf)
