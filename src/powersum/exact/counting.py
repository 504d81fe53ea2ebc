"""Exact values by conditioning with caching, for models whose zeros and equal entries make dense tables a waste.

``count_kernels`` is the compiled part. Two rules for the variable to set next are tried, and the one that comes further
goes on; both share what is remembered.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.core.progress import Progress
from powersum.exact.circuit import Circuit
from powersum.exact.count_contexts import N_LISTED, N_MARKS, N_ROWS, N_SETTLED, NODES, CountModel, CountState, MaskArray
from powersum.exact.count_kernels import (
    BY_NUMBER,
    BY_RANK,
    DONE,
    FULL,
    LAST_MARK,
    N_COLUMNS,
    begin_count,
    best_states,
    count_some,
    explored,
    restart_count,
)
from powersum.exact.count_parts import BLOCK
from powersum.model.model import Model
from powersum.model.query import weight_ranks
from powersum.model.rounding import EXPONENTIAL, UNIT, magnitudes

MOST_STATES, MOST_AXES = 63, 63
"""States of a variable, and variables of a factor, are bits of a word."""

MOST_VARIABLES = 20_000
"""Larger models would spend all the time on lists of what is connected."""

LEAST_ZEROS = 0.02
"""Share of entries that are 0 below which dense tables are no waste."""

LEAST_BYTES = 4e6
MOST_BYTES = 8e9
"""Memory for less than the first is not worth a try; more than the second is beyond numbers of 32 bits."""

MOST_DIRECT = 14
"""Bits of all masks of a factor up to which its contexts are found by them, without a hash."""

SLICE = 500
"""Nodes between two looks at the clock: about a hundredth of a second."""

LOGGED = 1 << 16
"""Rows of the first log."""

TRIALS = (4_000, 16_000)
"""Nodes of each rule, one after the other, before the better one goes on alone."""


def worth_counting(model: Model) -> bool:
    """Whether a model is of the kind that conditioning is for."""
    if not 0 < model.n_variables <= MOST_VARIABLES or not model.log_values.size:
        return False
    if model.cardinalities.max() > MOST_STATES or np.diff(model.scope_starts).max() > MOST_AXES:
        return False
    return float(np.mean(model.log_values == -np.inf)) >= LEAST_ZEROS


class Counting:
    """The value of a model under sums and maxima, found by setting one variable after the other.

    Parameters
    ----------
    model
        A model that is :func:`worth_counting`.
    tau
        Weight of each variable, 0 or 1.
    order
        Elimination order: by one of the rules the variable that it has last is set first.
    memory
        Bytes that it may take.
    given
        States of variables that are set from the beginning, -1 for all others.
    rank
        The number of each variable's block, 0 is summed or maximised first; None where maxima are outside of all sums.
        With one block for all, ``order`` alone says which sums and maxima are outside of which.
    log
        Write down what a certificate needs; see :mod:`powersum.proof.conditioning`.
    circuit
        Write down what a way down needs, or where there are maxima a search over them; see
        :mod:`powersum.exact.circuit`. It takes half of the memory at most.

    Attributes
    ----------
    log_value
        The value, once it is there.
    log_error
        How far rounding can have moved it.
    """

    def __init__(
        self,
        model: Model,
        tau: FloatArray,
        order: IntArray,
        *,
        memory: float,
        given: IntArray | None = None,
        rank: IntArray | None = None,
        log: bool = False,
        circuit: bool = False,
    ) -> None:
        self._most_logged = 0.5 * memory if circuit else math.inf
        memory = min(0.5 * memory if circuit else memory, MOST_BYTES)
        self._model, direct = _count_model(model, tau, order, given, rank, direct=0.02 * memory / 4.0)
        self._state = _new_state(model, memory, given, direct=direct, log=log, circuit=circuit)
        self._log, self._circuit = log, circuit
        self._begun = False
        trials = [(rule, nodes) for nodes in TRIALS for rule in (BY_RANK, BY_NUMBER)]
        self._rule, self._ends = trials[0]
        # Values by two orders of sums and maxima are not one value.
        mixed = 0 < np.count_nonzero(tau) < len(tau) and not self._model.level.any()
        self._rules = [] if mixed else trials[1:]
        self._reached = {BY_RANK: 0.0, BY_NUMBER: 0.0}
        self.log_value = math.nan
        self.log_error = counting_error(model)

    @property
    def nodes(self) -> int:
        """Variables set so far."""
        return int(self._state.counters[NODES])

    @property
    def explored(self) -> float:
        """A guess at the share of the work that is done; 0 as long as the rules are on trial."""
        return 0.0 if self._rules else float(explored(self._model, self._state))

    @property
    def possible(self) -> MaskArray:
        """The states of each variable that zeros leave at the beginning, as bits."""
        return self._state.base_masks

    @property
    def on_trial(self) -> bool:
        """True until the rule is chosen."""
        return bool(self._rules)

    def step(self) -> Progress:
        """Go on for a hundredth of a second: MORE, DONE, or OUT_OF_TIME where the memory is not enough."""
        if not self._begun:
            self._begun = True
            result, _ = begin_count(self._model, self._state)
            if self._log:
                self._log_beginning(nothing=result == 0)
            if result < 0:
                return Progress.OUT_OF_TIME
            if result == 0:
                self.log_value = -math.inf
                return Progress.DONE
        if (self._log or self._circuit) and not self._make_room():
            return Progress.OUT_OF_TIME
        if self._rules and self.nodes >= self._ends:
            self._next_rule()
        ended, value = count_some(self._model, self._state, self._rule, SLICE)
        if ended == FULL:
            return Progress.OUT_OF_TIME
        if ended != DONE:
            return Progress.MORE
        self.log_value = float(value)
        return Progress.DONE

    def states(self) -> IntArray | None:
        """States of outermost max variables in a best configuration, -1 for all others; None if forgotten."""
        states = np.full(len(self._model.cardinalities), -1, dtype=np.int64)
        found = best_states(self._model, self._state, states)
        return states if found else None

    @property
    def log(self) -> tuple[IntArray, IntArray, IntArray]:
        """What was written down: rows, the nodes of components, and marks.

        A row is a node, its variable, a state (-1: all are through), the number of components that this leaves, and
        where its marks begin and end. A mark is a place at which a state went, or -1 less a factor now constant.
        """
        state = self._state
        rows, listed, marks = (int(state.counters[k]) for k in (N_ROWS, N_LISTED, N_MARKS))
        return (
            state.log_rows[:rows, :6].astype(np.int64),
            state.log_nodes[:listed].astype(np.int64),
            state.log_marks[:marks].astype(np.int64),
        )

    def _log_beginning(self, *, nothing: bool) -> None:
        """The marks of the frame below all others; where nothing is possible, it is through with them."""
        state = self._state
        state.frames[0, LAST_MARK] = marks = state.counters[N_MARKS]
        if nothing:
            state.log_rows[0, :6] = 0, 0, 0, 0, 0, marks
            state.log_values[:1] = -math.inf
            state.counters[N_ROWS] = 1

    @property
    def circuit(self) -> Circuit:
        """What a way down needs, once the value is there."""
        state = self._state
        rows, listed, settled = (int(state.counters[k]) for k in (N_ROWS, N_LISTED, N_SETTLED))
        return Circuit(
            state.log_rows[:rows],
            state.log_values[:rows],
            state.log_nodes[:listed],
            state.log_settled[:settled],
            state.log_masks[:settled],
        )

    def _make_room(self) -> bool:
        """Longer lists where they are nearly full; False where there is no memory for them."""
        state = self._state
        if 2 * state.counters[N_ROWS] >= len(state.log_rows):
            state = state._replace(
                log_rows=_doubled(state.log_rows),
                log_values=_doubled(state.log_values),
            )
        if 2 * (state.counters[N_LISTED] + len(state.masks)) >= len(state.log_nodes):
            more = np.zeros(len(state.log_nodes) + 2 * len(state.masks), dtype=np.int32)
            state = state._replace(log_nodes=np.concatenate([state.log_nodes, more]))
        if self._log and 2 * state.counters[N_MARKS] >= len(state.log_marks):
            state = state._replace(log_marks=_doubled(state.log_marks))
        if self._circuit and 2 * state.counters[N_SETTLED] >= len(state.log_settled):
            state = state._replace(log_settled=_doubled(state.log_settled), log_masks=_doubled(state.log_masks))
        self._state = state
        # Lists are up to twice as long as what is in them, and there once more while they grow.
        return 3.0 * sum(log.nbytes for log in self.circuit) <= self._most_logged

    def _next_rule(self) -> None:
        """The other rule on trial, or the better one for good."""
        self._reached[self._rule] = float(explored(self._model, self._state))
        self._rule, nodes = self._rules.pop(0)
        if not self._rules:
            self._rule = max(self._reached, key=self._reached.__getitem__)
        self._ends = self.nodes + nodes
        restart_count(self._model, self._state)


def counting_error(model: Model) -> float:
    """Rounding of a value found by conditioning; see :mod:`powersum.model.rounding` for why errors add up.

    On the way from the whole to one configuration the largest entry of a factor changes at most once for each state
    that its variables lose, and not at all where all entries but zeros are equal. Each change is a difference and an
    addition, and the table less its largest entry is rounded anew, which moves what is remembered by as much again.
    Each variable is set, or counted as free, once: a sum of its states and one addition. No intermediate value is
    larger than four times all tables and all domains.
    """
    largest = float(magnitudes(model.log_values, model.table_starts[:-1]).sum()) if model.n_factors else 0.0
    largest = 4.0 * largest + float(np.log(model.cardinalities).sum())
    values, starts = model.log_values, model.table_starts[:-1]
    varies = np.zeros(0, dtype=np.bool_)
    if model.n_factors:
        least = np.minimum.reduceat(np.where(values > -np.inf, values, np.inf), starts)
        varies = least < np.maximum.reduceat(values, starts)
    owner_varies = np.repeat(varies, np.diff(model.scope_starts))
    changes = float((model.cardinalities[model.scope_variables] - 1)[owner_varies].sum())
    additions = 8.0 * changes + 8.0 * model.n_variables + 2.0 * model.n_factors + 8.0
    sums = 8.0 * float(model.cardinalities.sum()) + EXPONENTIAL * model.n_variables
    return float(UNIT * (additions * largest + sums))


def _count_model(
    model: Model, tau: FloatArray, order: IntArray, given: IntArray | None, blocks: IntArray | None, *, direct: float
) -> tuple[CountModel, int]:
    """The model as kernels want it, and how many places of up to ``direct`` find contexts of small factors."""
    n = model.n_variables
    owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
    strides = np.ones(len(owner), dtype=np.int64)
    for place in range(len(owner) - 2, -1, -1):
        if owner[place] == owner[place + 1]:
            strides[place] = strides[place + 1] * model.cardinalities[model.scope_variables[place + 1]]
    by_variable = np.argsort(model.scope_variables, kind="stable")
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    owned = model.cardinalities[model.scope_variables]
    free = np.ones(len(owned), np.bool_) if given is None else given[model.scope_variables] < 0
    bits = np.bincount(owner, owned, model.n_factors).astype(np.int64)
    places = np.where(bits <= MOST_DIRECT, 2.0 ** np.minimum(bits, MOST_DIRECT), 0.0)
    small = np.argsort(bits, kind="stable")
    small = small[(np.cumsum(places[small]) <= direct) & (places[small] > 0.0)]
    direct_starts = np.full(model.n_factors, -1, dtype=np.int64)
    direct_starts[small] = starts_of(places[small].astype(np.int64))[:-1]
    found = CountModel(
        cardinalities=model.cardinalities,
        is_max=np.asarray(tau == 0.0),
        any_max=bool((tau == 0.0).any()),
        level=weight_ranks(tau) if blocks is None else blocks.astype(np.int64),
        scope_starts=model.scope_starts,
        scope_variables=model.scope_variables,
        strides=strides,
        table_starts=model.table_starts,
        log_values=model.log_values,
        incident_starts=starts_of(np.bincount(model.scope_variables, minlength=n)),
        incident_factors=owner[by_variable],
        incident_axes=(np.arange(len(owner)) - model.scope_starts[owner])[by_variable],
        direct_starts=direct_starts,
        shifts=starts_of(owned)[:-1] - starts_of(owned)[model.scope_starts[owner]],
        places=np.where(free, starts_of(owned * free)[:-1], -1),
        rank=rank,
    )
    return found, int(places[small].sum())


def _doubled(log: Any) -> Any:
    """A log with as much room again."""
    return np.concatenate([log, np.zeros_like(log)])


def _power_of_two(number: float) -> int:
    return 1 << max(int(math.log2(max(number, 1.0))), 4)


def _new_state(
    model: Model, memory: float, given: IntArray | None, *, direct: int, log: bool, circuit: bool
) -> CountState:
    """Empty stores of so many bytes, most of which are not touched before they are needed."""
    logs = log or circuit
    n, m = model.n_variables, model.n_factors
    arity = len(model.scope_variables) / max(m, 1)
    listed = int(min(float(n) * (m + n), 0.1 * memory / 8.0)) + n + m
    # Bytes of a context with its shape, and of a part with a key of some length.
    contexts = _power_of_two(0.15 * memory / (80.0 + 32.0 * arity))
    parts = _power_of_two(0.2 * memory / 40.0)
    keys = int(0.4 * memory / 4.0)
    changes = int(model.cardinalities.sum() + model.cardinalities[model.scope_variables].sum()) + 16
    masks = (np.uint64(1) << model.cardinalities.astype(np.uint64)) - np.uint64(1)
    if given is not None:
        known = given >= 0
        masks[known] = np.uint64(1) << given[known].astype(np.uint64)
    return CountState(
        counters=np.zeros(14, dtype=np.int64),
        masks=masks,
        base_masks=masks.copy(),
        base=np.zeros(m, dtype=np.int64),
        depends=np.zeros(m, dtype=np.uint64),
        direct=np.full(direct, -1, dtype=np.int32),
        context=np.zeros(m, dtype=np.int64),
        context_slots=np.full(2 * contexts, -1, dtype=np.int32),
        context_factor=np.empty(contexts, dtype=np.int32),
        context_words=np.empty(contexts, dtype=np.int64),
        context_depends=np.empty(contexts, dtype=np.uint64),
        context_largest=np.empty(contexts),
        context_shape=np.empty(contexts, dtype=np.int32),
        words=np.empty(int(contexts * 2.0 * max(arity, 1.0)) + 256, dtype=np.uint64),
        shape_slots=np.full(2 * contexts, -1, dtype=np.int32),
        shape_context=np.empty(contexts, dtype=np.int32),
        part_slots=np.full(2 * parts, -1, dtype=np.int32),
        part_starts=np.zeros(parts + 1, dtype=np.int64),
        part_values=np.empty(parts),
        part_choices=np.empty((parts, 2), dtype=np.int32),
        keys=np.empty(keys, dtype=np.int32),
        key=np.empty(n // BLOCK + 4 * n + m + 4, dtype=np.int32),
        trail=np.empty((changes, 2), dtype=np.int64),
        trail_masks=np.empty(changes, dtype=np.uint64),
        frames=np.zeros((n + 2, N_COLUMNS), dtype=np.int64),
        frame_values=np.zeros((n + 2, 3)),
        frame_left=np.zeros(n + 2, dtype=np.uint64),
        children=np.zeros((listed // 4 + n + 2, 4), dtype=np.int64),
        factors=np.empty(listed, dtype=np.int32),
        variables=np.empty(listed, dtype=np.int32),
        queue=np.empty(n + 1, dtype=np.int64),
        queued=np.zeros(n, dtype=np.bool_),
        factor_label=np.full(m, -2, dtype=np.int64),
        variable_label=np.full(n, -2, dtype=np.int64),
        stack=np.empty(max(n, m) + 1, dtype=np.int64),
        digits=np.zeros((3, MOST_AXES), dtype=np.int64),
        number=np.zeros(n),
        part_nodes=np.empty(parts if logs else 0, dtype=np.int32),
        child_nodes=np.empty((listed // 4 + n + 2) if logs else 0, dtype=np.int32),
        log_rows=np.zeros((LOGGED if logs else 0, 8), dtype=np.int32),
        log_nodes=np.zeros(LOGGED if logs else 0, dtype=np.int32),
        log_marks=np.zeros(LOGGED + 4 * changes if log else 0, dtype=np.int32),
        log_values=np.zeros(LOGGED if circuit else 0),
        log_settled=np.zeros(LOGGED + 4 * n if circuit else 0, dtype=np.int32),
        log_masks=np.zeros(LOGGED + 4 * n if circuit else 0, dtype=np.uint64),
        activity=np.zeros(n),
    )
