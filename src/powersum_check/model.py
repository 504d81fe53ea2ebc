"""What is asked: a model, and a question about it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from powersum_check.errors import BadFile
from powersum_check.limits import PER_ENTRY
from powersum_check.numbers import FloatArray, Table, logs_of

PER_FACTOR = 1024
"""Bytes that are counted for a factor apart from its entries."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A table of natural logs with one axis for each variable of its scope."""

    scope: tuple[int, ...]
    table: Table
    probabilities: FloatArray | None = None
    """What the logs are of, where they were computed here: each within a relative 2**-53 of the true number."""


@dataclass(frozen=True, slots=True)
class Model:
    """Numbers of states and factors; the model is the product of its factors."""

    cardinalities: tuple[int, ...]
    factors: tuple[Factor, ...]
    note: str = ""
    """What is to be said about the way in which its file was read."""

    @property
    def held(self) -> int:
        """Bytes that are counted for the model: logs, what they are of, their support, and a copy in a box."""
        entries = sum(factor.table.values.size for factor in self.factors)
        return 40 * entries + PER_FACTOR * len(self.factors) + PER_ENTRY * sum(self.cardinalities)

    def digest(self) -> str:
        """SHA-256 of cardinalities, scopes and zeros, which tells models apart before anything is computed."""
        scopes = [len(f.scope) for f in self.factors]
        variables = [v for f in self.factors for v in f.scope]
        words = [len(self.cardinalities), *self.cardinalities, len(scopes), *scopes, *variables]
        zeros = [np.isneginf(f.table.values).ravel() for f in self.factors]
        bits = np.packbits(np.concatenate(zeros)) if zeros else np.zeros(0, np.uint8)
        return hashlib.sha256(b"powersum-model-1" + np.array(words, "<i8").tobytes() + bits.tobytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class Question:
    """Weights τ (1 sums a variable, 0 maximises it), evidence, likelihoods, and where it matters the order.

    Without ``order`` larger weights are eliminated before smaller ones. With it, it is the order of elimination, in
    which neighbours of equal weight may change places.
    """

    weights: tuple[float, ...]
    evidence: Mapping[int, int] = field(default_factory=dict)
    likelihoods: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    order: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        maximize: Sequence[int] = (),
        evidence: Mapping[int, int] | None = None,
        likelihoods: Mapping[int, Sequence[float]] | None = None,
    ) -> Question:
        """Maximise some variables and sum all others."""
        weights = [1.0] * len(model.cardinalities)
        for v in maximize:
            # A negative number would count from the end.
            if not 0 <= v < len(weights):
                raise BadFile(f"the query has variable {v}, which does not exist")
            weights[v] = 0.0
        soft = {int(v): tuple(float(p) for p in row) for v, row in (likelihoods or {}).items()}
        return cls(tuple(weights), {int(v): int(s) for v, s in (evidence or {}).items()}, soft)

    def ranks(self) -> list[int]:
        """The place of each variable in the elimination; variables of one rank may be eliminated in any order."""
        if self.order is None:
            place = {w: k for k, w in enumerate(sorted(set(self.weights), reverse=True))}
            return [place[w] for w in self.weights]
        ranks, rank, last = [0] * len(self.weights), -1, None
        for v in self.order:
            if self.weights[v] != last:
                rank, last = rank + 1, self.weights[v]
            ranks[v] = rank
        return ranks

    def same_as(self, other: Question) -> bool:
        """Whether both ask the same: an order counts by the ranks alone that it gives."""
        return replace(self, order=None) == replace(other, order=None) and self.ranks() == other.ranks()

    def digest(self) -> str:
        """SHA-256 of weights, ranks, evidence and likelihoods: equal for the same question, and for no other."""
        words = [len(self.weights), *self.ranks(), len(self.evidence)]
        numbers = list(self.weights)
        for v, s in sorted(self.evidence.items()):
            words += [v, s]
        for v, row in sorted(self.likelihoods.items()):
            words.append(v)
            numbers += row
        # Adding 0 makes one zero of the two.
        data = np.array(words, "<i8").tobytes() + (np.array(numbers, "<f8") + 0.0).tobytes()
        return hashlib.sha256(b"powersum-question-1" + data).hexdigest()

    def summary(self) -> str:
        """The question in a few words, and the beginning of its digest."""
        parts = [f"{len(self.weights)} variables", f"{self.weights.count(0.0)} maximised"]
        others = sum(w not in (0.0, 1.0) for w in self.weights)
        for count, words in (
            (others, "of other weights"),
            (len(self.evidence), "observed"),
            (len(self.likelihoods), "with likelihoods"),
        ):
            if count:
                parts.append(f"{count} {words}")
        return ", ".join([*parts, f"digest {self.digest()[:16]}"])

    def in_full(self) -> str:
        """All of the question in one line."""
        maxima = [v for v, w in enumerate(self.weights) if w == 0.0]
        others = {v: w for v, w in enumerate(self.weights) if w not in (0.0, 1.0)}
        parts = [f"maximise {maxima}", f"evidence {dict(sorted(self.evidence.items()))}"]
        if others:
            parts.append(f"weights {others}")
        if self.likelihoods:
            parts.append(f"likelihoods {dict(sorted(self.likelihoods.items()))}")
        if self.order is not None:
            parts.append(f"order {list(self.order)}")
        return ", ".join(parts)

    def refuse_if_wrong(self, model: Model) -> None:
        """One line about the first thing in it that does not fit the model."""
        cards = model.cardinalities
        n = len(cards)
        if len(self.weights) != n:
            raise BadFile(f"the question has {len(self.weights)} weights, the model {n} variables")
        if not all(0.0 <= w <= 1e6 for w in self.weights):
            raise BadFile("a weight of the question is not a number from 0 to a million")
        for v, s in self.evidence.items():
            if not (0 <= v < n and 0 <= s < cards[v]):
                raise BadFile(f"evidence: variable {v} has no state {s}")
        for v, row in self.likelihoods.items():
            if not 0 <= v < n or len(row) != cards[v] or not all(0.0 <= p < math.inf for p in row):
                raise BadFile(f"the likelihoods of variable {v} do not fit it")
        if self.order is not None and sorted(self.order) != list(range(n)):
            raise BadFile("the order of the question does not name each variable once")


def evidence_of(pairs: Iterable[Sequence[int]], where: str) -> dict[int, int]:
    """Pairs (variable, state); the same one may be there again."""
    evidence: dict[int, int] = {}
    for v, s in pairs:
        if evidence.setdefault(v, s) != s:
            raise BadFile(f"{where}: variable {v} has two states")
    return evidence


def with_likelihoods(model: Model, question: Question) -> Model:
    """The model with one more factor for each likelihood, by rising variable."""
    more = []
    for v in sorted(question.likelihoods):
        # Likelihoods are the doubles themselves: the relative error that logs_of allows is more than they need.
        row = np.array(question.likelihoods[v])
        logs, error = logs_of(row)
        more.append(Factor((v,), Table(logs, error, error), row))
    return Model(model.cardinalities, (*model.factors, *more))
