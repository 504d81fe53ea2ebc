"""Local search over the max variables: exact maximisation of one block after another, everything else held.

A block is a ball of max variables around a random one. Freeing it concerns the sum components next to it. Given all
other max variables and after propagation of zeros, the region is usually narrow even where the whole problem is
hopeless, and elimination then finds the best of exponentially many neighbours at once. Hard zeros that make single
flips infeasible are no obstacle.

Blocks are of two kinds by turns. Compact ones grow while their regions stay cheap and shrink where they are too wide.
Sparse ones are large balls, up to everything, in which some variables keep their states so that the rest is narrow:
on a dense graph a compact block is small, a forest through half of all variables is not.

Where other good assignments are known, some blocks are the variables in which one of them differs. What separates two
good assignments is often a long string of variables that no ball holds; thinned out, it gains three times as often.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.assign.regions import TOO_WIDE
from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.core.random import following, number_below, seeded
from powersum.model.graph import Adjacency, adjacency, components

SMALLEST_GAIN = 1e-9
"""Differences below this are rounding: a block is taken as better only beyond it."""

FIRST_BLOCK = 6
"""Variables of the first block around each variable."""

SPARSE_SHARE = 0.6
"""Share of sparse blocks among all."""

DIFFERING_SHARE = 0.3
"""Share of blocks that are the difference from another assignment, where others are known: with half, all soon end
alike."""

REGION_WORK = 1e6
"""Table entries that the elimination of one region may take: by ``core.speed.ELIMINATION`` a few milliseconds."""

LEAST_PATIENCE, PATIENCE, BRIEF, HASTE = 30, 0.5, 0.1, 0.03
"""A search is given up after this many blocks without a gain, and so many more for each variable at issue: fewer in a
brief one, and the last where all are hasty."""


SWEEPING = 0.75
"""Where everything is maximised and a narrow part of all variables has at least this share of them, each block is such
a part: a *sweep*."""

SWEEP_WORK = 1000.0
"""Table entries that a sweep may take for each variable."""

SWEEPING_PATIENCE = 2
"""Sweeps without a gain after which a search is given up: other starts, whose good pieces are taken over, gain more."""


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
    hasty
        True for sparse blocks alone and little patience: on large graphs many starts that are crossed find more.

    Attributes
    ----------
    log_value
        Value of :attr:`assignment`, up to the rounding of its updates; certify with :meth:`Evaluator.value`.
    others
        Other assignments: where they differ is worth a look. None by default.
    sweeps
        True where each block is a narrow part of all variables.
    """

    def __init__(self, evaluator: Evaluator, assignment: IntArray, *, seed: int = 0, hasty: bool = False) -> None:
        model = evaluator.problem.model
        self._sparse_share, self._patience = (1.0, HASTE) if hasty else (SPARSE_SHARE, PATIENCE)
        self._evaluator = evaluator
        self._rng = np.random.default_rng(seed)
        self._graph = adjacency(model.n_variables, model.scope_starts, model.scope_variables)
        self._max_variables = np.flatnonzero(evaluator.is_max)
        self._sizes: FloatArray = np.full(model.n_variables, float(FIRST_BLOCK))
        self.others: Sequence[IntArray] = ()
        self.sweeps = False
        self.restart(assignment)
        if not evaluator.n_components:
            self.maximise(self._max_variables, thin=True)
            self.sweeps = evaluator.n_free >= SWEEPING * max(len(self._max_variables), 1)

    def restart(self, assignment: IntArray, centres: IntArray | None = None, *, brief: bool = False) -> None:
        """Go on from another assignment, with blocks around any max variable or around those given.

        A ``brief`` search is given up sooner: where good starts are cheap, more of them find more.
        """
        evaluator = self._evaluator
        self._brief = brief
        self._centres = self._max_variables if centres is None else centres
        self.assignment: IntArray = np.where(evaluator.is_max, assignment, -1).astype(np.int64)
        self._values: FloatArray = np.array(
            [self._component_value(c, self.assignment) for c in range(evaluator.n_components)]
        )
        self.log_value = evaluator.plain_value(self.assignment) + float(self._values.sum())
        self.idle = 0
        self.blocks = 0

    def _component_value(self, component: int, assignment: IntArray) -> float:
        """What a component contributes; as good as impossible where its sum is too wide for this assignment."""
        value = self._evaluator.component_value(component, assignment)
        return value if value < TOO_WIDE else -np.inf

    def step(self) -> bool:
        """Maximise one block; True when the value rose. ``idle`` counts blocks since the last gain, ``blocks`` all."""
        self.idle += 1
        self.blocks += 1
        if not len(self._centres):
            return False
        if self.sweeps:
            gain = self.maximise(self._max_variables, thin=True)
        else:
            gain = self._step_between() if self._looks_at_others() else self._step_around()
        if not SMALLEST_GAIN < gain < TOO_WIDE:
            return False
        self.idle = 0
        return True

    def _looks_at_others(self) -> bool:
        return len(self.others) > 0 and self._rng.random() < DIFFERING_SHARE

    def _step_between(self) -> float:
        """Maximise over a narrow part of the variables in which another assignment differs; the gain."""
        other = self.others[int(self._rng.integers(len(self.others)))]
        differing = np.flatnonzero(self._evaluator.is_max & (self.assignment != other))
        return self.maximise(differing, thin=True) if len(differing) else 0.0

    def _step_around(self) -> float:
        """Maximise over a ball, or over a narrow part of a larger one; the gain, or infinity where it is too wide."""
        centre = int(self._rng.choice(self._centres))
        if self._rng.random() < self._sparse_share:
            most = max(len(self._max_variables), FIRST_BLOCK)
            size = int(np.exp(self._rng.uniform(np.log(FIRST_BLOCK), np.log(most))))
            return self.maximise(self.ball(centre, size), thin=True)
        size = max(1, int(self._sizes[centre]))
        gain = self.maximise(self.ball(centre, size))
        wider = min(1.25 * size + 1, len(self._max_variables))
        self._sizes[centre] = max(1.0, 0.7 * size) if gain == TOO_WIDE else wider
        return gain

    @property
    def exhausted(self) -> bool:
        """True after so many blocks without a gain that another start is worth more."""
        if self.sweeps:
            return self.idle >= SWEEPING_PATIENCE
        patience = min(self._patience, BRIEF) if self._brief else self._patience
        return self.idle >= LEAST_PATIENCE + patience * len(self._centres)

    def maximise(self, block: IntArray, *, thin: bool = False) -> float:
        """Maximise over ``block``, or over a narrow part of it; the gain, or infinity where it is too wide."""
        evaluator = self._evaluator
        variables, factors, parts = evaluator.region(block)
        before = float(self._values[parts].sum()) + evaluator.plain_value(self.assignment, factors)
        candidate = self.assignment.copy()
        seed = self._seed() if thin else 0
        work = max(REGION_WORK, SWEEP_WORK * len(variables)) if self.sweeps else REGION_WORK
        value = evaluator.maximise(candidate, variables, factors, work, seed)
        if value == TOO_WIDE:
            return TOO_WIDE
        if value < before - SMALLEST_GAIN or np.array_equal(candidate, self.assignment):
            return 0.0
        # Also a move to an equal value is made: plateaus are wide where many states are symmetric.
        self._move(candidate)
        return min(value - before, 1e300)

    def _seed(self) -> int:
        """For kernels, which draw by themselves."""
        return int(self._rng.integers(1, 2**31))

    def ball(self, centre: int, size: int) -> IntArray:
        """About ``size`` max variables nearest to ``centre``, ties broken at random."""
        return ball_of(centre, size, self._seed(), self._graph, self._evaluator.is_max)

    def kick(self, block: IntArray, scale: float) -> None:
        """Move to what would be best over ``block``, or a narrow part of it, if all tables were somewhat different.

        Every entry is changed by normal noise of standard deviation ``scale``. Unlike states drawn at random, what is
        best for tables nearly right is nearly good, however many variables change; and no zero is violated.
        """
        evaluator = self._evaluator
        variables, factors, _ = evaluator.region(block)
        noisy = evaluator.factors.log_values + self._rng.normal(0.0, scale, len(evaluator.factors.log_values))
        candidate = self.assignment.copy()
        if evaluator.maximise(candidate, variables, factors, REGION_WORK, self._seed(), noisy) < TOO_WIDE:
            self._move(candidate)
        self.blocks += 1

    def _move(self, candidate: IntArray) -> None:
        """Take another assignment; only what changes is computed anew."""
        evaluator = self._evaluator
        _, factors, parts = evaluator.region(np.flatnonzero(candidate != self.assignment))
        before = float(self._values[parts].sum()) + evaluator.plain_value(self.assignment, factors)
        for c in parts.tolist():
            self._values[c] = self._component_value(c, candidate)
        after = float(self._values[parts].sum()) + evaluator.plain_value(candidate, factors)
        self.assignment = candidate
        # From an impossible start the difference is infinite, and the other components may still be impossible.
        finite = np.isfinite(after - before)
        self.log_value = (
            self.log_value + after - before if finite else evaluator.plain_value(candidate) + float(self._values.sum())
        )

    def cross(self, other: IntArray) -> None:
        """Take over from another assignment what is better there, piece by piece.

        Where the two differ, the variables fall apart into pieces with nothing but agreement between them. Maximising
        over a piece gives at least the better of its two versions. A piece too wide for that is tried as it is; so
        is every piece where sweeps follow.
        """
        differs = self._evaluator.is_max & (self.assignment != other)
        for piece in self._pieces(differs):
            if self.sweeps or self.maximise(piece) == TOO_WIDE:
                self._adopt(piece, other)

    def _adopt(self, piece: IntArray, other: IntArray) -> None:
        """Set a piece to its states in ``other`` if that is no worse."""
        evaluator = self._evaluator
        _, factors, parts = evaluator.region(piece)
        candidate = self.assignment.copy()
        candidate[piece] = other[piece]
        values = np.array([self._component_value(c, candidate) for c in parts.tolist()])
        before = float(self._values[parts].sum()) + evaluator.plain_value(self.assignment, factors)
        gain = float(values.sum()) + evaluator.plain_value(candidate, factors) - before
        if gain > SMALLEST_GAIN:
            self.assignment = candidate
            self._values[parts] = values
            self.log_value += gain
            self.idle = 0

    def _pieces(self, chosen: BoolArray) -> list[IntArray]:
        """Connected pieces of the chosen max variables, by way of shared factors or sum variables."""
        model = self._evaluator.problem.model
        inside = (chosen | ~self._evaluator.is_max)[model.scope_variables]
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(inside)])[model.scope_starts]
        label = components(model.n_variables, starts, model.scope_variables[inside])
        members = np.flatnonzero(chosen)
        members = members[np.argsort(label[members], kind="stable")]
        return np.split(members, np.flatnonzero(np.diff(label[members])) + 1) if len(members) else []


