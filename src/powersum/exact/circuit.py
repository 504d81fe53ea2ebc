"""The way down of conditioning: what its search has logged is a circuit, and one pass down gives all distributions.

A node of the circuit is a component, its branches are the states of the variable set there. A branch multiplies the
components that it leaves, and variables on which nothing depends any more, whose states alive are equally likely; a
node adds its branches up. The share of a branch in its node times what reaches the node reaches what the branch leaves
(Darwiche's differential approach). A component met again is one node, whose share comes from all that lead to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.exact.count_contexts import NONE, ONE, MaskArray, SmallArray
from powersum.exact.count_parts import number_of
from powersum.model.rounding import EXPONENTIAL, UNIT
from powersum.prepare.ordering.fill import lowest_bit

LEAST = 1e-300
"""Shares below this are nothing: all of them together are less than is allowed for numbers that leave the doubles."""

MOST_TERMS = 1e9
"""As many of them as that allows for."""


class Circuit(NamedTuple):
    """What a search has logged: all that a branch leads to comes before it.

    A row is a node, its variable, a state (-1: all are through), the number of components that this leaves, two columns
    for certificates, and where the variables that are settled begin and end.
    """

    rows: SmallArray
    values: FloatArray  # of the branch, or of the node where it is through
    children: SmallArray
    settled: SmallArray
    masks: MaskArray


def distributions(circuit: Circuit, cardinalities: IntArray) -> tuple[FloatArray, float] | None:
    """The distributions of all variables, one after another, and what this way adds to relative rounding errors.

    None where nothing is possible, or the circuit is too large for its rounding to be told.
    """
    terms = float(len(circuit.rows) + len(circuit.children) + len(circuit.settled))
    if not len(circuit.rows) or circuit.values[-1] == -np.inf or terms > MOST_TERMS:
        return None
    beliefs = np.zeros(int(cardinalities.sum()))
    starts = np.cumsum(cardinalities) - cardinalities
    _descend(circuit, starts, beliefs)
    # Terms of one sign are added up, each of which is in one sum of a way from the root; each level takes a share.
    return beliefs, UNIT * (terms + (EXPONENTIAL + 8.0) * len(cardinalities))


@compiled
def _descend(circuit: Circuit, starts: IntArray, beliefs: FloatArray) -> None:
    """From the last row, that of the whole, to the first: whoever leads to a node has been there before it."""
    rows, values = circuit.rows, circuit.values
    n_nodes = 1
    for row in range(len(rows)):
        n_nodes = max(n_nodes, rows[row, 0] + 1)
    share, whole = np.zeros(n_nodes), np.zeros(n_nodes)
    share[0] = 1.0
    whole[0] = values[len(rows) - 1]
    listed = len(circuit.children)
    for row in range(len(rows) - 1, -1, -1):
        node = rows[row, 0]
        listed -= rows[row, 3]
        if rows[row, 2] < 0:
            whole[node] = values[row]
            continue
        if share[node] == 0.0 or values[row] == -np.inf:
            continue
        part = share[node] * np.exp(values[row] - whole[node])
        if part < LEAST:
            continue
        for i in range(listed, listed + rows[row, 3]):
            share[circuit.children[i]] += part
        for i in range(rows[row, 6], rows[row, 7]):
            mask = circuit.masks[i]
            each = part / number_of(mask)
            start = starts[circuit.settled[i]]
            while mask != NONE:
                beliefs[start + lowest_bit(mask)] += each
                mask &= mask - ONE
