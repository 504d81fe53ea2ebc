"""What the kernels of a covering tree read: numbers of its nodes, of their inputs, and of the patterns these follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import IntArray

Index32Array = NDArray[np.uint32]

STATES, COLUMNS, TABLE, PACKED, MESSAGE, ENTROPY, FIRST_INPUT, ROWS, ROW_LENGTH, BLOCKS = range(10)
"""Columns of :attr:`TreeWiring.nodes`."""

SOURCE, SLOPE, SIGN, STRIDE, FIRST_BASE, PATTERN = range(6)
"""Columns of :attr:`TreeWiring.inputs`."""

KIND, PRESENT, RUN, FIRST_MAP, FIRST_PLACE, FIRST_GAP = range(6)
"""Columns of :attr:`TreeWiring.patterns`."""


class TreeWiring(NamedTuple):
    """What the kernels read. All numbers of a node lie side by side, as do those of an input and of a pattern.

    A few wide arrays and not one for each number, for handing over an array takes a kernel and its compiler time. Each
    has one row more than there are nodes, inputs or patterns, in which those columns end that say where something
    begins. Compiled code reads the arrays by the columns above; the properties are for everybody else.
    """

    nodes: IntArray
    inputs: IntArray
    patterns: IntArray
    bases: IntArray
    """Where each block starts in each input."""
    maps: Index32Array
    """For the first entry of each run of a row its place in the input."""
    places: Index32Array
    """For each entry of the input its first place in a row."""
    gaps: Index32Array
    """Distances from the first place to all places: states of the axes that the input lacks."""

    @property
    def states(self) -> IntArray:
        """States of the eliminated variable of each node."""
        return self.nodes[:-1, STATES]

    @property
    def columns(self) -> IntArray:
        """States of all other variables of each node together: the size of its message."""
        return self.nodes[:-1, COLUMNS]

    @property
    def table(self) -> IntArray:
        """Start of each node's table among all tables, and their end."""
        return self.nodes[:, TABLE]

    @property
    def packed(self) -> IntArray:
        """The same among tables of which two states are one row: conditionals of the first tell those of the other."""
        return self.nodes[:, PACKED]

    @property
    def message(self) -> IntArray:
        """Start of each node's message in the pool, and their end."""
        return self.nodes[:, MESSAGE]

    @property
    def entropy(self) -> IntArray:
        """Start of the conditional entropies of each node; -1 for a node that has its variable to itself."""
        return self.nodes[:-1, ENTROPY]

    @property
    def input_starts(self) -> IntArray:
        """Inputs of node n: ``input_starts[n]`` to ``input_starts[n + 1]``."""
        return self.nodes[:, FIRST_INPUT]

    @property
    def rows(self) -> IntArray:
        """A node's block is filled row by row: as many rows as states, or a single row where all of it is small."""
        return self.nodes[:-1, ROWS]

    @property
    def row_length(self) -> IntArray:
        """Entries of each row."""
        return self.nodes[:-1, ROW_LENGTH]

    @property
    def blocks(self) -> IntArray:
        """Number of blocks of columns."""
        return self.nodes[:-1, BLOCKS]

    @property
    def source(self) -> IntArray:
        """Start of each input in the pool."""
        return self.inputs[:-1, SOURCE]

    @property
    def slope(self) -> IntArray:
        """Start of its gradient in the gradient pool; -1 for a static table."""
        return self.inputs[:-1, SLOPE]

    @property
    def pattern(self) -> IntArray:
        """Pattern of each input."""
        return self.inputs[:-1, PATTERN]

    @property
    def kind(self) -> IntArray:
        """Kind of each pattern."""
        return self.patterns[:-1, KIND]

    def with_slopes(self, slope: IntArray) -> TreeWiring:
        """The same, but for where gradients go."""
        inputs = self.inputs.copy()
        inputs[:-1, SLOPE] = slope
        return self._replace(inputs=inputs)
