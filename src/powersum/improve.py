"""Local search over the max variables: exact maximisation of one block after another, everything else held.

A block is a ball of max variables around a random one. Freeing it concerns the sum components next to it. Given all
other max variables and after propagation of zeros, the region is usually narrow even where the whole problem is
hopeless, and elimination then finds the best of exponentially many neighbours at once. Hard zeros that make single
flips infeasible are no obstacle. Blocks grow while their regions stay cheap and shrink where they are too wide.
"""

from __future__ import annotations

import time

import numpy as np

from powersum.arrays import BoolArray, FloatArray, IntArray
from powersum.decode import Completion, complete, preferring
from powersum.evaluate import Evaluator
from powersum.evaluate_regions import TOO_WIDE
from powersum.graph import adjacency

SMALLEST_GAIN = 1e-9
"""Differences below this are rounding: a block is taken as better only beyond it."""

FIRST_BLOCK = 6
"""Variables of the first block around each variable."""

REGION_WORK = 2e5
"""Table entries that the elimination of one region may take: about a millisecond."""
ELITE = 8
"""Assignments that are kept to cross with."""


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

    def step(self) -> bool:
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
        return False

    def maximise(self, block: IntArray) -> float:
        """Maximise over ``block``; the gain, or infinity where the region is too wide."""
        evaluator = self._evaluator
        variables, factors, parts = evaluator.region(block)
        before = float(self._values[parts].sum()) + evaluator.plain_value(self.assignment, factors)
        candidate = self.assignment.copy()
        value = evaluator.maximise(candidate, variables, factors, REGION_WORK)
        if value == TOO_WIDE:
            return TOO_WIDE
        if value < before - SMALLEST_GAIN or np.array_equal(candidate, self.assignment):
            return 0.0
        # Also a move to an equal value is made: plateaus are wide where many states are symmetric.
        self.assignment = candidate
        for c in parts.tolist():
            self._values[c] = evaluator.component_value(c, candidate)
        gain = value - before
        # From an impossible start the difference is infinite, and the other components may still be impossible.
        self.log_value = (
            self.log_value + gain if np.isfinite(gain) else evaluator.plain_value(candidate) + float(self._values.sum())
        )
        return min(gain, 1e300)

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

    def cross(self, other: IntArray) -> None:
        """Take over from another assignment what is better there, piece by piece.

        Where the two differ, the variables fall apart into pieces with nothing but agreement between them. Maximising
        over a piece gives at least the better of its two versions; a piece too wide for that is tried as it is.
        """
        differs = self._evaluator.is_max & (self.assignment != other)
        for piece in self._pieces(differs):
            if self.maximise(piece) == TOO_WIDE:
                self._adopt(piece, other)

    def _adopt(self, piece: IntArray, other: IntArray) -> None:
        """Set a piece to its states in ``other`` if that is no worse."""
        evaluator = self._evaluator
        _, factors, parts = evaluator.region(piece)
        candidate = self.assignment.copy()
        candidate[piece] = other[piece]
        values = np.array([evaluator.component_value(c, candidate) for c in parts.tolist()])
        before = float(self._values[parts].sum()) + evaluator.plain_value(self.assignment, factors)
        gain = float(values.sum()) + evaluator.plain_value(candidate, factors) - before
        if gain > SMALLEST_GAIN:
            self.assignment = candidate
            self._values[parts] = values
            self.log_value += gain
            self.idle = 0

    def _pieces(self, chosen: BoolArray) -> list[IntArray]:
        """Connected pieces of the chosen max variables, by way of shared factors or sum variables."""
        evaluator, graph = self._evaluator, self._graph
        pieces: list[IntArray] = []
        seen = ~(chosen | ~evaluator.is_max)
        for start in np.flatnonzero(chosen).tolist():
            if seen[start]:
                continue
            seen[start] = True
            stack, members = [start], []
            while stack:
                v = stack.pop()
                if chosen[v]:
                    members.append(v)
                for u in graph.neighbours[graph.starts[v] : graph.starts[v + 1]].tolist():
                    if not seen[u]:
                        seen[u] = True
                        stack.append(u)
            pieces.append(np.asarray(members, dtype=np.int64))
        return pieces


class Portfolio:
    """Local search from many starts; the best assignments are kept and crossed with each new one.

    Parameters
    ----------
    evaluator
        Values of assignments.
    seed
        Seed of all that is drawn at random.

    Attributes
    ----------
    log_value, assignment
        The best so far; ``-inf`` while nothing feasible is known.
    """

    def __init__(self, evaluator: Evaluator, *, seed: int = 0) -> None:
        self._evaluator = evaluator
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._elite: list[tuple[float, IntArray]] = []
        self._search: LocalSearch | None = None
        self._waiting: list[IntArray] = []
        self._patience = max(50, int(evaluator.is_max.sum()))
        self.log_value = -np.inf
        self.assignment: IntArray = np.full(len(evaluator.is_max), -1, dtype=np.int64)

    def suggest(self, assignment: IntArray) -> None:
        """Start from this assignment next; sum variables may be -1, and zeros may forbid it."""
        self._waiting.append(assignment)

    def run(self, deadline: float) -> bool:
        """Search until the deadline; True when a better assignment was found."""
        before = self.log_value
        if not self._evaluator.is_max.any():
            if self.log_value == -np.inf:
                self.log_value = self._evaluator.value(self.assignment)
            return self.log_value > before
        while time.monotonic() < deadline:
            if self._search is None or self._search.idle >= self._patience:
                self._finish()
                if not self._begin(deadline):
                    return self.log_value > before
            search = self._search
            assert search is not None
            search.step()
            if search.log_value > self.log_value + SMALLEST_GAIN:
                self.log_value, self.assignment = search.log_value, search.assignment.copy()
        return self.log_value > before

    def _begin(self, deadline: float) -> bool:
        """The next start: what was suggested, the best one shaken up, or anything feasible."""
        evaluator, rng = self._evaluator, self._rng
        if self._waiting:
            preferences = preferring(evaluator, self._waiting.pop(), rng)
        elif self._elite and rng.random() < 0.7:
            shaken = self._elite[int(rng.integers(len(self._elite)))][1].copy()
            shaken[~evaluator.is_max] = -1
            some = np.flatnonzero(evaluator.is_max)
            size = max(1, int(len(some) * rng.uniform(0.05, 0.4)))
            assert self._search is not None
            shaken[self._search.ball(int(rng.choice(some)), size)] = -1
            preferences = preferring(evaluator, shaken, rng)
        else:
            preferences = rng.random(int(evaluator.supports.state_starts[-1]))
        ended, states = complete(evaluator, preferences, deadline=deadline, seed=int(rng.integers(2**31)))
        if ended is not Completion.FOUND:
            return False
        if self._search is None:
            self._search = LocalSearch(evaluator, states, seed=self._seed)
        else:
            self._search.restart(states)
        if self._search.log_value > self.log_value:
            self.log_value, self.assignment = self._search.log_value, self._search.assignment.copy()
        return True

    def _finish(self) -> None:
        """Cross the end of a run with the best ones, and keep it if it is among them."""
        if self._search is None:
            return
        search = self._search
        for _, other in list(self._elite):
            search.cross(other)
        if search.log_value > self.log_value + SMALLEST_GAIN:
            self.log_value, self.assignment = search.log_value, search.assignment.copy()
        if not any(np.array_equal(search.assignment, other) for _, other in self._elite):
            self._elite.append((search.log_value, search.assignment.copy()))
            self._elite.sort(key=lambda entry: -entry[0])
            del self._elite[ELITE:]
