"""The sum that an assignment leaves, kept as messages of one elimination order: a few changes cost a few messages.

Where the sum variables stay connected once the max variables are given, every change of an assignment concerns all of
them, and summing them anew for each is nearly all the work. Here messages are kept: from below those of each bucket
and, as far as they are asked for, what lies *beyond* a bucket, a table over the variables of its message. What a
few max variables are worth together, all others given, then takes the buckets between their factors alone.
"""

from __future__ import annotations

import numpy as np

from powersum.assign.cutset import sum_part
from powersum.assign.sum_tree_kernels import part_below, reduce_part, reduce_upwards
from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, positions_of, starts_of
from powersum.core.speed import ELIMINATION, REGION
from powersum.core.work_time import spend
from powersum.exact.kernels import Domains, choice_type, new_scratch
from powersum.exact.wiring import EliminationWiring, message_sizes, wire
from powersum.model.factors import Factors, factors_of
from powersum.model.graph import incidence
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem

ORDERING = 0.1
"""Seconds for the elimination order, about."""

LEAST_ROOM = 2.0**16
"""Entries of working memory at least."""


class SumTree:
    """Values of one assignment after another, and of those that differ from it in a few max variables.

    Nothing is computed before :meth:`start`. Values leave out the problem's constant.

    Parameters
    ----------
    problem
        The simplified problem, of weights 0 and 1.
    seed
        Seed of the elimination order.

    Attributes
    ----------
    work
        Table entries of one evaluation from scratch.
    largest_work
        The same of the component that takes most.
    bytes
        Memory that is taken from :meth:`start` on.
    states
        The present assignment; -1 for sum variables.
    log_value
        Its value.
    """

    def __init__(self, problem: Problem, *, seed: int = 0) -> None:
        model = problem.model
        self._model = model
        self._is_max: BoolArray = problem.tau == 0.0
        n = model.n_variables
        sums = sum_part(model, ~self._is_max)
        order = elimination_order(sums, np.ones(n), seed=seed, time_limit=ORDERING)
        self._order: IntArray = order[~self._is_max[order]]
        plain = factors_of(model)
        self._strides = plain.strides
        position = positions_of(self._order, n)
        wired, self._factor_buckets = wire(self._order, position, np.arange(model.n_factors), plain)
        self._wiring = wiring = EliminationWiring(*wired)
        self._entries, self.work = message_sizes(wiring, model.cardinalities.copy(), 2.0**48)
        n_buckets = len(self._order)
        self._root_of = np.arange(n_buckets)
        for b in range(n_buckets - 1, -1, -1):
            if wiring.parents[b] >= 0:
                self._root_of[b] = self._root_of[wiring.parents[b]]
        sizes = self._entries * model.cardinalities[self._order].astype(np.float64)
        self.largest_work = float(np.bincount(self._root_of, sizes).max(initial=0.0))
        # Twice the largest table is what looking beyond a bucket may take; blocks have to do with what there is.
        self._room = max(LEAST_ROOM, self.work, 2.0 * float(sizes.max(initial=1.0)))
        self.bytes = 8.0 * (len(model.log_values) + 2.0 * float(self._entries.sum()) + self._room)
        self.states: IntArray = np.full(n, -1, dtype=np.int64)
        self.log_value = -np.inf
        self._ready = False

    def start(self, states: IntArray) -> None:
        """Go to an assignment: a state for each max variable; what else is given is ignored."""
        if not self._ready:
            self._lay_out()
        model = self._model
        self.states = np.where(self._is_max, states, -1)
        given = np.maximum(self.states, 0)[model.scope_variables] * self._strides
        owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
        offsets = np.bincount(owner, given, minlength=model.n_factors).astype(np.int64)
        self._bases[: model.n_factors] = model.table_starts[:-1] + offsets
        self._valid[:] = False
        self._compute(np.ones(len(self._order), dtype=np.bool_))

    def move(self, block: IntArray, states: IntArray) -> None:
        """Set some max variables to other states."""
        changed = block[states != self.states[block]]
        if not len(changed):
            return
        _, _, tops, _ = self._part(changed)
        touched = np.zeros(len(self._order), dtype=np.bool_)
        for v, state in zip(block.tolist(), states.tolist(), strict=True):
            at = slice(self._incident_starts[v], self._incident_starts[v + 1])
            factors = self._incident[at]
            if state != self.states[v]:
                buckets = self._factor_buckets[factors]
                touched[buckets[buckets >= 0]] = True
            self._bases[factors] += (state - self.states[v]) * self._incident_strides[at]
            self.states[v] = state
        # What lies beyond a bucket stays as it was where all changes are below it or in it.
        still = []
        for b in tops.tolist():
            while b >= 0:
                still.append(b)
                b = int(self._wiring.parents[b])
        kept = self._valid[still]
        self._valid[np.isin(self._root_of, self._root_of[tops])] = False
        self._valid[still] = kept
        self._compute(touched)

    def joint(self, block: IntArray, work_limit: float) -> FloatArray | None:
        """What each joint state of a block is worth, up to a constant; None where that takes more than the limit."""
        order, factors, tops, n_before = self._part(block)
        for top in tops.tolist():
            self._look_beyond(top)
        for sign in (-1, 1):
            # While they are free, variables of the block are read from their first state on.
            for v in block.tolist():
                at = slice(self._incident_starts[v], self._incident_starts[v + 1])
                self._bases[self._incident[at]] += sign * self.states[v] * self._incident_strides[at]
            if sign < 0:
                place = self._reduce(order, n_before, factors, work_limit)
        if place < 0:
            return None
        shape = self._model.cardinalities[block]
        return self._buffer[place : place + int(np.prod(shape))].reshape(shape).copy()

    def _part(self, block: IntArray) -> tuple[IntArray, IntArray, IntArray, int]:
        return part_below(
            block,
            self._root_of,
            self._wiring,
            self._factor_buckets,
            self._incident_starts,
            self._incident,
            self._model.n_factors,
            self._model.n_variables,
        )

    def _compute(self, touched: BoolArray) -> None:
        """Messages of the touched buckets and of those above them, and the value."""
        work = reduce_upwards(
            touched,
            self._wiring,
            self._weights,
            self._factors,
            self._bases,
            self._domains,
            self._pool,
            self._places,
            self._no_choices,
            self._none,
            self._scratch,
        )
        spend(ELIMINATION * work)
        roots = self._pool[self._places[self._wiring.parents < 0]]
        plain = self._pool[self._bases[: self._model.n_factors][self._factor_buckets < 0]]
        self.log_value = float(roots.sum() + plain.sum())

    def _look_beyond(self, b: int) -> None:
        """Compute what lies beyond a bucket and, for that, beyond those above it, as far as it is not known."""
        wiring, n_factors, n_buckets = self._wiring, self._model.n_factors, len(self._order)
        path = []
        while wiring.parents[b] >= 0 and not self._valid[b]:
            path.append(b)
            b = int(wiring.parents[b])
        for below in reversed(path):
            above = int(wiring.parents[below])
            axes = wiring.axes[wiring.axis_starts[above] : wiring.axis_starts[above + 1]]
            kept = wiring.axes[wiring.axis_starts[below] + 1 : wiring.axis_starts[below + 1]]
            gone = axes[~np.isin(axes, kept)]
            inputs = wiring.inputs[wiring.input_starts[above] : wiring.input_starts[above + 1]]
            others = -1 - inputs[(inputs < 0) & (inputs != -1 - below)]
            # The last is a zero that has all the axes, for some may be met in no other table.
            factors = [*inputs[inputs >= 0], *(n_factors + others), n_factors + 2 * n_buckets + below]
            if wiring.parents[above] >= 0:
                factors.append(n_factors + n_buckets + above)
            order = np.concatenate([gone, [self._model.n_variables], kept]).astype(np.int64)
            place = self._reduce(order, len(gone) + 1, np.asarray(factors, dtype=np.int64), np.inf)
            assert place >= 0
            size = int(self._entries[below])
            self._pool[self._beyond[below] : self._beyond[below] + size] = self._buffer[place : place + size]
            self._valid[below] = True

    def _reduce(self, order: IntArray, n_reduced: int, factors: IntArray, work_limit: float) -> int:
        place = reduce_part(
            order,
            n_reduced,
            factors,
            self._weights,
            self._factors,
            self._bases,
            self._domains,
            self._position,
            self._buffer,
            self._no_choices,
            self._scratch,
            work_limit,
            self._work,
        )
        spend(REGION * (len(order) + len(factors)) + (ELIMINATION * float(self._work[0]) if place >= 0 else 0.0))
        return int(place)

    def _lay_out(self) -> None:
        """Room for all messages, and the tables as kernels read them.

        Tables are those of the model, the messages, what lies beyond each bucket, and for each bucket a zero with the
        axes of its message. All have one variable more, of a single state: a bucket of its own joins what is left.
        """
        model, wiring = self._model, self._wiring
        n, n_factors, n_buckets = model.n_variables, model.n_factors, len(self._order)
        cards = np.append(model.cardinalities, 1)
        end = int(model.table_starts[-1])
        places = end + starts_of(np.tile(self._entries, 2))
        self._places, self._beyond = places[:n_buckets].copy(), places[n_buckets:-1].copy()
        self._pool = np.zeros(int(places[-1]) + 1)
        self._pool[:end] = model.log_values
        zeros = np.full(n_buckets, places[-1])
        self._bases = np.concatenate([model.table_starts[:-1], self._places, self._beyond, zeros])
        contexts = [
            wiring.axes[wiring.axis_starts[b] + 1 : wiring.axis_starts[b + 1]].tolist() for b in range(n_buckets)
        ]
        runs = [[int(np.prod(cards[axes[i + 1 :]])) for i in range(len(axes))] for axes in contexts]
        slices = [slice(*model.scope_starts[f : f + 2].tolist()) for f in range(n_factors)]
        flat = [[0] * len(axes) for axes in contexts]
        scopes = [[n, *axes] for axes in [model.scope_variables[at].tolist() for at in slices] + 3 * contexts]
        strides = [[0, *run] for run in [self._strides[at].tolist() for at in slices] + 2 * runs + flat]
        self._factors = Factors(
            frozen(starts_of([len(scope) for scope in scopes]), np.int64),
            frozen(np.array([v for scope in scopes for v in scope], dtype=np.int64), np.int64),
            frozen(np.array([s for run in strides for s in run], dtype=np.int64), np.int64),
            frozen(self._pool, np.float64),
        )
        self._weights = np.ones(n + 1)
        starts = starts_of(cards)
        self._domains = Domains(cards, starts, np.arange(starts[-1]) - np.repeat(starts[:-1], cards))
        self._position = np.full(n + 1, -1, dtype=np.int64)
        self._buffer = np.empty(int(self._room))
        self._scratch = new_scratch(int(cards.max()))
        self._no_choices = np.empty(0, dtype=choice_type(int(cards.max())))
        self._none = np.full(n_buckets, -1, dtype=np.int64)
        self._work = np.zeros(1)
        incident = incidence(n, model.scope_starts, model.scope_variables)
        self._incident_starts, self._incident = incident.starts, incident.factors
        self._incident_strides = self._strides[model.scope_starts[incident.factors] + incident.positions]
        self._valid = np.zeros(n_buckets, dtype=np.bool_)
        self._ready = True
