"""Expectations of tables under independent distributions, and updates of one distribution given all others."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled, inner

LEAST = 1e-12
"""Smaller probabilities become 0: they gain nothing, and stand in the way where an entry is impossible."""


class IncidentTables(NamedTuple):
    """A model's tables, which of them each variable is in, and where the states of each variable begin in ``q``."""

    cardinalities: IntArray
    scope_starts: IntArray
    scope_variables: IntArray
    table_starts: IntArray
    log_values: FloatArray
    incident_starts: IntArray
    incident: IntArray
    state_starts: IntArray


@inner
def _expect(
    factor: int, chosen: BoolArray, tables: IncidentTables, q: FloatArray, first_target: int, targets: FloatArray
) -> None:
    """Add a table's expectation given the states of its chosen variables, with the others distributed as ``q``."""
    first, last = tables.scope_starts[factor], tables.scope_starts[factor + 1]
    for entry in range(tables.table_starts[factor], tables.table_starts[factor + 1]):
        rest = entry - tables.table_starts[factor]
        weight = 1.0
        place = 0
        stride = 1
        for at in range(last - 1, first - 1, -1):
            v = tables.scope_variables[at]
            state = rest % tables.cardinalities[v]
            rest //= tables.cardinalities[v]
            if chosen[v]:
                place += stride * state
                stride *= tables.cardinalities[v]
            else:
                weight *= q[tables.state_starts[v] + state]
        # An entry of no weight may be impossible, and nothing times minus infinity is no number.
        if weight > 0.0:
            targets[first_target + place] += weight * tables.log_values[entry]


@compiled
def contract(
    core: BoolArray, tables: IncidentTables, q: FloatArray, target_starts: IntArray, targets: FloatArray
) -> None:
    """For each factor its expectation given the states of its variables in the core, others distributed as ``q``."""
    targets[:] = 0.0
    for factor in range(len(tables.scope_starts) - 1):
        _expect(factor, core, tables, q, target_starts[factor], targets)


@inner
def _fields(v: int, own: BoolArray, tables: IncidentTables, q: FloatArray, fields: FloatArray) -> None:
    """What each state of a variable is worth: the expectations of its factors given that state.

    ``own`` is scratch: false for all variables.
    """
    fields[: tables.cardinalities[v]] = 0.0
    own[v] = True
    for i in range(tables.incident_starts[v], tables.incident_starts[v + 1]):
        _expect(tables.incident[i], own, tables, q, 0, fields)
    own[v] = False


@compiled
def update_others(others: IntArray, is_max: BoolArray, tables: IncidentTables, q: FloatArray) -> bool:
    """Each of the variables in turn: the best distribution given all others; True when any of them moved.

    For a maximised variable that is the best state, for a summed one the exponentials of what its states are worth.
    """
    fields = np.empty(np.max(tables.cardinalities))
    own = np.zeros(len(tables.cardinalities), np.bool_)
    moved = False
    for v in others:
        _fields(v, own, tables, q, fields)
        start, card = tables.state_starts[v], tables.cardinalities[v]
        best = 0
        for s in range(1, card):
            if fields[s] > fields[best]:
                best = s
        if not fields[best] > -math.inf:
            continue
        if is_max[v]:
            now = 0
            for s in range(card):
                if q[start + s] > 0.5:
                    now = s
            # Only what is better by more than rounding: equal states must not take turns.
            if fields[best] > fields[now] + 1e-9:
                q[start + now] = 0.0
                q[start + best] = 1.0
                moved = True
            continue
        total, top = 0.0, fields[best]
        for s in range(card):
            share = math.exp(fields[s] - top) if fields[s] > -math.inf else 0.0
            fields[s] = share if share > LEAST else 0.0
            total += fields[s]
        for s in range(card):
            share = fields[s] / total
            if abs(share - q[start + s]) > 1e-9:
                moved = True
            q[start + s] = share
    return moved


@compiled
def all_fields(others: IntArray, tables: IncidentTables, q: FloatArray, found: FloatArray) -> None:
    """What each state of each of the variables is worth, given the distributions of all others."""
    own = np.zeros(len(tables.cardinalities), np.bool_)
    for v in others:
        _fields(v, own, tables, q, found[tables.state_starts[v] :])
