"""CoveringTree: weighted mini-bucket bound, shifts and weights optimised jointly, max variables annealed."""

from __future__ import annotations

import time

import numpy as np

from powersum.arrays import IntArray
from powersum.errors import InputError
from powersum.problem import Problem
from powersum.result import Residuals
from powersum.tighten.tree.budget import DEFAULT_BYTES, bytes_in_use, cost_of, largest_within
from powersum.tighten.tree.fixed_tree import FixedTree
from powersum.tighten.tree.partition import limits_of, partition
from powersum.tighten.tree.scopes import scopes_in_order

SMALL_ENTRIES = 2e5
"""Entries of the first tree where the size is free: a good bound within a second, before a larger tree is tried."""
GROWTH = 8.0
"""How much larger the next tree is where time does not say."""
PASSES = 250.0
"""Passes that a tree needs to do better than one of a quarter of its size."""
SETTLED = 2e-6
"""A cold tree that gains less than this share of its bound in a round makes room for a larger one."""


class CoveringTree:
    """Upper bound by mini-buckets of limited size; follows :class:`powersum.tighten.protocol.Tightener`.

    With a fixed ``ibound`` there is one tree. Otherwise a small tree is tightened first; then comes a tree as large as
    memory and the time left for it allow. The best bound of all is the answer.

    Parameters
    ----------
    problem
        The simplified problem.
    order
        Elimination order of its variables, max variables last.
    threads
        Independent branches of the tree run side by side; results do not depend on it.
    seed
        Present for the sake of the protocol: nothing here is random.
    ibound
        At most ``ibound + 1`` variables in a mini-bucket; by default as many as memory and time allow.
    memory
        Bytes that the process may hold; 1 GB unless given.

    Attributes
    ----------
    log_upper
        The best bound so far.
    exact
        True when every bucket is one mini-bucket: ``log_upper`` is then the value itself.
    """

    def __init__(
        self,
        problem: Problem,
        order: IntArray,
        *,
        threads: int = 1,
        seed: int = 0,
        ibound: int | None = None,
        memory: int | None = None,
    ) -> None:
        if ibound is not None and ibound < 0:
            raise InputError(f"ibound is {ibound}: it must be 0 or more")
        self._problem = problem
        self._order = np.ascontiguousarray(order, dtype=np.int64)
        self._threads = threads
        self._scopes = scopes_in_order(problem.model, self._order)
        self._cardinalities = problem.model.cardinalities[self._order]
        self._limit = 0.0
        if ibound is None:
            budget = DEFAULT_BYTES if memory is None else memory
            self._bytes = budget - min(bytes_in_use(), budget // 2)
            found = largest_within(self._scopes, self._cardinalities, entries=SMALL_ENTRIES, size=self._bytes)
            if found is None:
                found = largest_within(self._scopes, self._cardinalities, entries=np.inf, size=self._bytes)
            if found is None:
                least = cost_of(partition(self._scopes, limits_of(0)), self._scopes, self._cardinalities)
                raise InputError(
                    f"a memory of {budget} bytes is too small: the smallest covering tree needs {least.bytes}"
                )
            self._limit, parts, _ = found
        else:
            self._bytes = 0
            parts = partition(self._scopes, limits_of(ibound))
            cost = cost_of(parts, self._scopes, self._cardinalities)
            if memory is not None and cost.bytes > memory:
                raise InputError(f"ibound {ibound} needs {cost.bytes} bytes, more than the memory of {memory}")
        self._tree = FixedTree(problem, self._order, self._scopes, parts, threads=threads)
        self._best = self._tree
        self._may_grow = ibound is None
        self.log_upper = self._tree.log_upper
        self.exact = self._tree.exact

    def step(self, deadline: float) -> bool:
        """A few iterations of joint descent, or a larger tree; False when nothing is left to gain."""
        tree = self._tree
        if self.exact or tree.log_upper == -np.inf:
            return False
        settled = tree.done or (tree.cold and tree.last_gain < SETTLED)
        if self._may_grow and settled and self._grow(deadline):
            tree = self._tree
        elif tree.done:
            return False
        else:
            tree.step(deadline)
        if tree.log_upper < self.log_upper or tree.exact:
            self.log_upper = min(tree.log_upper, self.log_upper)
            self._best, self.exact = tree, tree.exact
        return not self.exact

    def bound(self) -> float:
        """The bound at the best point, from the problem's own tables."""
        return self._best.bound()

    def decode(self) -> IntArray:
        """States of max variables, last eliminated first, each the best given those already set."""
        return self._best.decode()

    def residuals(self) -> Residuals | None:
        """Largest mismatch of beliefs and of weighted entropies between mini-buckets of one variable."""
        return self._best.residuals()

    def sizes(self) -> dict[str, int | float]:
        """Mini-buckets, table entries and parameters of the best tree."""
        return self._best.sizes()

    def one_pass(self) -> float:
        """Bound at the present temperature and all gradients at the present point, for measurements."""
        return self._best.one_pass()

    def _grow(self, deadline: float) -> bool:
        """Start the largest tree that memory and the time left allow; False where it would not be much larger."""
        now = time.monotonic()
        entries = self._tree.layout.n_entries
        most = GROWTH * entries
        if deadline < np.inf:
            most = (deadline - now) / (PASSES * max(self._tree.seconds_per_entry, 1e-9))
        found = largest_within(self._scopes, self._cardinalities, entries=most, size=self._bytes, least=self._limit)
        if found is None or (found[2].entries < 2 * entries and not found[2].exact):
            self._may_grow = False
            return False
        self._limit, parts, _ = found
        self._tree.rest()
        self._tree = FixedTree(self._problem, self._order, self._scopes, parts, threads=self._threads)
        return True
