"""Expectations of tables under independent distributions, and updates of one distribution given all others."""

from __future__ import annotations

import math

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled, inner

LEAST = 1e-12
"""Smaller probabilities become 0: they gain nothing, and stand in the way where an entry is impossible."""


@compiled
def contract(
    core: BoolArray,
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    state_starts: IntArray,
    q: FloatArray,
    target_starts: IntArray,
    targets: FloatArray,
) -> None:
    """For each factor its expectation given the states of its variables in the core, others distributed as ``q``."""
    for i in range(targets.size):
        targets[i] = 0.0
    for factor in range(scope_starts.size - 1):
        first, last = scope_starts[factor], scope_starts[factor + 1]
        base = target_starts[factor]
        for entry in range(table_starts[factor], table_starts[factor + 1]):
            rest = entry - table_starts[factor]
            weight = 1.0
            place = 0
            stride = 1
            for at in range(last - 1, first - 1, -1):
                v = scope_variables[at]
                state = rest % cardinalities[v]
                rest //= cardinalities[v]
                if core[v]:
                    place += stride * state
                    stride *= cardinalities[v]
                else:
                    weight *= q[state_starts[v] + state]
            # An entry of no weight may be impossible, and nothing times minus infinity is no number.
            if weight > 0.0:
                targets[base + place] += weight * log_values[entry]


@inner
def _fields(
    v: int,
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    incident_starts: IntArray,
    incident: IntArray,
    state_starts: IntArray,
    q: FloatArray,
    fields: FloatArray,
) -> None:
    """What each state of a variable is worth: the expectations of its factors given that state."""
    for s in range(cardinalities[v]):
        fields[s] = 0.0
    for i in range(incident_starts[v], incident_starts[v + 1]):
        factor = incident[i]
        first, last = scope_starts[factor], scope_starts[factor + 1]
        for entry in range(table_starts[factor], table_starts[factor + 1]):
            rest = entry - table_starts[factor]
            weight = 1.0
            own = 0
            for at in range(last - 1, first - 1, -1):
                u = scope_variables[at]
                state = rest % cardinalities[u]
                rest //= cardinalities[u]
                if u == v:
                    own = state
                else:
                    weight *= q[state_starts[u] + state]
            if weight > 0.0:
                fields[own] += weight * log_values[entry]


@compiled
def update_others(
    others: IntArray,
    is_max: BoolArray,
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    incident_starts: IntArray,
    incident: IntArray,
    state_starts: IntArray,
    q: FloatArray,
) -> bool:
    """Each of the variables in turn: the best distribution given all others; True when any of them moved.

    For a maximised variable that is the best state, for a summed one the exponentials of what its states are worth.
    """
    fields = np.empty(np.max(cardinalities))
    moved = False
    for v in others:
        _fields(
            v, cardinalities, scope_starts, scope_variables, table_starts, log_values, incident_starts, incident,
            state_starts, q, fields,
        )  # fmt: skip
        start, card = state_starts[v], cardinalities[v]
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
def all_fields(
    others: IntArray,
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    incident_starts: IntArray,
    incident: IntArray,
    state_starts: IntArray,
    q: FloatArray,
    found: FloatArray,
) -> None:
    """What each state of each of the variables is worth, given the distributions of all others."""
    fields = np.empty(np.max(cardinalities))
    for v in others:
        _fields(
            v, cardinalities, scope_starts, scope_variables, table_starts, log_values, incident_starts, incident,
            state_starts, q, fields,
        )  # fmt: skip
        for s in range(cardinalities[v]):
            found[state_starts[v] + s] = fields[s]
