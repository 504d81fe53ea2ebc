"""All distributions of a model by elimination and the way back, within a given memory.

The way back needs the messages of the way up. Where they do not fit into memory together, the buckets are divided into
stretches. Only messages that leave a stretch are kept; those inside it are computed once more when the way back comes
to it. Buckets stand in a postorder of their tree, so that few messages leave a stretch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.core.speed import ELIMINATION, FRESH_MEMORY, WAY_BACK
from powersum.core.work_time import spend
from powersum.exact.distributions import spread_some
from powersum.exact.elimination import SLICE_ENTRIES, Elimination, Exact, full_domains
from powersum.exact.kernels import Buckets, choice_type, new_scratch, reduce_some
from powersum.exact.wiring import EliminationWiring, first_fit
from powersum.model.model import Model
from powersum.model.rounding import UNIT

SHORTER, TRIES = 0.7, 16
"""Layouts that are tried, each with shorter stretches by this factor."""


class Stretches(NamedTuple):
    """Where all arrays of both ways lie in one buffer.

    ``starts`` has the first bucket of each stretch, from the last stretch to the first. ``kept`` says which messages
    are computed once. ``up`` has the places of messages on the way up, ``down`` and ``above`` those of messages and of
    what lies above buckets on the way back. ``needed`` is the length of the buffer, and ``again`` the table entries of
    messages that are computed twice.
    """

    starts: IntArray
    kept: BoolArray
    up: IntArray
    down: IntArray
    above: IntArray
    needed: int
    again: float


class WayDown:
    """The distribution of every variable of a model, all of which are summed over.

    Parameters
    ----------
    model
        The model.
    order
        All variables, first eliminated first.
    memory
        Bytes that both ways may take. With less memory, more messages are computed twice.

    Attributes
    ----------
    up
        The way up, along an equivalent order.
    work
        Table entries on the way up, and as many on the way back.
    again
        Table entries of the messages that are computed twice.
    bytes
        Memory that it takes: more than ``memory`` where both ways do not fit into it.
    log_error
        What sums on the way back add to relative errors of rounding.
    """

    def __init__(self, model: Model, order: IntArray, memory: float = math.inf) -> None:
        self.up = Elimination(model, order, np.ones(model.n_variables))
        self.work, self.again, self.bytes, self.log_error = self.up.work, 0.0, math.inf, 0.0
        if self.work < math.inf:
            self.up = Elimination(
                model, order[post_order(self.up.wiring.parents, self.up.entries)], np.ones(model.n_variables)
            )
            entries, cardinalities = self.up.entries, model.cardinalities.copy()
            self._stretches = self._fitting(memory)
            self.bytes = 8.0 * self._stretches.needed
            self.again = self._stretches.again
            self.log_error = UNIT * (_longest_sums(self.up.wiring, entries, cardinalities) + 8.0 * model.n_variables)

    @property
    def seconds(self) -> float:
        """What it takes, as a rule."""
        return ELIMINATION * (self.work + self.again) + WAY_BACK * self.work

    def run(self) -> tuple[Exact, FloatArray]:
        """Both ways at once."""
        return next(found for found in self.slices(math.inf) if found is not None)

    def slices(self, entries: float = SLICE_ENTRIES) -> Iterator[tuple[Exact, FloatArray] | None]:
        """None while it is under way, then the sum and all distributions one after another.

        Distributions are zeros where nothing is possible.
        """
        elimination, model = self.up, self.up.model
        stretches, n = self._stretches, len(elimination.entries)
        largest = int(model.cardinalities.max(initial=1))
        buckets = Buckets(
            elimination.wiring,
            full_domains(model),
            model.table_starts[:-1].copy(),
            model.log_values,
            new_scratch(largest),
        )
        buffer = np.empty(max(stretches.needed, 1))
        none, no_choices = np.zeros(0, dtype=np.int64), np.empty(0, dtype=choice_type(largest))
        reached = np.zeros(2, dtype=np.int64)
        value = elimination.log_constant
        beliefs = np.zeros(int(model.cardinalities.sum()))

        def reduce(places: IntArray) -> Iterator[float]:
            """Values of the buckets from ``reached`` on to the last one that has a place."""
            while reached[0] < len(places):
                yield reduce_some(elimination.tau, buckets, buffer, places, no_choices, none, reached, entries)
                spend(ELIMINATION * min(entries, self.work))

        for part in reduce(stretches.up):
            value += part
            yield None
        end = n
        for first in stretches.starts.tolist() if value > -math.inf else []:
            for begin, stop in _runs(stretches.kept[first:end]):
                reached[:] = first + begin, 0
                for _ in reduce(stretches.down[: first + stop]):
                    yield None
            reached[:] = end - 1, 0
            while reached[0] >= first:
                spread_some(buckets, buffer, stretches.down, buffer, stretches.above, beliefs, reached, first, entries)
                spend(WAY_BACK * min(entries, self.work))
                yield None
            end = first
        yield Exact(value, np.full(model.n_variables, -1, dtype=np.int64)), beliefs

    def _fitting(self, memory: float) -> Stretches:
        """The quickest stretches of those that fit into the memory; where none do, those that take least of it."""
        size = float(self.up.entries.sum(dtype=np.float64))
        cardinalities = self.up.model.cardinalities.copy()
        found = []
        for _ in range(TRIES):
            found.append(Stretches(*_lay_out(self.up.wiring, self.up.entries, cardinalities, size)))
            size *= SHORTER
        fitting = [one for one in found if 8.0 * one.needed <= memory]
        if not fitting:
            return min(found, key=lambda one: one.needed)
        return min(fitting, key=lambda one: ELIMINATION * one.again + FRESH_MEMORY * one.needed)


def _runs(kept: BoolArray) -> list[tuple[int, int]]:
    """Where runs of buckets begin and end whose messages are not kept."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], kept, [True]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


