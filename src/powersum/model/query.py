"""Query: which variables are summed, which are maximised, and everything between, as one weight for each variable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, frozen
from powersum.core.errors import InputError
from powersum.model.keys import as_text, listed
from powersum.model.model import Model, VariableKey


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """The weights τ of the weighted log partition function (paper, eq. 3): 1 sums a variable out, 0 maximises it.

    Variables of larger weight are eliminated before those of smaller weight unless an order says otherwise; max
    variables always come last.

    Parameters
    ----------
    weights
        One for each variable.
    asked
        The maximised variables in the order in which they were asked for, which is that of the answer; without it they
        come by their numbers.
    """

    weights: FloatArray
    asked: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights)
        # True could mean summed as well as maximised.
        if weights.ndim != 1 or (weights.size and weights.dtype.kind not in "iuf"):
            raise InputError(f"weights is {as_text(self.weights)}: give a list of numbers, one for each variable")
        object.__setattr__(self, "weights", frozen(weights, np.float64))
        bad = ~(np.isfinite(self.weights) & (self.weights >= 0))
        if bad.any():
            raise InputError(f"weight {self.weights[bad][0]} of variable {int(np.argmax(bad))} is not a number ≥ 0")
        if self.asked is not None and sorted(self.asked) != self.max_variables.tolist():
            raise InputError(f"asked is {as_text(self.asked)}: it must name each variable of weight 0 once")

    def __reduce__(self) -> tuple[Any, ...]:
        # As for models: read-only on the other side, too.
        return Query, (self.weights, self.asked)

    @classmethod
    def of(cls, model: Model, maximize: Iterable[VariableKey] | str | None = None) -> Query:
        """Sum over everything but ``maximize``; ``"all"`` maximises every variable (MAP), ``None`` none (log Z)."""
        weights = np.ones(model.n_variables)
        asked = None
        if isinstance(maximize, str):
            if maximize != "all":
                raise InputError(f"maximize is {maximize!r}: give a list of variables, or 'all'")
            weights[:] = 0.0
        elif maximize is not None:
            keys = listed(maximize, "maximize", "a list of variables, or 'all'")
            asked = tuple(model.variable(key, argument="maximize") for key in keys)
            for index in asked:
                if weights[index] == 0.0:
                    raise InputError(f"the query names variable {model.name(index)} twice")
                weights[index] = 0.0
        return cls(weights, asked)

    @property
    def max_variables(self) -> IntArray:
        """Indices of the maximised variables."""
        return np.flatnonzero(self.weights == 0.0)

    @property
    def answered(self) -> tuple[int, ...]:
        """The same in the order of the answer: as they were asked for, or by their numbers."""
        return tuple(self.max_variables.tolist()) if self.asked is None else self.asked

    @property
    def task(self) -> str:
        """``PR`` (log Z), ``MAP``, ``MMAP``, or ``power-sum`` for other weights."""
        n_max, n_sum = np.count_nonzero(self.weights == 0.0), np.count_nonzero(self.weights == 1.0)
        if n_max + n_sum < len(self.weights):
            return "power-sum"
        if n_max == 0:
            return "PR"
        return "MMAP" if n_sum else "MAP"
