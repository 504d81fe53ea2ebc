"""Contexts and shapes of conditioning: what a factor is while some states of its variables are alive.

All that is remembered is remembered by content and compared word for word, so that no chance of a hash enters a value:

* *contexts*: a factor and the states that are alive in its scope → which of them it supports, on which variables it
  still depends, its largest entry, and the number of its *shape*;
* *shapes*: variables, their alive states, and the table on them less its largest entry. Two contexts with the same
  shape are the same to everybody else, whatever states of other variables led there;
* *parts* (``count_kernels``): the shapes of a connected component, in a fixed order → its value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import inner
from powersum.prepare.ordering.fill import lowest_bit

MaskArray = NDArray[np.uint64]
SmallArray = NDArray[np.int32]

# Places in the array of counters.
DEPTH, N_CONTEXTS, N_WORDS, N_SHAPES, N_PARTS, N_KEYS, N_TRAIL, NODES, CLEARED, HITS = range(10)

ONE, NONE = np.uint64(1), np.uint64(0)


class CountModel(NamedTuple):
    """A model with its incidence; nothing here changes."""

    cardinalities: IntArray
    is_max: NDArray[np.bool_]
    scope_starts: IntArray
    scope_variables: IntArray
    strides: IntArray
    table_starts: IntArray
    log_values: FloatArray
    incident_starts: IntArray
    incident_factors: IntArray
    incident_axes: IntArray
    rank: IntArray
    """Among equally promising variables the one of the largest rank is set next."""


class CountState(NamedTuple):
    """Where the search stands, and what it remembers."""

    counters: IntArray
    masks: MaskArray  # alive states of each variable
    context: IntArray  # present context of each factor
    context_slots: SmallArray
    context_factor: SmallArray
    context_words: IntArray  # where the context's masks begin; the supported ones follow them
    context_depends: MaskArray
    context_largest: FloatArray
    context_shape: SmallArray  # -1 where nothing depends on anything
    words: MaskArray
    shape_slots: SmallArray
    shape_context: SmallArray
    part_slots: SmallArray
    part_starts: IntArray
    part_values: FloatArray
    part_choices: SmallArray  # variable and state, for max variables
    keys: SmallArray
    trail: IntArray  # rows: a variable and -1, or a factor and its context before
    trail_masks: MaskArray
    frames: IntArray
    frame_values: FloatArray
    frame_left: MaskArray
    children: IntArray  # components
    factors: SmallArray  # of components, one component after the other
    variables: SmallArray
    queue: IntArray
    queued: NDArray[np.bool_]
    factor_label: IntArray
    variable_label: IntArray
    stack: IntArray


@inner
def mix(key: Any, word: Any) -> Any:
    key = (key ^ word) * 0x2545F4914F6CDD1D
    return key ^ ((key >> 29) & 0x7FFFFFFFF)


@inner
def slot_of(key: Any, size: int) -> Any:
    return (key ^ (key >> 33)) & (size - 1)


@inner
def context_of(model: CountModel, state: CountState, f: Any) -> Any:
    """The number of a factor's present context, made if it is new; -1 where there is no room for another one."""
    first, last = model.scope_starts[f], model.scope_starts[f + 1]
    key = mix(f + 1, 77)
    for place in range(first, last):
        key = mix(key, np.int64(state.masks[model.scope_variables[place]]))
    slot = slot_of(key, state.context_slots.size)
    while state.context_slots[slot] >= 0:
        c = state.context_slots[slot]
        if state.context_factor[c] == f:
            start = state.context_words[c]
            same = True
            for place in range(first, last):
                if state.words[start + place - first] != state.masks[model.scope_variables[place]]:
                    same = False
                    break
            if same:
                return c
        slot = (slot + 1) & (state.context_slots.size - 1)
    counters = state.counters
    c = counters[N_CONTEXTS]
    arity = last - first
    if c + 1 >= state.context_factor.size or counters[N_WORDS] + 2 * arity > state.words.size:
        return -1
    counters[N_CONTEXTS] = c + 1
    start = counters[N_WORDS]
    counters[N_WORDS] = start + 2 * arity
    state.context_factor[c] = f
    state.context_words[c] = start
    for a in range(arity):
        state.words[start + a] = state.masks[model.scope_variables[first + a]]
        state.words[start + arity + a] = NONE
    _look_through(model, state, c)
    state.context_slots[slot] = c
    return c


