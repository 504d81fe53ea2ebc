"""Compiled steps of a partial sum: contexts of a bucket are extended by its variable and handed on to its children.

Keys of contexts are rows of words. An *arc* is a context with one state of the bucket's variable.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.fastmath import LOWEST, exp_of
from powersum.core.jit import compiled

Numbers = NDArray[np.int32]
Ratios = NDArray[np.float32]

TINY = 1e-300
"""The least share of what is possible, for 0 stands for what is not."""

TINIEST = 1e-37
"""The same in single precision."""

ROUND_UP = 1.0 + 2.0**-22
"""More than what a number may lose when it is rounded to single precision."""

LEAST_RATIO = 1e-30
"""What is possible has at least this ratio, for 0 stands for what is not; a product of ten is still a normal double."""

_DEAD = -1e299
"""Below this a tree's log means zero: messages of impossible columns are huge finite numbers."""


class Axes(NamedTuple):
    """Where the states of some variables lie in the keys of contexts."""

    words: IntArray
    shifts: IntArray
    masks: IntArray


class Reads(NamedTuple):
    """Tables that a bucket reads: entry = start + own stride · own state + Σ stride · state over other variables.

    Table ``t`` has the places ``starts[t]`` to ``starts[t + 1]`` in ``slots``, numbers of unpacked axes, and
    ``strides``. The first ``n_ratios`` tables hold ratios, the others are factors.
    """

    n_ratios: int
    offsets: IntArray
    own_strides: IntArray
    starts: IntArray
    slots: IntArray
    strides: IntArray


class Runs(NamedTuple):
    """Bits of keys that move together: from a word and shift of one key to those of another."""

    from_words: IntArray
    from_shifts: IntArray
    masks: IntArray
    to_words: IntArray
    to_shifts: IntArray


@compiled
def fill_ratios(
    tables: FloatArray,
    table_starts: IntArray,
    columns: IntArray,
    pool: FloatArray,
    message_starts: IntArray,
    ratios: Ratios,
) -> None:
    """Each entry of each table over its column's message: at most 1, rounded up, and 0 exactly where impossible."""
    for b in range(len(columns)):
        for row in range(table_starts[b], table_starts[b + 1], columns[b]):
            for column in range(columns[b]):
                entry, message = tables[row + column], pool[message_starts[b] + column]
                # Impossible ones go the same way, with numbers that do no harm: no loop by lanes has branches.
                possible = entry > _DEAD and message > _DEAD
                log = min(max(entry - message if possible else 0.0, LOWEST), 0.0)
                ratio = min(max(exp_of(log) * ROUND_UP, LEAST_RATIO), 1.0)
                ratios[row + column] = ratio if possible else 0.0


@compiled
def extend(
    keys: IntArray,
    shares: FloatArray,
    first_state: int,
    end_state: int,
    axes: Axes,
    reads: Reads,
    ratios: Ratios,
    log_values: FloatArray,
    arc_contexts: Numbers,
    arc_states: Numbers,
    arc_shares: FloatArray,
    arc_ratios: Ratios,
    arc_values: FloatArray,
) -> int:
    """All possible arcs, in the order of the contexts; returns how many.

    ``arc_ratios`` gets what an arc has of its context's share by the tree's bound, ``arc_shares`` that share,
    ``arc_values`` the log of the product of the bucket's factors.
    """
    n_tables = len(reads.offsets)
    states, places = np.empty(len(axes.words), np.int64), np.empty(n_tables, np.int64)
    n_arcs = 0
    for i in range(len(keys)):
        for a in range(len(states)):
            states[a] = (keys[i, axes.words[a]] >> axes.shifts[a]) & axes.masks[a]
        for t in range(n_tables):
            place = reads.offsets[t]
            for j in range(reads.starts[t], reads.starts[t + 1]):
                place += reads.strides[j] * states[reads.slots[j]]
            places[t] = place
        for s in range(first_state, end_state):
            ratio = 1.0
            for t in range(reads.n_ratios):
                ratio *= ratios[places[t] + s * reads.own_strides[t]]
            # A product of many small numbers may vanish as well: then it is not dropped as impossible.
            if ratio < TINY:
                possible = True
                for t in range(reads.n_ratios):
                    possible = possible and ratios[places[t] + s * reads.own_strides[t]] > 0.0
                if not possible:
                    continue
            value = 0.0
            for t in range(reads.n_ratios, n_tables):
                value += log_values[places[t] + s * reads.own_strides[t]]
            if value > -np.inf:
                arc_contexts[n_arcs] = i
                arc_states[n_arcs] = s
                arc_shares[n_arcs] = max(shares[i] * ratio, TINY)
                arc_ratios[n_arcs] = max(ratio * ROUND_UP, TINIEST)
                arc_values[n_arcs] = value
                n_arcs += 1
    return n_arcs


