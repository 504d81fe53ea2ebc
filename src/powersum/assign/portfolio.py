"""Local search from many starts, for as long as there is time: which starts, and what is kept of their ends."""

from __future__ import annotations

import enum
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from powersum.assign.annealer import Annealer
from powersum.assign.blocks import LEAST_PATIENCE, SMALLEST_GAIN, LocalSearch
from powersum.assign.complete import complete, preferring
from powersum.assign.evaluator import Evaluator
from powersum.assign.regions import TOO_WIDE
from powersum.core import work_time as time
from powersum.core.arrays import IntArray
from powersum.core.clauses import Ended

ELITE = 8
"""Assignments that are kept to cross with."""

LATEST = 20
"""Ends of the latest runs, before they are crossed, that other runs are compared with beside the best."""

SAME_VALUE = 1e-6
"""Assignments whose values are this close count as one: mostly they are the same up to symmetry."""

NEAR = 0.05
"""Of assignments that differ in less than this share of the max variables only the best is kept."""

OPENED = (0.01, 0.5)
"""Share of the max variables around which a good assignment is left: from, to."""

NOISE = (0.2, 2.5)
"""Standard deviation of the noise on the tables under which a good assignment is left: from, to. The unit is a natural
log; for sweeps, the standard deviation of all table entries."""

DRAWN = (0.01, 0.1)
"""Scale of the noise (natural logs) with which starts are drawn from an upper bound: from, to."""

COMPLETION = 0.1
"""Seconds to look for a way around zeros that forbid a start, where good assignments are known to start from."""

BLOCKS_REMEMBERED = 2000.0
"""Blocks after which what was seen of a kind of start has mostly faded."""

NEXT_BEST = 0.2
"""What the second or third best end of all counts, where the best counts 1."""

LEAST_TIME_SHARE = 0.1
"""Share of the time that each kind of start has at least, about."""

STRONG_SHARE = 0.95
"""Share of the time of annealed starts at least, where tables are strong."""

NOISED_SHARE = 0.8
"""Share of the starts of sweeps that noise moves from a good assignment: they gain more than draws from an upper bound,
which take as long as several sweeps."""

FEW_BLOCKS = 5
"""Blocks without a gain after which an annealed start is given up then."""

GUESSED_RACES = 3.0
"""Comparisons that are guessed where starts can be drawn from an upper bound: those have won them, all others lost."""

CLEARNESS = 2.0
"""The power of the chances by which kinds of starts share their time then: those that mostly win have nearly all."""

RACES_REMEMBERED = 10.0
"""Runs after which what was seen of how a kind of start compares with others has mostly faded."""


Draw = Callable[[float, int], IntArray]
"""Draws states of max variables that an upper bound likes, with noise of a scale and by a seed."""


class Start(enum.Enum):
    """Where a local search begins: where it is told to, where the upper bound would like it, at random, annealed, or
    where noise on the tables moves a good assignment.
    """

    GIVEN = enum.auto()
    DECODED = enum.auto()
    RANDOM = enum.auto()
    ANNEALED = enum.auto()
    NOISED = enum.auto()


AFRESH = (Start.DECODED, Start.RANDOM, Start.ANNEALED)
"""Kinds of starts that owe nothing to a good assignment: where they end tells which of them suits the problem."""


@dataclass(slots=True)
class Merit:
    """How often a kind of start led to one of the best assignments, and how many blocks that took; the past fades."""

    good: float = 0.0
    blocks: float = 0.0
    runs: float = 0.0
    won: float = 0.0
    races: float = 0.0

    @property
    def rate(self) -> float:
        """Good ends for each block; a guess as long as little is known."""
        return (self.good + 0.5) / (self.blocks + 0.5 * BLOCKS_REMEMBERED)

    @property
    def cost(self) -> float:
        """Blocks of a run, about."""
        return (self.blocks + 100.0) / (self.runs + 1.0)

    @property
    def chance(self) -> float:
        """That a run ends higher than one of each other kind that starts afresh; a guess as long as little is known."""
        return (self.won + 1.0) / (self.races + 2.0)

    def race(self, *, won: bool) -> None:
        """Count a comparison with the latest runs of others."""
        kept = math.exp(-1.0 / RACES_REMEMBERED)
        self.won = kept * self.won + won
        self.races = kept * self.races + 1.0

    def add(self, good: float, blocks: float) -> None:
        """Count another run."""
        kept = math.exp(-blocks / BLOCKS_REMEMBERED)
        self.good = kept * self.good + good
        self.blocks = kept * self.blocks + blocks
        self.runs = kept * self.runs + 1.0


