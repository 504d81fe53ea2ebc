"""Contexts and shapes of conditioning: what a factor is while some states of its variables are alive.

All that is remembered is remembered by content and compared word for word, so that no chance of a hash enters a value:

* *contexts*: a factor and the states that are alive in its scope → which of them it supports, on which variables it
  still depends, its largest entry, and the number of its *shape*;
* *shapes*: variables, their alive states, and the table on them less its largest entry. Two contexts with the same
  shape are the same to everybody else, whatever states of other variables led there;
* *parts* (``count_parts``): the variables of a connected component, and the shapes of those of its factors that are
  not as they were at the beginning, in a fixed order → its value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import bare
from powersum.prepare.ordering.fill import lowest_bit

MaskArray = NDArray[np.uint64]
SmallArray = NDArray[np.int32]

# Places in the array of counters.
DEPTH, N_CONTEXTS, N_WORDS, N_SHAPES, N_PARTS, N_KEYS, N_TRAIL, NODES, CLEARED, HITS, N_ROWS, N_LISTED = range(12)
N_MARKS, N_SETTLED = 12, 13

ONE, NONE = np.uint64(1), np.uint64(0)


class CountModel(NamedTuple):
    """A model with its incidence; nothing here changes."""

    cardinalities: IntArray
    is_max: NDArray[np.bool_]
    any_max: bool
    level: IntArray  # the block of each variable: those of a larger one are set first
    scope_starts: IntArray
    scope_variables: IntArray
    strides: IntArray
    table_starts: IntArray
    log_values: FloatArray
    incident_starts: IntArray
    incident_factors: IntArray
    incident_axes: IntArray
    direct_starts: IntArray  # where a factor's contexts are found by the masks themselves; -1 where by their hash
    shifts: IntArray  # of each variable's mask among the masks of its factor
    places: IntArray  # where the states of each variable of a factor begin, as a proof numbers them; -1 if it is given
    rank: IntArray
    """Among equally promising variables the one of the largest rank is set next."""


class CountState(NamedTuple):
    """Where the search stands, and what it remembers."""

    counters: IntArray
    masks: MaskArray  # alive states of each variable
    base_masks: MaskArray  # the same at the beginning
    context: IntArray  # present context of each factor
    base: IntArray  # the same at the beginning
    depends: MaskArray  # axes on which each factor depends at present
    direct: SmallArray
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
    key: SmallArray  # the one looked for at present
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
    digits: IntArray  # three rows in which tables are walked
    number: FloatArray  # factors of a component that depend on each variable
    part_nodes: SmallArray  # the node that found a part's value; of length 0, as the next two, where nobody asks
    child_nodes: SmallArray  # the nodes of components
    log_rows: (
        SmallArray  # what was found, see proof.conditioning: a node, its variable, its state, its components and marks
    )
    log_nodes: SmallArray  # these components' nodes
    log_marks: SmallArray  # in each state of a node: places at which states went, and factors that became constant
    log_values: FloatArray  # for a way down (see circuit): the value of each row; of length 0 where nobody asks
    log_settled: SmallArray  # variables on which nothing depends any more, in each state of a node: max variables only
    # where there are any
    log_masks: MaskArray  # and their states that are alive
    activity: FloatArray  # how often each variable was in a factor that became impossible, of late


@bare
def mix(key: Any, word: Any) -> Any:
    key = (key ^ word) * 0x2545F4914F6CDD1D
    return key ^ ((key >> 29) & 0x7FFFFFFFF)


@bare
def slot_of(key: Any, size: int) -> Any:
    return (key ^ (key >> 33)) & (size - 1)


@bare
def direct_slot(
    f: Any,
    direct_starts: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    shifts: IntArray,
    masks: MaskArray,
) -> Any:
    """The place that belongs to the present masks of a factor, or -1."""
    slot = direct_starts[f]
    if slot >= 0:
        for place in range(scope_starts[f], scope_starts[f + 1]):
            slot += np.int64(masks[scope_variables[place]]) << shifts[place]
    return slot


@bare
def context_of(model: CountModel, state: CountState, f: Any) -> Any:
    """The number of a factor's present context, made if it is new; -1 where there is no room for another one."""
    first, last = model.scope_starts[f], model.scope_starts[f + 1]
    slot = direct_slot(f, model.direct_starts, model.scope_starts, model.scope_variables, model.shifts, state.masks)
    direct = slot >= 0
    if direct:
        if state.direct[slot] >= 0:
            return np.int64(state.direct[slot])
    else:
        key = mix(f + 1, 77)
        for place in range(first, last):
            key = mix(key, np.int64(state.masks[model.scope_variables[place]]))
        slot = slot_of(key, state.context_slots.size)
        while state.context_slots[slot] >= 0:
            c = np.int64(state.context_slots[slot])
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
    if direct:
        state.direct[slot] = c
    else:
        state.context_slots[slot] = c
    return c


