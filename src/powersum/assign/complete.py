"""Feasible assignments from preferences: the preferred states, repaired where hard zeros forbid them.

Rounding beliefs breaks zeros, and a model full of them (pedigrees, grids, planning) then has value 0. Here variables
are set one after another to their preferred states with propagation of zeros after each, sum variables included, so
that a whole configuration of positive probability stands behind the assignment. Dead ends are undone; variables that
cause them are set earlier next time.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from powersum.assign.evaluator import Evaluator
from powersum.assign.supports import Queue, Supports, new_queue, propagate, push, put_back, remove
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.core.speed import SETTING
from powersum.model.factors import Factors

FIRST_LIMIT = 200
"""Dead ends after which the first try is given up; doubled with every try."""


DEAD_END = 8.0
"""What a dead end costs in variables that are set: those since the decision before it, set anew."""


class Completion(enum.IntEnum):
    """How the search for a feasible assignment ended."""

    FOUND = 0
    GIVEN_UP = 1
    IMPOSSIBLE = 2


def complete(
    evaluator: Evaluator, preferences: FloatArray, *, deadline: float, seed: int = 0
) -> tuple[Completion, IntArray]:
    """A configuration of all variables that no zero forbids, close to the preferred states.

    Parameters
    ----------
    evaluator
        The problem and its supports.
    preferences
        One number for each state of each variable, as in ``evaluator.supports.state_starts``; larger is better.
    deadline
        When to give up, on the clock of ``time.monotonic``.
    seed
        Breaks ties among variables.

    Returns
    -------
    Completion, IntArray
        How it ended, and a state for every variable where one was found. ``IMPOSSIBLE`` is a proof.
    """
    model = evaluator.problem.model
    supports, factors = evaluator.supports, evaluator.factors
    rng = np.random.default_rng(seed)
    conflicts = np.zeros(model.n_variables)
    states = np.empty(model.n_variables, dtype=np.int64)
    limit, marks = FIRST_LIMIT, 0.0
    while True:
        begun = time.monotonic()
        alive = evaluator.base_alive.copy()
        # Max variables go first: it is their states that matter.
        priority = 0.5 * rng.random(model.n_variables) + 0.5 * evaluator.is_max
        ended = _search(
            preferences,
            np.argsort(-(conflicts + priority), kind="stable"),
            priority,
            conflicts,
            limit,
            factors,
            supports,
            new_queue(model),
            alive,
            states,
        )
        # Each dead end has left its mark on a variable.
        marks, before = float(conflicts.sum()), marks
        time.spend(SETTING * (model.n_variables + DEAD_END * (marks - before)))
        now = time.monotonic()
        # The next try, with twice as many dead ends, takes about twice as long.
        if ended != Completion.GIVEN_UP or now + 2.0 * (now - begun) > deadline:
            return Completion(ended), states
        limit *= 2


def preferring(evaluator: Evaluator, states: IntArray, rng: np.random.Generator | None = None) -> FloatArray:
    """Preferences for given states (-1 for none); all others are equal, or random with ``rng``."""
    starts = evaluator.supports.state_starts
    preferences = np.zeros(int(starts[-1])) if rng is None else 0.5 * rng.random(int(starts[-1]))
    known = states >= 0
    preferences[starts[:-1][known] + states[known]] = 1.0
    return preferences


@inner
def _push_all(v: int, supports: Supports, queue: Queue) -> Any:
    """All factors with zeros of one variable on the empty stack."""
    # Typed, here and below: for a literal 0 Numba would compile what it is passed to once more.
    height: Any = np.int64(0)
    for at in range(supports.factor_starts[v], supports.factor_starts[v + 1]):
        height = push(supports.factors[at], height, supports, queue)
    return height


@compiled
def _search(
    preferences: FloatArray,
    sequence: IntArray,
    priority: FloatArray,
    conflicts: FloatArray,
    limit: int,
    factors: Factors,
    supports: Supports,
    queue: Queue,
    alive: IntArray,
    states: IntArray,
) -> int:
    """Depth-first search with propagation; ends after ``limit`` dead ends.

    The variable with the largest conflicts and priority is set next. ``sequence`` sorts them by that, as far as it is
    known beforehand: only variables with new conflicts, of which there are few, have to be looked through each time.
    """
    n = len(priority)
    starts = supports.state_starts
    sizes = np.zeros(n, np.int64)
    for state in range(len(alive)):
        sizes[supports.owner[state]] += alive[state]
    height: Any = np.int64(0)
    for f in range(len(supports.counts)):
        height = push(f, height, supports, queue)
    if not propagate(height, factors, supports, alive, sizes, queue):
        return 2
    levels = np.empty(n, np.int64)
    trails = np.empty(n, np.int64)
    fronts = np.empty(n, np.int64)
    is_hot = np.zeros(n, np.bool_)
    hot = np.empty(n, np.int64)
    n_hot = 0
    front = 0
    depth = 0
    dead_ends = 0
    while True:
        while front < n and sizes[sequence[front]] <= 1:
            front += 1
        if front == n:
            break
        v: Any = sequence[front]
        for i in range(n_hot):
            u = hot[i]
            if sizes[u] > 1 and conflicts[u] + priority[u] > conflicts[v] + priority[v]:
                v = u
        chosen = -1
        for state in range(starts[v], starts[v + 1]):
            if alive[state] and (chosen < 0 or preferences[state] > preferences[chosen]):
                chosen = state
        trails[depth] = queue.trail[0]
        fronts[depth] = front
        levels[depth] = chosen
        depth += 1
        for state in range(starts[v], starts[v + 1]):
            if alive[state] and state != chosen:
                remove(state, supports, alive, sizes, queue)
        consistent = propagate(_push_all(v, supports, queue), factors, supports, alive, sizes, queue)
        while not consistent:
            dead_ends += 1
            if depth == 0:
                return 2
            if dead_ends > limit:
                return 1
            # The last decision was wrong under those before it: its state is out for as long as they stand.
            depth -= 1
            put_back(trails[depth], supports, alive, sizes, queue)
            front = fronts[depth]
            state = levels[depth]
            u = supports.owner[state]
            conflicts[u] += 1.0
            if not is_hot[u]:
                is_hot[u] = True
                hot[n_hot] = u
                n_hot += 1
            remove(state, supports, alive, sizes, queue)
            consistent = sizes[u] > 0 and propagate(
                _push_all(u, supports, queue), factors, supports, alive, sizes, queue
            )
    for v in range(n):
        for state in range(starts[v], starts[v + 1]):
            if alive[state]:
                states[v] = state - starts[v]
    return 0
