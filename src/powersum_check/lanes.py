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


def runs(first: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """So many numbers from each first one on, one run after another, and where each begins among them."""
    begin = starts_of(lengths)
    return np.arange(begin[-1]) + np.repeat(first - begin[:-1], lengths), begin


def pieces(starts: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers from ``starts[k]`` to ``starts[k + 1]`` of all chosen k, and where each piece begins among them."""
    return runs(starts[chosen], starts[chosen + 1] - starts[chosen])


def owners(begin: IntArray) -> IntArray:
    """Which run each number belongs to, of runs that begin there."""
    return np.repeat(np.arange(len(begin) - 1), np.diff(begin))


class Lists:
    """A list of numbers for each node that waits to be valued, one after another in one array."""

    def __init__(self, n_nodes: int) -> None:
        self.first, self.length = np.zeros((2, n_nodes), np.int64)
        self.flat, self.used, self.idle = np.zeros(0, np.int32), 0, 0

    def put(self, nodes: IntArray, numbers: IntArray, lengths: IntArray) -> None:
        """The lists of some nodes that have none yet."""
        end = self.used + len(numbers)
        if end > len(self.flat):
            self.flat = np.concatenate([self.flat[: self.used], np.zeros(end, np.int32)])
        self.flat[self.used : end] = numbers
        self.first[nodes], self.length[nodes] = self.used + starts_of(lengths)[:-1], lengths
        self.used = end

    def get(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """The lists of some nodes, one after another, and where each begins."""
        at, begin = runs(self.first[nodes], self.length[nodes])
        return self.flat[at].astype(np.int64), begin

    def drop(self, nodes: IntArray) -> None:
        """These are done with: where that makes up half of all, the others move together."""
        self.idle += int(self.length[nodes].sum())
        self.length[nodes] = 0
        if 2 * self.idle > self.used:
            left = np.flatnonzero(self.length)
            self.flat = self.get(left)[0].astype(np.int32)
            self.first[left] = starts_of(self.length[left])[:-1]
            self.used, self.idle = len(self.flat), 0
