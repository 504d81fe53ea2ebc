"""What became of each factor of the original model, so that a certificate can tell simplification step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from powersum.core.arrays import IntArray
from powersum.model.model import Model

if TYPE_CHECKING:
    from powersum.prepare.simplify.tables import Tables


@dataclass(slots=True, eq=False)
class Fates:
    """Where the factors have gone.

    Parameters
    ----------
    table_of
        For each factor of the original model the reduced one that it is part of; -1 where it left before.
    groups
        Factors that were added up, whatever became of them then, have the same number: that of the first of them.
    barren_of
        The barren variable that each factor left with, as a number in ``barren``; -1 for all others.
    barren
        Of each barren variable, in the order in which they were summed out, the scope of its table: itself, and all
        others that it was the same for.
    """

    table_of: IntArray
    groups: IntArray
    barren_of: IntArray
    barren: list[IntArray] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model) -> Fates:
        """Nothing has happened yet."""
        n = model.n_factors
        return cls(np.full(n, -1, dtype=np.int64), np.arange(n), np.full(n, -1, dtype=np.int64))

    def note_barren(self, tables: Tables, gone: IntArray) -> None:
        """Variables were summed out with tables: rows of both."""
        number = np.full(tables.n_factors + 1, -1, dtype=np.int64)
        for variable, table in gone.tolist():
            number[table] = len(self.barren)
            scope = tables.scope_variables[tables.scope_starts[table] : tables.scope_starts[table + 1]]
            self.barren.append(np.concatenate([[variable], scope[scope != variable]]))
        self.barren_of = np.maximum(self.barren_of, number[tables.table_of])

    def note_groups(self, tables: Tables) -> None:
        """Factors were added to one another."""
        inside = np.flatnonzero(tables.table_of >= 0)
        _, first, number = np.unique(tables.table_of[inside], return_index=True, return_inverse=True)
        self.groups[inside] = inside[first][number]

    def among(self, kept: IntArray) -> Fates:
        """The same for a part of the reduced factors: the new number of each, -1 for those of other parts."""
        return Fates(np.append(kept, -1)[self.table_of], self.groups, self.barren_of, self.barren)
