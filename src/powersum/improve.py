"""Local search over the max variables: exact maximisation of one block after another, everything else held.

A block is a ball of max variables around a random one. Freeing it concerns the sum components next to it. Given all
other max variables and after propagation of zeros, the region is usually narrow even where the whole problem is
hopeless, and elimination then finds the best of exponentially many neighbours at once. Hard zeros that make single
flips infeasible are no obstacle.

Blocks are of two kinds by turns. Compact ones grow while their regions stay cheap and shrink where they are too wide.
Sparse ones are large balls, up to everything, in which some variables keep their states so that the rest is narrow:
on a dense graph a compact block is small, a forest through half of all variables is not.
"""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass

import numpy as np

from powersum.anneal import Annealer
from powersum.arrays import BoolArray, FloatArray, IntArray
from powersum.compiled import compiled
from powersum.decode import Completion, complete, preferring
from powersum.evaluate import Evaluator
from powersum.evaluate_regions import TOO_WIDE
from powersum.graph import adjacency

SMALLEST_GAIN = 1e-9
"""Differences below this are rounding: a block is taken as better only beyond it."""

FIRST_BLOCK = 6
"""Variables of the first block around each variable."""

SPARSE_SHARE = 0.5
"""Share of sparse blocks among all."""

LARGEST_BLOCK = 400
"""Variables of the largest sparse blocks."""

REGION_WORK = 1e6
"""Table entries that the elimination of one region may take: a few milliseconds at most."""

ELITE = 8
"""Assignments that are kept to cross with."""

LEAST_PATIENCE, PATIENCE = 30, 0.5
"""A search is given up after this many blocks without a gain, and so many more for each variable at issue."""

SHAKEN = (0.01, 0.4)
"""Share of the variables that are opened when a good assignment is shaken up: from, to."""

SAME_VALUE = 1e-6
"""Assignments whose values are this close count as one."""

FORGETTING = 0.9
"""How much of what was seen of a kind of start is kept after each run."""

LEAST_SHARE = 0.1
"""How often each kind is tried at least, about."""


class Start(enum.Enum):
    """Where a local search begins."""

    GIVEN = enum.auto()
    ANNEALED = enum.auto()
    SHAKEN = enum.auto()


