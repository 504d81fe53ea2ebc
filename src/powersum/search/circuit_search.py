"""Best first over max variables, bounded by a circuit of sums and maxima (docs/theory.md, "Circuits").

Conditioning sets all variables, max variables where its order has them, and logs a circuit. One pass up the circuit,
with some states of max variables taken out, bounds every assignment that is left: a maximum inside a sum is not below
one outside of it. With one state left for each max variable the pass gives the value of the assignment. One pass down
finds which states the bound takes, and where. A variable of which it takes one state everywhere need not be set.

Numbers are shares of what a node is worth with all states, so that they stay within the doubles.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.core.jit import compiled, inner
from powersum.core.progress import Progress
from powersum.core.speed import CIRCUIT_STEP
from powersum.exact.circuit import LEAST, Circuit
from powersum.exact.count_contexts import MaskArray

EQUAL = 1e-11
"""Bounds no further above the best value than this share of it are closed."""

LEAST_DIFFERENCE = 1e-9
"""A share of the bound below which other states of a variable do not count."""

NODE_BYTES = 400.0
"""Memory of a node that waits, with its way from the root."""

ONE = np.uint64(1)

Link = tuple["Link | None", int, int]
"""The way to a node: that to the node above, a variable, and its state."""


class Choices(NamedTuple):
    """A circuit without what is impossible: branches, those of a node after all branches of nodes below it."""

    is_max: BoolArray  # of each node
    nodes: IntArray  # of each branch
    shares: FloatArray  # of its node
    child_starts: IntArray
    children: IntArray
    literal_starts: IntArray
    variables: IntArray  # one of these states must be left, or the branch is 0
    masks: MaskArray

    @property
    def size(self) -> int:
        """What one pass looks at."""
        return len(self.nodes) + len(self.children) + len(self.variables)


def choices_of(circuit: Circuit, is_max: BoolArray, possible: MaskArray) -> Choices:
    """The circuit of a model that is possible, of whose max variables these states are."""
    rows, values = circuit.rows, circuit.values
    done = rows[:, 2] < 0
    n_nodes = int(rows[:, 0].max()) + 1
    worth = np.full(n_nodes, -np.inf)
    worth[rows[done, 0]] = values[done]
    worth[0] = values[-1]
    variable = np.zeros(n_nodes, dtype=np.int64)
    variable[rows[done, 0]] = rows[done, 1]
    nodes_max = is_max[variable]
    nodes_max[0] = False
    kept = ~done & (values > -np.inf) & (worth[rows[:, 0]] > -np.inf)
    nodes = rows[kept, 0].astype(np.int64)
    children = circuit.children[np.repeat(kept, rows[:, 3])].astype(np.int64)
    lengths = (rows[kept, 7] - rows[kept, 6]).astype(np.int64)
    begin = starts_of(lengths)
    places = np.arange(begin[-1]) + np.repeat(rows[kept, 6] - begin[:-1], lengths)
    says = circuit.masks[places] != possible[circuit.settled[places]]
    owner = np.repeat(np.arange(len(lengths)), lengths)[says]
    return Choices(
        is_max=nodes_max,
        nodes=nodes,
        shares=np.exp(values[kept] - worth[nodes]),
        child_starts=starts_of(rows[kept, 3].astype(np.int64)),
        children=children,
        literal_starts=starts_of(np.bincount(owner, minlength=len(lengths))),
        variables=circuit.settled[places[says]].astype(np.int64),
        masks=circuit.masks[places[says]],
    )


class Memory(NamedTuple):
    """What passes write, and leave for the next one to write over."""

    worth: FloatArray  # of each node, as a share of what it is with all states
    reach: FloatArray  # how often each node counts in the bound
    branch: FloatArray  # what each branch is worth
    masses: FloatArray  # how much of the bound takes each state
    differs: FloatArray  # how much of it takes some state of each variable
    chosen: MaskArray


class CircuitSearch:
    """The best assignment of the max variables, and a bound on all.

    Parameters
    ----------
    choices
        The circuit.
    log_root
        What it is worth with all states.
    log_error
        How far rounding can have moved that on the way to one configuration.
    is_max, cardinalities
        Which variables are maximised, and the states of all.
    possible
        The states that are left of each, as bits.
    memory
        Bytes for nodes that wait.
    records
        Keep the boxes that are closed, for a proof.

    Attributes
    ----------
    states
        The best assignment that it has found, -1 for sum variables; None before there is one.
    divided
        How many nodes were divided.
    """

    def __init__(
        self,
        choices: Choices,
        log_root: float,
        log_error: float,
        is_max: BoolArray,
        cardinalities: IntArray,
        possible: MaskArray,
        *,
        memory: float,
        records: bool = False,
    ) -> None:
        self._choices, self._log_root = choices, log_root
        # A pass rounds each node and each branch once: no more often than conditioning itself has.
        self.log_error = 2.0 * log_error
        self._max, self._possible = np.flatnonzero(is_max), possible
        self._starts = starts_of(cardinalities)
        n_nodes = len(choices.is_max)
        self._memory = Memory(
            np.zeros(n_nodes),
            np.zeros(n_nodes),
            np.zeros(len(choices.nodes)),
            np.zeros(int(self._starts[-1])),
            np.zeros(len(cardinalities)),
            possible.copy(),
        )
        self._most = int(memory / NODE_BYTES)
        self._ended: list[Link | None] | None = [] if records else None
        self._floor, self._best = 0.0, 0.0
        self._closed = 0.0
        self._waiting: list[tuple[float, int, Link | None]] = [(-1.0, 0, None)]
        self._count = 0
        self.states: IntArray | None = None
        self.divided = 0

    @property
    def log_upper(self) -> float:
        """The bound, without rounding."""
        highest = max(self._closed, -self._waiting[0][0] if self._waiting else 0.0)
        # What is too small for a double is not in the numbers, and altogether less than this.
        return self._log_root + math.log(highest + LEAST)

    @property
    def log_lower(self) -> float:
        """The value of its best assignment, without rounding."""
        return self._log_root + math.log(self._best) if self._best > 0.0 else -math.inf

    def offer(self, log_value: float) -> None:
        """A value that is known elsewhere: what is not above it need not be searched."""
        self._floor = max(self._floor, math.exp(min(log_value - self._log_root, 0.0)))

    @property
    def n_boxes(self) -> int:
        """How many boxes a proof has, where they are kept."""
        return len(self._waiting) + len(self._ended or ())

    def boxes(self) -> list[list[tuple[int, int]]]:
        """Boxes of all assignments together, closed and waiting ones: variables and their states, from the root."""
        found = []
        for link in [*(self._ended or ()), *(node[2] for node in self._waiting)]:
            rows, at = [], link
            while at is not None:
                at, v, s = at
                rows.append((v, s))
            found.append(rows[::-1])
        return found

    def run(self, deadline: float) -> Progress:
        """Search until the deadline: MORE, DONE, or OUT_OF_TIME where memory for nodes ends."""
        heap = self._waiting
        while heap and time.monotonic() < deadline:
            if len(heap) >= self._most:
                return Progress.OUT_OF_TIME
            bound, _, link = heapq.heappop(heap)
            # From the best node down, the better state first, until nothing better is left below.
            while True:
                if self._closes(-bound, link):
                    break
                parts = self._divide(-bound, link)
                if not parts:
                    break
                parts.sort(key=lambda part: part[0])
                for part in parts[1:]:
                    heapq.heappush(heap, part)
                bound, _, link = parts[0]
                if time.monotonic() >= deadline:
                    heapq.heappush(heap, parts[0])
                    break
        return Progress.MORE if heap else Progress.DONE

    def _closes(self, bound: float, link: Link | None) -> bool:
        """Close a node where nothing below its bound can be better than the best value."""
        if bound > self._floor * (1.0 + EQUAL) and bound > 0.0:
            return False
        self._close(bound, link)
        return True

    def _close(self, bound: float, link: Link | None) -> None:
        self._closed = max(self._closed, bound)
        if self._ended is not None:
            self._ended.append(link)

    def _divide(self, bound: float, link: Link | None) -> list[tuple[float, int, Link | None]]:
        """The parts of a node that may be better than the best, by the states of one variable."""
        self.divided += 1
        alive = self._possible.copy()
        at = link
        while at is not None:
            at, u, s = at
            alive[u] = ONE << np.uint64(s)
        v = int(weigh(self._choices, alive, self._max, self._starts, self._memory))
        self._try(self._memory.chosen)
        if self._closes(bound, link):
            return []
        if v < 0:
            # The bound takes one state everywhere but is above the value: by rounding, or where states are equal.
            left = self._max[(alive[self._max] & (alive[self._max] - ONE)) != 0]
            if not len(left):
                self._close(bound, link)
                return []
            v = int(left[0])
        mask = alive[v]
        parts: list[tuple[float, int, Link | None]] = []
        for s in range(int(self._starts[v + 1] - self._starts[v])):
            if not mask >> np.uint64(s) & ONE:
                self._close(0.0, (link, v, s))
                continue
            alive[v] = ONE << np.uint64(s)
            part = min(bound, self._value(alive))
            if not self._closes(part, (link, v, s)):
                self._count += 1
                parts.append((-part, self._count, (link, v, s)))
        return parts

    def _try(self, chosen: MaskArray) -> None:
        """The value of the assignment that has the states the bound has taken most."""
        value = self._value(chosen)
        if value > self._best:
            self._best, self._floor = value, max(self._floor, value)
            self.states = np.full(len(chosen), -1, dtype=np.int64)
            self.states[self._max] = [int(chosen[v]).bit_length() - 1 for v in self._max]

    def _value(self, alive: MaskArray) -> float:
        time.spend(CIRCUIT_STEP * self._choices.size)
        return float(value_up(self._choices, alive, self._memory))


@inner
def _up(c: Choices, alive: MaskArray, m: Memory) -> float:
    m.worth[:] = 0.0
    for b in range(c.nodes.size):
        share = c.shares[b]
        for i in range(c.literal_starts[b], c.literal_starts[b + 1]):
            if not alive[c.variables[i]] & c.masks[i]:
                share = 0.0
                break
        if share > 0.0:
            for i in range(c.child_starts[b], c.child_starts[b + 1]):
                share *= m.worth[c.children[i]]
        m.branch[b] = share
        node = c.nodes[b]
        m.worth[node] = max(m.worth[node], share) if c.is_max[node] else m.worth[node] + share
    return float(m.worth[0])


@compiled
def value_up(c: Choices, alive: MaskArray, m: Memory) -> float:
    """What the circuit is worth with these states, as a share of what it is with all."""
    return _up(c, alive, m)


@compiled
def weigh(c: Choices, alive: MaskArray, maxima: IntArray, starts: IntArray, m: Memory) -> int:
    """The variable of which the bound takes most different states, -1 if it takes one of each; and those taken most."""
    _up(c, alive, m)
    m.reach[:] = 0.0
    m.masses[:] = 0.0
    m.differs[:] = 0.0
    m.reach[0] = 1.0
    for b in range(c.nodes.size - 1, -1, -1):
        node = c.nodes[b]
        reach = m.reach[node]
        if reach <= 0.0 or m.branch[b] <= 0.0 or (c.is_max[node] and m.branch[b] < m.worth[node]):
            continue
        if c.is_max[node]:
            # One of equal branches is taken, and no other.
            m.reach[node] = 0.0
        else:
            reach *= m.branch[b] / m.worth[node]
        for i in range(c.child_starts[b], c.child_starts[b + 1]):
            m.reach[c.children[i]] += reach
        for i in range(c.literal_starts[b], c.literal_starts[b + 1]):
            v = c.variables[i]
            m.differs[v] += reach
            left = c.masks[i] & alive[v]
            for place in range(starts[v], starts[v + 1]):
                if left >> np.uint64(place - starts[v]) & ONE:
                    m.masses[place] += reach
    best, most = -1, LEAST_DIFFERENCE
    for v in maxima:
        largest, m.chosen[v] = -1.0, alive[v]
        n_left = 0
        for place in range(starts[v], starts[v + 1]):
            bit = ONE << np.uint64(place - starts[v])
            if alive[v] & bit:
                n_left += 1
                if m.masses[place] > largest:
                    largest, m.chosen[v] = m.masses[place], bit
        if n_left > 1 and m.differs[v] - largest > most:
            best, most = v, m.differs[v] - largest
    return best
