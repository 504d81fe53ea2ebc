"""Barren variables: summed, in one factor only, and the sum of that factor over them is the same in every row.

Leaves of a Bayesian network that nobody asks about are of this kind, for their distributions sum to one. It is read off
the numbers alone, so that a network written down as a Markov network, its tables in any order of axes, loses them too.
"""

from __future__ import annotations

import math

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen
from powersum.core.jit import compiled
from powersum.model.graph import incidence
from powersum.prepare.simplify.tables import Tables
from powersum.prepare.small import BARREN_TOLERANCE


def remove_barren(
    tables: Tables, tau: FloatArray, blocks: IntArray | None = None
) -> tuple[Tables, IntArray, float, float]:
    """Sum out variables whose sum is the same for all states of the others in their one factor, again and again.

    Taking out the leaves of a network makes leaves of their parents. Where sums differ in the last digits the largest
    is taken, and how far they differ is told.

    Pulling a sum inside past the parents is exact when no variable of another weight stands between them in the
    order. With weights 0 and 1 alone and no blocks this holds for every order that has its max variables last; with
    other weights it would depend on the order, and nothing is done. With blocks it holds where all others in the factor
    are of the same block or of a later one: they are eliminated after it, or with it.

    Parameters
    ----------
    tables
        The factors.
    tau
        Weight of each variable; of variables with one state it does not matter.
    blocks
        Number of each variable's block where sums and maxima alternate, 0 is eliminated first.

    Returns
    -------
    tables, removed, log_constant, log_error
        The remaining factors, rows of the variables that were summed out and of their factors, in this order, the log
        of the product of their sums, and by how much that may be too large.
    """
    # Variables in no factor stand in nobody's way.
    free = tau[tables.scope_variables[tables.cardinalities[tables.scope_variables] > 1]]
    if blocks is None and not np.all((free == 0.0) | (free == 1.0)):
        return tables, np.zeros((0, 2), dtype=np.int64), 0.0, 0.0
    places = incidence(len(tau), tables.scope_starts, tables.scope_variables)
    keep, removed, sums, widths = _remove_barren(
        tables.cardinalities,
        tables.scope_starts,
        tables.scope_variables,
        tables.table_starts,
        tables.log_values,
        frozen(places.starts, np.int64),
        frozen(places.factors, np.int64),
        frozen(tau, np.float64),
        frozen(np.zeros(len(tau), dtype=np.int64) if blocks is None else blocks, np.int64),
        BARREN_TOLERANCE,
    )
    return tables.select(keep), removed, math.fsum(sums), math.fsum(widths)


@compiled
def _remove_barren(
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    incident_starts: IntArray,
    incident_factors: IntArray,
    tau: FloatArray,
    block: IntArray,
    tolerance: float,
) -> tuple[BoolArray, IntArray, FloatArray, FloatArray]:
    n_variables, n_factors = len(cardinalities), len(scope_starts) - 1
    keep = np.ones(n_factors, np.bool_)
    removed = np.empty((n_variables, 2), np.int64)
    n_removed = 0
    sums = np.zeros(n_factors, np.float64)
    widths = np.zeros(n_factors, np.float64)
    degree = incident_starts[1:] - incident_starts[:-1]
    stack = np.empty(n_variables, np.int64)
    height = 0
    for v in range(n_variables):
        if degree[v] == 1 and tau[v] == 1.0:
            stack[height] = v
            height += 1
    while height > 0:
        height -= 1
        v = stack[height]
        # Its last factor may have gone since.
        k = -1
        for at in range(incident_starts[v], incident_starts[v + 1]):
            if keep[incident_factors[at]]:
                k = incident_factors[at]
        if k < 0:
            continue
        earlier = False
        for place in range(scope_starts[k], scope_starts[k + 1]):
            u = scope_variables[place]
            earlier = earlier or (cardinalities[u] > 1 and block[u] < block[v])
        if earlier:
            continue
        # States of v lie this far apart in the table.
        stride = 1
        place = scope_starts[k + 1] - 1
        while scope_variables[place] != v:
            stride *= cardinalities[scope_variables[place]]
            place -= 1
        card = cardinalities[v]
        least, most = np.inf, -np.inf
        for column in range((table_starts[k + 1] - table_starts[k]) // card):
            row = table_starts[k] + column // stride * stride * card + column % stride
            top = -np.inf
            for entry in range(row, row + stride * card, stride):
                top = max(top, log_values[entry])
            total = 0.0
            if top > -np.inf:
                for entry in range(row, row + stride * card, stride):
                    total += np.exp(log_values[entry] - top)
                top += np.log(total)
            least = min(least, top)
            most = max(most, top)
            if most - least > tolerance:
                break
        if least == -np.inf or most - least > tolerance:
            continue
        keep[k] = False
        removed[n_removed, 0], removed[n_removed, 1] = v, k
        n_removed += 1
        sums[k] = most
        widths[k] = most - least
        for place in range(scope_starts[k], scope_starts[k + 1]):
            u = scope_variables[place]
            degree[u] -= 1
            if degree[u] == 1 and tau[u] == 1.0:
                stack[height] = u
                height += 1
    return keep, removed[:n_removed].copy(), sums, widths
