"""Impossible states: generalised arc consistency over the factors, to its fixpoint, in linear time."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, frozen, starts_of
from powersum.core.jit import compiled
from powersum.core.odometer import next_entry
from powersum.model.graph import incidence
from powersum.prepare.simplify.tables import Tables


def possible_states(tables: Tables, possible: BoolArray) -> BoolArray:
    """Which states are left when every state needs a supported tuple in each factor of its variable.

    Parameters
    ----------
    tables
        The factors.
    possible
        One entry for each state of each variable in turn: false where evidence excludes it.

    Returns
    -------
    BoolArray
        A new mask; some variable has no state left exactly when the factors contradict one another at this level
        of consistency.
    """
    if not np.isneginf(tables.log_values).any():
        # Without zeros every tuple of possible states is a support.
        return possible
    places = incidence(len(tables.cardinalities), tables.scope_starts, tables.scope_variables)
    state_starts = starts_of(tables.cardinalities)
    left = possible.copy()
    _propagate(
        tables.cardinalities,
        frozen(state_starts, np.int64),
        frozen(np.repeat(np.arange(len(tables.cardinalities)), tables.cardinalities), np.int64),
        tables.scope_starts,
        tables.scope_variables,
        tables.table_starts,
        tables.log_values,
        frozen(places.starts, np.int64),
        frozen(places.factors, np.int64),
        frozen(places.positions, np.int64),
        left,
    )
    return left


@compiled
def _propagate(
    cardinalities: IntArray,
    state_starts: IntArray,
    owner: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    incident_starts: IntArray,
    incident_factors: IntArray,
    incident_positions: IntArray,
    possible: BoolArray,
) -> None:
    """Count the supports of each state in each factor; a state without one dies and takes its tuples along.

    ``owner`` is the variable of each state. A tuple dies once, and is met once for each of its variables: the work is
    linear in the tables.
    """
    n_factors = len(scope_starts) - 1
    # Supports of state s at a place lie at counts[count_starts[place] + s].
    count_starts = np.empty(len(scope_variables) + 1, np.int64)
    count_starts[0] = 0
    for place in range(len(scope_variables)):
        count_starts[place + 1] = count_starts[place] + cardinalities[scope_variables[place]]
    counts = np.zeros(count_starts[-1], np.int64)
    dead = np.empty(len(log_values), np.bool_)
    stack = np.empty(len(possible), np.int64)
    height = 0

    widest = 0
    for k in range(n_factors):
        widest = max(widest, scope_starts[k + 1] - scope_starts[k])
    digits = np.empty(widest, np.int64)
    sizes = np.empty(widest, np.int64)
    nowhere = np.zeros(widest, np.int64)
    for k in range(n_factors):
        first, width = scope_starts[k], scope_starts[k + 1] - scope_starts[k]
        for axis in range(width):
            digits[axis] = 0
            sizes[axis] = cardinalities[scope_variables[first + axis]]
        for entry in range(table_starts[k], table_starts[k + 1]):
            alive = log_values[entry] != -np.inf
            for axis in range(width):
                alive = alive and possible[state_starts[scope_variables[first + axis]] + digits[axis]]
            dead[entry] = not alive
            if alive:
                for axis in range(width):
                    counts[count_starts[first + axis] + digits[axis]] += 1
            next_entry(entry, digits[:width], sizes[:width], nowhere[:width])
    for place in range(len(scope_variables)):
        v = scope_variables[place]
        for s in range(cardinalities[v]):
            if counts[count_starts[place] + s] == 0 and possible[state_starts[v] + s]:
                possible[state_starts[v] + s] = False
                stack[height] = state_starts[v] + s
                height += 1

    while height > 0:
        height -= 1
        gone = stack[height]
        variable = owner[gone]
        state = gone - state_starts[variable]
        for at in range(incident_starts[variable], incident_starts[variable + 1]):
            k = incident_factors[at]
            first, last = scope_starts[k], scope_starts[k + 1]
            stride = 1
            for place in range(first + incident_positions[at] + 1, last):
                stride *= cardinalities[scope_variables[place]]
            block = stride * cardinalities[variable]
            for slab in range(table_starts[k] + state * stride, table_starts[k + 1], block):
                for entry in range(slab, slab + stride):
                    if dead[entry]:
                        continue
                    dead[entry] = True
                    rest = entry - table_starts[k]
                    for place in range(last - 1, first - 1, -1):
                        v = scope_variables[place]
                        s = rest % cardinalities[v]
                        rest //= cardinalities[v]
                        counts[count_starts[place] + s] -= 1
                        if counts[count_starts[place] + s] == 0 and possible[state_starts[v] + s]:
                            possible[state_starts[v] + s] = False
                            stack[height] = state_starts[v] + s
                            height += 1
