"""``sample``: configurations drawn from the distribution given evidence, exactly where that fits into memory.

Variables are eliminated one after another; the tables on the way tell how each depends on those after it, so that
drawing goes back through the order. Where a table would be too large it is cut into mini-buckets, all but one of which
are maximised instead of summed. Their product is no longer the conditional distribution, but it is positive wherever
that is. Each draw then has the weight p(x) / q(x), up to a constant: self-normalised importance sampling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum.api.marginals import impossible
from powersum.core.arrays import FloatArray, IntArray, positions_of
from powersum.core.clock import working_time
from powersum.core.interrupt import as_interrupts, interruptible
from powersum.core.memory import memory_left, memory_usually_left
from powersum.core.work_time import metered
from powersum.interop.frames import frame_of
from powersum.model.defaults import TIME
from powersum.model.limits import Limits, whole_number
from powersum.model.model import Model
from powersum.model.question import EvidenceLike, ModelLike, Question
from powersum.prepare.ordering import elimination_order, order_cost

ORDER_SHARE = 0.2
"""Share of the time for finding an elimination order."""

ENTRY_BYTES = 32.0
"""Bytes for each entry of a table, those that are only there for a moment included."""

CHUNK = 1 << 22
"""Numbers that are drawn at a time."""

MOST_AXES = 32
"""Variables that a table of NumPy has at most, with room for one more."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of logs over variables in ascending order."""

    scope: tuple[int, ...]
    log_values: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Configurations of all variables, with weights where they are not drawn exactly.

    Parameters
    ----------
    model
        The model.
    states
        A row for each sample, a column for each variable: places of states, counted from 0.
    log_weights
        The log of each sample's weight, up to a constant; all 0 where the samples are exact.
    exact
        True where the samples are independent draws from the distribution itself.
    """

    model: Model
    states: IntArray
    log_weights: FloatArray
    exact: bool

    def __len__(self) -> int:
        return len(self.states)

    @property
    def weights(self) -> FloatArray:
        """The weights, which sum to 1; all 0 where no sample is possible."""
        top = float(self.log_weights.max(initial=-math.inf))
        if top == -math.inf:
            return np.zeros(len(self))
        found: FloatArray = np.exp(self.log_weights - top)
        found /= found.sum()
        return found

    @property
    def effective_size(self) -> float:
        """The number of independent draws that say as much: the number of samples where they are exact."""
        squares = float(np.square(self.weights).sum())
        return 1.0 / squares if squares else 0.0

    def to_frame(self, library: str = "pandas") -> Any:
        """A data frame: a column of labels for each variable, and weights of inexact samples."""
        columns: dict[str, Sequence[Any]] = {}
        for v in range(self.model.n_variables):
            labels = [self.model.label(v, state) for state in range(int(self.model.cardinalities[v]))]
            columns[self.model.name(v)] = [labels[state] for state in self.states[:, v].tolist()]
        if not self.exact:
            columns["weight"] = self.weights.tolist()
        return frame_of(columns, library)

    def __repr__(self) -> str:
        kind = "exact" if self.exact else f"weighted, effective size {self.effective_size:.1f}"
        return f"<powersum.Samples: {len(self)} samples of {self.model.n_variables} variables, {kind}>"


@as_interrupts()
def sample(
    model: ModelLike,
    n: int,
    *,
    evidence: EvidenceLike | None = None,
    time_limit: float | None = TIME,
    memory: float | str | None = None,
    seed: int = 0,
) -> Samples:
    """Draw configurations of all variables given the evidence.

    Parameters
    ----------
    model, evidence
        The model or the path of its file, and observed states or likelihoods, as in :func:`powersum.solve`.
    n
        The number of samples.
    time_limit
        Seconds; fewer samples are returned where the time does not suffice for all.
    memory
        As in :func:`powersum.solve`. Where exact elimination does not fit, samples have weights.
    seed
        Seed of the draws.

    Returns
    -------
    Samples
        ``states``, ``weights``, ``exact``, ``effective_size``, and :meth:`Samples.to_frame`.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    >>> drawn = ps.sample(rain, 10_000, evidence={"wet": 1})
    >>> round(float((drawn.states[:, 0] == 1).mean()), 2)
    0.64
    """
    n = whole_number(n, "n", 0)
    limits = Limits.given(time_limit=time_limit, memory=memory, seed=seed)
    question = Question.of(model, evidence=evidence, limits=limits)
    left = memory_usually_left(limits.bytes) if metered() else memory_left(limits.bytes)
    end = working_time() + limits.seconds
    with interruptible() as interrupt:
        drawer = Drawer(question, entries=left / ENTRY_BYTES, seconds=limits.seconds)
        if drawer.log_sum == -math.inf:
            raise impossible(question)
        rng = np.random.default_rng(limits.seed)
        return drawer.draw(n, rng, lambda: interrupt.cause is not None or working_time() > end)


class Drawer:
    """The tables that samples are drawn from, made once.

    Parameters
    ----------
    question
        The model and the evidence.
    entries
        Table entries that may be kept.
    seconds
        Time of all of it.
    """

    def __init__(self, question: Question, *, entries: float, seconds: float) -> None:
        self._model = question.model
        shown, self._states = question.observed
        self._factors = [_sliced(shown, k, self._states) for k in range(shown.n_factors)]
        free = [v for v in range(shown.n_variables) if v not in self._states]
        number = {v: k for k, v in enumerate(free)}
        left = Model.from_factors(
            shown.cardinalities[free].tolist(),
            [([number[v] for v in factor.scope], factor.log_values) for factor in self._factors],
            log=True,
        )
        order = elimination_order(left, np.ones(len(free)), seed=question.limits.seed, time_limit=ORDER_SHARE * seconds)
        self._order = [free[k] for k in order.tolist()]
        self.exact = True
        self._tables: list[list[Table]] = []
        fits = order_cost(left, order).log2_total <= math.log2(entries)
        # Else as many entries for each variable, so that all of them fit.
        self.log_sum = self._eliminate(math.inf if fits else max(entries / len(free), 2.0**12))

    def _eliminate(self, largest: float) -> float:
        """Keep the tables of each variable; the log of the sum of everything, an upper bound where one is cut."""
        position = positions_of(self._order, self._model.n_variables)
        waiting: list[list[Table]] = [[] for _ in self._order]
        log_sum = 0.0

        def put(table: Table) -> None:
            nonlocal log_sum
            if table.scope:
                waiting[min(position[v] for v in table.scope)].append(table)
            else:
                log_sum += float(table.log_values)

        for factor in self._factors:
            put(factor)
        cards = self._model.cardinalities
        for place, v in enumerate(self._order):
            parts = _mini_buckets(waiting[place], v, cards, largest)
            waiting[place] = []
            if not parts:
                log_sum += math.log(float(cards[v]))
            self.exact = self.exact and len(parts) <= 1
            self._tables.append(parts)
            for number, part in enumerate(parts):
                axis = part.scope.index(v)
                top = part.log_values.max(axis=axis)
                if number == 0:
                    with np.errstate(invalid="ignore", divide="ignore"):
                        finite = np.where(np.isfinite(top), top, 0.0)
                        top = finite + np.log(np.exp(part.log_values - np.expand_dims(finite, axis)).sum(axis=axis))
                put(Table(tuple(u for u in part.scope if u != v), top))
        return log_sum

    def draw(self, n: int, rng: np.random.Generator, stopped: Callable[[], bool]) -> Samples:
        """Draw so many samples, in chunks; fewer where it is stopped."""
        widest = int(self._model.cardinalities.max(initial=1))
        size = max(min(n, CHUNK // max(widest, self._model.n_variables, 1)), 1)
        rows, weights = [np.zeros((0, self._model.n_variables), dtype=np.int64)], [np.zeros(0)]
        done = 0
        while done < n and not (done and stopped()):
            states, log_weights = self._chunk(min(size, n - done), rng)
            rows.append(states)
            weights.append(log_weights)
            done += len(states)
        return Samples(self._model, np.concatenate(rows), np.concatenate(weights), self.exact)

    def _chunk(self, n: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        states = np.zeros((n, self._model.n_variables), dtype=np.int64)
        for v, state in self._states.items():
            states[:, v] = state
        log_drawn = np.zeros(n)
        for v, parts in zip(reversed(self._order), reversed(self._tables), strict=True):
            scores = np.zeros((n, int(self._model.cardinalities[v])))
            for part in parts:
                axis = part.scope.index(v)
                others = tuple(states[:, u] for u in part.scope if u != v)
                scores += np.moveaxis(part.log_values, axis, -1)[others]
            top = scores.max(axis=1, keepdims=True)
            # Where the tables leave nothing, the sample is impossible: it has weight 0.
            lost = np.isneginf(top)
            shares = np.where(lost, 1.0, np.exp(scores - np.where(lost, 0.0, top)))
            sums = np.cumsum(shares, axis=1)
            chosen = (rng.random((n, 1)) * sums[:, -1:] >= sums).sum(axis=1)
            chosen = np.minimum(chosen, shares.shape[1] - 1)
            # A draw at the very end of a stretch must not take a state of probability 0.
            zero = shares[np.arange(n), chosen] == 0.0
            chosen[zero] = shares[zero].argmax(axis=1)
            states[:, v] = chosen
            log_drawn += np.log(shares[np.arange(n), chosen] / sums[:, -1])
        if self.exact:
            return states, np.zeros(n)
        log_values = np.zeros(n)
        for factor in self._factors:
            log_values += factor.log_values[tuple(states[:, u] for u in factor.scope)]
        return states, log_values - log_drawn


def _sliced(model: Model, factor: int, states: dict[int, int]) -> Table:
    """A factor with the observed states set, its variables in ascending order."""
    scope, table = model.factor(factor)
    table = table[tuple(states.get(v, slice(None)) for v in scope)]
    free = [v for v in scope if v not in states]
    order = np.argsort(free, kind="stable")
    return Table(tuple(free[k] for k in order.tolist()), np.array(np.transpose(table, order)))


def _mini_buckets(tables: list[Table], variable: int, cards: IntArray, largest: float) -> list[Table]:
    """The products of the tables, in as few parts as each may have so many entries, the largest tables first."""
    scopes: list[set[int]] = []
    members: list[list[Table]] = []
    for table in sorted(tables, key=lambda one: (-one.log_values.size, one.scope)):
        for scope, own in zip(scopes, members, strict=True):
            union = scope | set(table.scope)
            if len(union) < MOST_AXES and math.prod(cards[list(union)].tolist()) <= largest:
                scope |= union
                own.append(table)
                break
        else:
            scopes.append(set(table.scope))
            members.append([table])
    return [_product(tuple(sorted(scope)), own, cards) for scope, own in zip(scopes, members, strict=True)]


def _product(scope: tuple[int, ...], tables: list[Table], cards: IntArray) -> Table:
    total = np.zeros(cards[list(scope)].tolist())
    for table in tables:
        inside = set(table.scope)
        total += table.log_values.reshape([int(cards[v]) if v in inside else 1 for v in scope])
    return Table(scope, total)
