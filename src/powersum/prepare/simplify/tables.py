"""Tables: the factors on their way through simplification, in the flat arrays of a model but without its checks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, starts_of
from powersum.model.model import Model


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Scopes and log tables as in :class:`~powersum.model.model.Model`; variables keep their original numbers."""

    cardinalities: IntArray
    scope_starts: IntArray
    scope_variables: IntArray
    table_starts: IntArray
    log_values: FloatArray
    table_of: IntArray
    """For each factor of the model the table that it is part of by now; -1 where it has left as a constant."""

    def __post_init__(self) -> None:
        # Read-only throughout, like a model's arrays: so every kernel is compiled for one signature only.
        for field in ("cardinalities", "scope_starts", "scope_variables", "table_starts", "table_of"):
            object.__setattr__(self, field, frozen(getattr(self, field), np.int64))
        object.__setattr__(self, "log_values", frozen(self.log_values, np.float64))

    @classmethod
    def of(cls, model: Model) -> Tables:
        """The factors of a model; arrays are shared."""
        return cls(
            model.cardinalities,
            model.scope_starts,
            model.scope_variables,
            model.table_starts,
            model.log_values,
            np.arange(model.n_factors),
        )

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.scope_starts) - 1

    def select(self, keep: BoolArray) -> Tables:
        """Only the factors where ``keep`` is true."""
        if keep.all():
            return self
        lengths = np.diff(self.scope_starts)
        sizes = np.diff(self.table_starts)
        return Tables(
            self.cardinalities,
            starts_of(lengths[keep]),
            self.scope_variables[np.repeat(keep, lengths)],
            starts_of(sizes[keep]),
            self.log_values[np.repeat(keep, sizes)],
            np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)[self.table_of],
        )

    def constants(self) -> tuple[BoolArray, FloatArray]:
        """Which factors have one value throughout, as those of an empty scope have, and the largest value of each."""
        if not self.n_factors:
            return np.zeros(0, dtype=np.bool_), np.zeros(0)
        largest = np.maximum.reduceat(self.log_values, self.table_starts[:-1])
        return largest == np.minimum.reduceat(self.log_values, self.table_starts[:-1]), largest