@compiled
def post_order(parents: IntArray, entries: IntArray) -> IntArray:
    """An order of buckets, children first and subtrees whole, in which messages of the way up need little memory.

    Of several children, the subtree that needs most beyond its own message comes first (Liu 1986).
    """
    n = len(parents)
    sizes = np.ones(n, np.int64)
    peaks = np.zeros(n, np.float64)
    child_starts = np.zeros(n + 2, np.int64)
    for b in range(n):
        # Roots are the children of a bucket that is not there.
        child_starts[(parents[b] if parents[b] >= 0 else n) + 1] += 1
    for b in range(n + 1):
        child_starts[b + 1] += child_starts[b]
    children = np.empty(n, np.int64)
    filled = child_starts[:-1].copy()
    for b in range(n + 1):
        begin, end = child_starts[b], filled[b]
        held, peak = 0.0, 0.0
        for i in range(begin, end):
            c = children[i]
            peak = max(peak, held + peaks[c])
            held += entries[c]
        if b == n:
            break
        peaks[b] = max(peak, held + entries[b])
        for i in range(begin, end):
            sizes[b] += sizes[children[i]]
        # Into the sorted list of its parent's children.
        above = parents[b] if parents[b] >= 0 else n
        at = filled[above]
        while at > child_starts[above] and peaks[children[at - 1]] - entries[children[at - 1]] < peaks[b] - entries[b]:
            children[at] = children[at - 1]
            at -= 1
        children[at] = b
        filled[above] += 1
    order = np.empty(n, np.int64)
    begins = np.zeros(n + 1, np.int64)
    for b in range(n, -1, -1):
        at = begins[b]
        for i in range(child_starts[b], child_starts[b + 1]):
            begins[children[i]] = at
            at += sizes[children[i]]
        if b < n:
            order[at] = b
    return order


@compiled
def _lay_out(
    wiring: EliminationWiring, entries: IntArray, cardinalities: IntArray, size: float
) -> tuple[IntArray, BoolArray, IntArray, IntArray, IntArray, int, float]:
    """The parts of :class:`Stretches` whose messages have at most ``size`` entries, or are a single one."""
    n = len(entries)
    # What leaves all buckets before each one, if a stretch begins there.
    leaves = np.zeros(n + 1, np.float64)
    for b in range(n):
        leaves[b + 1] += leaves[b] + (entries[b] if wiring.parents[b] >= 0 else 0)
        for k in range(wiring.input_starts[b], wiring.input_starts[b + 1]):
            if wiring.inputs[k] < 0:
                leaves[b + 1] -= entries[-1 - wiring.inputs[k]]
    first_of = np.zeros(n, np.int64)
    starts = np.empty(n, np.int64)
    count = 0
    end = n
    while end > 0:
        # A stretch begins where least leaves what is before it.
        within = float(entries[end - 1])
        first = b = end - 1
        while b > 0 and within + entries[b - 1] <= size:
            b -= 1
            within += entries[b]
            if 2.0 * within < size or leaves[b] <= leaves[first]:
                first = b
        first_of[first:end] = first
        starts[count] = first
        count += 1
        end = first
    starts = starts[:count].copy()
    kept = np.empty(n, np.bool_)
    again = 0.0
    for b in range(n):
        parent = wiring.parents[b]
        kept[b] = b >= starts[0] or parent < 0 or first_of[parent] != first_of[b]
        if not kept[b]:
            again += float(entries[b]) * cardinalities[wiring.axes[wiring.axis_starts[b]]]
    # Arrays: messages of the way up, those computed again, and what lies above each bucket.
    events = np.empty(6 * n, np.int64)
    filled = 0
    for b in range(n):
        events[filled] = b
        filled += 1
        for k in range(wiring.input_starts[b], wiring.input_starts[b + 1]):
            c = -1 - wiring.inputs[k]
            if c >= 0 and not kept[c]:
                events[filled] = -1 - c
                filled += 1
    stop = n
    for i in range(count):
        for b in range(starts[i], stop):
            if not kept[b]:
                events[filled] = n + b
                filled += 1
        for b in range(stop - 1, starts[i] - 1, -1):
            if wiring.parents[b] < 0:
                events[filled] = 2 * n + b
                filled += 1
            for k in range(wiring.input_starts[b], wiring.input_starts[b + 1]):
                if wiring.inputs[k] < 0:
                    events[filled] = 2 * n - 1 - wiring.inputs[k]
                    filled += 1
            events[filled] = -1 - (b if kept[b] else n + b)
            events[filled + 1] = -1 - (2 * n + b)
            filled += 2
        stop = starts[i]
    every = np.concatenate((entries, entries, entries))
    places, needed = first_fit(events[:filled], every)
    down = np.where(kept, places[:n], places[n : 2 * n])
    return starts, kept, places[:n].copy(), down, places[2 * n :].copy(), needed, again


@compiled
def _longest_sums(wiring: EliminationWiring, entries: IntArray, cardinalities: IntArray) -> float:
    """The most terms that come together, one sum after another, in a number on the way back."""
    n = len(entries)
    terms = np.zeros(n)
    most = 0.0
    for b in range(n - 1, -1, -1):
        parent = wiring.parents[b]
        if parent >= 0:
            table = float(entries[parent]) * cardinalities[wiring.axes[wiring.axis_starts[parent]]]
            terms[b] = terms[parent] + table / max(entries[b], 1)
        most = max(most, terms[b] + entries[b])
    return most
