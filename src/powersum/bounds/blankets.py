"""Bounds on distributions from the variables around: a probability lies between its values given any states of them.

Given all variables that share a table with it, a variable depends on nothing else. Its distribution is a mean of its
conditional distributions, weighted by how probable the surroundings are, and so within their range, however wide the
model. Where they have too many states, each table has its own range, and the ranges of logs of ratios add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.model.graph import incidence
from powersum.model.model import Model
from powersum.model.rounding import EXPONENTIAL, UNIT, magnitude

MOST_ENTRIES = 2.0**15
"""Entries of the table of a variable and its surroundings up to which they are looked at together."""


def blanket_bounds(model: Model) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Each variable with logs of both sides of the probability of each of its states; not those of very many states.

    All variables are summed over, none is observed, and no state is impossible.
    """
    places = incidence(model.n_variables, model.scope_starts, model.scope_variables)
    for v in range(model.n_variables):
        factors = [model.factor(int(f)) for f in places.factors[places.starts[v] : places.starts[v + 1]]]
        around = sorted({u for factor in factors for u in factor.scope} - {v})
        size = int(model.cardinalities[v])
        entries = float(size) * math.prod(model.cardinalities[around].astype(np.float64).tolist())
        largest = 1.0 + sum(magnitude(factor.log_table) for factor in factors)
        error = UNIT * (4.0 * (len(factors) + 4.0) * largest + 16.0 * size + 4.0 * EXPONENTIAL)
        if entries <= MOST_ENTRIES:
            tables = [_with_axes(factor.log_table, factor.scope, (v, *around)) for factor in factors]
            lower, upper = _together(tables, size, [int(model.cardinalities[u]) for u in around])
        elif size * size > MOST_ENTRIES:
            continue
        else:
            # Their own axes alone: an array has no more than 64.
            lower, upper = _table_by_table([np.moveaxis(f.log_table, f.scope.index(v), 0) for f in factors], size)
        yield v, lower - error, np.minimum(upper + error, 0.0)


def _with_axes(table: FloatArray, scope: tuple[int, ...], axes: tuple[int, ...]) -> FloatArray:
    """A table with an axis for each variable of a larger scope, of length 1 for those it does not depend on."""
    place = {v: axis for axis, v in enumerate(axes)}
    order = sorted(range(len(scope)), key=lambda axis: place[scope[axis]])
    shape = [1] * len(axes)
    for v, length in zip(scope, table.shape, strict=True):
        shape[place[v]] = length
    return table.transpose(order).reshape(shape)


def _together(tables: list[FloatArray], size: int, around: list[int]) -> tuple[FloatArray, FloatArray]:
    """The range of the conditional distribution over all surroundings that these tables allow."""
    total = np.zeros((size, *around))
    for table in tables:
        total += table
    total = total.reshape(size, -1)
    top = total.max(axis=0)
    shares = total[:, top > -np.inf] - top[top > -np.inf]
    shares -= np.log(np.exp(shares).sum(axis=0))
    return shares.min(axis=1), shares.max(axis=1)


def _table_by_table(tables: list[FloatArray], size: int) -> tuple[FloatArray, FloatArray]:
    """The same from the ranges of the logs of ratios between two states, table by table."""
    most = np.zeros((size, size))
    for table in tables:
        flat = table.reshape(size, -1)
        for s in range(size):
            # Surroundings that exclude both states say nothing.
            with np.errstate(invalid="ignore"):
                ratios = np.where((flat == -np.inf) & (flat[s] == -np.inf), -np.inf, flat - flat[s])
            most[:, s] += ratios.max(axis=1)
    most[np.isnan(most)] = np.inf
    np.fill_diagonal(most, 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        # At most so many times as probable as a state are the others, and at least so many.
        lower = -np.log(np.exp(most).sum(axis=0))
        upper = -np.log(np.exp(-most).sum(axis=1))
    return lower, upper
