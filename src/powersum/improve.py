"""Local search over the max variables: exact maximisation of one block after another, everything else held.

A block is a ball of max variables around a random one. Freeing it concerns the sum components next to it. Given all
other max variables and after propagation of zeros, the region is usually narrow even where the whole problem is
hopeless, and elimination then finds the best of exponentially many neighbours at once. Hard zeros that make single
flips infeasible are no obstacle. Blocks grow while their regions stay cheap and shrink where they are too wide.
"""

from __future__ import annotations

import time

import numpy as np

from powersum.arrays import FloatArray, IntArray
from powersum.evaluate import Evaluator
from powersum.evaluate_regions import TOO_WIDE
from powersum.graph import adjacency

SMALLEST_GAIN = 1e-9
"""Differences below this are rounding: a block is taken as better only beyond it."""

FIRST_BLOCK = 6
FIRST_WORK = 2e5


class LocalSearch:
    """Improves one feasible assignment block by block.

    Parameters
    ----------
    evaluator
        Values of assignments.
    assignment
        Where to start: feasible, a state for every max variable.
    seed
        Seed of the choice of blocks.

    Attributes
    ----------
    log_value
        Value of :attr:`assignment`, up to the rounding of its updates; certify with :meth:`Evaluator.value`.
    """

    def __init__(self, evaluator: Evaluator, assignment: IntArray, *, seed: int = 0) -> None:
        model = evaluator.problem.model
        self._evaluator = evaluator
        self._rng = np.random.default_rng(seed)
        self._graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
        self._max_variables = np.flatnonzero(evaluator.is_max)
        self._sizes: FloatArray = np.full(model.n_variables, float(FIRST_BLOCK))
        self._work_limit = FIRST_WORK
        self.restart(assignment)

    def restart(self, assignment: IntArray) -> None:
        """Go on from another assignment."""
        evaluator = self._evaluator
        self.assignment: IntArray = np.where(evaluator.is_max, assignment, -1).astype(np.int64)
        self._values: FloatArray = np.array(
            [evaluator.component_value(c, self.assignment) for c in range(evaluator.n_components)]
        )
        self.log_value = evaluator.plain_value(self.assignment) + float(self._values.sum())
        self.idle = 0

    def step(self, deadline: float) -> bool:
        """Maximise one block; True when the value rose. :attr:`idle` counts blocks since the last gain."""
        if not len(self._max_variables):
            self.idle += 1
            return False
        centre = int(self._rng.choice(self._max_variables))
        size = max(1, int(self._sizes[centre]))
        block = self.ball(centre, size)
        gain = self.maximise(block)
        if gain == TOO_WIDE:
            self._sizes[centre] = max(1.0, 0.7 * size)
            self.idle += 1
            return False
        self._sizes[centre] = min(1.25 * size + 1, len(self._max_variables))
        if gain > SMALLEST_GAIN:
            self.idle = 0
            return True
        self.idle += 1
        if self.idle % (2 * len(self._max_variables)) == 0:
            # Nothing is gained any more at this size of region: spend more on each.
            self._work_limit *= 4.0
        return False

    def maximise(self, block: IntArray) -> float:
        """Maximise over ``block``; the gain, or infinity where the region is too wide."""
        evaluator = self._evaluator
        variables, factors, parts = evaluator.region(block)
        before = float(self._values[parts].sum()) + evaluator.plain_value(self.assignment, factors)
        candidate = self.assignment.copy()
        value = evaluator.maximise(candidate, variables, factors, self._work_limit)
        if value == TOO_WIDE:
            return TOO_WIDE
        if value < before - SMALLEST_GAIN or np.array_equal(candidate, self.assignment):
            return 0.0
        # Also a move to an equal value is made: plateaus are wide where many states are symmetric.
        self.assignment = candidate
        for c in parts.tolist():
            self._values[c] = evaluator.component_value(c, candidate)
        self.log_value += value - before
        return value - before

    def ball(self, centre: int, size: int) -> IntArray:
        """About ``size`` max variables nearest to ``centre``, ties broken at random."""
        graph, is_max = self._graph, self._evaluator.is_max
        seen = {centre}
        ring = [centre]
        chosen: list[int] = []
        while ring and len(chosen) < size:
            self._rng.shuffle(ring)
            following: list[int] = []
            for v in ring:
                if is_max[v]:
                    chosen.append(v)
                for u in graph.neighbours[graph.starts[v] : graph.starts[v + 1]].tolist():
                    if u not in seen:
                        seen.add(u)
                        following.append(u)
            ring = following
        return np.asarray(chosen[:size], dtype=np.int64)

    def run(self, deadline: float, patience: int) -> None:
        """Steps until the deadline, or until ``patience`` blocks in a row gained nothing."""
        while time.monotonic() < deadline and self.idle < patience:
            self.step(deadline)
