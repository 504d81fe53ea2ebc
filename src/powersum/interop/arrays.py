"""Pairwise models from arrays: one row for each variable, one for each edge; no Python object for either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, starts_of
from powersum.core.errors import InputError
from powersum.model.model import Model, log_of_probabilities, whole_numbers


def from_arrays(
    unary: Any,
    edges: Any,
    pairwise: Any,
    *,
    log: bool = False,
    names: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
) -> Model:
    """A pairwise Markov network whose variables share their states, such as an image.

    Parameters
    ----------
    unary
        Array of shape ``(variables, states)``.
    edges
        Array of shape ``(edges, 2)``: the two variables of each edge.
    pairwise
        Array of shape ``(edges, states, states)``, or ``(states, states)`` for the same table on all edges. Rows belong
        to the first variable of an edge.
    log
        True if the tables hold natural logs.
    names, states
        Names of the variables, and the labels that the states of all of them have.

    Examples
    --------
    >>> import powersum as ps
    >>> model = ps.from_arrays([[1, 2], [1, 1], [3, 1]], [[0, 1], [1, 2]], [[2, 1], [1, 2]])
    >>> model.n_variables, model.n_factors
    (3, 5)
    >>> dict(ps.solve(model, maximize="all").assignment)
    {'0': 0, '1': 0, '2': 0}
    """
    own = np.asarray(unary, dtype=np.float64)
    if own.ndim != 2:
        raise InputError(f"unary has shape {own.shape}: it must be (variables, states)")
    pairs = whole_numbers(edges, "edges")
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise InputError(f"edges has shape {pairs.shape}: it must be (edges, 2)")
    pairs = pairs.astype(np.int64).reshape(-1, 2)
    count, size = own.shape
    tables: FloatArray = np.asarray(pairwise, dtype=np.float64)
    if tables.shape not in ((size, size), (len(pairs), size, size)):
        raise InputError(
            f"pairwise has shape {tables.shape}: {len(pairs)} edges between variables of {size} states "
            f"need ({size}, {size}) or ({len(pairs)}, {size}, {size})"
        )
    values = np.concatenate([own.ravel(), np.broadcast_to(tables, (len(pairs), size, size)).ravel()])
    return Model(
        cardinalities=np.full(count, size),
        scope_starts=starts_of(np.repeat([1, 2], [count, len(pairs)])),
        scope_variables=np.concatenate([np.arange(count), pairs.ravel()]),
        table_starts=starts_of(np.repeat([size, size * size], [count, len(pairs)])),
        log_values=values if log else log_of_probabilities(values),
        names=None if names is None else tuple(names),
        states=None if states is None else (tuple(states),) * count,
    )
