"""What is known of nodes met before, in a table that grows up to a size: then the least valuable entries make room.

An entry is found by two random words, 128 bits in all: that two nodes ever share them is less likely than a fault of
the memory it is kept in. Dropping an entry loses work, never validity: an unknown node costs at least nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import bare, without_counting
from powersum.core.prefetch import prefetch

BYTES_PER_ENTRY = 32
PLACES = 4
"""Places where an entry may be: the new one takes that of the entry with the least work behind it."""

FIRST_BYTES = 2.0**24
"""Size of a first table: small ones are quicker, for more of them is near the processor."""

CROWDED, GROWTH = 0.5, 4
"""A table fuller than this share grows so many times."""


class Values(NamedTuple):
    """Rows of two words of the key, the least cost, and twice the work spent, plus one where the cost is exact.

    Both arrays are the same memory, as integers and as numbers. ``entries`` holds their number.
    """

    words: IntArray
    numbers: FloatArray
    entries: IntArray


def new_values(memory: float) -> Values:
    """An empty table of at most so many bytes."""
    buckets = 2 ** int(np.log2(max(memory / (PLACES * BYTES_PER_ENTRY), 1.0)))
    words = np.zeros((PLACES * buckets, 4), dtype=np.int64)
    return Values(words, words.view(np.float64), np.zeros(1, dtype=np.int64))


def roomy(values: Values, memory: float) -> Values:
    """The table itself, or a larger one with all its entries where it is crowded and that many bytes allow it."""
    larger = GROWTH * values.words.nbytes
    # While entries move there are two tables.
    if values.entries[0] <= CROWDED * len(values.words) or (1.0 + 1.0 / GROWTH) * larger > memory:
        return values
    moved = new_values(larger)
    _move(values, moved)
    return moved


@without_counting
def _move(values: Values, other: Values) -> None:
    for row in range(len(values.words)):
        effort = values.words[row, 3]
        if effort:
            keep(
                other,
                values.words[row, 0],
                values.words[row, 1],
                values.numbers[row, 2],
                effort % 2 == 1,
                effort // 2,
            )


@bare
def approach(values: Values, first: int) -> None:
    """A key will be asked for soon: have its places brought near, which takes as long as hundreds of instructions."""
    place = 4 * PLACES * (first & (len(values.words) // PLACES - 1))
    prefetch(values.words, place)
    prefetch(values.words, place + 8)


@without_counting
def find(values: Values, first: int, second: int) -> int:
    """The row of a key, or -1."""
    words = values.words
    place = PLACES * (first & (len(words) // PLACES - 1))
    for row in range(place, place + PLACES):
        if words[row, 0] == first and words[row, 1] == second:
            return row
    return -1


@without_counting
def keep(values: Values, first: int, second: int, cost: float, exact: bool, effort: int) -> None:
    """Remember the cost of a node; what is known already is never forgotten for less. ``effort`` is above 0."""
    words, numbers = values.words, values.numbers
    row = find(values, first, second)
    if row < 0:
        place = PLACES * (first & (len(words) // PLACES - 1))
        row = place
        for other in range(place + 1, place + PLACES):
            if words[other, 3] < words[row, 3]:
                row = other
        values.entries[0] += words[row, 3] == 0
        words[row, 0], words[row, 1] = first, second
        numbers[row, 2] = cost
        words[row, 3] = 2 * effort + exact
        return
    numbers[row, 2] = cost if exact else max(cost, numbers[row, 2])
    words[row, 3] = 2 * (words[row, 3] // 2 + effort) + (exact or words[row, 3] % 2 == 1)