class Portfolio:
    """Local search from many starts; the best assignments are kept and crossed with each new one.

    Which kind of start is taken is drawn by how often it has led to one of the best for the time it took. That is
    seldom, so kinds that start afresh are compared by where they end as well: what they have of the time goes to those
    that end highest. The best are kept apart from one another: crossing finds nothing among variants of one. Where
    starts are drawn from an upper bound, runs also look at where they differ from the best and from the ends of the
    latest runs, which have good parts however low they are.

    Parameters
    ----------
    evaluator
        Values of assignments.
    seed
        Seed of all that is drawn at random.
    hasty
        True for many short searches in place of fewer long ones.

    Attributes
    ----------
    log_value, assignment
        The best so far; ``-inf`` while nothing feasible is known.
    """

    def __init__(self, evaluator: Evaluator, *, seed: int = 0, hasty: bool = False) -> None:
        self._evaluator, self._annealer = evaluator, Annealer(evaluator.problem)
        # Where tables are strong, annealing finds more than blocks that are searched for longer.
        self._hasty = hasty or self._annealer.strong
        self._seed = seed
        finite = evaluator.factors.log_values[np.isfinite(evaluator.factors.log_values)]
        self._spread = float(finite.std()) if len(finite) else 0.0
        self._rng = np.random.default_rng(seed)
        self._elite: list[tuple[float, IntArray]] = []
        self._latest: deque[IntArray] = deque(maxlen=LATEST)
        self._search: LocalSearch | None = None
        self._waiting: list[IntArray] = []
        self._decoded: IntArray | None = None
        self._draw: Draw | None = None
        self._kind = Start.GIVEN
        self._merits: dict[Start, Merit] = {kind: Merit() for kind in Start if kind is not Start.GIVEN}
        self._ends: dict[Start, float] = {}
        """Where the latest run of each kind that starts afresh has ended, by itself."""
        self.log_value = -np.inf
        self.assignment: IntArray = np.full(len(evaluator.is_max), -1, dtype=np.int64)

    def suggest(self, assignment: IntArray) -> None:
        """Start from this assignment next; sum variables may be -1, and zeros may forbid it."""
        self._waiting.append(assignment)

    def consider(self, assignment: IntArray) -> float:
        """Evaluate an assignment at once, and start from it next; its value, infinity where that is too wide."""
        value = self._evaluator.value(assignment)
        if value == TOO_WIDE:
            return value
        if value > self.log_value:
            self.log_value, self.assignment = value, np.where(self._evaluator.is_max, assignment, -1)
        self.suggest(assignment)
        return value

    def look_at(self, decoded: IntArray) -> None:
        """States read off an upper bound that is being tightened: starts of one kind among others, the newest first."""
        self._decoded = decoded

    def draw_from(self, draw: Draw | None) -> None:
        """Draw starts from an upper bound whenever one is wanted, in place of those handed over; None ends that."""
        self._draw = draw

    @property
    def keen(self) -> bool:
        """True where time gains more for the value than for any bound."""
        return self.strong or (self._search is not None and self._search.sweeps)

    @property
    def strong(self) -> bool:
        """Whether tables are strong: dense models with entries of hundreds."""
        return self._annealer.strong

    @property
    def kept(self) -> list[IntArray]:
        """The best assignments that are kept, the best first."""
        return [states for _, states in self._elite]

    def improve(self, deadline: float) -> bool:
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
        self._kind = Start.GIVEN if self._waiting else self._drawn_kind()
        if self._kind is Start.NOISED:
            self._begin_noised()
            return True
        wanted = np.full(len(evaluator.is_max), -1, dtype=np.int64)
        if self._kind is Start.GIVEN:
            wanted = self._waiting.pop()
        elif self._kind is Start.DECODED:
            wanted = self._liked()
        elif self._kind is Start.ANNEALED:
            wanted = self._annealer.draw(rng)
        preferences = preferring(evaluator, wanted, rng)
        if self._elite:
            deadline = min(deadline, time.monotonic() + COMPLETION)
        ended, states = complete(evaluator, preferences, deadline=deadline, seed=int(rng.integers(2**31)))
        if ended is not Ended.SATISFIED:
            if self._elite:
                self._kind = Start.NOISED
                self._begin_noised()
            return bool(self._elite)
        if self._search is None:
            self._search = LocalSearch(evaluator, states, seed=self._seed, hasty=self._hasty)
        else:
            brief = self._kind is Start.DECODED and self._draw is not None
            self._search.restart(states, brief=brief)
        if self.strong and self._kind is Start.ANNEALED:
            # Blocks hardly ever gain on what was annealed there, and another draw does.
            self._search.idle = LEAST_PATIENCE - FEW_BLOCKS
        if self._search.log_value > self.log_value:
            self.log_value, self.assignment = self._search.log_value, self._search.assignment.copy()
        return True

    def _liked(self) -> IntArray:
        """What the upper bound likes."""
        if self._draw is not None:
            scale = float(np.exp(self._rng.uniform(*np.log(DRAWN))))
            return self._draw(scale, int(self._rng.integers(1, 2**31)))
        assert self._decoded is not None
        decoded, self._decoded = self._decoded, None
        return decoded

    def _drawn_kind(self) -> Start:
        """A kind of start, so that each has time in proportion to its good ends for the time it took."""
        sweeps = self._search is not None and self._search.sweeps
        if sweeps and self._elite and self._rng.random() < NOISED_SHARE:
            return Start.NOISED
        missing = {Start.DECODED} if self._decoded is None and self._draw is None else set()
        missing |= set() if self._elite else {Start.NOISED}
        kinds = [kind for kind in self._merits if kind not in missing]
        rates = np.array([self._merits[kind].rate for kind in kinds])
        shares = np.maximum(rates / rates.sum(), LEAST_TIME_SHARE)
        afresh = np.array([kind in AFRESH for kind in kinds])
        chances = np.array([self._chance(kind) for kind in kinds])[afresh]
        shares[afresh] = shares[afresh].sum() * chances / chances.sum()
        if self._annealer.strong:
            annealed = kinds.index(Start.ANNEALED)
            shares[annealed] = max(
                shares[annealed], STRONG_SHARE / (1.0 - STRONG_SHARE) * np.delete(shares, annealed).sum()
            )
        starts = shares / np.array([self._merits[kind].cost for kind in kinds])
        return kinds[int(self._rng.choice(len(kinds), p=starts / starts.sum()))]

    def _chance(self, kind: Start) -> float:
        """The chance of a kind of start, where starts can be drawn with a guess at what they are worth."""
        merit = self._merits[kind]
        if self._draw is None:
            return merit.chance
        won = merit.won + GUESSED_RACES * (kind is Start.DECODED)
        return float(Merit(won=won, races=merit.races + GUESSED_RACES).chance ** CLEARNESS)

    def _begin_noised(self) -> None:
        """Leave a good assignment for what is best nearby under tables with noise, and search around there."""
        search, rng = self._search, self._rng
        assert search is not None
        # Good pieces of what a sweep finds are taken over, so that noise may be everywhere at once.
        opened = np.flatnonzero(self._evaluator.is_max) if search.sweeps else self._some_ball()
        search.restart(self._good_one(), opened)
        scale = float(np.exp(rng.uniform(*np.log(NOISE))))
        search.kick(opened, scale * self._spread if search.sweeps else scale)

    def _good_one(self) -> IntArray:
        """One of the best, the better ones more often."""
        chosen = self._elite[int(len(self._elite) * self._rng.random() ** 2)][1]
        return np.where(self._evaluator.is_max, chosen, -1)

    def _some_ball(self) -> IntArray:
        """Max variables around a random one, from a few to many."""
        rng, some = self._rng, np.flatnonzero(self._evaluator.is_max)
        smallest, largest = (np.log(max(1.0, share * len(some))) for share in OPENED)
        assert self._search is not None
        return self._search.ball(int(rng.choice(some)), int(np.exp(rng.uniform(smallest, largest))))

    def _finish(self) -> None:
        """Keep the end of a run if it is among the best, and what comes out when it is crossed with each of them."""
        search = self._search
        if search is None:
            return
        others = [states for _, states in self._elite]
        if self._kind in AFRESH:
            self._compare(self._kind, search.log_value)
        good = self._keep(search)
        self._latest.append(search.assignment.copy())
        for other in others:
            search.cross(other)
        good = max(good, self._keep(search))
        # Elsewhere starts are too unlike for that: runs of wcsp_15 would end alike, and low.
        search.others = [] if self._draw is None else [*self._latest, *self.kept]
        if search.log_value > self.log_value + SMALLEST_GAIN:
            self.log_value, self.assignment = search.log_value, search.assignment.copy()
        if self._kind in self._merits:
            extra = self._annealer.cost if self._kind is Start.ANNEALED else 0.0
            self._merits[self._kind].add(good, search.blocks + extra)

    def _compare(self, kind: Start, end: float) -> None:
        """Compare where a run that began afresh has ended with the latest runs of the other kinds."""
        others = [value for other, value in self._ends.items() if other is not kind]
        if others:
            self._merits[kind].race(won=end >= max(others))
        self._ends[kind] = end

    def _keep(self, search: LocalSearch) -> float:
        """Keep where a search stands, if it is among the best; what that counts for its start, 1 for the very best."""
        value, states = search.log_value, search.assignment
        if any(abs(value - other) < SAME_VALUE for other, _ in self._elite):
            return 0.0
        near = NEAR * np.count_nonzero(self._evaluator.is_max)
        alike = [entry for entry in self._elite if np.count_nonzero(entry[1] != states) < near]
        if any(entry[0] > value for entry in alike):
            return 0.0
        apart = [entry for entry in self._elite if not any(entry is other for other in alike)]
        self._elite = sorted([*apart, (value, states.copy())], key=lambda entry: -entry[0])[:ELITE]
        rank = sum(other > value for other, _ in self._elite)
        return 1.0 if rank == 0 else NEXT_BEST if rank < 3 else 0.0
