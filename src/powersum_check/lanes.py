"""Lists of lists in flat arrays, and many cases at once: 64 *lanes* are the bits of a word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersum_check.numbers import IntArray

Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]


def packed(bits: Bits) -> Words:
    """Rows of lanes as words; the transposed of a matrix with a row for each lane."""
    n_lanes = bits.shape[0]
    wide = np.zeros((-(-n_lanes // 64) * 64, bits.shape[1]), np.bool_)
    wide[:n_lanes] = bits
    return np.packbits(np.ascontiguousarray(wide.T), axis=1, bitorder="little").view(np.uint64)


def unpacked(words: Words, n_lanes: int) -> Bits:
    """A row for each lane again."""
    flat = np.unpackbits(words.view(np.uint8), axis=1, count=n_lanes, bitorder="little")
    return np.ascontiguousarray(flat.T).view(np.bool_)


def starts_of(lengths: Any) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)


def pieces(starts: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers from ``starts[k]`` to ``starts[k + 1]`` of all chosen k, and where each piece begins among them."""
    lengths = starts[chosen + 1] - starts[chosen]
    begin = starts_of(lengths)
    return np.arange(begin[-1]) + np.repeat(starts[chosen] - begin[:-1], lengths), begin


def owners(begin: IntArray) -> IntArray:
    """Which run each number belongs to, of runs that begin there."""
    return np.repeat(np.arange(len(begin) - 1), np.diff(begin))
