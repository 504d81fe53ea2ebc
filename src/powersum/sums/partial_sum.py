"""Certified lower bounds on sums too wide for exact elimination: of each bucket's contexts only the best are summed.

A *context* of a bucket is a state for each of the variables in the bucket's message. Exact elimination sums for each of
them what lies below; there are too many. From the last eliminated variable to the first, contexts are extended by the
bucket's variable and handed on to the bucket's children, as far as each child needs to know them. A tightened covering
tree tells for each context what share of the whole sum it stands for, about; those below a least share are dropped.
What the kept ones stand for is then summed exactly, in elimination order. All terms are positive, so dropping some
gives a lower bound whatever the shares were; where nothing was dropped the sum is exact. A context that the tree proves
to be impossible is never looked at: in models with zeros these are most.

The same sum with the tree's bound in place of what was dropped is an upper bound, no worse than the tree's. It is kept
relative to that: what a context stands for is at most the sum over its arcs of the arc's ratio (the share of the
context's bound that the tree gives to the arc) times what its children stand for, and 1 for what is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.bounds.tree.look_up import Heuristic
from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.progress import Progress
from powersum.core.speed import ARC
from powersum.model.model import Model
from powersum.sums.by_state import StateSums, root_bounds, state_sums
from powersum.sums.kernels import ROUND_UP, TINIEST, Numbers, Ratios, add_up, drop, extend, hand_over
from powersum.sums.wiring import Handover, SumBucket, buckets_of, key_of, ratios_of

LOOK_BACK = 0.1
"""The pace of a pass is that of its latest part, as large a share of it as this; before that nobody knows it."""

HURRY = 1.05
"""By how much the least share rises from bucket to bucket in a pass that is too slow to end in time."""

BUCKET_PART = 8
"""The arcs of one bucket, which take more memory while they are worked on, are at most this part of those stored."""

MOST_SETTLED = 2e8
"""States of contexts up to which a pass that dropped nothing is left to the checker to find: it takes 8 bytes for each,
of 4 GB unless told otherwise."""

_NO_KEY = np.zeros(0, dtype=np.int64)


class Recorded(NamedTuple):
    """A whole pass: the contexts of all buckets, as keys, and the bounds that they give.

    Of a pass that dropped nothing these are the ones that it began with alone: all that is possible below them counts.
    """

    buckets: list[SumBucket]
    keys: list[IntArray]
    log_lower: float
    log_upper: float
    settled: bool = False


class States(NamedTuple):
    """A variable, its number of states, and the state that each arc sets it to."""

    variable: int
    cardinality: int
    states: NDArray[Any]


@dataclass(slots=True)
class Arcs:
    """Extensions of a bucket's contexts, in the order of the contexts: what the sum is made of.

    An arc is longer than one variable where the buckets between have one child each and nothing to sum: three arcs of
    four are saved by that.
    """

    contexts: Numbers
    values: FloatArray
    ratios: Ratios
    dropped: Ratios
    """Sum of the ratios of each context's arcs that are not among these."""
    targets: list[Numbers]
    """For each child the number of the context that an arc leads to."""
    set_to: list[States]
    """For each variable that the arcs set, their states; empty where no sums by state are wanted."""


@dataclass(slots=True)
class _Contexts:
    """Kept contexts of a bucket that waits to be extended."""

    keys: IntArray
    shares: FloatArray
    arcs: Arcs | None = None
    """Where no two arcs of the parent lead to the same context: these arcs, one for each context, to be made longer."""


