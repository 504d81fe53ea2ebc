"""Parts of conditioning: connected components of what is left, and their values remembered by content."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.jit import inner
from powersum.exact.count_contexts import (
    CLEARED,
    N_KEYS,
    N_PARTS,
    ONE,
    CountModel,
    CountState,
    mix,
    slot_of,
)
from powersum.prepare.ordering.fill import lowest_bit

# Columns of a child: its factors and its variables among those listed.
F_FIRST, F_LAST, V_FIRST, V_LAST = range(4)


@inner
def number_of(mask: np.uint64) -> Any:
    number = 0
    while mask:
        number += 1
        mask &= mask - ONE
    return number


@inner
def split(model: CountModel, state: CountState, parent: Any, row: Any) -> tuple[Any, float]:
    """Connected components of what is left of a component, as rows from ``row`` on.

    Factors and variables keep the order of the list they come from: the same component always has the same key.
    Returns the row after the last, -1 where there is no room, and the log of the number of states of all sum variables
    on which nothing depends any more.
    """
    children, factors, variables = state.children, state.factors, state.variables
    factor_label, variable_label, stack = state.factor_label, state.variable_label, state.stack
    first, last = children[parent, F_FIRST], children[parent, F_LAST]
    first_variable, last_variable = children[parent, V_FIRST], children[parent, V_LAST]
    top, top_variable = children[row - 1, F_LAST], children[row - 1, V_LAST]
    n_rows = last_variable - first_variable
    if top + last - first > factors.size or top_variable + n_rows > variables.size or row + n_rows > children.shape[0]:
        return -1, 0.0
    for i in range(first, last):
        factor_label[factors[i]] = -1
    for i in range(first_variable, last_variable):
        variable_label[variables[i]] = -1
    n = 0
    for i in range(first, last):
        if factor_label[factors[i]] >= 0 or state.context_shape[state.context[factors[i]]] < 0:
            continue
        factor_label[factors[i]] = n
        stack[0] = factors[i]
        height = 1
        while height > 0:
            height -= 1
            f = stack[height]
            begin = model.scope_starts[f]
            depends = state.context_depends[state.context[f]]
            while depends:
                v = model.scope_variables[begin + lowest_bit(depends)]
                depends &= depends - ONE
                if variable_label[v] >= 0:
                    continue
                variable_label[v] = n
                for at in range(model.incident_starts[v], model.incident_starts[v + 1]):
                    g = model.incident_factors[at]
                    if factor_label[g] >= 0:
                        continue
                    if (state.context_depends[state.context[g]] >> np.uint64(model.incident_axes[at])) & ONE:
                        factor_label[g] = n
                        stack[height] = g
                        height += 1
        n += 1
    free = 0.0
    for k in range(n):
        children[row + k, F_LAST] = children[row + k, V_LAST] = 0
    for i in range(first, last):
        if factor_label[factors[i]] >= 0:
            children[row + factor_label[factors[i]], F_LAST] += 1
    for i in range(first_variable, last_variable):
        v = variables[i]
        if variable_label[v] >= 0:
            children[row + variable_label[v], V_LAST] += 1
        elif not model.is_max[v]:
            number = number_of(state.masks[v])
            if number > 1:
                free += np.log(number)
    for k in range(n):
        children[row + k, F_FIRST], children[row + k, V_FIRST] = top, top_variable
        top += children[row + k, F_LAST]
        top_variable += children[row + k, V_LAST]
        children[row + k, F_LAST], children[row + k, V_LAST] = children[row + k, F_FIRST], children[row + k, V_FIRST]
    for i in range(first, last):
        f = factors[i]
        if factor_label[f] >= 0:
            child = row + factor_label[f]
            factors[children[child, F_LAST]] = f
            children[child, F_LAST] += 1
    for i in range(first_variable, last_variable):
        v = variables[i]
        if variable_label[v] >= 0:
            child = row + variable_label[v]
            variables[children[child, V_LAST]] = v
            children[child, V_LAST] += 1
    return row + n, free


@inner
def find_part(state: CountState, row: Any) -> tuple[int, int]:
    """The part of a component and its slot; -1 and the slot where it belongs."""
    first, last = state.children[row, F_FIRST], state.children[row, F_LAST]
    key = last - first
    for i in range(first, last):
        key = mix(key, state.context_shape[state.context[state.factors[i]]])
    slot = slot_of(key, state.part_slots.size)
    while state.part_slots[slot] >= 0:
        part = state.part_slots[slot]
        begin = state.part_starts[part]
        same = state.part_starts[part + 1] - begin == last - first
        i = first
        while same and i < last:
            same = state.keys[begin + i - first] == state.context_shape[state.context[state.factors[i]]]
            i += 1
        if same:
            return part, slot
        slot = (slot + 1) & (state.part_slots.size - 1)
    return -1, slot


@inner
def keep_part(state: CountState, row: int, value: float, variable: int, choice: int) -> None:
    """Remember the value of a component; where there is no room, all others are forgotten before."""
    counters = state.counters
    first, last = state.children[row, F_FIRST], state.children[row, F_LAST]
    if last - first > state.keys.size:
        return
    if counters[N_KEYS] + last - first > state.keys.size or counters[N_PARTS] + 1 >= state.part_values.size:
        state.part_slots[:] = -1
        counters[N_KEYS] = 0
        counters[N_PARTS] = 0
        counters[CLEARED] += 1
    part, slot = find_part(state, row)
    if part >= 0:
        return
    part = counters[N_PARTS]
    counters[N_PARTS] = part + 1
    begin = counters[N_KEYS]
    state.part_starts[part] = begin
    for i in range(first, last):
        state.keys[begin + i - first] = state.context_shape[state.context[state.factors[i]]]
    counters[N_KEYS] = begin + last - first
    state.part_starts[part + 1] = counters[N_KEYS]
    state.part_values[part] = value
    state.part_choices[part, 0], state.part_choices[part, 1] = variable, choice
    state.part_slots[slot] = part
