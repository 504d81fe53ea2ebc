"""Parts of conditioning: connected components of what is left, and their values remembered by content."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.jit import bare
from powersum.exact.count_contexts import (
    CLEARED,
    N_KEYS,
    N_PARTS,
    N_SETTLED,
    ONE,
    CountModel,
    CountState,
    mix,
    slot_of,
)
from powersum.prepare.ordering.fill import lowest_bit

# Columns of a child: its factors and its variables among those listed.
F_FIRST, F_LAST, V_FIRST, V_LAST = range(4)

BLOCK = 16
"""Variables in a word of a key."""

LOW = np.uint64(2**31 - 1)


@bare
def number_of(mask: np.uint64) -> Any:
    number = 0
    while mask:
        number += 1
        mask &= mask - ONE
    return number


@bare
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
            depends = state.depends[f]
            while depends:
                v = model.scope_variables[begin + lowest_bit(depends)]
                depends &= depends - ONE
                if variable_label[v] >= 0:
                    continue
                variable_label[v] = n
                number = 0.0
                for at in range(model.incident_starts[v], model.incident_starts[v + 1]):
                    g = model.incident_factors[at]
                    if (state.depends[g] >> np.uint64(model.incident_axes[at])) & ONE:
                        number += 1.0
                        if factor_label[g] < 0:
                            factor_label[g] = n
                            stack[height] = g
                            height += 1
                state.number[v] = number
        n += 1
    free = 0.0
    settles = state.log_values.size > 0
    for k in range(n):
        children[row + k, F_LAST] = children[row + k, V_LAST] = 0
    for i in range(first, last):
        if factor_label[factors[i]] >= 0:
            children[row + factor_label[factors[i]], F_LAST] += 1
    for i in range(first_variable, last_variable):
        v = variables[i]
        if variable_label[v] >= 0:
            children[row + variable_label[v], V_LAST] += 1
        else:
            number = 1 if model.is_max[v] else number_of(state.masks[v])
            if number > 1:
                free += np.log(number)
            if settles and model.is_max[v] == model.any_max:
                at = state.counters[N_SETTLED]
                state.log_settled[at], state.log_masks[at] = v, state.masks[v]
                state.counters[N_SETTLED] = at + 1
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


@bare
def _write_key(model: CountModel, state: CountState, row: Any) -> int:
    """Write down what tells a component from all others; the length of that.

    A factor that is as it was at the beginning belongs to a component if all variables on which it depends do, and have
    all the states that they had: no factor changes before one of these. So variables, those states that are gone, and
    the shapes of factors that have changed tell the rest. Where a proof is wanted it is their contexts: it cannot tell
    that two of them are the same to everybody else.
    """
    children, variables, key = state.children, state.variables, state.key
    length, block, bits, n_fewer = 2, -1, 0, 0
    for i in range(children[row, V_FIRST], children[row, V_LAST]):
        # Variables are listed by number: so many neighbours in a word.
        v = variables[i]
        if v // BLOCK != block:
            if block >= 0:
                key[length] = (block << BLOCK) | bits
                length += 1
            block, bits = v // BLOCK, 0
        bits |= 1 << (v % BLOCK)
    key[length] = (block << BLOCK) | bits
    length += 1
    key[0] = length
    for i in range(children[row, V_FIRST], children[row, V_LAST]):
        v = variables[i]
        mask = state.masks[v]
        if mask != state.base_masks[v]:
            key[length] = v
            key[length + 1] = np.int32(mask & LOW)
            key[length + 2] = np.int32((mask >> np.uint64(31)) & LOW)
            key[length + 3] = np.int32(mask >> np.uint64(62))
            length += 4
            n_fewer += 1
    key[1] = n_fewer
    for i in range(children[row, F_FIRST], children[row, F_LAST]):
        f = state.factors[i]
        if state.context[f] != state.base[f]:
            context = state.context[f]
            key[length] = context if state.log_marks.size > 0 else np.int64(state.context_shape[context])
            length += 1
    return length


@bare
def find_part(model: CountModel, state: CountState, row: Any) -> tuple[int, int, int]:
    """The part of a component, or -1; its slot, or the one where it belongs; and the length of its key."""
    key = state.key
    length = _write_key(model, state, row)
    hashed = np.int64(length)
    for i in range(length):
        hashed = mix(hashed, key[i])
    slot = slot_of(hashed, state.part_slots.size)
    while state.part_slots[slot] >= 0:
        part = state.part_slots[slot]
        begin = state.part_starts[part]
        same = state.part_starts[part + 1] - begin == length
        i = 0
        while same and i < length:
            same = state.keys[begin + i] == key[i]
            i += 1
        if same:
            return part, slot, length
        slot = (slot + 1) & (state.part_slots.size - 1)
    return -1, slot, length


@bare
def new_part(state: CountState, slot: int, length: int) -> Any:
    """Room for the value of the component just looked for; where there is none, all others are forgotten before.

    Returns -1 where even that is not enough. Until the value is there, it is no number.
    """
    counters = state.counters
    if length > state.keys.size:
        return -1
    if counters[N_KEYS] + length > state.keys.size or counters[N_PARTS] + 1 >= state.part_values.size:
        for i in range(state.part_slots.size):
            state.part_slots[i] = -1
        counters[N_KEYS] = 0
        counters[N_PARTS] = 0
        counters[CLEARED] += 1
        # Any slot is free; the right one is found by the same steps as before.
        hashed = np.int64(length)
        for i in range(length):
            hashed = mix(hashed, state.key[i])
        slot = slot_of(hashed, state.part_slots.size)
    part = counters[N_PARTS]
    counters[N_PARTS] = part + 1
    begin = counters[N_KEYS]
    state.part_starts[part] = begin
    for i in range(length):
        state.keys[begin + i] = state.key[i]
    counters[N_KEYS] = begin + length
    state.part_starts[part + 1] = begin + length
    state.part_values[part] = np.nan
    state.part_slots[slot] = part
    return part