@bare
def _look_through(model: CountModel, state: CountState, c: int) -> None:
    """Supports, dependences, largest entry and shape of a new context, from the entries that are alive."""
    f = state.context_factor[c]
    first = model.scope_starts[f]
    arity = model.scope_starts[f + 1] - first
    start = state.context_words[c]
    words, values = state.words, model.log_values
    digits = state.digits
    depends = NONE
    at = model.table_starts[f]
    for a in range(arity):
        digits[0, a] = digits[1, a] = lowest_bit(words[start + a])
        at += digits[0, a] * model.strides[first + a]
    largest = -np.inf
    while True:
        value = values[at]
        if value > -np.inf:
            largest = max(largest, value)
            for a in range(arity):
                words[start + arity + a] |= ONE << np.uint64(digits[0, a])
        for a in range(arity):
            if value != values[at - (digits[0, a] - digits[1, a]) * model.strides[first + a]]:
                depends |= ONE << np.uint64(a)
        a = arity - 1
        while a >= 0:
            digit = digits[0, a]
            higher = words[start + a] >> np.uint64(digit + 1) if digit < 63 else NONE
            if higher:
                step = 1 + lowest_bit(higher)
                digits[0, a] = digit + step
                at += step * model.strides[first + a]
                break
            at -= (digit - digits[1, a]) * model.strides[first + a]
            digits[0, a] = digits[1, a]
            a -= 1
        if a < 0:
            break
    state.context_depends[c] = depends
    state.context_largest[c] = largest
    state.context_shape[c] = -1
    if depends and largest > -np.inf:
        state.context_shape[c] = _shape_of(model, state, c)


@bare
def _walk_begin(model: CountModel, state: CountState, c: Any, row: Any) -> Any:
    """Set a row of digits to the first alive states; where the table of a context begins."""
    digits = state.digits
    f = state.context_factor[c]
    first = model.scope_starts[f]
    at = model.table_starts[f]
    for a in range(model.scope_starts[f + 1] - first):
        digits[row, a] = lowest_bit(state.words[state.context_words[c] + a])
        at += digits[row, a] * model.strides[first + a]
    return at


@bare
def _walk_on(model: CountModel, state: CountState, c: Any, row: Any, at: Any) -> Any:
    """The next entry among the axes that matter; -1 after the last."""
    digits = state.digits
    f = state.context_factor[c]
    first, start, depends = model.scope_starts[f], state.context_words[c], state.context_depends[c]
    for a in range(model.scope_starts[f + 1] - first - 1, -1, -1):
        if not (depends >> np.uint64(a)) & ONE:
            continue
        stride = model.strides[first + a]
        digit = digits[row, a]
        higher = state.words[start + a] >> np.uint64(digit + 1) if digit < 63 else NONE
        if higher:
            step = 1 + lowest_bit(higher)
            digits[row, a] = digit + step
            return at + step * stride
        low = lowest_bit(state.words[start + a])
        at -= (digit - low) * stride
        digits[row, a] = low
    return -1


@bare
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
    at = _walk_begin(model, state, c, np.int64(0))
    largest = state.context_largest[c]
    while at >= 0:
        value = model.log_values[at] - largest
        # Close numbers have different keys mostly; those that are equal always the same.
        key = mix(key, np.int64(value * 1e6) if value > -1e9 else 5)
        at = _walk_on(model, state, c, np.int64(0), at)
    slot = slot_of(key, state.shape_slots.size)
    while state.shape_slots[slot] >= 0:
        shape = state.shape_slots[slot]
        if _same_shape(model, state, c, state.shape_context[shape]):
            return shape
        slot = (slot + 1) & (state.shape_slots.size - 1)
    shape = state.counters[N_SHAPES]
    state.counters[N_SHAPES] = shape + 1
    state.shape_slots[slot] = shape
    state.shape_context[shape] = c
    return shape


@bare
def _same_shape(model: CountModel, state: CountState, c: Any, d: Any) -> bool:
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
    at, there = _walk_begin(model, state, c, np.int64(1)), _walk_begin(model, state, d, np.int64(2))
    while at >= 0:
        own, other = model.log_values[at], model.log_values[there]
        if own - state.context_largest[c] != other - state.context_largest[d]:
            return False
        at = _walk_on(model, state, c, np.int64(1), at)
        there = _walk_on(model, state, d, np.int64(2), there)
    return True