@inner
def _look_through(model: CountModel, state: CountState, c: int) -> None:
    """Supports, dependences, largest entry and shape of a new context, from the entries that are alive."""
    f = state.context_factor[c]
    first = model.scope_starts[f]
    arity = model.scope_starts[f + 1] - first
    start = state.context_words[c]
    words, values = state.words, model.log_values
    digits = np.empty(arity, np.int64)
    flat = np.ones(arity, np.bool_)
    lowest = np.empty(arity, np.int64)
    at = model.table_starts[f]
    for a in range(arity):
        lowest[a] = lowest_bit(words[start + a])
        digits[a] = lowest[a]
        at += lowest[a] * model.strides[first + a]
    largest = -np.inf
    while True:
        value = values[at]
        if value > -np.inf:
            largest = max(largest, value)
            for a in range(arity):
                words[start + arity + a] |= ONE << np.uint64(digits[a])
        for a in range(arity):
            if flat[a] and value != values[at - (digits[a] - lowest[a]) * model.strides[first + a]]:
                flat[a] = False
        a = arity - 1
        while a >= 0:
            higher = words[start + a] >> np.uint64(digits[a] + 1) if digits[a] < 63 else NONE
            if higher:
                step = 1 + lowest_bit(higher)
                digits[a] += step
                at += step * model.strides[first + a]
                break
            at -= (digits[a] - lowest[a]) * model.strides[first + a]
            digits[a] = lowest[a]
            a -= 1
        if a < 0:
            break
    depends = NONE
    for a in range(arity):
        if not flat[a]:
            depends |= ONE << np.uint64(a)
    state.context_depends[c] = depends
    state.context_largest[c] = largest
    state.context_shape[c] = -1
    if depends and largest > -np.inf:
        state.context_shape[c] = _shape_of(model, state, c)


@inner
def _walk_begin(model: CountModel, state: CountState, c: int, digits: IntArray) -> Any:
    """Set digits to the first alive states; where the table of a context begins."""
    f = state.context_factor[c]
    first = model.scope_starts[f]
    at = model.table_starts[f]
    for a in range(model.scope_starts[f + 1] - first):
        digits[a] = lowest_bit(state.words[state.context_words[c] + a])
        at += digits[a] * model.strides[first + a]
    return at


@inner
def _walk_on(model: CountModel, state: CountState, c: int, digits: IntArray, at: int) -> Any:
    """The next entry among the axes that matter; -1 after the last."""
    f = state.context_factor[c]
    first, start, depends = model.scope_starts[f], state.context_words[c], state.context_depends[c]
    for a in range(model.scope_starts[f + 1] - first - 1, -1, -1):
        if not (depends >> np.uint64(a)) & ONE:
            continue
        stride = model.strides[first + a]
        higher = state.words[start + a] >> np.uint64(digits[a] + 1) if digits[a] < 63 else NONE
        if higher:
            step = 1 + lowest_bit(higher)
            digits[a] += step
            return at + step * stride
        low = lowest_bit(state.words[start + a])
        at -= (digits[a] - low) * stride
        digits[a] = low
    return -1


@inner
def _shape_of(model: CountModel, state: CountState, c: int) -> Any:
    """The number of a context's shape, made if it is new."""
    f = state.context_factor[c]
    first = model.scope_starts[f]
    arity = model.scope_starts[f + 1] - first
    start, depends = state.context_words[c], state.context_depends[c]
    key = 99
    for a in range(arity):
        if (depends >> np.uint64(a)) & ONE:
            key = mix(key, model.scope_variables[first + a])
            key = mix(key, np.int64(state.words[start + a]))
    digits, others = np.empty(64, np.int64), np.empty(64, np.int64)
    at = _walk_begin(model, state, c, digits)
    largest = state.context_largest[c]
    while at >= 0:
        value = model.log_values[at] - largest
        # Close numbers have different keys mostly; those that are equal always the same.
        key = mix(key, np.int64(value * 1e6) if value > -1e9 else 5)
        at = _walk_on(model, state, c, digits, at)
    slot = slot_of(key, state.shape_slots.size)
    while state.shape_slots[slot] >= 0:
        shape = state.shape_slots[slot]
        if _same_shape(model, state, c, state.shape_context[shape], digits, others):
            return shape
        slot = (slot + 1) & (state.shape_slots.size - 1)
    shape = state.counters[N_SHAPES]
    state.counters[N_SHAPES] = shape + 1
    state.shape_slots[slot] = shape
    state.shape_context[shape] = c
    return shape


@inner
def _same_shape(model: CountModel, state: CountState, c: int, d: int, digits: IntArray, others: IntArray) -> bool:
    """Whether two contexts have the same variables, alive states and table less its largest entry."""
    f, g = state.context_factor[c], state.context_factor[d]
    first, second = model.scope_starts[f], model.scope_starts[g]
    n, m = model.scope_starts[f + 1] - first, model.scope_starts[g + 1] - second
    a, b = 0, 0
    while True:
        while a < n and not (state.context_depends[c] >> np.uint64(a)) & ONE:
            a += 1
        while b < m and not (state.context_depends[d] >> np.uint64(b)) & ONE:
            b += 1
        if a == n or b == m:
            break
        if model.scope_variables[first + a] != model.scope_variables[second + b]:
            return False
        if state.words[state.context_words[c] + a] != state.words[state.context_words[d] + b]:
            return False
        a += 1
        b += 1
    if a < n or b < m:
        return False
    at, there = _walk_begin(model, state, c, digits), _walk_begin(model, state, d, others)
    while at >= 0:
        own, other = model.log_values[at], model.log_values[there]
        if own - state.context_largest[c] != other - state.context_largest[d]:
            return False
        at = _walk_on(model, state, c, digits, at)
        there = _walk_on(model, state, d, others, there)
    return True