@dataclass(slots=True)
class Merit:
    """How often a kind of start led to one of the best assignments, and how many blocks that took."""

    good: float = 1.0
    blocks: float = 200.0

    @property
    def rate(self) -> float:
        """Good ends for each block."""
        return (self.good + 0.05) / (self.blocks + 1.0)

    def add(self, good: float, blocks: float) -> None:
        """Count another run; older ones fade."""
        self.good = FORGETTING * self.good + good
        self.blocks = FORGETTING * self.blocks + blocks


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

    def restart(self, assignment: IntArray, centres: IntArray | None = None) -> None:
        """Go on from another assignment, with blocks around any max variable or around those given."""
        evaluator = self._evaluator
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
        centre = int(self._rng.choice(self._centres))
        if self._rng.random() < SPARSE_SHARE:
            most = min(len(self._max_variables), LARGEST_BLOCK)
            size = int(np.exp(self._rng.uniform(np.log(FIRST_BLOCK), np.log(max(most, FIRST_BLOCK)))))
            gain = self.maximise(self.ball(centre, size), thin=True)
        else:
            size = max(1, int(self._sizes[centre]))
            gain = self.maximise(self.ball(centre, size))
            wider = min(1.25 * size + 1, len(self._max_variables))
            self._sizes[centre] = max(1.0, 0.7 * size) if gain == TOO_WIDE else wider
        if not SMALLEST_GAIN < gain < TOO_WIDE:
            return False
        self.idle = 0
        return True

    @property
    def exhausted(self) -> bool:
        """True after so many blocks without a gain that another start is worth more."""
        return self.idle >= LEAST_PATIENCE + PATIENCE * len(self._centres)

    def maximise(self, block: IntArray, *, thin: bool = False) -> float:
        """Maximise over ``block``, or over a narrow part of it; the gain, or infinity where it is too wide."""
        evaluator = self._evaluator
        variables, factors, parts = evaluator.region(block)
        before = float(self._values[parts].sum()) + evaluator.plain_value(self.assignment, factors)
        candidate = self.assignment.copy()
        seed = int(self._rng.integers(1, 2**31)) if thin else 0
        value = evaluator.maximise(candidate, variables, factors, REGION_WORK, seed)
        if value == TOO_WIDE:
            return TOO_WIDE
        if value < before - SMALLEST_GAIN or np.array_equal(candidate, self.assignment):
            return 0.0
        # Also a move to an equal value is made: plateaus are wide where many states are symmetric.
        changed = np.flatnonzero(candidate != self.assignment)
        self.assignment = candidate
        for c in evaluator.region(changed)[2].tolist():
            self._values[c] = self._component_value(c, candidate)
        gain = value - before
        # From an impossible start the difference is infinite, and the other components may still be impossible.
        self.log_value = (
            self.log_value + gain if np.isfinite(gain) else evaluator.plain_value(candidate) + float(self._values.sum())
        )
        return min(gain, 1e300)

    def ball(self, centre: int, size: int) -> IntArray:
        """About ``size`` max variables nearest to ``centre``, ties broken at random."""
        chosen = np.empty(size, dtype=np.int64)
        seed = int(self._rng.integers(1, 2**31))
        count = _ball(centre, seed, self._graph.starts, self._graph.neighbours, self._evaluator.is_max, chosen)
        return chosen[:count]

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

    Starts are annealed, or good ones shaken up. Which kind is taken is drawn by how often it has led
    to one of the best so far.

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
        self._annealer = Annealer(evaluator)
        self._elite: list[tuple[float, IntArray]] = []
        self._search: LocalSearch | None = None
        self._waiting: list[IntArray] = []
        self._opened: IntArray | None = None
        self._kind = Start.GIVEN
        self._merits = {kind: Merit() for kind in (Start.ANNEALED, Start.SHAKEN)}
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
            if self._search is None or self._search.exhausted:
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
        """The next start; False where zeros forbid it and no way around them was found in time."""
        evaluator, rng = self._evaluator, self._rng
        preferences = self._preferences()
        ended, states = complete(evaluator, preferences, deadline=deadline, seed=int(rng.integers(2**31)))
        if ended is not Completion.FOUND:
            return False
        if self._search is None:
            self._search = LocalSearch(evaluator, states, seed=self._seed)
        else:
            self._search.restart(states, self._opened)
        if self._search.log_value > self.log_value:
            self.log_value, self.assignment = self._search.log_value, self._search.assignment.copy()
        return True

    def _preferences(self) -> FloatArray:
        """What to start from next: a suggestion, or one of the kinds of starts by merit."""
        evaluator, rng = self._evaluator, self._rng
        self._opened = None
        if self._waiting:
            self._kind = Start.GIVEN
            return preferring(evaluator, self._waiting.pop(), rng)
        kinds = [kind for kind in self._merits if kind is not Start.SHAKEN or self._elite]
        rates = np.array([self._merits[kind].rate for kind in kinds])
        shares = np.maximum(rates / rates.sum(), LEAST_SHARE)
        self._kind = kinds[int(rng.choice(len(kinds), p=shares / shares.sum()))]
        start = self._shaken() if self._kind is Start.SHAKEN else self._annealer.draw(rng)
        return preferring(evaluator, start, rng)

    def _shaken(self) -> IntArray:
        """One of the best, with a ball of its variables open: it is around those that blocks will be."""
        evaluator, rng = self._evaluator, self._rng
        # The better ones more often.
        shaken = self._elite[int(len(self._elite) * rng.random() ** 2)][1].copy()
        shaken[~evaluator.is_max] = -1
        some = np.flatnonzero(evaluator.is_max)
        smallest, largest = (np.log(max(1.0, share * len(some))) for share in SHAKEN)
        assert self._search is not None
        self._opened = self._search.ball(int(rng.choice(some)), int(np.exp(rng.uniform(smallest, largest))))
        shaken[self._opened] = -1
        return shaken

    def _finish(self) -> None:
        """Cross the end of a run with the best ones, and keep it if it is among them."""
        if self._search is None:
            return
        search = self._search
        for _, other in list(self._elite):
            search.cross(other)
        if search.log_value > self.log_value + SMALLEST_GAIN:
            self.log_value, self.assignment = search.log_value, search.assignment.copy()
        # Equal values are mostly the same solution up to symmetry, and would soon fill all places.
        new = not any(abs(search.log_value - value) < SAME_VALUE for value, _ in self._elite)
        # An end counts for its kind of start where it is new and better than all kept but one or two.
        good = new and (len(self._elite) < 3 or search.log_value > self._elite[2][0])
        if self._kind in self._merits:
            extra = self._annealer.cost if self._kind is Start.ANNEALED else 0.0
            self._merits[self._kind].add(float(good), search.blocks + extra)
        if new:
            self._elite.append((search.log_value, search.assignment.copy()))
            self._elite.sort(key=lambda entry: -entry[0])
            del self._elite[ELITE:]


@compiled
def _ball(centre: int, seed: int, starts: IntArray, neighbours: IntArray, is_max: BoolArray, chosen: IntArray) -> int:
    """Fill ``chosen`` with the max variables nearest to ``centre``, each ring in random order; their number."""
    random = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    seen = np.zeros(len(is_max), np.bool_)
    queue = np.empty(len(is_max), np.int64)
    seen[centre] = True
    queue[0] = centre
    first, last, count = 0, 1, 0
    while first < last:
        ring = last
        for i in range(first, ring):
            random ^= random << np.uint64(13)
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            j = i + np.int64((random >> np.uint64(11)) % np.uint64(ring - i))
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
