"""Wiring of partial sums: which tables each bucket reads, how contexts are packed into keys and handed to children."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powersum.bounds.tree.look_up import Heuristic
from powersum.core.arrays import IntArray, positions_of, starts_of
from powersum.exact.wiring import wire
from powersum.model.factors import factors_of
from powersum.model.model import Model
from powersum.sums.kernels import Axes, Reads, Runs, fill_ratios

KEY_BITS = 62
"""Bits used of each word of a key, so that words are never negative as signed integers."""


_NONE = np.zeros(0, dtype=np.int64)

_Table = tuple[int, IntArray, IntArray]
"""Where a table starts, the depths of its variables, and their strides."""


@dataclass(frozen=True, slots=True)
class Handover:
    """How a child's key follows from the bucket's: runs of bits, and the place of the bucket's own state."""

    child: int
    runs: Runs
    own_word: int
    own_shift: int
    n_words: int
    distinct: bool
    """True when no two extensions of contexts become the same context of the child."""


@dataclass(frozen=True, slots=True)
class SumBucket:
    """The bucket of one variable."""

    variable: int
    cardinality: int
    n_words: int
    axes: Axes
    """Only those that the bucket's tables read."""
    reads: Reads
    children: tuple[Handover, ...]
    key_axes: Axes
    """All axes of the contexts, and below their variables."""
    key_variables: IntArray


