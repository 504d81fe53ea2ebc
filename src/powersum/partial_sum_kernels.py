"""Compiled steps of a partial sum: contexts of one bucket are extended by its variable and handed on to its children."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powersum.arrays import FloatArray, IntArray
from powersum.compiled import compiled
from powersum.search.heuristic import Heuristic

Keys = NDArray[np.uint64]
Numbers = NDArray[np.int32]

IMPOSSIBLE = -1e299
"""Log shares below this are those of zeros: the tree's bound on what lies below is zero, so nothing is lost."""


@compiled
def extend(
    depth: int,
    keys: Keys,
    log_shares: FloatArray,
    given: int,
    axis_words: IntArray,
    axis_shifts: IntArray,
    axis_masks: IntArray,
    axis_depths: IntArray,
    heuristic: Heuristic,
    factor_starts: IntArray,
    scope_starts: IntArray,
    scope_depths: IntArray,
    scope_strides: IntArray,
    log_values: FloatArray,
    states: IntArray,
    arc_contexts: Numbers,
    arc_states: Numbers,
    arc_shares: FloatArray,
    arc_values: FloatArray,
) -> int:
    """Each context with each state of the variable at ``depth`` that is possible: an arc; returns how many.

    ``arc_shares`` gets the log share that the tree's bound gives to the arc, ``arc_values`` the log of the product of
    the bucket's factors. Factor ``k`` of the bucket starts at ``factor_starts[k]`` of ``log_values``; its scope, as
    depths, lies from ``scope_starts[k]`` on. ``states`` is scratch, one entry for each depth. A variable with a
    ``given`` state ≥ 0 takes only that.
    """
    n_axes = len(axis_words)
    first_state = given if given >= 0 else 0
    last_state = given + 1 if given >= 0 else heuristic.cardinalities[depth]
    bucket_starts, other_starts, others = heuristic.bucket_starts, heuristic.other_starts, heuristic.others
    cardinalities, columns = heuristic.cardinalities, heuristic.columns
    table_starts, tables = heuristic.table_starts, heuristic.tables
    message_starts, messages = heuristic.message_starts, heuristic.messages
    ratio = np.empty(cardinalities[depth])
    n_arcs = 0
    for i in range(len(keys)):
        for a in range(n_axes):
            states[axis_depths[a]] = (np.int64(keys[i, axis_words[a]]) >> axis_shifts[a]) & axis_masks[a]
        for s in range(first_state, last_state):
            ratio[s] = log_shares[i]
        for b in range(bucket_starts[depth], bucket_starts[depth + 1]):
            column = 0
            for j in range(other_starts[b], other_starts[b + 1]):
                column = column * cardinalities[others[j]] + states[others[j]]
            message = messages[message_starts[b] + column]
            place = table_starts[b] + column
            for s in range(first_state, last_state):
                ratio[s] += tables[place + s * columns[b]] - message
        for s in range(first_state, last_state):
            if not ratio[s] > IMPOSSIBLE:
                continue
            states[depth] = s
            value = 0.0
            for k in range(len(factor_starts)):
                place = factor_starts[k]
                for j in range(scope_starts[k], scope_starts[k + 1]):
                    place += scope_strides[j] * states[scope_depths[j]]
                value += log_values[place]
            if value > -np.inf:
                arc_contexts[n_arcs] = i
                arc_states[n_arcs] = s
                arc_shares[n_arcs] = ratio[s]
                arc_values[n_arcs] = value
                n_arcs += 1
    return n_arcs


@compiled
def project(
    keys: Keys,
    arc_contexts: Numbers,
    arc_states: Numbers,
    arc_shares: FloatArray,
    from_words: IntArray,
    from_shifts: IntArray,
    masks: IntArray,
    to_words: IntArray,
    to_shifts: IntArray,
    slots: Numbers,
    found: Keys,
    shares: FloatArray,
    numbers: Numbers,
) -> int:
    """The contexts of one child that the arcs lead to: their keys and summed shares, and the number each arc leads to.

    An axis with ``from_words`` -1 is the variable of the arc itself. An arc that is not to be followed has the share 0.
    ``slots`` is a hash table, all -1, of a power of two entries, more than there are arcs. Returns the number of
    contexts.
    """
    n_words = found.shape[1]
    n_axes = len(from_words)
    mask = len(slots) - 1
    key = np.empty(n_words, np.uint64)
    count = 0
    for arc in range(len(arc_contexts)):
        numbers[arc] = -1
        if not arc_shares[arc] > 0.0:
            continue
        for w in range(n_words):
            key[w] = 0
        context = arc_contexts[arc]
        for a in range(n_axes):
            if from_words[a] >= 0:
                state = (np.int64(keys[context, from_words[a]]) >> from_shifts[a]) & masks[a]
            else:
                state = np.int64(arc_states[arc])
            key[to_words[a]] |= np.uint64(state << to_shifts[a])
        mixed = np.uint64(0)
        for w in range(n_words):
            mixed = (mixed ^ key[w]) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        slot = np.int64(mixed & np.uint64(mask))
        while True:
            number = slots[slot]
            if number < 0:
                number = count
                slots[slot] = count
                for w in range(n_words):
                    found[count, w] = key[w]
                shares[count] = 0.0
                count += 1
                break
            same = True
            for w in range(n_words):
                same = same and found[number, w] == key[w]
            if same:
                break
            slot = (slot + 1) & mask
        numbers[arc] = number
        shares[number] += arc_shares[arc]
    return count
