"""``BoundFunction``: an upper bound as a function of all table entries, with its derivative, for learning."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError, TooLittleMemoryError
from powersum.core.memory import memory_left, memory_usually_left
from powersum.core.work_time import metered
from powersum.model.defaults import FIRST_SWEEPS
from powersum.model.evidence import evidence_of
from powersum.model.keys import as_text
from powersum.model.limits import Limits, number, whole_number
from powersum.model.model import Model, VariableKey
from powersum.model.question import EvidenceLike, ModelLike, Question, WeightsLike
from powersum.model.rounding import UNIT, certain

if TYPE_CHECKING:
    from powersum.api.warm_tree import WarmTree


TREE_BYTES = 1e9
"""Bytes that a tree takes at most, unless memory is given."""


class BoundFunction:
    """An upper bound and its derivative as a function of the numbers in the tables.

    Preparation, the covering tree and a first tightening happen once. A call takes the log values of all tables. It
    improves the shifts and weights of the tree from where the last call left them, and returns the bound and its
    derivative. Every value is a bound for the numbers of its call; where the tree is exact, it is the value itself.

    Parameters
    ----------
    model, maximize, evidence, weights
        The question, as in :func:`powersum.bound`.
    temperature
        Max variables are softened to this weight: the bound is smooth then, and still one, only larger. At 0, where it
        has kinks, the gradient is that of one of the best states, or a mixture of equally good ones.
    ibound
        At most one more variable than this in a table of the tree; by default as large as memory allows.
    sweeps, time_limit
        How long to tighten a tree that is not exact at first, with the model's own numbers.
    steps
        Steps of descent in each call after that; 0 keeps the shifts as they are.
    memory, threads, seed
        As in :func:`powersum.bound`. Where not even the smallest tree fits, the bound is that of every factor by
        itself, which nothing tightens.

    Attributes
    ----------
    exact
        Whether the tree is exact.

    Examples
    --------
    >>> import powersum as ps
    >>> rain = ps.Model.from_tables({"rain": {"no": 0.8, "yes": 0.2}, ("rain", "wet"): [[0.9, 0.1], [0.3, 0.7]]})
    >>> log_sum = ps.BoundFunction(rain, evidence={"wet": 1})
    >>> value, gradient = log_sum(rain.log_values)
    >>> gradient.round(4).tolist()
    [0.3636, 0.6364, 0.0, 0.3636, 0.0, 0.6364]
    >>> values, gradients = log_sum.batch([rain.log_values, 2.0 * rain.log_values])
    >>> gradients.shape
    (2, 6)
    """

    def __init__(
        self,
        model: ModelLike,
        maximize: Iterable[VariableKey] | str | None = None,
        *,
        evidence: EvidenceLike | None = None,
        weights: WeightsLike | None = None,
        temperature: float = 0.0,
        ibound: int | None = None,
        sweeps: int = FIRST_SWEEPS,
        steps: int = 1,
        time_limit: float | None = None,
        memory: float | str | None = None,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        # Compiled modules are imported where they are used, so that ``import powersum`` stays quick.
        from powersum.api.warm_tree import WarmFactors, WarmTree
        from powersum.bounds.buckets.sweeps import LEAST_WEIGHT_SHARE

        limits = Limits.given(sweeps=sweeps, time_limit=time_limit, memory=memory, threads=threads, seed=seed)
        left = memory_usually_left(limits.bytes) if metered() else memory_left(limits.bytes)
        tables = replace(limits, memory=left if memory is not None else min(left, TREE_BYTES))
        if ibound is not None:
            ibound = whole_number(ibound, "ibound", 0)
        temperature = number(temperature, "temperature")
        if not (temperature == 0.0 or LEAST_WEIGHT_SHARE <= temperature < math.inf):
            raise InputError(
                f"temperature is {temperature}: it must be 0, or {LEAST_WEIGHT_SHARE:g} or more, and finite"
            )
        self._steps = whole_number(steps, "steps", 0)
        question = Question.of(model, maximize, evidence=evidence, weights=weights, limits=limits)
        question.no_blocks("BoundFunction")
        self._ask(question)
        problem = self._known.problem
        self._tree: WarmTree | WarmFactors | None = None
        if problem.model.n_variables:
            try:
                self._tree = WarmTree(problem, tables, temperature=temperature, ibound=ibound)
            except TooLittleMemoryError:
                self._tree = WarmFactors(problem, temperature=temperature)

    def _ask(self, question: Question) -> None:
        from powersum.prepare.conditioned import conditioned

        self._question = question
        self._known = conditioned(question)
        self._points: dict[int, FloatArray] = {}
        entries = question.observed.model.log_values.size
        self._whole = np.array_equal(self._known.entries, np.arange(entries))
        self._entries = slice(None) if self._whole else self._known.entries
        likelihoods = question.observed.model.log_values[question.model.log_values.size :]
        seen = float(np.abs(likelihoods[likelihoods > -math.inf]).sum())
        self._log_error = UNIT * (2.0 * seen + (question.model.n_variables + 4.0) * self._known.log_free)
        """Rounding of logs of likelihoods and of numbers of states."""

    @property
    def model(self) -> Model:
        """The model whose structure it is."""
        return self._question.model

    @property
    def exact(self) -> bool:
        """True where no variable of the tree is split: values are then exact, but for a temperature."""
        return self._tree is None or self._tree.exact

    def with_evidence(self, evidence: EvidenceLike) -> BoundFunction:
        """The same question with other states of the observed variables, on the same tree.

        It has shifts of its own, beginning where these began. Calls of the two must not run at the same time in two
        threads: one waits for the other.
        """
        known = evidence_of(self.model, evidence)
        if known.states.keys() != self._question.evidence.states.keys() or known.likelihoods:
            raise InputError("evidence must give states, and to the same variables as before")
        if self._question.evidence.likelihoods:
            raise InputError("evidence with likelihoods cannot be exchanged: make another BoundFunction")
        other = object.__new__(BoundFunction)
        other._steps, other._tree = self._steps, self._tree
        other._ask(replace(self._question, evidence=known))
        return other

    def __call__(self, log_values: Any = None, *, steps: int | None = None) -> tuple[float, FloatArray]:
        """Bound and gradient for these log values of all tables, the model's own if not given.

        Parameters
        ----------
        log_values
            As many as ``model.log_values`` has, and laid out like it.
        steps
            Steps of descent in this call, if not those of all.

        Returns
        -------
        value, gradient
            The bound, rounding counted, and an array laid out like ``model.log_values``. Entries that evidence
            excludes have derivative 0; all of it is 0 where nothing has positive probability.
        """
        model = self.model if log_values is None else self.model.with_log_values(log_values)
        return self._value_and_gradient(model, 0, self._steps if steps is None else whole_number(steps, "steps", 0))

    def batch(self, log_values: Any, *, steps: int | None = None) -> tuple[FloatArray, FloatArray]:
        """The same for each row of an array, with shifts of its own for each row number.

        Returns
        -------
        values, gradients
            Of shape ``(rows,)`` and ``(rows, entries)``.
        """
        steps = self._steps if steps is None else whole_number(steps, "steps", 0)
        if not isinstance(log_values, Iterable) or isinstance(log_values, str):
            raise InputError(f"log_values is {as_text(log_values)}: give an array with a row for each set of numbers")
        rows = [self.model.with_log_values(row) for row in log_values]
        values = np.empty(len(rows))
        gradients = np.empty((len(rows), self.model.log_values.size))
        for number_of_row, row in enumerate(rows):
            values[number_of_row], gradients[number_of_row] = self._value_and_gradient(row, number_of_row, steps)
        return values, gradients

    def forget(self) -> None:
        """Go back to the shifts of the first tightening: results forget earlier calls."""
        self._points.clear()

    def _value_and_gradient(self, model: Model, row: int, steps: int) -> tuple[float, FloatArray]:
        question, known = self._question, self._known
        shown = question.evidence.shown_by(model).model if question.evidence.likelihoods else model
        gradient = np.zeros(shown.log_values.size)
        log_upper = log_constant = math.fsum([known.log_free, *shown.log_values[known.constants].tolist()])
        if log_upper > -math.inf:
            gradient[known.constants] = 1.0
            if self._tree is not None:
                left = shown
                if not self._whole:
                    left = known.problem.model.with_log_values(shown.log_values[known.entries])
                point = self._points.get(row, self._tree.start)
                bound, gradient[self._entries], self._points[row] = self._tree.run(left, point, steps)
                log_upper += bound
        if log_upper == -math.inf:
            gradient[:] = 0.0
        else:
            # Evidence only selects numbers: this sum is all that is rounded here, the tree has counted its own.
            log_upper = certain(log_upper, self._log_error + UNIT * (2.0 * abs(log_constant) + 4.0 * abs(log_upper)))
        return log_upper, gradient[: model.log_values.size]