def ratios_of(heuristic: Heuristic) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Tables of the mini-buckets, each entry over its column's message: at most 1, and 0 exactly where impossible.

    Rounded up, so that bounds made of them stay upper bounds.
    """
    ratios = np.empty(len(heuristic.tables), dtype=np.float32)
    fill_ratios(
        heuristic.tables,
        heuristic.table_starts,
        heuristic.columns,
        heuristic.pool,
        heuristic.message_starts,
        ratios,
    )
    return ratios


def buckets_of(model: Model, heuristic: Heuristic) -> tuple[list[SumBucket], float]:
    """The buckets, from the last eliminated variable to the first, and the log of the constant factors.

    Variables are numbered by their depth: 0 is the last eliminated.
    """
    n = model.n_variables
    order = np.ascontiguousarray(heuristic.variables[::-1])
    position = positions_of(order)
    depth_of = n - 1 - position
    factors = factors_of(model)
    wiring, factor_buckets = wire(order, position, np.arange(model.n_factors), factors)
    cards = heuristic.cardinalities
    contexts, placed = [], []
    for depth in range(n):
        b = n - 1 - depth
        axes = np.sort(depth_of[wiring.axes[wiring.axis_starts[b] + 1 : wiring.axis_starts[b + 1]]])
        contexts.append(axes)
        placed.append(_pack(cards[axes]))
    children: list[list[int]] = [[] for _ in range(n)]
    for b, parent in enumerate(wiring.parents.tolist()):
        if parent >= 0:
            children[n - 1 - parent].append(n - 1 - b)
    buckets = []
    for depth in range(n):
        b = n - 1 - depth
        inputs = wiring.inputs[wiring.input_starts[b] : wiring.input_starts[b + 1]]
        tables = _ratio_tables(heuristic, depth)
        n_ratios = len(tables)
        for f in inputs[inputs >= 0].tolist():
            places = slice(int(model.scope_starts[f]), int(model.scope_starts[f + 1]))
            depths = depth_of[model.scope_variables[places]]
            tables.append((int(model.table_starts[f]), depths, factors.strides[places]))
        axes, key_axes = contexts[depth], placed[depth]
        reads, needed = _reads(depth, n_ratios, tables)
        at = np.searchsorted(axes, needed)
        buckets.append(
            SumBucket(
                int(heuristic.variables[depth]),
                int(cards[depth]),
                _n_words(key_axes),
                Axes(*(part[at] for part in key_axes)),
                reads,
                tuple(_handover(depth, axes, key_axes, c, contexts[c], placed[c]) for c in children[depth]),
                key_axes,
                heuristic.variables[axes],
            )
        )
    constants = model.table_starts[:-1][factor_buckets < 0]
    return buckets, float(model.log_values[constants].sum())


def _ratio_tables(heuristic: Heuristic, depth: int) -> list[_Table]:
    """The mini-buckets of a variable; the own variable is the outermost axis of their tables."""
    tables = []
    for b in range(int(heuristic.bucket_starts[depth]), int(heuristic.bucket_starts[depth + 1])):
        others = heuristic.others[heuristic.other_starts[b] : heuristic.other_starts[b + 1]]
        depths = np.concatenate([[depth], others])
        sizes = heuristic.cardinalities[others]
        strides = np.concatenate([[heuristic.columns[b]], heuristic.columns[b] // np.cumprod(sizes)]).astype(np.int64)
        tables.append((int(heuristic.table_starts[b]), depths, strides))
    return tables


def _reads(depth: int, n_ratios: int, tables: list[_Table]) -> tuple[Reads, IntArray]:
    """The tables of a bucket, and the depths that have to be unpacked for them."""
    others = [depths != depth for _, depths, _ in tables]
    needed = np.unique(np.concatenate([d[o] for (_, d, _), o in zip(tables, others, strict=True)] + [_NONE]))
    slots = [np.searchsorted(needed, d[o]) for (_, d, _), o in zip(tables, others, strict=True)]
    own = [int(strides[~o].sum()) for (_, _, strides), o in zip(tables, others, strict=True)]
    return Reads(
        n_ratios,
        np.asarray([start for start, _, _ in tables], dtype=np.int64),
        np.asarray(own, dtype=np.int64),
        starts_of([len(s) for s in slots]),
        np.concatenate([*slots, _NONE]).astype(np.int64),
        np.concatenate([*(s[o] for (_, _, s), o in zip(tables, others, strict=True)), _NONE]).astype(np.int64),
    ), needed


def _pack(cardinalities: IntArray) -> Axes:
    """Axes one after another in words of :data:`KEY_BITS` bits, none across two words."""
    bits = np.maximum(np.ceil(np.log2(cardinalities)).astype(np.int64), 1)
    words, shifts = np.zeros(len(bits), dtype=np.int64), np.zeros(len(bits), dtype=np.int64)
    word = used = 0
    for a, width in enumerate(bits.tolist()):
        if used + width > KEY_BITS:
            word, used = word + 1, 0
        words[a], shifts[a] = word, used
        used += width
    return Axes(words, shifts, (1 << bits) - 1)


def _n_words(axes: Axes) -> int:
    return int(axes.words.max(initial=0)) + 1


def _handover(depth: int, axes: IntArray, key: Axes, child: int, child_axes: IntArray, child_key: Axes) -> Handover:
    """How the key of a child comes about. Its context is part of the bucket's, and the bucket's own variable.

    Axes follow one another in the same order in both, so most of them move together with their neighbours.
    """
    runs: list[list[int]] = []
    own = int(np.searchsorted(child_axes, depth))
    for to in range(len(child_axes)):
        if to == own:
            continue
        at = int(np.searchsorted(axes, child_axes[to]))
        word, shift, mask = int(key.words[at]), int(key.shifts[at]), int(key.masks[at])
        to_word, to_shift = int(child_key.words[to]), int(child_key.shifts[to])
        if runs:
            last = runs[-1]
            together = last[0] == word and last[3] == to_word and shift - last[1] == to_shift - last[4]
            if together:
                last[2] |= mask << (shift - last[1])
                continue
        runs.append([word, shift, mask, to_word, to_shift])
    columns = np.asarray(runs, dtype=np.int64).reshape(-1, 5).T
    return Handover(
        child,
        Runs(*(np.ascontiguousarray(column) for column in columns)),
        int(child_key.words[own]),
        int(child_key.shifts[own]),
        _n_words(child_key),
        len(child_axes) == len(axes) + 1,
    )


def key_of(bucket: SumBucket, states: IntArray) -> IntArray:
    """The key of the context that an assignment of all variables gives."""
    key = np.zeros(bucket.n_words, dtype=np.int64)
    np.bitwise_or.at(key, bucket.key_axes.words, states[bucket.key_variables] << bucket.key_axes.shifts)
    return key
