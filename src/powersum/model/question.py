"""Question: a model, what is asked about it, what is known, and what the answer may cost, checked in one place."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.model.above import above
from powersum.model.evidence import Evidence, Observed, evidence_of
from powersum.model.keys import Place, as_text, listed
from powersum.model.limits import Limits
from powersum.model.model import Model, StateKey, VariableKey
from powersum.model.query import Query

EvidenceLike = Mapping[Any, Any] | Iterable[Any]
"""A dictionary, a list of pairs, a pandas Series or a named tuple."""

ModelLike = Model | str | os.PathLike[str]
"""A model, or the path of its file."""

WeightsLike = Query | Sequence[float] | FloatArray
"""A weight for each variable, or a :class:`powersum.Query`."""

TASKS = {"PR": "log partition function", "MAP": "MAP", "MMAP": "marginal MAP", "power-sum": "power sum"}
"""What people call the tasks."""

SHOWN = 12
"""Names that a line on a question lists; more are counted."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a result remembers of its question: small, without the model, by names and labels.

    Parameters
    ----------
    model
        What the model is called: the name of its file, or nothing.
    digest, structure
        SHA-256 of all numbers of the model, and of its structure as certificates have it: :mod:`powersum.model.digest`.
    task
        ``PR`` (log Z), ``MAP``, ``MMAP``, or ``power-sum`` for weights other than 0 and 1.
    maximize
        Names of the maximised variables, in the order asked for, which is that of the answer.
    evidence
        Observed states.
    likelihoods
        Likelihoods of all states of a variable, in the order of the states.
    weights
        The weight of each variable for the task ``power-sum``, else None.
    blocks
        The number of each variable's block where sums and maxima alternate, else None.
    """

    model: str
    digest: str
    structure: str
    task: str
    maximize: tuple[str, ...] = ()
    evidence: Mapping[str, StateKey] = field(default_factory=dict)
    likelihoods: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    weights: tuple[float, ...] | None = None
    blocks: tuple[int, ...] | None = None

    @property
    def known(self) -> bool:
        """True where there was evidence of any kind."""
        return bool(self.evidence or self.likelihoods)


@dataclass(frozen=True, eq=False)
class Question:
    """One question about one model. Every entry makes one by :meth:`of`, and nothing else checks arguments.

    Parameters
    ----------
    model
        The model, without evidence.
    query
        What is summed and what maximised.
    evidence
        Observed states and likelihoods, by numbers.
    limits
        What the answer may cost.
    order
        The elimination order of all variables, where the user gave one.
    """

    model: Model
    query: Query
    evidence: Evidence
    limits: Limits
    order: IntArray | None = None

    @classmethod
    def of(
        cls,
        model: ModelLike,
        maximize: Iterable[VariableKey] | str | None = None,
        *,
        evidence: EvidenceLike | None = None,
        weights: WeightsLike | None = None,
        order: Any = None,
        limits: Limits | None = None,
    ) -> Question:
        """Check a question as users ask it.

        Parameters
        ----------
        model
            The model, or the path of its file.
        maximize, weights
            Variables to maximise, or the weights of all; not both.
        evidence
            States and likelihoods, see :func:`powersum.model.evidence.evidence_of`.
        order
            Names or numbers of all variables, first eliminated first; an array holds places. That max variables come
            last is checked with the other rules of orders, by :func:`powersum.prepare.ordering.check_order`.
        limits
            None for none.
        """
        model = model_of(model)
        asked = _query_of(model, maximize, weights)
        known = evidence_of(model, evidence)
        eliminated = None
        if order is not None:
            # An array is an order by places, as files have it.
            places = isinstance(order, np.ndarray) and order.dtype.kind in "iu" and order.ndim == 1
            keys = map(Place, order.tolist()) if places else listed(order, "order")
            numbers = [model.variable(key, argument="order") for key in keys]
            eliminated = np.array(numbers, dtype=np.int64)
        return cls(model, asked, known, Limits() if limits is None else limits, eliminated)

    @cached_property
    def observed(self) -> Observed:
        """The model as the evidence shows it, with a factor for each likelihood, and the observed states."""
        return self.evidence.shown_by(self.model)

    @property
    def all_evidence(self) -> dict[int, Any]:
        """States and likelihoods together by places, as the public functions take them."""
        states, likelihoods = self.evidence
        return {Place(v): Place(s) for v, s in states.items()} | {Place(v): row for v, row in likelihoods.items()}

    @property
    def key(self) -> tuple[bytes, bytes, tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]:
        """Equal for questions about one model that have the same answer, written in the same order."""
        states, likelihoods = (tuple(sorted(known.items())) for known in self.evidence)
        query = self.query
        return query.weights.tobytes(), query.rank.tobytes(), states, likelihoods, query.answered

    def summed(self) -> Question:
        """The question of the sum of everything: log Z."""
        return replace(self, query=Query(np.ones(self.model.n_variables)))

    def within(self, allowed: Mapping[int, Collection[int]]) -> Question | None:
        """The question with only these states of these variables; None where nothing is left of one.

        A state that is not allowed has likelihood 0, so that the value of every other configuration stays what it is.
        """
        states, likelihoods = dict(self.evidence.states), dict(self.evidence.likelihoods)
        for variable, kept in allowed.items():
            if not kept or (variable in states and states[variable] not in kept):
                return None
            size = int(self.model.cardinalities[variable])
            if variable in likelihoods:
                own = tuple(value if state in kept else 0.0 for state, value in enumerate(likelihoods[variable]))
                if not any(own):
                    return None
                likelihoods[variable] = own
            elif len(kept) == 1:
                (states[variable],) = kept
            elif len(kept) < size and variable not in states:
                likelihoods[variable] = tuple(1.0 if state in kept else 0.0 for state in range(size))
        return replace(self, evidence=Evidence(states, dict(sorted(likelihoods.items()))))

    def only_sums_and_maxima(self, entry: str) -> None:
        """Refuse other weights and blocks that alternate, for an entry that cannot answer them."""
        self.no_blocks(entry)
        if self.query.task == "power-sum":
            raise InputError(f"{entry} takes weights 0 and 1 only; bound takes any")

    def no_blocks(self, entry: str) -> None:
        """Refuse blocks that alternate, for an entry that cannot answer them."""
        if self.query.blocks is not None:
            raise InputError(f"{entry} takes maxima outside all sums only; solve and bound take any blocks")

    def answer(self, states: IntArray) -> dict[str, StateKey]:
        """States of all variables as an answer: names and labels of those asked for, in the order asked."""
        return {self.model.name(v): self.model.label(v, int(states[v])) for v in self.query.answered}

    def __str__(self) -> str:
        """The question in one line, by names and labels; long lists are shortened."""
        name, query = self.model.name, self.query
        text = TASKS[query.task]
        if query.task == "MMAP":
            names = shortened([name(v) for v in query.answered])
            text += f" over {names} ({len(query.answered)} of {self.model.n_variables} variables)"
        return text + self.given

    @property
    def given(self) -> str:
        """All evidence in words, for the end of a line: `` given cough=yes``; nothing where there is none."""
        name = self.model.name
        known = [f"{name(v)}={self.model.label(v, s)}" for v, s in self.evidence.states.items()]
        known += [f"{name(v)}~({shortened([f'{x:g}' for x in row])})" for v, row in self.evidence.likelihoods.items()]
        return f" given {shortened(known)}" if known else ""

    def asked(self) -> Asked:
        """What a result keeps of this question."""
        name = self.model.name
        return Asked(
            model=self.model.title,
            digest=self.model.digest,
            structure=self.model.structure,
            task=self.query.task,
            maximize=tuple(name(v) for v in self.query.answered),
            evidence={name(v): self.model.label(v, s) for v, s in self.evidence.states.items()},
            likelihoods={name(v): row for v, row in self.evidence.likelihoods.items()},
            weights=tuple(self.query.weights.tolist()) if self.query.task == "power-sum" else None,
            blocks=None if self.query.blocks is None else tuple(self.query.blocks.tolist()),
        )


def asked_again(asked: Asked, model: Model, limits: Limits | None = None) -> Question:
    """The question that a result remembers, about the model at hand, which must be the one."""
    if asked.structure != model.structure:
        raise InputError("the result is about another model than the one that is given")
    query = None
    if asked.weights is not None:
        blocks = None if asked.blocks is None else np.array(asked.blocks, dtype=np.int64)
        query = Query(np.array(asked.weights), asked=None, blocks=blocks)
    maximize = asked.maximize if query is None else None
    return Question.of(model, maximize, evidence={**asked.evidence, **asked.likelihoods}, weights=query, limits=limits)


def model_of(model: ModelLike) -> Model:
    """A model as it is, or read from the file that a path names."""
    if isinstance(model, Model):
        return model
    if not isinstance(model, (str, os.PathLike)):
        raise InputError(f"model is {as_text(model)}: give a powersum.Model, or the path of a file")
    found: Model = above("read")(model)
    return found


def function_of(function: Any, argument: str) -> None:
    """Refuse what cannot be called; None is fine."""
    if function is not None and not callable(function):
        raise InputError(f"{argument} is {as_text(function)}: give a function")


def shortened(words: Sequence[str]) -> str:
    """A list of words, of which the last are only counted where there are many."""
    rest = len(words) - SHOWN
    return ", ".join(words) if rest <= 0 else f"{', '.join(words[:SHOWN])} and {rest} more"


def _query_of(model: Model, maximize: Iterable[VariableKey] | str | None, weights: WeightsLike | None) -> Query:
    """The query of a call that takes either ``maximize`` or ``weights``."""
    if weights is None:
        return Query.of(model, maximize)
    if maximize is not None:
        raise InputError("give maximize or weights, not both")
    query = weights if isinstance(weights, Query) else Query(np.asarray(weights))
    if len(query.weights) != model.n_variables:
        raise InputError(f"weights has {len(query.weights)} numbers, the model {model.n_variables} variables")
    return query
