"""What other libraries hand over is checked, and what is wrong with it said by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.interop.distributions import with_sum_note
from powersum.model.model import Model

INFLUENCE_DIAGRAM = "an influence diagram has decisions and utilities: make it a Bayesian network first"
"""Why an influence diagram is refused, as an object and in every format of files."""


def checked_model(
    cardinalities: Sequence[int],
    factors: Sequence[tuple[Sequence[int], FloatArray]],
    *,
    directed: bool,
    names: Sequence[str],
    states: Sequence[Sequence[str]] | None,
) -> Model:
    """:meth:`Model.from_factors` of tables from elsewhere.

    An entry that is negative or not finite is an error that names the variables. Distributions of a Bayesian network
    that do not sum to one are taken as they are, with a note.
    """
    for scope, table in factors:
        bad = ~(np.isfinite(table) & (table >= 0.0))
        if bad.any():
            listed = ", ".join(names[v] for v in scope)
            raise InputError(
                f"the table of {listed} has the entry {table[bad].flat[0]}: entries must be finite and not negative"
            )
    return with_sum_note(Model.from_factors(cardinalities, factors, directed=directed, names=names, states=states))
