"""Certified lower bounds on sums too wide for exact elimination: of each bucket's contexts only the best are summed.

A *context* of a bucket is a state for each of the variables in the bucket's message. Exact elimination sums for each of
them what lies below; there are too many. From the last eliminated variable to the first, contexts are extended by the
bucket's variable and projected on what each child of the bucket needs to know, which gives the child's contexts. A
tightened covering tree tells for each what share of the whole sum it stands for, about; those with the smallest shares
are dropped when there are more than a bucket may keep. What the kept ones stand for is then summed exactly, in
elimination order. All terms are positive, so dropping some gives a lower bound whatever the shares were; where nothing
was dropped the sum is exact. Models with many zeros have far fewer contexts than their width suggests, for the tree
knows most of the zeros below.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from powersum.arrays import BoolArray, FloatArray, IntArray
from powersum.eliminate import factors_of
from powersum.eliminate_wiring import wire
from powersum.model import Model
from powersum.partial_sum_kernels import Keys, Numbers, extend, project
from powersum.search.heuristic import Heuristic

KEY_BITS = 63
"""Bits of a word of a key: states are read from it as from a signed integer."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where each axis of a bucket's contexts lies in their keys; ``depths`` count from the last eliminated variable."""

    depths: IntArray
    words: IntArray
    shifts: IntArray
    masks: IntArray
    n_words: int


@dataclass(frozen=True, slots=True)
class _Bucket:
    """One variable's bucket: its contexts, its factors, its children and how a context of theirs comes about."""

    layout: _Layout
    children: tuple[int, ...]
    factor_starts: IntArray
    scope_starts: IntArray
    scope_depths: IntArray
    scope_strides: IntArray


@dataclass(slots=True)
class _Contexts:
    """Kept contexts of a bucket that waits to be extended."""

    keys: Keys
    log_shares: FloatArray


@dataclass(slots=True)
class _Arcs:
    """Extensions of a bucket's contexts, in the order of the contexts: what the sum is made of."""

    n_contexts: int
    contexts: Numbers
    values: FloatArray
    targets: list[Numbers] = field(default_factory=list)
    """For each child the number of the context that an arc leads to."""


