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
from dataclasses import dataclass

import numpy as np

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected, afford
from powersum_check.lanes import Bits, Lists, owners, packed, pieces, starts_of, unpacked
from powersum_check.numbers import IntArray, Table, add, groups_added, outward, power_sum
from powersum_check.remainder import Remainder, as_written, read_remainder
from powersum_check.wiring import Cuts, Wiring

LANES = 512
"""Lanes worked on at once, at most."""

OVERLAP = "a state leaves two nodes that have a variable in common"


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
    levels = step.starts("levels", len(variable))
    if len(counts) != slots[-1] or counts.sum() != len(nodes) or levels[1:2].tolist() != [1]:
        raise BadFile("branching, child_counts, child_nodes and levels do not fit together")
    if counts.max(initial=0) > len(variables):
        raise Rejected(OVERLAP)
    children = starts_of(counts)
    level = owners(levels)
    if (np.repeat(level[owners(slots)], counts) >= level[nodes]).any():
        raise Rejected("a node is not below the one that leads to it")
    return Graph(levels, variable, slots, children, nodes)


class Conditioning:
    """The walk down through the levels, and what it finds for the way up."""

    def __init__(self, wiring: Wiring, graph: Graph, weight: float, memory: int) -> None:
        self.wiring, self.graph, self.weight, self.memory = wiring, graph, weight, memory
        self.cuts = Cuts(wiring)
        n_slots, n_nodes = int(graph.slots[-1]), len(graph.variable)
        self.offset = np.full(n_slots, -math.inf)
        self.error = np.zeros(n_slots)
        self.complete = np.ones(n_slots, np.bool_)
        # What each node is, from when it is met first until it has been valued: its variables, the cuts of its
        # tables, and a row of states (of all variables), which is used again.
        self.variables, self.held = Lists(n_nodes), Lists(n_nodes)
        self.row = np.full(n_nodes, -1, np.int64)
        self.states = np.zeros((0, wiring.n_states), np.bool_)
        self.free: list[int] = []
        whole, tables = np.zeros(1, np.int64), np.arange(len(wiring.tables))
        some = np.unique(wiring.variable)
        found = self.cuts.find(tables, 0 * tables, wiring.possible[None])
        self.variables.put(whole, some, np.array([len(some)]))
        self._meet(whole, wiring.possible[None], found, np.array([len(found)]))
        self.largest = self.cuts.largest[found].tolist()

    def _meet(self, nodes: IntArray, states: Bits, held: IntArray, counts: IntArray) -> None:
        """Keep what nodes are that are met for the first time; their variables are known."""
        self.held.put(nodes, held, counts)
        have = len(self.states)
        more = max(have, 64, len(nodes)) if len(nodes) > len(self.free) else 0
        lists = self.variables.flat.nbytes + self.held.flat.nbytes
        needed = 3 * self.wiring.n_states * (have + more) + 4 * lists
        afford("nodes", needed, self.memory)
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
            tables = np.append(self.cuts.table[held], 0)
            order = np.lexsort((tables[begin[1:] - 1], tables[begin[:-1]]))
            for first in range(0, len(order), lanes):
                at = order[first : first + lanes]
                self._lanes(node[at], slots[at], state[at])
            self.free += self.row[nodes].tolist()
            self.variables.drop(nodes)
            self.held.drop(nodes)

    def _lanes(self, node: IntArray, slot: IntArray, state: IntArray) -> None:
        """Some states of some nodes."""
        wiring, graph, cuts = self.wiring, self.graph, self.cuts
        n_lanes = len(node)
        held, begin = self.held.get(node)
        lane, table = owners(begin), cuts.table[held]
        before = self.states[self.row[node]]
        states, variable = before.copy(), graph.variable[node]
        if variable[0] >= 0:
            states &= wiring.owner != variable[:, None]
            states[np.arange(n_lanes), wiring.states[variable] + state] = True
            first = np.unique(variable)
        else:
            first = np.arange(len(wiring.sizes))
        words = wiring.propagated(packed(states), first, np.bincount(table, minlength=len(wiring.tables)) > 0)
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
        new = cuts.find(table[at], lane[at], states)
        changes = [cuts.largest[new], -cuts.largest[held[at]]]
        owner, held[at] = lane[at], new
        depends = cuts.depends[held]
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
        """Follow what lanes leave, the cuts ``held``, into their children.

        Children of all lanes are numbered from 1. Returns the one that has each variable in each lane, 0 for none.
        """
        wiring, graph, cuts = self.wiring, self.graph, self.cuts
        at, begin = pieces(graph.children, slot)
        child, lane_of = graph.nodes[at], owners(begin)
        # A child that is met for the first time is all that is connected with its variable.
        fresh, first = np.unique(np.where(self.row[child] < 0, child, 0), return_index=True)
        fresh, first = fresh[fresh > 0], first[fresh > 0]
        places = cuts.places[held]
        grows = (np.bincount(lane_of[first], minlength=len(slot)) > 0)[lane]
        for k in range(0, len(fresh) + 1, LANES):
            some = slice(k, k + LANES)
            inside = self._connected(graph.variable[fresh[some]], lane_of[first[some]], lane[grows], places[grows])
            self.variables.put(fresh[some], np.nonzero(inside)[1], inside.sum(axis=1))
            if (np.bincount(lane_of, self.variables.length[child]) > len(wiring.sizes)).any():
                raise Rejected(OVERLAP)
        within, limits = self.variables.get(child)
        pair = owners(limits)
        child_of = np.zeros((len(slot), len(wiring.sizes)), np.min_scalar_type(len(child)))
        child_of[lane_of[pair], within] = pair + 1
        if np.count_nonzero(child_of) < len(within):
            raise Rejected(OVERLAP)
        # A cut is in a child with all variables that it depends on, or in none.
        own = child_of[lane[:, None], wiring.variable[places]]
        owner = own[:, 0]
        if (own != owner[:, None]).any():
            raise Rejected("a node is led to with more variables than before")
        self.complete[slot[lane[owner == 0]]] = False
        counts = np.bincount(owner, minlength=len(child) + 1)[1:]
        now = held[np.argsort(owner, kind="stable")[len(held) - int(counts.sum()) :]]
        self._meet(fresh, states[lane_of[first]], now[pieces(starts_of(counts), first)[0]], counts[first])
        self._compare(child, now, counts)
        return child_of

    def _connected(self, seeds: IntArray, lanes: IntArray, lane: IntArray, places: IntArray) -> Bits:
        """All variables connected with some, each in a lane, by places on which cuts depend in lanes."""
        wiring = self.wiring
        inside = np.zeros((len(seeds), len(wiring.sizes)), np.bool_)
        inside[np.arange(len(seeds)), seeds] = True
        if not places.size or not len(seeds):
            return inside
        seen = np.bincount(places.ravel(), minlength=len(wiring.variable)) > 0
        used = np.flatnonzero(seen)
        depends = np.zeros((max(int(lane.max()), int(lanes.max())) + 1, len(used)), np.bool_)
        depends[lane[:, None], (np.cumsum(seen) - 1)[places]] = True
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
        """Check that children have cuts of the same shapes as when they were met first.

        Shapes have the states of their variables. All variables of a node are in some, for nodes without cuts, which
        nobody needs, are refused.
        """
        held, begin = self.held.get(child)
        if (np.diff(begin) != counts).any() or not counts.all():
            raise Rejected("a node is led to with other tables left than before")
        owner = owners(begin)
        before, after = self.cuts.shape[held], self.cuts.shape[now]
        # The same tables may come from other factors, in another order.
        others = np.zeros(len(child), np.bool_)
        others[owner[before != after]] = True
        at = others[owner]
        before, after = (np.sort(owner[at] * len(self.cuts.shape) + shape[at]) for shape in (before, after))
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
            afford("a level", needed, self.memory)
            terms = np.zeros((int(counts.max(initial=0)) + 1, len(slots)))
            terms[0] = self.offset[slots]
            owner = owners(starts)
            terms[np.arange(len(places)) - starts[owner] + 1, owner] = values[graph.nodes[places]]
            total = add(terms.shape[1:], [Table(row) for row in terms])
            sums = total.values
            error = self.error[slots] + np.bincount(owner, errors[graph.nodes[places]], len(slots)) + total.up
            if (~self.complete[slots] & (sums > -math.inf)).any():
                raise Rejected("a state leaves tables that no child has, or children that have the same")
            error[sums == -math.inf] = 0.0
            owner = owners(begin)
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
        error += own + 2.0 * changes * walk.cuts.rounding
    low, high = outward(constants, up + error, down + error)
    if high == -math.inf:
        return -math.inf, -math.inf
    return math.nextafter(low + rest.low, -math.inf), math.nextafter(high + rest.high, math.inf)