@compiled
def hand_over(
    keys: IntArray,
    arc_contexts: Numbers,
    arc_states: Numbers,
    arc_shares: FloatArray,
    runs: Runs,
    own_word: int,
    own_shift: int,
    table: Numbers,
    found: IntArray,
    shares: FloatArray,
    targets: Numbers,
) -> int:
    """The contexts of one child that arcs lead to, with the sums of their shares; returns how many.

    ``targets`` tells which context each arc leads to. Arcs of share 0 are not followed and get -1. ``found`` has room
    for one context more than there are arcs. ``table`` is for hashing: all -1, a power of two entries, more than there
    are arcs; with one entry it says that no two arcs lead to the same context.
    """
    n_words = found.shape[1]
    last = len(table) - 1
    count = 0
    for arc in range(len(arc_contexts)):
        targets[arc] = -1
        if arc_shares[arc] == 0.0:
            continue
        # The key is written where a new context would go.
        for w in range(n_words):
            found[count, w] = 0
        context = arc_contexts[arc]
        for r in range(len(runs.masks)):
            bits = (keys[context, runs.from_words[r]] >> runs.from_shifts[r]) & runs.masks[r]
            found[count, runs.to_words[r]] |= bits << runs.to_shifts[r]
        found[count, own_word] |= np.int64(arc_states[arc]) << own_shift
        number: Any = count
        if last > 0:
            mixed = np.uint64(0)
            for w in range(n_words):
                mixed = (mixed ^ np.uint64(found[count, w])) * np.uint64(0x9E3779B97F4A7C15)
                mixed ^= mixed >> np.uint64(29)
            slot = np.int64(mixed & np.uint64(last))
            while table[slot] >= 0:
                number = np.int64(table[slot])
                same = True
                for w in range(n_words):
                    same = same and found[number, w] == found[count, w]
                if same:
                    break
                slot = (slot + 1) & last
                number = count
            if number == count:
                table[slot] = count
        if number == count:
            shares[count] = 0.0
            count += 1
        shares[number] += arc_shares[arc]
        targets[arc] = number
    return count


@compiled
def drop(
    found: IntArray,
    shares: FloatArray,
    count: int,
    least: float,
    anchor: IntArray,
    targets: Numbers,
    arc_shares: FloatArray,
) -> int:
    """Keep the contexts of at least this share, and the one with the key ``anchor``; returns how many.

    ``found`` and ``shares`` are closed up; ``targets`` follow, and arcs to a dropped context get -1 and the share 0.
    """
    n_words = found.shape[1]
    numbers = np.empty(count, np.int32)
    kept = 0
    for i in range(count):
        keep = shares[i] >= least
        if not keep and len(anchor) == n_words:
            keep = True
            for w in range(n_words):
                keep = keep and found[i, w] == anchor[w]
        numbers[i] = kept if keep else -1
        if keep:
            for w in range(n_words):
                found[kept, w] = found[i, w]
            shares[kept] = shares[i]
            kept += 1
    if kept < count:
        for arc in range(len(targets)):
            if targets[arc] >= 0:
                targets[arc] = numbers[targets[arc]]
                if targets[arc] < 0:
                    arc_shares[arc] = 0.0
    return kept


@compiled
def add_up(
    contexts: Numbers, values: FloatArray, ratios: FloatArray, log_sums: FloatArray, upper_ratios: FloatArray
) -> None:
    """Log of the sum of each context's arcs, which lie side by side; their ratios are added to ``upper_ratios``."""
    n = len(contexts)
    arc = 0
    while arc < n:
        context = contexts[arc]
        first = arc
        top = -np.inf
        ratio = 0.0
        while arc < n and contexts[arc] == context:
            top = max(top, values[arc])
            ratio += ratios[arc]
            arc += 1
        upper_ratios[context] += ratio
        if top > -np.inf:
            # Compensated: a context may have millions of arcs, and the rounding that is counted knows only its buckets.
            total, excess = 0.0, 0.0
            for a in range(first, arc):
                term = math.exp(values[a] - top) - excess
                larger = total + term
                excess = (larger - total) - term
                total = larger
            log_sums[context] = top + math.log(total)
