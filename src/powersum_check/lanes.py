"""Lists of lists in flat arrays, and sets as bits of words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersum_check.numbers import IntArray

Bits = NDArray[np.bool_]
Words = NDArray[np.uint32]


def packed(bits: Bits) -> Words:
    """Each row of bits as words; it is filled up with zeros."""
    short = -bits.shape[1] % 32
    return np.packbits(np.pad(bits, ((0, 0), (0, short))), axis=1).view(np.uint32)


def unpacked(words: Words, length: int) -> Bits:
    """Rows of bits again."""
    return np.unpackbits(words.view(np.uint8), axis=1, count=length).view(np.bool_)


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