class PartialSum:
    """The sum of a model over all states of its free variables, as far as a limited number of contexts goes.

    Parameters
    ----------
    model
        The model.
    heuristic
        The bounds of a covering tree of the model, for all variables.
    given
        For each variable the state it is given, -1 for those summed.

    Attributes
    ----------
    log_lower
        The best lower bound (natural log) so far.
    exact
        True when the latest pass dropped nothing: ``log_lower`` is then the sum itself.
    n_arcs
        Size of the latest pass.
    """

    def __init__(self, model: Model, heuristic: Heuristic, given: IntArray | None = None) -> None:
        self._model, self._heuristic = model, heuristic
        n = model.n_variables
        self._given = np.full(n, -1, dtype=np.int64) if given is None else given
        self._states = np.zeros(n, dtype=np.int64)
        self._buckets, self._constant = _buckets(model, heuristic.variables)
        self._roots = np.ones(n, dtype=np.bool_)
        for bucket in self._buckets:
            self._roots[list(bucket.children)] = False
        self.log_lower = -np.inf
        self.exact = False
        self.n_arcs = 0
        self.begin(1)

    def begin(self, capacity: int) -> None:
        """Begin a new pass in which each bucket keeps that many contexts at most."""
        self._capacity = capacity
        self._depth = 0
        self._lossless = True
        self.n_arcs = 0
        self._waiting: dict[int, _Contexts] = {}
        self._arcs: list[_Arcs] = []

    def run(self, deadline: float) -> bool:
        """Go on with the pass; True when it has ended, False when the time is over before."""
        n = len(self._buckets)
        while self._depth < n:
            if time.monotonic() >= deadline:
                return False
            self._extend(self._depth)
            self._depth += 1
        self.log_lower = max(self.log_lower, self._sum() + self._constant)
        self.exact = self._lossless
        return True

    def _extend(self, depth: int) -> None:
        """Extend the contexts of one bucket, and hand them on to its children."""
        bucket = self._buckets[depth]
        layout = bucket.layout
        if self._roots[depth]:
            contexts = _Contexts(np.zeros((1, layout.n_words), dtype=np.uint64), np.zeros(1))
        else:
            contexts = self._waiting.pop(depth)
        given = int(self._given[self._heuristic.variables[depth]])
        room = len(contexts.keys) * (1 if given >= 0 else int(self._heuristic.cardinalities[depth]))
        numbers, states = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
        log_shares, values = np.empty(room), np.empty(room)
        n_arcs = extend(
            depth,
            contexts.keys,
            contexts.log_shares,
            given,
            layout.words,
            layout.shifts,
            layout.masks,
            layout.depths,
            self._heuristic,
            bucket.factor_starts,
            bucket.scope_starts,
            bucket.scope_depths,
            bucket.scope_strides,
            self._model.log_values,
            self._states,
            numbers,
            states,
            log_shares,
            values,
        )
        numbers, states = numbers[:n_arcs], states[:n_arcs]
        arcs = _Arcs(len(contexts.keys), numbers, values[:n_arcs])
        log_shares = log_shares[:n_arcs]
        shares = np.exp(log_shares - log_shares.max(initial=-np.inf))
        self._lossless &= bool((shares > 0.0).all())
        for child in bucket.children:
            target = self._project(depth, child, contexts.keys, numbers, states, shares)
            arcs.targets.append(target)
            # What leads nowhere must not count for the other children.
            shares[target < 0] = 0.0
        if bucket.children:
            _compress(arcs, shares > 0.0)
        self.n_arcs += len(arcs.contexts)
        self._arcs.append(arcs)

    def _project(
        self, depth: int, child: int, keys: Keys, numbers: Numbers, states: Numbers, shares: FloatArray
    ) -> Numbers:
        """Contexts of a child that the arcs lead to: keep the best, and tell where each arc leads, -1 for nowhere."""
        source, layout = self._buckets[depth].layout, self._buckets[child].layout
        # Depths rise towards the first eliminated; the bucket's own variable is not among its context.
        at = np.searchsorted(source.depths, layout.depths)
        own = layout.depths == depth
        at[own] = 0
        from_words = np.where(own, -1, source.words[at] if len(source.words) else -1)
        from_shifts = source.shifts[at] if len(source.words) else np.zeros(len(at), dtype=np.int64)
        n = len(numbers)
        found = np.empty((n, layout.n_words), dtype=np.uint64)
        child_shares = np.empty(n)
        target = np.empty(n, dtype=np.int32)
        slots = np.full(1 << max(4, (2 * n).bit_length()), -1, dtype=np.int32)
        count = project(
            keys,
            numbers,
            states,
            shares,
            from_words,
            from_shifts,
            layout.masks,
            layout.words,
            layout.shifts,
            slots,
            found,
            child_shares,
            target,
        )
        del slots
        found, child_shares = found[:count], child_shares[:count]
        if count > self._capacity:
            self._lossless = False
            kept = np.zeros(count, dtype=np.bool_)
            kept[np.argpartition(-child_shares, self._capacity)[: self._capacity]] = True
            renumber = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
            # Places of arcs that lead nowhere read the last entry; they stay nowhere.
            target = np.where(target >= 0, renumber[target], np.int32(-1))
            found, child_shares = found[kept], child_shares[kept]
        else:
            found, child_shares = found.copy(), child_shares.copy()
        with np.errstate(divide="ignore"):
            self._waiting[child] = _Contexts(found, np.log(child_shares))
        return target

    def _sum(self) -> float:
        """Sum all arcs, from the first eliminated variable to the last."""
        log_sums: dict[int, FloatArray] = {}
        total = 0.0
        for depth in range(len(self._buckets) - 1, -1, -1):
            arcs = self._arcs.pop()
            values = arcs.values
            for child, target in zip(self._buckets[depth].children, arcs.targets, strict=True):
                values = values + log_sums.pop(child)[target]
            sums = _sum_by_context(arcs.contexts, values, arcs.n_contexts)
            if self._roots[depth]:
                total += float(sums[0])
            else:
                log_sums[depth] = sums
        return total


