"""Conditioning with caching: set one variable after another, remove what is impossible, value what falls apart apart.

The certificate has a graph of *nodes*. A node sets a variable; for each state of it, a *lane*, the certificate lists
which states of other variables then go, each with the table that shows it impossible; which tables are *settled*, that
is have one value for all that is left; and the nodes that have the rest. So the graph is a set of configurations: those
that follow, from the first node on, the lanes of their states without losing one. It is a function on them: the product
of what the tables settled on the way have there. The checker proves three things.

*Every configuration that is not 0 is in the set.* What is ``possible`` at a node is what is left in some lane that
leads to it. A state goes only if no tuple with it is left in the table named that is not 0. By induction a
configuration that is not 0 loses no state, and is within what is possible at all its nodes.

*The function is the product of the tables.* In each lane the nodes have no table settled in common, nor with the lane
itself; all lanes of a node settle the same ones, together with what is below them; the first node settles all. So each
table is settled once on the way of each configuration, in a lane where it is not 0 for anything possible, and has one
value but for a spread that is counted as an error.

*The sum is right.* The variables of a node are those that lose states in one of its lanes, and those of the nodes below
it. Nodes of a lane have none in common, and whatever lane leads to a node leaves the same states of its variables. Then
the sum over what a lane leaves is a product. Values are *means*: power sums less τ log |states| for each variable. So a
variable on which nothing depends any more counts nothing, and one that loses states counts by the ratio of what it has
to what it had.

Variables may have different weights. Then the value is an upper bound: to set a variable of a larger weight first is
to move its power sum outside those of smaller weights, and by Minkowski's inequality the value does not fall.

Sets of states, of variables and of tables are the bits of whole numbers. Lanes whose value is 0 add nothing, whatever
is in their nodes.
"""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import afford, spend
from powersum_check.numbers import U, outward, power_sum_of
from powersum_check.remainder import Remainder, read_remainder