class PartialSum:
    """The sum of a model over all states of its free variables, as far as a limited number of contexts goes.

    Parameters
    ----------
    model
        The model.
    heuristic, log_upper
        The bounds of a covering tree of the model, for all variables, and the bound that goes with them.
    given
        For each variable the state it is given, -1 for those summed; by default all are summed.
    anchor
        A possible state of each variable, if one is known: its contexts are always kept, so that something is.
    record
        How many states of contexts, in all, may be remembered of a pass, for a certificate; none unless given.
    by_state
        Whether each pass bounds the sums with each state set, too.

    Attributes
    ----------
    log_lower
        The best lower bound (natural log) so far.
    log_upper
        The best upper bound so far.
    exact
        True when a pass dropped nothing: ``log_lower`` is then the sum itself.
    least_share
        Contexts of less than this share of the sum are dropped at present.
    recorded
        The largest pass of which everything was remembered; None before there is one.
    state_sums
        Of the latest pass, for each component the sums with each state set.
    n_arcs, n_stored, n_dropped
        Size of the latest pass: arcs followed, arcs that were in memory at its end, and contexts dropped.
    """

    def __init__(
        self,
        model: Model,
        heuristic: Heuristic,
        log_upper: float,
        *,
        given: IntArray | None = None,
        anchor: IntArray | None = None,
        record: float = 0.0,
        by_state: bool = False,
    ) -> None:
        self._log_values = model.log_values
        self._by_state = by_state
        self.state_sums: list[StateSums] = []
        self._ratios = ratios_of(heuristic)
        self._buckets, self._constant = buckets_of(model, heuristic)
        self._tree_roots = root_bounds(heuristic, self._buckets, log_upper, self._constant) if by_state else None
        self._given = np.full(model.n_variables, -1, dtype=np.int64) if given is None else given
        self._anchor = anchor
        self._room = record
        self.recorded: Recorded | None = None
        self._tree_upper = log_upper
        self.log_upper = log_upper
        self.log_lower = -np.inf
        self.exact = False
        self._profile: FloatArray | None = None
        """Of the latest pass that has ended: the share of its time that was over at the end of each bucket."""
        self.begin(1.0)

    @property
    def bytes(self) -> int:
        """What is held between passes."""
        return self._ratios.nbytes

    def begin(self, least_share: float, most_stored: float = np.inf, seconds: float = np.inf) -> None:
        """Begin a new pass that drops contexts with less than this share of the sum, as the tree estimates it.

        Once it has more than ``most_stored`` arcs in memory it drops more and more; also where it would take more than
        so many seconds, judging by how the time of the pass before was spread over the buckets.
        """
        self.least_share, self._most_stored = least_share, most_stored
        self._allowed, self._marks = seconds, [0.0]
        self._depth = 0
        self._waiting: dict[int, _Contexts] = {}
        self._seen: list[IntArray] = []
        self._roots: list[int] = []
        self._left = self._room
        self._arcs: list[Arcs | None] = []
        self.n_arcs = self.n_stored = self.n_dropped = 0

    def run(self, deadline: float) -> Progress:
        """Go on with the pass until the deadline; done when it has ended."""
        while self._depth < len(self._buckets):
            if time.monotonic() >= deadline:
                return Progress.MORE
            begun = time.monotonic()
            self._extend(self._buckets[self._depth])
            self._depth += 1
            self._marks.append(self._marks[-1] + time.monotonic() - begun)
            self._keep_up()
        begun = time.monotonic()
        log_sum, log_ratio = self._sum()
        self._profile = np.array(self._marks) / max(self._marks[-1] + time.monotonic() - begun, 1e-9)
        log_value = log_sum + self._constant
        if self._room > 0.0 and not self.n_dropped and self._room - self._left <= MOST_SETTLED:
            whole = [np.zeros((1, 1), dtype=np.int64) for _ in self._roots]
            roots = [self._buckets[depth] for depth in self._roots]
            self.recorded = Recorded(roots, whole, log_value, log_value, settled=True)
        elif len(self._seen) == len(self._buckets):
            self.recorded = Recorded(self._buckets, self._seen, log_value, log_ratio + self._tree_upper)
        self.log_lower = max(self.log_lower, log_sum + self._constant)
        self.log_upper = min(self.log_upper, log_ratio + self._tree_upper)
        if not self.n_dropped:
            self.exact, self.log_upper = True, self.log_lower
        return Progress.DONE

    def _keep_up(self) -> None:
        """Drop more where the rest of the pass would take too long at the present pace."""
        profile, now = self._profile, self._depth
        if profile is None or self._allowed == np.inf:
            return
        since = int(np.searchsorted(profile, profile[now] - LOOK_BACK, side="right")) - 1
        if since < 0:
            return
        # Of late, and in all: some buckets are slower than others in every pass, and in each by another factor.
        late = (self._marks[now] - self._marks[since]) / max(profile[now] - profile[since], 1e-9)
        pace = min(late, self._marks[now] / profile[now])
        if pace * (1.0 - profile[now]) > self._allowed - self._marks[now]:
            self.least_share *= HURRY

    def _extend(self, bucket: SumBucket) -> None:
        """Extend the contexts of one bucket, and hand them on to its children."""
        contexts = self._waiting.pop(self._depth, None)
        if contexts is None:
            # The last eliminated variable of a component: its message is a number.
            contexts = _Contexts(np.zeros((1, 1), dtype=np.int64), np.ones(1))
            self._roots.append(self._depth)
        self._left -= len(contexts.keys) * len(bucket.key_variables)
        if self._left > 0.0:
            self._seen.append(contexts.keys)
        given = int(self._given[bucket.variable])
        first, end = (given, given + 1) if given >= 0 else (0, bucket.cardinality)
        room = len(contexts.keys) * (end - first)
        numbers, states = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
        shares, values, ratios = np.empty(room), np.empty(room), np.empty(room, dtype=np.float32)
        n_arcs = extend(
            contexts.keys,
            contexts.shares,
            first,
            end,
            bucket.axes,
            bucket.reads,
            self._ratios,
            self._log_values,
            numbers,
            states,
            shares,
            ratios,
            values,
        )
        numbers, states, shares = numbers[:n_arcs], states[:n_arcs], shares[:n_arcs]
        # One child after the other: what leads nowhere by one of them does not count for the next.
        led = [self._hand_over(child, contexts.keys, numbers, states, shares) for child in bucket.children]
        none_yet = np.zeros(len(contexts.keys), dtype=np.float32)
        set_to = [_states(bucket, states)] if self._by_state else []
        arcs = Arcs(numbers, values[:n_arcs], ratios[:n_arcs], none_yet, led, set_to)
        if contexts.arcs is not None:
            arcs = _longer(contexts.arcs, arcs)
        arcs = _closed_up(arcs, shares > 0.0)
        self.n_arcs += len(arcs.contexts)
        time.spend(ARC * (room + n_arcs * len(bucket.children)))
        if len(led) == 1 and bucket.children[0].distinct:
            # Both have the same order: the first arc leads to the first context, and so on.
            self._waiting[bucket.children[0].child].arcs = arcs
            arcs.targets = []
            self._arcs.append(None)
            return
        self._arcs.append(arcs)
        self.n_stored += len(arcs.contexts)
        if self.n_stored > self._most_stored:
            # No bucket has more contexts than the inverse of the least share: what is still to come is limited.
            self.least_share = max(2.0 * self.least_share, 1.0 / self._most_stored)

    def _hand_over(
        self, handover: Handover, keys: IntArray, numbers: Numbers, states: Numbers, shares: FloatArray
    ) -> Numbers:
        """Contexts of a child that the arcs lead to: keep the best, and tell where each arc leads, -1 for nowhere."""
        n = len(numbers)
        # One row more: a key is written before it is known whether it is new.
        found = np.empty((n + 1, handover.n_words), dtype=np.int64)
        sums = np.empty(n)
        targets = np.empty(n, dtype=np.int32)
        table = np.full(1 if handover.distinct else 1 << (2 * n + 1).bit_length(), -1, dtype=np.int32)
        count = hand_over(
            keys,
            numbers,
            states,
            shares,
            handover.runs,
            handover.own_word,
            handover.own_shift,
            table,
            found,
            sums,
            targets,
        )
        del table
        anchor = _NO_KEY if self._anchor is None else key_of(self._buckets[handover.child], self._anchor)
        least = self.least_share
        most = self._most_stored / (BUCKET_PART * self._buckets[handover.child].cardinality)
        if count > most:
            # Contexts are as many as the inverse of their least share at most.
            least = max(least, 1.0 / most)
        kept = drop(found, sums, count, least * float(sums[:count].sum()), anchor, targets, shares)
        self.n_dropped += count - kept
        sums = sums[:kept] / sums[:kept].sum()
        self._waiting[handover.child] = _Contexts(found[:kept].copy(), sums)
        return targets

    def _sum(self) -> tuple[float, float]:
        """Sum all arcs, from the first eliminated variable to the last: the log, and that of the upper ratio."""
        log_sums: dict[int, FloatArray] = {}
        upper_ratios: dict[int, FloatArray] = {}
        every_arc = self._arcs.copy() if self._by_state else []
        for depth in range(len(self._buckets) - 1, -1, -1):
            children = [handover.child for handover in self._buckets[depth].children]
            arcs = self._arcs.pop()
            if arcs is None:
                log_sums[depth], upper_ratios[depth] = log_sums[children[0]], upper_ratios[children[0]]
            else:
                values, ratios = arcs.values, arcs.ratios.astype(np.float64)
                for child, targets in zip(children, arcs.targets, strict=True):
                    values = values + log_sums[child][targets]
                    ratios *= upper_ratios[child][targets]
                log_sums[depth] = np.full(len(arcs.dropped), -np.inf)
                upper_ratios[depth] = arcs.dropped.astype(np.float64)
                add_up(arcs.contexts, values, ratios, log_sums[depth], upper_ratios[depth])
                np.minimum(upper_ratios[depth], 1.0, out=upper_ratios[depth])
            if not self._by_state:
                for child in children:
                    del log_sums[child], upper_ratios[child]
        if self._tree_roots is not None:
            self.state_sums = state_sums(
                self._buckets, self._roots, every_arc, log_sums, upper_ratios, self._tree_roots
            )
        with np.errstate(divide="ignore"):
            log_ratio = sum(float(np.log(upper_ratios[root][0])) for root in self._roots)
        return sum(float(log_sums[root][0]) for root in self._roots), log_ratio


