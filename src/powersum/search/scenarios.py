"""Maximum, sum, maximum over constraints: every outcome of the sum is a copy of the clauses that share the choice.

The inner maximum of a formula is 1 or 0: it asks whether a solution is left. An outcome r of the sum variables has a
weight w(r). For each possible r there is a truth value that implies the clauses under r, with inner variables of its
own. A value of the outer variables is then the sum of w(r) over the truth values that can hold together.

A tree of partial sums bounds this sum from above: of two parts with sums a and b a node knows the sum a + b, rounded up
to a whole number of units, and to the next of at most :data:`MOST_SUMS` numbers. Each clause of the tree says: if one
part is below a' and the other below b', their sum is not above that of the numbers before a' and b'. An assignment of
value at least s satisfies all clauses with the node ``sum ≥ s`` of the root. So a proof that none does is a bound.

Where all copies would be too large, only the heaviest outcomes are copied. The weight of the others is added to the
bound; for an assignment that was found, it is asked of each of them whether a solution is left.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import pairwise

import numpy as np

from powersum.assign.zeros import clauses_of
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.core.clauses import Clauses, Ended
from powersum.core.progress import Progress
from powersum.model.factors import factors_of
from powersum.prepare.problem import Problem

MOST_OUTCOMES = 1024
"""Outcomes of all sum variables together."""

MOST_LITERALS = 3e7
"""Literals of all copies together."""

MOST_SUMS = 512
"""Different sums that a node of the tree tells apart."""

UNITS = 2.0**48
"""Units of the largest weight. An exponential of a number of at most 0 is off by less than one of them."""

COPYING = 4e-9
"""Seconds to copy a literal, about."""

EQUAL = 1e-12
"""Weights that differ by no more than this share are taken as equal: both count as the larger."""

GROWTH = 1.3
"""Each round of two searches has so many times the seconds of the one before."""


class Scenarios:
    """Both sides of one problem: an assignment of the outer variables, and a bound on all of them.

    Parameters
    ----------
    problem
        A problem of which :func:`scenarios_of` says that it is of this kind.
    outcomes
        The states of the sum variables in each outcome, a row for each.
    log_weights
        The weight of each outcome.

    Attributes
    ----------
    log_upper
        No assignment is better, but for rounding of the weights.
    log_lower, states
        The value of the best assignment that was found, as evaluated, and its states; -1 where a variable has none.
    done
        True when nothing is left to search. The best assignment is then the best there is, where sums were not thinned.
    n_literals, n_outcomes
        Literals of one copy, and outcomes with a solution that have been found.
    """

    def __init__(self, problem: Problem, outcomes: IntArray, log_weights: FloatArray) -> None:
        self._problem, self._model = problem, problem.model
        model = problem.model
        self._inner, self._random = problem.rank < problem.rank[problem.tau > 0.0][0], problem.tau > 0.0
        self._outcomes, self._log_weights = outcomes, log_weights
        self._literals, self._starts, self._every = clauses_of(
            model.cardinalities, factors_of(model), model.table_starts
        )
        self._base = Clauses(self._literals.n, self._starts, self._every)
        self._kept: list[int] = []
        self._left_out: list[int] = []
        self._looked_at = 0
        self._clauses: Clauses | None = None
        self._units: list[int] = []
        self._scale = 0.0
        self._sums: list[int] = []
        self._sum_literals: list[int] = []
        self._copies: list[tuple[int, IntArray]] = []
        self._low = self._high = 0
        self._seconds, self._both = math.inf, False
        self.log_lower, self.log_upper = -math.inf, _log_sum(log_weights)
        self.states: IntArray = np.full(model.n_variables, -1, dtype=np.int64)
        self.done = False
        self.n_literals = len(self._every)

    def run(self, deadline: float) -> Progress:
        """Work until a deadline on the clock of ``time.monotonic``."""
        while time.monotonic() < deadline and not self.done:
            if self._looked_at < len(self._outcomes):
                self._look_at_one(deadline)
            elif self._clauses is None:
                self._copy()
            else:
                self._search(deadline)
        return Progress.DONE if self.done else Progress.MORE

    @property
    def n_outcomes(self) -> int:
        return len(self._kept)

    def _look_at_one(self, deadline: float) -> None:
        """Keep an outcome that has a solution for some choice."""
        ended = self._base.search(self._assumed(self._looked_at), deadline=deadline)
        if ended is Ended.GIVEN_UP:
            return
        if ended is Ended.SATISFIED:
            self._kept.append(self._looked_at)
        self._looked_at += 1
        if self._looked_at == len(self._outcomes):
            self.log_upper = _log_sum(self._log_weights[self._kept])
            self.done = not self._kept

    def _assumed(self, outcome: int) -> IntArray:
        """Literals that say that the sum variables have the states of an outcome."""
        starts = starts_of(self._model.cardinalities)
        places = starts[:-1][self._random] + self._outcomes[outcome]
        return np.asarray(self._literals.has[places])

    def _copy(self) -> None:
        """All clauses under each outcome that is kept, and the tree of partial sums."""
        self._kept.sort(key=lambda k: -self._log_weights[k])
        most = max(int(MOST_LITERALS / max(self.n_literals, 1)), 1)
        self._kept, self._left_out = self._kept[:most], self._kept[most:]
        literals, cards = self._literals, self._model.cardinalities
        owner = np.empty(literals.n, dtype=np.int64)
        owner[literals.has >> 1] = np.repeat(np.arange(len(cards)), cards)
        own = np.flatnonzero(self._inner[owner])
        starts, every, n = self._starts, self._every, literals.n
        number = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        is_random, is_outer = self._random[owner[every >> 1]], ~(self._random | self._inner)[owner[every >> 1]]
        shared = np.ones(len(starts) - 1, dtype=np.bool_)
        shared[number[~is_outer]] = False
        lengths, flat = [np.diff(starts)[shared]], [every[shared[number]]]
        chosen: list[int] = []
        for k in self._kept:
            copy = np.arange(literals.n)
            copy[own] = n + np.arange(len(own))
            chosen.append(n + len(own))
            n += len(own) + 1
            true = np.zeros(2 * literals.n, dtype=np.bool_)
            true[self._states_true(k)] = True
            holds = shared.copy()
            holds[number[is_random & true[every]]] = True
            taken = ~holds[number] & ~is_random
            sizes = np.bincount(number[taken], minlength=len(starts) - 1)[~holds]
            # The literal that the outcome does not count stands before those of each clause.
            begins = starts_of(sizes)[:-1]
            flat.append(np.insert(2 * copy[every[taken] >> 1] + (every[taken] & 1), begins, 2 * chosen[-1] + 1))
            lengths.append(sizes + 1)
            self._copies.append((chosen[-1], copy))
        time.spend(COPYING * sum(len(part) for part in flat))
        largest = float(self._log_weights[self._kept].max())
        shares = np.exp(self._log_weights[self._kept] - largest)
        self._scale = largest - math.log(UNITS)
        self._units = [math.ceil(share * UNITS) + 1 for share in _levelled(shares).tolist()]
        by_size = sorted(range(len(chosen)), key=lambda i: self._units[i])
        tree = _SumTree(n)
        self._sums, self._sum_literals = tree.node([(self._units[i], 2 * chosen[i]) for i in by_size])
        lengths.append(np.array([len(clause) for clause in tree.clauses], dtype=np.int64))
        flat.append(np.array([literal for clause in tree.clauses for literal in clause], dtype=np.int64))
        time.spend(COPYING * len(flat[-1]))
        self._clauses = Clauses(tree.n, starts_of(np.concatenate(lengths)), np.concatenate(flat))
        phase, activity = np.zeros(tree.n, dtype=np.int64), np.zeros(tree.n)
        phase[chosen] = 1
        activity[chosen] = 1.0
        activity[np.flatnonzero(~(self._random | self._inner)[owner])] = 2.0
        self._clauses.prefer(phase, activity)
        self._high = len(self._sums)

    def _states_true(self, outcome: int) -> IntArray:
        """All literals of sum variables that hold in an outcome."""
        starts = starts_of(self._model.cardinalities)
        own = np.repeat(self._random, self._model.cardinalities)
        has = np.zeros(len(own), dtype=np.bool_)
        has[starts[:-1][self._random] + self._outcomes[outcome]] = True
        return np.concatenate([self._literals.has[own & has], self._literals.has_not[own & ~has]])

    def _search(self, deadline: float) -> None:
        """Ask for all outcomes first, then by turns for a little more than the best, and for half of what is open."""
        if self._seconds == math.inf and self._high == len(self._sums):
            target, self._seconds = self._high - 1, 0.25
        else:
            target = (self._low + self._high) // 2 if self._both else self._low
            self._both = not self._both
            self._seconds *= GROWTH**0.5
        assert self._clauses is not None
        ends = min(time.monotonic() + self._seconds, deadline)
        ended = self._clauses.search(np.array([self._sum_literals[target]]), deadline=ends)
        if ended is Ended.SATISFIED:
            self._take(self._clauses.values, deadline)
            # Where sums were thinned, less than what was asked for satisfies the clauses: nothing refutes it.
            self._low = max(self._low, target + 1)
        elif ended is Ended.IMPOSSIBLE:
            self._high = min(self._high, target)
            if self._high:
                bound = self._scale + math.log(self._sums[self._high - 1])
                rest = self._log_weights[self._left_out]
                self.log_upper = min(self.log_upper, _log_sum(np.append(rest, bound)))
        if self._low >= self._high:
            self.done = True

    def _take(self, values: IntArray, deadline: float) -> None:
        """An assignment: its value is evaluated in the tables, with the inner states found for each outcome."""
        holding = [i for i, (own, _) in enumerate(self._copies) if values[own]]
        total = sum(self._units[i] for i in holding)
        self._low = max(self._low, bisect_left(self._sums, total + 1))
        if not holding:
            return
        found = [self._configuration(values, self._copies[i][1], self._kept[i]) for i in holding]
        outer = np.flatnonzero(~(self._random | self._inner))
        chosen = self._literals.has[starts_of(self._model.cardinalities)[outer] + found[0][outer]]
        for outcome in self._left_out:
            ended = self._base.search(np.concatenate([chosen, self._assumed(outcome)]), deadline=deadline)
            if ended is Ended.SATISFIED:
                found.append(self._configuration(self._base.values, np.arange(self._literals.n), outcome))
        value = _log_sum(_values(self._problem, np.stack(found)))
        if value > self.log_lower:
            self.log_lower = value
            self.states = np.where(self._random | self._inner, -1, found[0])

    def _configuration(self, values: IntArray, copy: IntArray, outcome: int) -> IntArray:
        """The states of all variables in one outcome, from its copy."""
        literals, starts = self._literals, starts_of(self._model.cardinalities)
        holds = values[copy[literals.has >> 1]] == 1 - (literals.has & 1)
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        states = np.zeros(len(starts) - 1, dtype=np.int64)
        states[owner[holds]] = np.flatnonzero(holds) - starts[owner[holds]]
        states[self._random] = self._outcomes[outcome]
        return states


class _SumTree:
    """Clauses of a tree of sums; see the module. ``n`` is the number of truth values."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.clauses: list[tuple[int, ...]] = []

    def node(self, parts: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
        """The sums that some of the parts may have, from the least, and for each a literal: the sum is not below it."""
        if len(parts) == 1:
            return [parts[0][0]], [parts[0][1]]
        half = len(parts) // 2
        (a, at_least_a), (b, at_least_b) = self.node(parts[:half]), self.node(parts[half:])
        sums = _thinned(sorted({x + y for x in (0, *a) for y in (0, *b)} - {0}))
        literals = [2 * (self.n + i) for i in range(len(sums))]
        self.n += len(sums)
        for i, x in enumerate((0, *a)):
            for j, y in enumerate((0, *b)):
                above = bisect_left(sums, x + y) + 1 if x + y else 0
                if above < len(sums):
                    more = [at_least_a[i]] if i < len(a) else []
                    more += [at_least_b[j]] if j < len(b) else []
                    self.clauses.append((literals[above] ^ 1, *more))
        self.clauses += [(literals[i + 1] ^ 1, literals[i]) for i in range(len(sums) - 1)]
        return sums, literals


def _thinned(sums: list[int]) -> list[int]:
    """At most :data:`MOST_SUMS` of the sums, the largest among them: the others count as the next one that is kept."""
    if len(sums) <= MOST_SUMS:
        return sums
    places = np.unique(np.linspace(0, len(sums) - 1, MOST_SUMS).round().astype(np.int64))
    return [sums[i] for i in places.tolist()]


def _levelled(shares: FloatArray) -> FloatArray:
    """Shares that are nearly equal as the largest of them, so that their sums are few."""
    order = np.argsort(-shares, kind="stable")
    level = shares.copy()
    for before, here in pairwise(order.tolist()):
        if level[before] - level[here] <= EQUAL * level[before]:
            level[here] = level[before]
    return level


def _log_sum(logs: FloatArray) -> float:
    """The log of a sum, added up exactly."""
    largest = float(logs.max(initial=-math.inf))
    if largest == -math.inf:
        return largest
    return largest + math.log(math.fsum(np.exp(logs - largest).tolist()))


def _values(problem: Problem, states: IntArray) -> FloatArray:
    """The values of configurations of all variables, a row for each."""
    model, strides = problem.model, factors_of(problem.model).strides
    values = np.zeros(len(states))
    for f in range(model.n_factors):
        low, high = int(model.scope_starts[f]), int(model.scope_starts[f + 1])
        places = states[:, model.scope_variables[low:high]] @ strides[low:high]
        values += model.log_values[model.table_starts[f] + places]
    return values


def scenarios_of(problem: Problem) -> Scenarios | None:
    """The search of a problem; None where it is of another kind, or has too many outcomes or clauses."""
    rank, random = problem.rank, problem.tau == 1.0
    blocks = np.unique(rank[random])
    if len(blocks) != 1 or not (random | (problem.tau == 0.0)).all() or not (rank < blocks[0]).any():
        return None
    cards = problem.model.cardinalities[random].tolist()
    if math.prod(cards) > MOST_OUTCOMES:
        return None
    outcomes = np.indices(cards).reshape(len(cards), -1).T
    log_weights = _log_weights(problem, random, outcomes)
    if log_weights is None:
        return None
    possible = log_weights > -np.inf
    return Scenarios(problem, outcomes[possible], log_weights[possible])


def _log_weights(problem: Problem, random: np.ndarray, outcomes: IntArray) -> FloatArray | None:
    """The weight of each outcome; None where it depends on more than the outcome."""
    model = problem.model
    column = np.cumsum(random) - 1
    total = np.zeros(len(outcomes))
    for scope, table in model.factors():
        own = [axis for axis, v in enumerate(scope) if random[v]]
        rest = [axis for axis, v in enumerate(scope) if not random[v]]
        rows = np.transpose(table, [*own, *rest]).reshape([*(table.shape[axis] for axis in own), -1])
        high = rows.max(axis=-1)
        low = np.where(rows > -np.inf, rows, np.inf).min(axis=-1)
        if (low < high - EQUAL * np.maximum(1.0, np.abs(high))).any():
            return None
        total += high[tuple(outcomes[:, column[scope[axis]]] for axis in own)]
    return total