class Graph:
    """The graph as the certificate has it. States that are left are bits of a number, from ``starts`` of each variable.

    Lists of lanes are flat: that of lane k begins at place k of ``gone_at``, ``settled_at``, ``nodes_at``.
    """

    def __init__(self, step: Step, rest: Remainder) -> None:
        self.rest = rest
        number = {v: k for k, v in enumerate(rest.variables)}
        # The first node has one lane, in which nothing is set.
        self.branching = [-1, *(number.get(v, -1) for v in step.integers("branching", high=len(step.domains)).tolist())]
        if -1 in self.branching[1:]:
            raise Rejected("a node branches on a variable that is not left")
        self.n_nodes = n = len(self.branching)
        self.first = [0, *accumulate(1 if v < 0 else rest.sizes[v] for v in self.branching)]
        """The first lane of each node."""
        self.gone_at, self.gone = self._lists(step, "gone_counts", "gone", 0, len(rest.places))
        self.settled_at, self.settled = self._lists(step, "settled_counts", "settled", 0, len(rest.tables))
        self.nodes_at, self.nodes = self._lists(step, "child_counts", "child_nodes", 1, n)
        self.starts = [0, *accumulate(rest.sizes)]
        self.of = [((1 << size) - 1) << start for size, start in zip(rest.sizes, self.starts, strict=False)]
        """All states of each variable."""
        self.of_table = [sum(self.of[v] for v in scope) for scope, _ in rest.tables]
        """All states of the variables of each table."""
        scopes = [scope for scope, _ in rest.tables]
        self.places = [(t, v := scopes[t][axis], self.starts[v] + s) for t, axis, s in rest.places]
        """Of each place the table, the variable, and the bit of the state."""
        # Bytes of the sets of a node, and of a range of a table; a quarter of what is there is for these.
        width = 500 + (4 * sum(rest.sizes) + len(rest.tables)) // 8
        afford("nodes", width * n + 200 * self.first[-1], step.memory // 2)
        self.most_ranges = step.memory // (4 * width)
        self.ranges: dict[tuple[int, int], tuple[float, float]] = {}
        every = sum(self.of)
        self.possible, self.common = [every, *[0] * (n - 1)], [every] * n
        """States that some lane that leads to a node leaves, and those that all of them leave."""
        self.offset, self.error = [-math.inf] * self.first[-1], [0.0] * self.first[-1]
        """What each lane has beside its nodes, -inf if the lane is 0; and the error of that."""
        self.variables, self.tables = [0] * n, [0] * n
        """Of each node all states of its variables, and the tables that are settled in it or below."""
        self.values, self.errors = [-math.inf] * n, [0.0] * n
        numbers = range(max(rest.sizes, default=1) + 1)
        logs = {w: [power_sum_of([0.0] * max(k, 1), w) for k in numbers] for w in {0.0, *rest.weights}}
        self.log = [[log for log, _ in logs[w]] for w in rest.weights]
        """Of each variable its weight times the log of each number of states."""
        self.log_error = max(error for row in logs.values() for _, error in row)

    def _lists(self, step: Step, name: str, items: str, low: int, high: int) -> tuple[list[int], list[int]]:
        """Where the list of each lane begins, and all items. No list names anything twice."""
        counts, found = step.integers(name, high=high + 1).tolist(), step.integers(items, low=low, high=max(high, low))
        if len(counts) != self.first[-1] or sum(counts) != len(found):
            raise BadFile(f"{name} and {items} do not fit together")
        return [0, *accumulate(counts)], found.tolist()

    def range(self, t: int, left: int) -> tuple[float, float]:
        """The least and the largest entry of a table over states that are left; as if it were 0 where none is."""
        key = t, left & self.of_table[t]
        found = self.ranges.get(key)
        if found is None:
            scope, table = self.rest.tables[t]
            spend(5000 + 2 * table.values.size)
            chosen = [[s for s in range(self.rest.sizes[v]) if left >> self.starts[v] + s & 1] for v in scope]
            values = table.values[np.ix_(*chosen)]
            found = float(values.min(initial=math.inf)), float(values.max(initial=-math.inf))
            if len(self.ranges) >= self.most_ranges:
                self.ranges.clear()
            self.ranges[key] = found
        return found

    def down(self, node: int) -> None:
        """What the lanes of a node leave."""
        v, first, before, of = self.branching[node], self.first[node], self.possible[node], self.of
        spend(3000)
        for lane in range(first, self.first[node + 1]):
            gone = self.gone[self.gone_at[lane] : self.gone_at[lane + 1]]
            settled = self.settled[self.settled_at[lane] : self.settled_at[lane + 1]]
            spend(2000 + 200 * (len(gone) + len(settled)))
            left, loses = before, set[int]()
            if v >= 0:
                left &= ~of[v] | 1 << self.starts[v] + lane - first
                loses.add(v)
            for place in gone:
                t, u, at = self.places[place]
                loses.add(u)
                if left & (bit := 1 << at):
                    if self.range(t, left & ~of[u] | bit)[1] > -math.inf:
                        raise Rejected("a state goes that is not shown to be impossible")
                    left ^= bit
            if not all(left & of[u] for u in loses):
                # No configuration that is not 0 follows this lane.
                continue
            terms = list[float]()
            for u in loses:
                self.variables[node] |= of[u]
                terms += self.log[u][(left & of[u]).bit_count()], -self.log[u][(before & of[u]).bit_count()]
            for t in settled:
                low, high = self.range(t, left)
                if low == -math.inf:
                    raise Rejected("a table is called settled where it can be 0")
                terms.append(high)
                self.error[lane] += high - low
            self.offset[lane] = math.fsum(terms)
            self.error[lane] += 2.0 * len(loses) * self.log_error + 2.0 * U * abs(self.offset[lane])
            for below in self.nodes[self.nodes_at[lane] : self.nodes_at[lane + 1]]:
                if below <= node:
                    raise Rejected("a node is not below the one that leads to it")
                self.possible[below] |= left
                self.common[below] &= left

    def up(self, node: int) -> None:
        """The value of a node from those below it; and that nothing counts twice or is missing."""
        lanes, error, settled_by = [-math.inf], 0.0, set[int]()
        for lane in range(self.first[node], self.first[node + 1]):
            if self.offset[lane] == -math.inf:
                continue
            tables = variables = 0
            settled = self.settled[self.settled_at[lane] : self.settled_at[lane + 1]]
            nodes = self.nodes[self.nodes_at[lane] : self.nodes_at[lane + 1]]
            terms, errors = [self.offset[lane]], self.error[lane]
            for t in settled:
                if tables >> t & 1:
                    raise Rejected("a lane has a settled table twice, or in two of its nodes")
                tables |= 1 << t
            for below in nodes:
                if variables & self.variables[below] or tables & self.tables[below]:
                    raise Rejected("a lane has a variable or a settled table in two of its nodes")
                variables |= self.variables[below]
                tables |= self.tables[below]
                terms.append(self.values[below])
                errors += self.errors[below]
            if -math.inf in terms:
                continue
            lanes.append(math.fsum(terms))
            error = max(error, errors + 2.0 * U * abs(lanes[-1]))
            self.variables[node] |= variables
            settled_by.add(tables)
        if len(settled_by) > 1:
            raise Rejected("lanes of a node settle different tables")
        self.tables[node] = max(settled_by, default=0)
        self.values[node], local = power_sum_of(lanes, self.rest.weights[self.branching[node]] if node else 0.0)
        self.errors[node] = error + local
        if self.variables[node] & self.possible[node] & ~self.common[node]:
            raise Rejected("a node is led to with other states of its variables than before")

    def value(self) -> tuple[float, float]:
        """The value of the first node, and its error."""
        for node in range(self.n_nodes):
            self.down(node)
        for node in reversed(range(self.n_nodes)):
            self.up(node)
        if self.values[0] > -math.inf and self.tables[0] != (1 << len(self.rest.tables)) - 1:
            raise Rejected("a table is not settled")
        return self.values[0], self.errors[0]


def conditioning(step: Step) -> tuple[float, float]:
    """Bounds on the value of a box: a tree, and the tables that it leaves by conditioning."""
    rest = read_remainder(step)
    if any(table.values.max() == -math.inf for _, table in rest.tables):
        return -math.inf, -math.inf
    value, error = Graph(step, rest).value()
    up, down = (sum(getattr(table, side) for _, table in rest.tables) for side in ("up", "down"))
    low, high = outward([value], up + error, down + error)
    if -math.inf in (high, rest.high):
        return -math.inf, -math.inf
    if len(set(rest.weights)) > 1:
        low = -math.inf
    return math.nextafter(low + rest.low, -math.inf), math.nextafter(high + rest.high, math.inf)