def _compress(arcs: _Arcs, kept: BoolArray) -> None:
    """Take out the arcs that lead nowhere."""
    if not kept.all():
        arcs.contexts, arcs.values = arcs.contexts[kept], arcs.values[kept]
        arcs.targets = [target[kept] for target in arcs.targets]


def _sum_by_context(contexts: Numbers, values: FloatArray, n_contexts: int) -> FloatArray:
    """Logs of the sums of what each context's arcs are worth."""
    sums = np.full(n_contexts, -np.inf)
    if not len(contexts):
        return sums
    first = np.flatnonzero(np.diff(contexts, prepend=-1))
    owners = contexts[first]
    top = np.maximum.reduceat(values, first)
    shift = np.where(np.isneginf(top), 0.0, top)
    lengths = np.diff(first, append=len(contexts))
    with np.errstate(divide="ignore"):
        sums[owners] = shift + np.log(np.add.reduceat(np.exp(values - np.repeat(shift, lengths)), first))
    return sums


def _buckets(model: Model, variables: IntArray) -> tuple[list[_Bucket], float]:
    """The buckets, from the last eliminated variable to the first, and the log of the constant factors."""
    n = len(variables)
    order = np.ascontiguousarray(variables[::-1])
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    factors = factors_of(model)
    wiring, factor_buckets = wire(order, position, np.arange(model.n_factors), factors)
    depth_of = n - 1 - position
    bits = np.maximum(np.ceil(np.log2(model.cardinalities)).astype(np.int64), 1)
    children: list[list[int]] = [[] for _ in range(n)]
    for b, parent in enumerate(wiring.parents.tolist()):
        if parent >= 0:
            children[n - 1 - parent].append(n - 1 - b)
    buckets = []
    for depth in range(n):
        b = n - 1 - depth
        axes = wiring.axes[wiring.axis_starts[b] + 1 : wiring.axis_starts[b + 1]]
        inputs = wiring.inputs[wiring.input_starts[b] : wiring.input_starts[b + 1]]
        chosen = inputs[inputs >= 0]
        lengths = model.scope_starts[chosen + 1] - model.scope_starts[chosen]
        places = np.concatenate(
            [np.arange(model.scope_starts[f], model.scope_starts[f + 1]) for f in chosen.tolist()]
            or [np.zeros(0, dtype=np.int64)]
        )
        buckets.append(
            _Bucket(
                _layout(np.sort(depth_of[axes]), bits[order][::-1]),
                tuple(children[depth]),
                model.table_starts[chosen],
                np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
                depth_of[model.scope_variables[places]],
                factors.strides[places],
            )
        )
    constants = model.table_starts[:-1][factor_buckets < 0]
    return buckets, float(model.log_values[constants].sum())


def _layout(depths: IntArray, bits: IntArray) -> _Layout:
    """Axes one after another in words of :data:`KEY_BITS` bits, none across two words."""
    words, shifts = np.zeros(len(depths), dtype=np.int64), np.zeros(len(depths), dtype=np.int64)
    word = used = 0
    for a, depth in enumerate(depths.tolist()):
        if used + int(bits[depth]) > KEY_BITS:
            word, used = word + 1, 0
        words[a], shifts[a] = word, used
        used += int(bits[depth])
    masks = (1 << bits[depths]) - 1
    return _Layout(depths, words, shifts, masks, word + 1)