def ball_of(centre: int, size: int, seed: int, graph: Adjacency, is_max: BoolArray) -> IntArray:
    """Up to ``size`` max variables nearest to ``centre``, the nearest first, ties broken at random."""
    chosen = np.empty(size, dtype=np.int64)
    return chosen[: _ball(centre, seed, graph.starts, graph.neighbours, is_max, chosen)]


@compiled
def _ball(centre: int, seed: int, starts: IntArray, neighbours: IntArray, is_max: BoolArray, chosen: IntArray) -> int:
    """Fill ``chosen`` with the max variables nearest to ``centre``, each ring in random order; their number."""
    random = seeded(seed, np.int64(0))
    seen = np.zeros(len(is_max), np.bool_)
    queue = np.empty(len(is_max), np.int64)
    seen[centre] = True
    queue[0] = centre
    first, last, count = 0, 1, 0
    while first < last:
        ring = last
        for i in range(first, ring):
            random = following(random)
            j = i + number_below(random, ring - i)
            v = queue[j]
            queue[j] = queue[i]
            if is_max[v]:
                chosen[count] = v
                count += 1
                if count == len(chosen):
                    return count
            for at in range(starts[v], starts[v + 1]):
                u = neighbours[at]
                if not seen[u]:
                    seen[u] = True
                    queue[last] = u
                    last += 1
        first = ring
    return count
