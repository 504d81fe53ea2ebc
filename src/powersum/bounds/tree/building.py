"""Building trees of one structure: without splits, as large as so many entries allow, or by an i-bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powersum.bounds.buckets.partition import limits_of, partition, partition_by_ibound
from powersum.bounds.buckets.scopes import Scopes, scopes_in_order
from powersum.bounds.tree.budget import DEFAULT_BYTES, cost_of, exact_within, largest_within
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core.arrays import IntArray
from powersum.core.errors import InputError, TooLittleMemoryError
from powersum.prepare.ordering import order_cost
from powersum.prepare.problem import Problem


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds trees of one problem.

    Parameters
    ----------
    problem
        The simplified problem.
    threads
        Of each tree.
    memory
        Bytes that a tree may take; 1 GB unless given.
    """

    problem: Problem
    threads: int
    memory: int | None = None

    @property
    def size(self) -> int:
        """Bytes that a tree may take."""
        return DEFAULT_BYTES if self.memory is None else self.memory

    def exact(self, order: IntArray, entries: float) -> FixedTree | None:
        """The tree without splits, where memory and the entries allowed for one pass are enough."""
        # The largest table alone mostly tells, and a partition of a very large model takes seconds.
        if order_cost(self.problem.model, order).log2_largest > np.log2(max(entries, 2.0)):
            return None
        scopes, cardinalities = self._in_order(order)
        parts = exact_within(scopes, cardinalities, entries=entries, size=self.size)
        if parts is None:
            return None
        return FixedTree(self.problem, order, scopes, parts, threads=self.threads)

    def within(self, order: IntArray, entries: float) -> FixedTree:
        """A tree of at most so many entries, if memory allows any."""
        scopes, cardinalities = self._in_order(order)
        found = largest_within(scopes, cardinalities, entries=entries, size=self.size)
        if found is None:
            found = largest_within(scopes, cardinalities, entries=np.inf, size=self.size)
        if found is None:
            least = cost_of(partition(scopes, limits_of(0)), scopes, cardinalities)
            raise TooLittleMemoryError(
                f"there is too little memory: the smallest covering tree needs {1e-6 * least.bytes:.4g} MB,"
                f" and the budget leaves {1e-6 * self.size:.4g} MB for it"
            )
        return FixedTree(self.problem, order, scopes, found[1], threads=self.threads)

    def by_ibound(self, order: IntArray, ibound: int) -> FixedTree:
        """The tree with at most ``ibound + 1`` variables in a mini-bucket; memory counts only where it was given."""
        if ibound < 0:
            raise InputError(f"ibound is {ibound}: it must be 0 or more")
        scopes, cardinalities = self._in_order(order)
        parts = partition_by_ibound(scopes, limits_of(ibound))
        cost = cost_of(parts, scopes, cardinalities)
        if self.memory is not None and cost.bytes > self.memory:
            raise InputError(f"ibound {ibound} needs {cost.bytes} bytes, more than the memory of {self.memory}")
        return FixedTree(self.problem, order, scopes, parts, threads=self.threads)

    def _in_order(self, order: IntArray) -> tuple[Scopes, IntArray]:
        return scopes_in_order(self.problem.model, order), self.problem.model.cardinalities[order]
