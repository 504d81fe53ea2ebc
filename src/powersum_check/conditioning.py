"""Conditioning with caching: set one variable after another, remove what is impossible, value what falls apart apart.

The certificate has a graph of *nodes* in levels. A node sets a variable; for each state of it, a *lane*, the
certificate lists which states of other variables then go, each with the table that shows it impossible; which tables
are *settled*, that is have one value for all that is left; and the nodes that have the rest. So the graph is a set of
configurations: those that follow, from the first node on, the lanes of their states without losing one. It is a
function on them: the product of what the tables settled on the way have there. The checker proves three things.

*Every configuration that is not 0 is in the set.* ``possible`` of a node are the states that are left in some lane that
leads to it. A state goes only if each tuple that is not 0 and has it, in the table named, has another one that went
before: so no configuration that is not 0 loses a state, and each is within what is possible at all its nodes.

*The function is the product of the tables.* In each lane the nodes have no table settled in common, nor with the lane
itself; all lanes of a node settle the same ones, together with what is below them; the first node settles all. So each
table is settled once on the way of each configuration, in a lane where it is not 0 for anything possible, and has one
value but for a spread that is counted as an error.

*The sum is right.* The variables of a node are those that lose states in one of its lanes, and those of the nodes below
it. Nodes of a lane have none in common, and whatever lane leads to a node leaves the same states of its variables. Then
the sum over what a lane leaves is a product. Values are *means*: power sums less τ log |states| for each variable. So a
variable on which nothing depends any more counts nothing, and one that loses states counts by the ratio of what it has
to what it had.

Nothing is compared but sets of states, as bits. Lanes whose value is 0 add nothing, whatever is in their nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected
from powersum_check.lanes import owners, packed, pieces, starts_of, unpacked
from powersum_check.limits import afford, spend
from powersum_check.numbers import FloatArray, IntArray, Table, groups_added, outward, power_sum
from powersum_check.remainder import Remainder, Tuples, read_remainder

NODES = 512
"""Nodes worked on at once, at most."""


@dataclass(frozen=True, slots=True)
class Lists:
    """A list for each lane, one after another."""

    starts: IntArray
    items: IntArray

    def of(self, lanes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """All items of some lanes, the lane of each (counted among these), and its place in the list, from 0."""
        at, begin = pieces(self.starts, lanes)
        owner = owners(begin)
        return self.items[at].astype(np.int64), owner, np.arange(len(at)) - begin[owner]


class Conditioning(Tuples):
    """The graph as the certificate has it, and what is found on the way down and up again."""

    def __init__(self, step: Step, rest: Remainder) -> None:
        super().__init__(step, rest)
        self.memory, self.weight, self.n_tables = step.memory, rest.weight, len(rest.tables)
        named = step.integers("branching", high=len(step.domains))
        if len(set(named.tolist()) - set(rest.variables)):
            raise Rejected("a node branches on a variable that is not left")
        self.variable = np.append(-1, np.searchsorted(rest.variables, named)).astype(np.int64)
        n_nodes = len(self.variable)
        # The first node has one lane, in which nothing is set.
        self.lanes = starts_of([1, *np.array(self.sizes, np.int64)[self.variable[1:]].tolist()])
        self.levels = step.starts("levels", n_nodes)
        self.gone = self._lists(step, "gone_counts", "gone", 0, len(self.named))
        self.settled = self._lists(step, "settled_counts", "settled", 0, self.n_tables)
        self.children = self._lists(step, "child_counts", "child_nodes", 1, n_nodes)
        level, leads = owners(self.levels), owners(self.lanes)[owners(self.children.starts)]
        if (level[leads] >= level[self.children.items]).any() or self.levels[1] != 1:
            raise Rejected("a node is not below the one that leads to it")
        # Tuples that are not 0, by their places.
        axis, tuple_ = np.nonzero((self.places >= 0) & (self.values > -math.inf))
        by_place = np.argsort(self.places[axis, tuple_], kind="stable")
        self.with_place = tuple_[by_place]
        self.place_starts = starts_of(np.bincount(self.places[axis, tuple_], minlength=len(self.state_of)))
        # Where the entries of a table but 0 are all the same, those that are 0 tell all about its range, and the first.
        table, first = owners(self.tuple_starts), self.tuple_starts[:-1]
        self.highest = np.maximum.reduceat(self.values, first)
        self.lowest = np.minimum.reduceat(np.where(self.values > -math.inf, self.values, math.inf), first)
        several = self.lowest < self.highest
        self.lowest[several], self.highest[several] = math.inf, -math.inf
        telling = several[table] | (self.values == -math.inf)
        telling[first] = True
        self.telling, self.telling_starts = np.flatnonzero(telling), starts_of(np.bincount(table, telling, len(first)))
        # Sets are rows of bits; of states there is one more, which is always there.
        all_states = packed(np.ones((1, len(self.owner) + 1), np.bool_))
        self.half, n_words = -(-len(self.sizes) // 32), -(-len(self.sizes) // 32) - (-self.n_tables // 32)
        afford("nodes", (8 * all_states.shape[1] + 4 * n_words) * n_nodes + 32 * int(self.lanes[-1]), self.memory)
        self.possible, self.missing = np.zeros((2, n_nodes, all_states.shape[1]), np.uint32)
        """States that are left in some lane that leads to a node, and those that some lane lacks."""
        self.possible[0] = all_states
        self.sets = np.zeros((n_nodes, n_words), np.uint32)
        """Variables of each node, and tables that are settled in it and below."""
        self.offset, self.error = np.full(self.lanes[-1], -math.inf), np.zeros(self.lanes[-1])
        """What each lane has beside its nodes."""
        logs = [power_sum(Table(np.zeros(max(k, 1))), self.weight) for k in range(max(self.sizes, default=1) + 1)]
        self.log, self.log_error = np.array([float(log.values) for log in logs]), max(log.up for log in logs)

    def _lists(self, step: Step, counts: str, items: str, low: int, high: int) -> Lists:
        """No list names anything twice, so none is longer than there are things to name."""
        found = step.integers(items, low=low, high=max(high, low))
        lists = Lists(starts_of(step.integers(counts, high=high + 1)), found.astype(np.min_scalar_type(high)))
        if len(lists.starts) != self.lanes[-1] + 1 or lists.starts[-1] != len(found):
            raise BadFile(f"{counts} and {items} do not fit together")
        return lists

    def _batches(self) -> Iterator[IntArray]:
        """Nodes of one level that memory allows to work on at once, one after others."""
        gone, settled, child = (np.diff(lists.starts) for lists in (self.gone, self.settled, self.children))
        tuples = np.diff(self.place_starts).max(initial=1) + max(self.sizes, default=1)
        # Bytes of a lane: states, variables and tables, tuples that are looked at, sets of nodes that it leads to.
        lane = 16 * (len(self.owner) + len(self.sizes) + self.n_tables) + 64 * gone * tuples
        lane += 64 * settled * np.diff(self.telling_starts).max(initial=1)
        lane += 24 * child * (self.possible.shape[1] + self.sets.shape[1])
        needed = starts_of(np.add.reduceat(lane, self.lanes[:-1]))
        afford("a node", int(np.diff(needed).max()), self.memory)
        for first, last in pairwise(self.levels.tolist()):
            while first < last:
                end = int(np.searchsorted(needed, needed[first] + self.memory // 4, side="right")) - 1
                end = min(max(end, first + 1), first + NODES, last)
                # Down and up: a lane has a few bytes of each kind of set, and each byte is looked at a few times.
                spend(100_000 + (needed[end] - needed[first]) / 4)
                yield np.arange(first, end)
                first = end

    def down(self, nodes: IntArray) -> None:
        """All lanes of some nodes: what each leaves."""
        lanes, begin = pieces(self.lanes, nodes)
        of = owners(begin)
        if not self.possible[nodes].any(axis=1).all():
            raise Rejected("a node is led to by nothing that is possible")
        before = unpacked(self.possible[nodes], len(self.owner) + 1)
        variable = self.variable[nodes]
        if nodes[0]:
            state = self.starts[variable[of]] + np.arange(len(lanes)) - begin[of]
            there = before[of, state]
            lanes, of, state = lanes[there], of[there], state[there]
        n = len(lanes)
        # When each state went: 0 is before the lane or by what it sets, then one after another; later is never.
        places, lane, when = self.gone.of(lanes)
        places, when = self.named[places], when + 1
        later = np.min_scalar_type(int(when.max(initial=0)) + 1).type(when.max(initial=0) + 1)
        before = before[of]
        gone = before * later
        if nodes[0]:
            others, row = pieces(self.starts, variable[of])
            gone[owners(row), others] = 0
            gone[np.arange(n), state] = later
        gone[lane, self.state_of[places]] = when
        self._refuse_unless_impossible(gone, places, lane, when)
        left = gone == later
        # Variables that lose states.
        loses = np.zeros((n, len(self.sizes)), np.bool_)
        loses[lane, self.owner[self.state_of[places]]] = True
        if nodes[0]:
            loses[np.arange(n), variable[of]] = True
        row, who = np.divmod(np.flatnonzero(loses), len(self.sizes))
        states, begin = pieces(self.starts, who)
        states += (row * left.shape[1])[owners(begin)]
        were, are = (np.add.reduceat(there.ravel()[states], begin[:-1], dtype=np.int64) for there in (before, left))
        alive = np.ones(n, np.bool_)
        alive[row[are == 0]] = False
        # Tables that are settled.
        table, at, _ = self.settled.of(lanes)
        table, at = table[alive[at]], at[alive[at]]
        low, high = self._range(left, table, at)
        if -math.inf in low:
            raise Rejected("a table is called settled where it can be 0")
        terms = [high, self.log[are], -self.log[were]]
        total, error = groups_added(np.concatenate([at, row, row]), np.concatenate(terms), n)
        error += np.bincount(at, high - low, n) + 2.0 * np.bincount(row, minlength=n) * self.log_error
        self.offset[lanes[alive]], self.error[lanes[alive]] = total[alive], error[alive]
        # What is left goes on to the nodes that have it.
        lives = np.flatnonzero(alive)
        child, at, _ = self.children.of(lanes[lives])
        rows = packed(left[lives])
        for target, where, sets in (
            (self.sets[:, : self.half], nodes[of[lives]], packed(loses[lives])),
            (self.possible, child, rows[at]),
            (self.missing, child, ~rows[at]),
        ):
            order = np.argsort(where, kind="stable")
            first = np.flatnonzero(np.diff(where[order], prepend=-1))
            if len(first):
                target[where[order[first]]] |= np.bitwise_or.reduceat(sets[order], first, axis=0)

    def _refuse_unless_impossible(self, gone: IntArray, places: IntArray, lane: IntArray, when: IntArray) -> None:
        """Each tuple with a state that goes must be 0, or have a state that went before."""
        at, begin = pieces(self.place_starts, places)
        which, tuple_ = owners(begin), self.with_place[at]
        first, flat = lane[which] * gone.shape[1], gone.ravel()
        # The last column is always there: that is the state -1 of short tuples.
        earliest = np.full(len(at), flat.max(initial=0))
        for states in self.states % gone.shape[1]:
            np.minimum(earliest, flat[first + states[tuple_]], out=earliest)
        if (earliest >= when[which]).any():
            raise Rejected("a state goes that is not shown to be impossible")

    def _range(self, left: IntArray, tables: IntArray, lane: IntArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest entry of tables over what is left in their lanes."""
        at, begin = pieces(self.telling_starts, tables)
        at, first, flat = self.telling[at], lane[owners(begin)] * left.shape[1], left.ravel()
        there = np.ones(len(at), np.bool_)
        for states in self.states % left.shape[1]:
            there &= flat[first + states[at]]
        values = self.values[at]
        low = np.minimum.reduceat(np.where(there, values, math.inf), begin[:-1])
        high = np.maximum.reduceat(np.where(there, values, -math.inf), begin[:-1])
        return np.minimum(low, self.lowest[tables]), np.maximum(high, self.highest[tables])

    def up(self, nodes: IntArray, values: FloatArray, errors: FloatArray) -> None:
        """The values of some nodes from those below, once more with what is to be proven about them."""
        lanes, begin = pieces(self.lanes, nodes)
        owner = owners(begin)
        child, at, _ = self.children.of(lanes)
        terms, of = np.append(self.offset[lanes], values[child]), np.append(np.arange(len(lanes)), at)
        sums, error = groups_added(of, np.where(terms > -math.inf, terms, 0.0), len(lanes))
        error += self.error[lanes] + np.bincount(at, errors[child], len(lanes))
        nothing = np.bincount(of, terms == -math.inf) > 0
        sums[nothing], error[nothing] = -math.inf, 0.0
        matrix = np.full((int(np.diff(begin).max()), len(nodes)), -math.inf)
        matrix[np.arange(len(lanes)) - begin[owner], owner] = sums
        result = power_sum(Table(matrix), self.weight)
        values[nodes] = result.values
        errors[nodes] = np.maximum.reduceat(error, begin[:-1]) + result.up
        # Variables and tables: of the nodes that a lane leads to, with the tables that it settles itself.
        tables, lane, _ = self.settled.of(lanes)
        own = np.zeros((len(lanes), self.n_tables), np.bool_)
        own[lane, tables] = True
        sets = np.pad(packed(own), ((0, 0), (self.half, 0)))
        total = sets.astype(np.uint64)
        if len(child):
            some = np.flatnonzero(np.bincount(at, minlength=len(lanes)))
            first = np.searchsorted(at, some)
            sets[some] |= np.bitwise_or.reduceat(self.sets[child], first, axis=0)
            total[some] += np.add.reduceat(self.sets[child], first, axis=0, dtype=np.uint64)
        # Words add up without a carry just where no bit is in two of them.
        if (total != sets).any() or own.sum() != len(tables):
            raise Rejected("a lane has a variable or a settled table in two of its nodes")
        sets[nothing] = 0
        joined = np.bitwise_or.reduceat(sets, begin[:-1], axis=0)
        if (sets != joined[owner])[~nothing, self.half :].any():
            raise Rejected("lanes of a node settle different tables")
        self.sets[nodes] |= joined
        differ = self.possible[nodes] & self.missing[nodes]
        apart = np.flatnonzero(differ.any(axis=1))
        own_states = unpacked(self.sets[nodes[apart], : self.half], len(self.sizes))[:, self.owner]
        if (unpacked(differ[apart], len(self.owner)) & own_states).any():
            raise Rejected("a node is led to with other states of its variables than before")

    def value(self) -> tuple[float, float]:
        """The value of the first node, and its error."""
        batches = list(self._batches())
        for nodes in batches:
            self.down(nodes)
        values, errors = np.zeros(len(self.variable)), np.zeros(len(self.variable))
        for nodes in reversed(batches):
            self.up(nodes, values, errors)
        settled = unpacked(self.sets[:1, self.half :], self.n_tables)
        if values[0] > -math.inf and not settled.all():
            raise Rejected("a table is not settled")
        return float(values[0]), float(errors[0])


def conditioning(step: Step) -> tuple[float, float]:
    """Bounds on the value of a box: a tree, and the tables that it leaves by conditioning."""
    rest = read_remainder(step)
    if any(table.values.max() == -math.inf for _, table in rest.tables):
        return -math.inf, -math.inf
    value, error = Conditioning(step, rest).value()
    up, down = (sum(getattr(table, side) for _, table in rest.tables) for side in ("up", "down"))
    low, high = outward([value], up + error, down + error)
    if -math.inf in (high, rest.high):
        return -math.inf, -math.inf
    return math.nextafter(low + rest.low, -math.inf), math.nextafter(high + rest.high, math.inf)
