"""Conditioning with caching: set one variable after another, remove what is impossible, value what falls apart apart.

A *node* is a component: tables, and the states that variables have left. Its value is the power sum over the states of
its branching variable; given a state, propagation removes what is impossible, and what is left falls into components
again, which are other nodes. The certificate says which: it is a graph of nodes in levels, each with its variable, and
for each state the nodes that are left. A node that several states lead to must be the same each time.

Nothing is believed. For every node and state the checker sets the variable, propagates, and finds the tables that are
left. Each child but the first has those that are connected with its branching variable, the first all others. What a
node is when it is met first, it must be whenever it is met again: tables less their largest entries, with the states of
their variables, number for number.

Values are *means*: power sums less τ log |states| for each variable. So a variable on which nothing depends any more
counts nothing, and one that has lost states counts by the ratio of what it has to what it had.

Only tables of its node matter to a lane. All others are as propagation left them, each state supported; and whatever
the node's variables lose, others are *flat* along these variables, that is they do not depend on them. So they remove
nothing, and no variable loses a state but those of the node.

A *lane* is one state of one node. Many lanes are worked on at once: 64 lanes are the bits of a word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected, afford
from powersum_check.lanes import Bits, owners, packed, pieces, starts_of, unpacked
from powersum_check.numbers import IntArray, Table, groups_added, outward, power_sum
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
    vanishes: Bits
    """Slots that are said to have the value 0, by that of a child: not everything they leave need be in children."""
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
    signed = step.integers("child_counts", low=-len(variables), high=len(variables) + 1)
    nodes = step.integers("child_nodes", low=1, high=len(variable))
    levels = step.starts("levels", len(variable))
    children = starts_of(np.abs(signed))
    level = owners(levels)
    if len(signed) != slots[-1] or children[-1] != len(nodes) or 0 in np.diff(levels) or levels[1] != 1:
        raise BadFile("branching, child_counts, child_nodes and levels do not fit together")
    if (np.repeat(level[owners(slots)], np.abs(signed)) >= level[nodes]).any():
        raise Rejected("a node is not below the one that leads to it")
    return Graph(levels, variable, slots, signed < 0, children, nodes)


class Conditioning:
    """The walk down through the levels, and what it finds for the way up."""

    def __init__(self, wiring: Wiring, graph: Graph, weight: float, memory: int) -> None:
        self.wiring, self.graph, self.memory, self.cuts = wiring, graph, memory, Cuts(wiring)
        self.weight = weight
        self.offset, self.error = np.full(graph.slots[-1], -math.inf), np.zeros(graph.slots[-1])
        """What each slot has beside its children."""
        tables, everything = np.arange(len(wiring.tables)), np.ones(wiring.n_states, np.bool_)
        whole = self.cuts.find(tables, 0 * tables, everything[None])
        self.largest = self.cuts.largest[whole].tolist()
        self.waiting = {0: (whole, everything)}
        """What each node is, from when it is met first until it has been valued: its cuts, and states of variables."""
        self.held = whole.nbytes + everything.nbytes
        """Bytes of these."""
        logs = [power_sum(Table(np.zeros(max(k, 1))), weight) for k in range(max(wiring.sizes) + 1)]
        self.log, self.log_error = np.array([float(log.values) for log in logs]), max(log.up for log in logs)

    def down(self) -> None:
        """All levels."""
        graph, wiring = self.graph, self.wiring
        # Bytes of a lane: bits of tuples and states, numbers of places, and keys of all tables.
        entry = len(wiring.slot_tuple) // 4 + 64 * len(wiring.variable) + wiring.n_states + 16 * wiring.random.size
        lanes = max(min(LANES, self.memory // (4 * entry)) // 64 * 64, 64)
        for first, end in pairwise(graph.levels.tolist()):
            if not self.waiting.keys() >= set(range(first, end)):
                raise Rejected("a node is led to by nothing that is possible")
            slots, begin = pieces(graph.slots, np.arange(first, end))
            node = first + owners(begin)
            # Lanes that have much in common are worked on together: by the first and the last table of their nodes.
            ends = self.cuts.table[[self.waiting[n][0][[-1, 0]] for n in range(first, end)]]
            order = np.lexsort(ends[node - first].T)
            for k in range(0, len(order), lanes):
                at = order[k : k + lanes]
                self._lanes(node[at], slots[at])
            for n in range(first, end):
                cuts, states = self.waiting.pop(n)
                self.held -= cuts.nbytes + states.nbytes

    def _lanes(self, node: IntArray, slot: IntArray) -> None:
        """Some states of some nodes."""
        wiring, graph, cuts = self.wiring, self.graph, self.cuts
        before = np.array([self.waiting[n][1] for n in node.tolist()])
        variable, some = graph.variable[node], np.arange(len(wiring.sizes))
        states = before & wiring.possible
        if variable[0] >= 0:
            state = wiring.states[variable] + slot - graph.slots[node]
            there = before[np.arange(len(node)), state]
            node, slot, variable, state, before = node[there], slot[there], variable[there], state[there], before[there]
            states = before & (wiring.owner != variable[:, None])
            states[np.arange(len(node)), state] = True
            some = np.unique(variable)
        n_lanes = len(node)
        if not n_lanes:
            return
        held, begin = self._cuts_of(node)
        lane, table = owners(begin), cuts.table[held]
        words = wiring.propagated(packed(states), some, np.bincount(table, minlength=len(wiring.tables)) > 0)
        left = np.bitwise_or.reduceat(words, wiring.states[:-1], axis=0)
        alive = unpacked(np.bitwise_and.reduce(left, axis=0, keepdims=True), n_lanes)[:, 0]
        # Variables that have lost a state since the node, and their tables.
        lost = np.bitwise_or.reduceat(words ^ packed(before), wiring.states[:-1], axis=0)
        touched = unpacked(np.bitwise_or.reduceat(lost[wiring.variable], wiring.places[:-1], axis=0), n_lanes)
        changed = touched[lane, table]
        if variable[0] >= 0:
            own = cuts.variables[held[changed]] == variable[lane[changed], None]
            if not np.bincount(lane[changed], own.any(axis=1), n_lanes).all():
                raise Rejected("a node sets a variable that none of its tables has")
        states = unpacked(words, n_lanes)
        at = np.flatnonzero(changed & alive[lane])
        new = cuts.find(table[at], lane[at], states)
        of, who = np.nonzero(unpacked(lost, n_lanes) & alive[:, None])
        places, begin = pieces(wiring.states, who)
        were, are = (
            np.bincount(owners(begin), rows[of[owners(begin)], places], len(who)).astype(np.int64)
            for rows in (before, states)
        )
        terms = [cuts.largest[new], -cuts.largest[held[at]], self.log[are], -self.log[were]]
        owner = np.concatenate([lane[at], lane[at], of, of])
        totals, errors = groups_added(owner, np.concatenate(terms), n_lanes)
        errors += 2.0 * np.bincount(of, minlength=n_lanes) * self.log_error
        self.offset[slot[alive]], self.error[slot[alive]] = totals[alive], errors[alive]
        held[at] = new
        inside = (cuts.places[held, 0] >= 0) & alive[lane]
        self._children(slot, alive, states, lane[inside], held[inside])

    def _children(self, slot: IntArray, alive: Bits, states: Bits, lane: IntArray, held: IntArray) -> None:
        """Divide what lanes leave, the cuts ``held``, among their children."""
        graph, cuts = self.graph, self.cuts
        lanes = np.flatnonzero(alive)
        at, begin = pieces(graph.children, slot[lanes])
        child, lane_of = graph.nodes[at], lanes[owners(begin)]
        each = 2 * (self.wiring.n_states + len(self.wiring.variable))
        afford("nodes", self.held + held.nbytes + each * len(child), self.memory)
        # The first child of a lane has all that the others have not; in a lane that vanishes there is no such child.
        rest = np.full(len(slot), -1)
        rest[lanes] = np.where((np.diff(begin) > 0) & ~graph.vanishes[slot[lanes]], begin[:-1], -1)
        label = rest[lane]
        others = np.flatnonzero(rest[lane_of] != np.arange(len(child)))
        some = np.flatnonzero((np.bincount(lane_of[others], minlength=len(slot)) > 0)[lane])
        if len(some):
            found = self._divided(child, lane_of, others, lane[some], held[some])
            label[some] = np.where(found >= 0, found, label[some])
        if (label[~graph.vanishes[slot[lane]]] < 0).any():
            raise Rejected("a state leaves tables that no child has")
        counts = np.bincount(label + 1, minlength=len(child) + 1)
        if not counts[1:].all():
            raise Rejected("a state leaves nothing of a child")
        now = held[np.argsort(label, kind="stable")]
        ends, again = np.cumsum(counts), []
        for k, c in enumerate(child.tolist()):
            if c in self.waiting:
                again.append(k)
            else:
                self.waiting[c] = now[ends[k] : ends[k + 1]].copy(), states[lane_of[k]].copy()
                self.held += self.waiting[c][0].nbytes + states.shape[1]
        stored, starts = self._cuts_of(child[again])
        if (np.diff(starts) != counts[1:][again]).any():
            raise Rejected("a node is led to with other tables left than before")
        # Shapes have the states of their variables. The same ones may come from other tables, in another order.
        shapes = cuts.shape[stored], cuts.shape[now[pieces(ends, np.array(again, np.int64))[0]]]
        owner = owners(starts)
        mixed = np.bincount(owner, shapes[0] != shapes[1], len(again))[owner] > 0
        before, after = (np.sort((owner * len(cuts.shape) + shape)[mixed]) for shape in shapes)
        if (before != after).any():
            raise Rejected("a node is led to with something else left than before")

    def _cuts_of(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """The cuts of nodes that wait, one after another, and where those of each begin."""
        lists = [self.waiting[n][0] for n in nodes.tolist()]
        return np.concatenate([np.zeros(0, np.int64), *lists]), starts_of([len(row) for row in lists])

    def _divided(
        self, child: IntArray, lane_of: IntArray, chosen: IntArray, lane: IntArray, held: IntArray
    ) -> IntArray:
        """Which of the chosen children has each cut; -1 for none. Those that were met before keep their variables."""
        graph, cuts = self.graph, self.cuts
        known = np.array([c in self.waiting for c in child[chosen].tolist()])
        met, fresh = chosen[known], chosen[~known]
        stored, starts = self._cuts_of(child[met])
        new, grown = self._connected(lane_of[fresh], graph.variable[child[fresh]], lane, held)
        who = np.concatenate([np.repeat(met[owners(starts)], cuts.variables.shape[1]), fresh[new]])
        variable = np.concatenate([cuts.variables[stored].ravel(), grown])
        labels = np.full((int(lane_of.max()) + 1, len(self.wiring.sizes)), -1)
        labels[lane_of[who], variable] = who
        found = labels[lane[:, None], cuts.variables[held]]
        if (labels[lane_of[who], variable] != who).any() or (found != found[:, :1]).any():
            raise Rejected(OVERLAP)
        return found[:, 0]

    def _connected(self, lanes: IntArray, seeds: IntArray, lane: IntArray, held: IntArray) -> tuple[IntArray, ...]:
        """All variables connected with some, each in a lane, by cuts in lanes: pairs (number of the seed, variable)."""
        wiring = self.wiring
        inside = np.zeros((len(seeds), len(wiring.sizes)), np.bool_)
        inside[np.arange(len(seeds)), seeds] = True
        depends = np.zeros((int(lane.max()) + 1, len(wiring.variable)), np.bool_)
        at = np.flatnonzero((np.bincount(lanes, minlength=len(depends)) > 0)[lane])
        if not len(at):
            return np.nonzero(inside)
        depends[lane[at, None], self.cuts.places[held[at]]] = True
        used = np.flatnonzero(depends.any(axis=0))
        words, joins = packed(inside), packed(depends[lanes[:, None], used])
        variable, by_variable = wiring.variable[used], np.argsort(wiring.variable[used], kind="stable")
        _, of_table, table = np.unique(wiring.table[used], return_index=True, return_inverse=True)
        some, of_variable = np.unique(variable[by_variable], return_index=True)
        while True:
            touched = np.bitwise_or.reduceat(words[variable] & joins, of_table, axis=0)
            reached = np.bitwise_or.reduceat((touched[table] & joins)[by_variable], of_variable, axis=0)
            if not (reached & ~words[some]).any():
                return np.nonzero(unpacked(words, len(seeds)))
            words[some] |= reached

    def up(self) -> tuple[float, float]:
        """The value of the first node, and its error: from the last level to the first."""
        graph = self.graph
        values, errors = np.zeros(len(graph.variable)), np.zeros(len(graph.variable))
        for first, end in reversed(list(pairwise(graph.levels.tolist()))):
            slots, begin = pieces(graph.slots, np.arange(first, end))
            most = int(np.diff(begin).max())
            places, starts = pieces(graph.children, slots)
            afford("a level", 32 * (2 * len(slots) + len(places) + (end - first) * most), self.memory)
            child, of = graph.nodes[places], owners(starts)
            terms = np.concatenate([self.offset[slots], values[child]])
            of_terms = np.concatenate([np.arange(len(slots)), of])
            sums, error = groups_added(of_terms, np.where(terms > -math.inf, terms, 0.0), len(slots))
            error += self.error[slots] + np.bincount(of, errors[child], len(slots))
            nothing = np.bincount(of_terms, terms == -math.inf) > 0
            if (graph.vanishes[slots] & ~nothing).any():
                raise Rejected("a state is said to have the value 0, and has not")
            sums[nothing], error[nothing] = -math.inf, 0.0
            owner = owners(begin)
            matrix = np.full((most, end - first), -math.inf)
            matrix[np.arange(len(slots)) - begin[owner], owner] = sums
            result = power_sum(Table(matrix), self.weight)
            values[first:end] = result.values
            errors[first:end] = np.maximum.reduceat(error, begin[:-1]) + result.up
        return float(values[0]), float(errors[0])


def conditioning(step: Step) -> tuple[float, float]:
    """Bounds on the value of a box: a tree, and the tables that it leaves by conditioning."""
    rest = read_remainder(step)
    written, up, down = as_written(step, rest)
    constants = [float(table.values) for scope, table in written if not scope]
    tables = [(scope, table) for scope, table in written if scope]
    error = 0.0
    if tables:
        wiring = Wiring(rest.sizes, tables, step.memory)
        walk = Conditioning(wiring, _read_graph(step, rest), rest.weight, step.memory)
        walk.down()
        value, error = walk.up()
        constants += [value, *walk.largest]
        # Nodes have shapes for tables. Where a table changes, the new shape is compared with the old one less what the
        # largest entry has changed: each is rounded once. A change takes a state from a variable that the table depends
        # on, and a shape knows these, so that there are no more changes than states to lose.
        error += 2.0 * float((wiring.sizes[wiring.variable] - 1).sum()) * walk.cuts.rounding
    low, high = outward(constants, up + error, down + error)
    if -math.inf in (high, rest.high):
        return -math.inf, -math.inf
    return math.nextafter(low + rest.low, -math.inf), math.nextafter(high + rest.high, math.inf)
