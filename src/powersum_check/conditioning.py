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
from powersum_check.numbers import TINY, FloatArray, Table, U, add, magnitude, outward, power_sum
from powersum_check.remainder import Remainder, as_written, read_remainder

Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]

LANES = 512
"""Lanes worked on at once, at most."""


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


def pieces(starts: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers from ``starts[k]`` to ``starts[k + 1]`` of all chosen k, and where each piece begins among them."""
    lengths = starts[chosen + 1] - starts[chosen]
    begin = np.concatenate([[0], np.cumsum(lengths)])
    return np.arange(begin[-1]) + np.repeat(starts[chosen] - begin[:-1], lengths), begin


def starts_of(lengths: Any) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)


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
        self.axis = np.arange(len(self.table)) - self.places[self.table]
        self.by_variable = np.argsort(self.variable, kind="stable")
        self.incident = starts_of(np.bincount(self.variable, minlength=len(sizes)))
        # Tuples that are not 0, by the states they have; a state that is always there fills up.
        arity = max((len(scope) for scope, _ in tables), default=0)
        needed = 40 * (arity + 2) * sum(table.values.size for _, table in tables)
        if needed > memory:
            raise BadFile(f"tables take {needed} bytes, and --memory allows {memory}")
        tuples, slot_tuple, slot_state, slot_counts = [], [], [], []
        counts: list[int] = []
        slots_of: list[int] = []
        unsupported = np.zeros(self.n_states, np.bool_)
        for scope, table in tables:
            places = np.nonzero(table.values > -math.inf)
            rows = np.full((len(places[0]), arity), self.n_states, np.int64)
            n_slots = 0
            for a, v in enumerate(scope):
                rows[:, a] = self.states[v] + places[a]
                order = np.argsort(places[a], kind="stable")
                number = np.bincount(places[a], minlength=sizes[v])
                unsupported[self.states[v] : self.states[v + 1]] |= number == 0
                slot_tuple.append(order + sum(counts))
                slot_state.append(self.states[v] + np.flatnonzero(number))
                slot_counts.append(number[number > 0])
                n_slots += int((number > 0).sum())
            tuples.append(rows)
            counts.append(len(rows))
            slots_of.append(n_slots)
        self.possible = ~unsupported
        self.tuple_starts = starts_of(counts)
        self.tuples = np.concatenate([np.zeros((0, arity), np.int64), *tuples])
        self.slot_starts = starts_of(slots_of)
        nothing = np.zeros(0, np.int64)
        self.slot_state = np.concatenate([nothing, *slot_state])
        self.slot_tuple_starts = starts_of(np.concatenate([nothing, *slot_counts]))
        self.slot_tuple = np.concatenate([nothing, *slot_tuple])
        # For keys of contexts: all states of a table's variables, and a random number for each.
        widest = max((sum(sizes[v] for v in scope) for scope, _ in tables), default=0)
        self.scope_states = np.full((len(tables), widest), self.n_states, np.int64)
        for t, (scope, _) in enumerate(tables):
            row = [s for v in scope for s in range(self.states[v], self.states[v + 1])]
            self.scope_states[t, : len(row)] = row
        self.random = np.random.default_rng(0).integers(1 << 63, size=(len(tables), widest), dtype=np.uint64) * 2 + 1

    def tables_of(self, variables: IntArray) -> IntArray:
        """All tables that have one of the variables."""
        return np.unique(self.table[self.by_variable[pieces(self.incident, variables)[0]]])

    def propagate(self, alive: Words, variables: IntArray) -> None:
        """Remove states without support, in all lanes, beginning with the tables of these variables."""
        where = np.zeros(len(self.tuples), np.int64)
        while len(variables):
            chosen = self.tables_of(variables)
            rows, _ = pieces(self.tuple_starts, chosen)
            slots, _ = pieces(self.slot_starts, chosen)
            if not len(slots):
                return
            there = alive[self.tuples[rows, 0]]
            for a in range(1, self.tuples.shape[1]):
                there &= alive[self.tuples[rows, a]]
            where[rows] = np.arange(len(rows))
            members, begin = pieces(self.slot_tuple_starts, slots)
            supported = np.bitwise_or.reduceat(there[where[self.slot_tuple[members]]], begin[:-1], axis=0)
            order = np.argsort(self.slot_state[slots], kind="stable")
            states, first = np.unique(self.slot_state[slots][order], return_index=True)
            left = alive[states] & np.bitwise_and.reduceat(supported[order], first, axis=0)
            changed = (left != alive[states]).any(axis=1)
            alive[states] = left
            variables = np.unique(self.owner[states[changed]])


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
    depends: Bits = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    """By axis of the table; the last row, which depends on nothing, is that of no context."""
    keys: Words = field(default_factory=lambda: np.zeros(0, np.uint64))
    numbers: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rising keys, and the contexts that they belong to."""
    shapes: dict[bytes, int] = field(default_factory=dict)

    def find(self, tables: IntArray, lanes: IntArray, states: Bits) -> IntArray:
        """The contexts of tables, each in a lane; ``states`` has a row for each lane."""
        wiring = self.wiring
        bits = _and_one(states)[lanes[:, None], wiring.scope_states[tables]]
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
        arity = wiring.tuples.shape[1]
        depends, largest, shape = np.zeros((len(tables), arity), np.bool_), np.zeros(len(tables)), []
        for k, t in enumerate(tables.tolist()):
            scope, table = wiring.tables[t]
            left = np.split(bits[k], np.cumsum(wiring.sizes[list(scope)]))[: len(scope)]
            values = table.values[np.ix_(*left)]
            largest[k] = values.max(initial=-math.inf)
            on = [a for a in range(len(scope)) if (values != values.take([0], a)).any()] if values.size else []
            depends[k, on] = True
            values = np.asarray(values[tuple(slice(None) if a in on else 0 for a in range(len(scope)))])
            seen = [np.array([scope[a] for a in on]).tobytes(), *(left[a].tobytes() for a in on)]
            if largest[k] > -math.inf:
                # Minus zero is another number to bytes, but not to us.
                seen.append((values - largest[k] + 0.0).tobytes())
            shape.append(self.shapes.setdefault(b"|".join([str(len(on)).encode(), *seen]), len(self.shapes)))
        self.table = np.concatenate([self.table, tables])
        self.bits = np.concatenate([self.bits.reshape(-1, bits.shape[1]), bits])
        self.largest = np.concatenate([self.largest, largest])
        self.shape = np.concatenate([self.shape, np.array(shape, np.int64)])
        nothing = np.zeros((1, arity), np.bool_)
        self.depends = np.concatenate([self.depends.reshape(-1, arity)[:begin], depends, nothing])
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
        n_slots = int(graph.slots[-1])
        self.offset = np.full(n_slots, -math.inf)
        self.error = np.zeros(n_slots)
        self.complete = np.ones(n_slots, np.bool_)
        # What each node is, from when it is met first until it has been valued: rows of pools that are used again.
        self.row = np.full(len(graph.variable), -1, np.int64)
        self.states = np.zeros((0, wiring.n_states), np.bool_)
        self.within = np.zeros((0, len(wiring.sizes)), np.bool_)
        self.context = np.zeros((0, len(wiring.tables)), np.int32)
        self.free: list[int] = []
        whole = self._rows(1)
        self.row[0] = whole[0]
        self.states[whole] = wiring.possible
        self.within[whole] = np.diff(wiring.incident) > 0
        tables = np.arange(len(wiring.tables))
        self.context[whole] = self.contexts.find(tables, 0 * tables, self.states[whole])
        self.largest = self.contexts.largest[self.context[whole[0]]].tolist()

    def _rows(self, count: int) -> IntArray:
        """Rows that are not used."""
        if len(self.free) < count:
            have = len(self.states)
            more = max(count, have, 64)
            width = self.states.shape[1] + self.within.shape[1] + 4 * self.context.shape[1]
            if 3 * width * (have + more) > self.memory:
                raise BadFile(f"nodes take {3 * width * (have + more)} bytes, and --memory allows {self.memory}")
            self.states, self.within, self.context = (
                np.concatenate([pool, np.zeros((more, pool.shape[1]), pool.dtype)])
                for pool in (self.states, self.within, self.context)
            )
            self.free += range(have, have + more)
        return np.array([self.free.pop() for _ in range(count)], np.int64)

    def down(self) -> None:
        """All levels."""
        graph, wiring = self.graph, self.wiring
        # Bytes of a lane: bits of tuples and states, numbers of places, and keys of all tables.
        entry = len(wiring.slot_tuple) // 4 + 8 * len(wiring.variable) + wiring.n_states + 16 * wiring.random.size
        lanes = max(min(LANES, self.memory // (4 * entry)) // 64 * 64, 64)
        for level in range(len(graph.levels) - 1):
            nodes = np.arange(graph.levels[level], graph.levels[level + 1])
            if not len(nodes):
                raise BadFile("a level has no nodes")
            if (self.row[nodes] < 0).any():
                raise Rejected("a node is led to by nothing that is possible")
            slots, begin = pieces(graph.slots, nodes)
            node = np.repeat(nodes, np.diff(begin))
            state = slots - graph.slots[node]
            there = np.ones(len(node), np.bool_)
            if level:
                there = self.states[self.row[node], wiring.states[graph.variable[node]] + state]
            node, slots, state = node[there], slots[there], state[there]
            order = np.argsort(graph.variable[node], kind="stable")
            for first in range(0, len(order), lanes):
                at = order[first : first + lanes]
                self._lanes(node[at], slots[at], state[at])
            self.free += self.row[nodes].tolist()

    def _lanes(self, node: IntArray, slot: IntArray, state: IntArray) -> None:
        """Some states of some nodes."""
        wiring, graph, contexts = self.wiring, self.graph, self.contexts
        rows, n_lanes = self.row[node], len(node)
        states, variable = self.states[rows], graph.variable[node]
        if variable[0] >= 0:
            states &= wiring.owner != variable[:, None]
            states[np.arange(n_lanes), wiring.states[variable] + state] = True
            first = np.unique(variable)
        else:
            first = np.arange(len(wiring.sizes))
        words = packed(_and_one(states))
        wiring.propagate(words, first)
        by_variable = np.bitwise_or.reduceat(words[:-1], wiring.states[:-1], axis=0)
        alive = unpacked(np.bitwise_and.reduce(by_variable, axis=0, keepdims=True), n_lanes)[:, 0]
        if not alive.any():
            return
        # Tables of which some variable has lost a state since the node.
        before = packed(_and_one(self.states[rows]))
        lost = np.bitwise_or.reduceat((words ^ before)[:-1], wiring.states[:-1], axis=0)
        changed = unpacked(np.bitwise_or.reduceat(lost[wiring.variable], wiring.places[:-1], axis=0), n_lanes)[alive]
        states = unpacked(words, n_lanes)[alive, :-1]
        node, slot, rows = node[alive], slot[alive], rows[alive]
        context = self.context[rows]
        lane, table = np.nonzero(changed & (context >= 0))
        new = contexts.find(table, lane, states)
        change = contexts.largest[new] - contexts.largest[context[lane, table]]
        context[lane, table] = new
        reached = self._children(slot, states, context)
        if (reached & ~self.within[rows]).any():
            raise Rejected("a state leaves a variable that its node does not have")
        free = self.within[rows] & ~reached
        # Variables of the node that nothing depends on any more count with the states that they have left.
        alone, variable = np.nonzero(free)
        count = np.zeros(len(alone), np.int64)
        for k in range(int(wiring.sizes.max())):
            at = np.minimum(wiring.states[variable] + k, wiring.n_states - 1)
            count += states[alone, at] & (k < wiring.sizes[variable])
        logs = [power_sum(Table(np.zeros(max(k, 1))), self.weight) for k in range(int(wiring.sizes.max()) + 1)]
        counted = np.array([float(log.values) for log in logs])[count]
        terms = np.concatenate([change, counted])
        owner = np.concatenate([lane, alone])
        number, size = (np.bincount(owner, weights, len(slot)) for weights in (None, np.abs(terms)))
        self.offset[slot] = np.bincount(owner, terms, len(slot))
        self.error[slot] = 2.0 * U * (number + 1) * size + TINY + number * max(log.up for log in logs)

    def _children(self, slot: IntArray, states: Bits, context: NDArray[np.int32]) -> Bits:
        """Follow what lanes leave into their children; which variables are in one."""
        wiring, graph = self.wiring, self.graph
        depends = self.contexts.depends[context[:, wiring.table], wiring.axis]
        wanted = unpacked(np.bitwise_or.reduceat(packed(depends), wiring.places[:-1], axis=0), len(slot))
        places, begin = pieces(graph.children, slot)
        lanes, children = np.repeat(np.arange(len(slot)), np.diff(begin)), graph.nodes[places]
        reached = np.zeros((len(slot), len(wiring.sizes)), np.bool_)
        covered = np.zeros_like(wanted)
        number, n_variables = np.zeros((2, len(slot)), np.int64)
        for first in range(0, len(lanes), LANES):
            lane, child = lanes[first : first + LANES], children[first : first + LANES]
            # A child that is met for the first time is all that is connected with its variable.
            fresh, at = np.unique(np.where(self.row[child] < 0, child, 0), return_index=True)
            fresh, at = fresh[fresh > 0], at[fresh > 0]
            if len(fresh):
                seed = np.zeros((len(fresh), len(wiring.sizes)), np.bool_)
                seed[np.arange(len(fresh)), graph.variable[fresh]] = True
                inside, held = self._connected(seed, depends[lane[at]], grows=True)
                rows = self._rows(len(fresh))
                self.row[fresh] = rows
                self.states[rows], self.within[rows] = states[lane[at]], inside
                self.context[rows] = np.where(held, context[lane[at]], -1)
            rows = self.row[child]
            inside = self.within[rows]
            if not inside[np.arange(len(child)), graph.variable[child]].all():
                raise Rejected("a node does not have the variable that it branches on")
            _, held = self._connected(inside, depends[lane], grows=False)
            self._compare(child, rows, states[lane], np.where(held, context[lane], -1))
            begin = np.flatnonzero(np.diff(lane, prepend=-1))
            reached[lane[begin]] |= np.logical_or.reduceat(inside, begin, axis=0)
            covered[lane[begin]] |= np.logical_or.reduceat(held, begin, axis=0)
            number += np.bincount(lane, held.sum(axis=1), len(slot)).astype(np.int64)
            n_variables += np.bincount(lane, inside.sum(axis=1), len(slot)).astype(np.int64)
        # Each table that depends on anything is in one child, and in no other; no variable is in two.
        self.complete[slot] = (covered == wanted).all(axis=1) & (number == wanted.sum(axis=1))
        self.complete[slot] &= n_variables == reached.sum(axis=1)
        return reached

    def _connected(self, inside: Bits, depends: Bits, *, grows: bool) -> tuple[Bits, Bits]:
        """The variables that are connected with some, and the tables that connect them, in each lane.

        Where these do not grow they must be connected with no others.
        """
        wiring, words, joins = self.wiring, packed(inside), packed(depends)
        some = np.flatnonzero(np.diff(wiring.incident))
        while True:
            touched = np.bitwise_or.reduceat(words[wiring.variable] & joins, wiring.places[:-1], axis=0)
            by_place = (touched[wiring.table] & joins)[wiring.by_variable]
            grown = words.copy()
            grown[some] |= np.bitwise_or.reduceat(by_place, wiring.incident[some], axis=0)
            if np.array_equal(grown, words):
                return unpacked(words, len(inside)), unpacked(touched, len(inside))
            if not grows:
                raise Rejected("a node is led to with more variables than before")
            words = grown

    def _compare(self, child: IntArray, rows: IntArray, states: Bits, context: NDArray[np.int32]) -> None:
        """Check that children are the same as when they were met first."""
        same = ~((self.states[rows] != states) & self.within[rows][:, self.wiring.owner]).any(axis=1)
        shapes = np.append(self.contexts.shape, -1)
        before, now = shapes[self.context[rows]], shapes[context]
        other = np.flatnonzero((before != now).any(axis=1))
        # The same tables may come from other factors.
        same[other] &= (np.sort(before[other], axis=1) == np.sort(now[other], axis=1)).all(axis=1)
        if not same.all():
            raise Rejected(f"node {child[np.argmin(same)]} is led to with something else left than before")

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


def _and_one(states: Bits) -> Bits:
    """One more state that is always there."""
    return np.concatenate([states, np.ones((len(states), 1), np.bool_)], axis=1)


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
        # Where a table changes, it is looked at less another largest entry: three roundings of numbers of twice its
        # size at most. Each change takes a state from a variable that the table depends on, and a shape knows these.
        changes = int((wiring.sizes[wiring.variable] - 1).sum())
        error += own + 8.0 * U * changes * max(magnitude(table.values) for _, table in tables)
    low, high = outward(constants, up + error, down + error)
    if high == -math.inf:
        return -math.inf, -math.inf
    return _plus(low, rest.low, -math.inf), _plus(high, rest.high, math.inf)


def _plus(a: float, b: float, direction: float) -> float:
    return math.nextafter(a + b, direction)