def _states(bucket: SumBucket, states: Numbers) -> States:
    """The states that arcs set a bucket's variable to, in as few bytes as they need."""
    return States(bucket.variable, bucket.cardinality, states.astype(np.min_scalar_type(bucket.cardinality - 1)))


def _longer(before: Arcs, after: Arcs) -> Arcs:
    """The arcs after arcs that lead to one context each, as arcs from where those begin."""
    at = after.contexts
    ratios = np.maximum(before.ratios[at] * after.ratios * ROUND_UP, TINIEST).astype(np.float32)
    set_to = [own._replace(states=own.states[at]) for own in before.set_to] + after.set_to
    return Arcs(before.contexts[at], before.values[at] + after.values, ratios, before.dropped, after.targets, set_to)


def _closed_up(arcs: Arcs, kept: BoolArray) -> Arcs:
    """Only the arcs to keep; what the others had is counted as dropped."""
    if kept.all():
        # Copies, for these may be the beginnings of larger arrays.
        copies = arcs.contexts.copy(), arcs.values.copy(), arcs.ratios.copy()
        return Arcs(*copies, arcs.dropped, arcs.targets, arcs.set_to)
    at, gone = np.flatnonzero(kept), np.flatnonzero(~kept)
    more = np.bincount(arcs.contexts[gone], arcs.ratios[gone], minlength=len(arcs.dropped))
    return Arcs(
        arcs.contexts[at],
        arcs.values[at],
        arcs.ratios[at],
        (ROUND_UP * (arcs.dropped + more)).astype(np.float32),
        [targets[at] for targets in arcs.targets],
        [own._replace(states=own.states[at]) for own in arcs.set_to],
    )
