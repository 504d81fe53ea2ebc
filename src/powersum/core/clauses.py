"""Clauses over truth values: conflict-driven search for an assignment that satisfies all of them.

Watched literals, first unique implication points, activities of variables, kept phases, Luby restarts. Literal ``2 v``
says that variable ``v`` is true, ``2 v + 1`` that it is false.
"""

from __future__ import annotations

import enum
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray, starts_of
from powersum.core.jit import compiled, inner
from powersum.core.speed import CLAUSE_STEP

HEAD = 4
"""Numbers before the literals of a clause: its length, its quality (0 for a given one), and the two next watchers."""

ROOM = 1 << 21
"""Numbers of learned clauses that fit, at least, before the worse half of them goes."""

RESTART = 64
"""Conflicts of the shortest run between two restarts."""

DECAY, LARGEST = 1.0 / 0.95, 1e100
"""How activities grow, and when they are scaled down."""

AT_ONCE = 512
"""Conflicts between two looks at the clock."""


UNDER_ASSUMPTIONS = 3
"""How the kernel says that only the assumptions are impossible."""


class Ended(enum.IntEnum):
    """How a search ended."""

    SATISFIED = 0
    IMPOSSIBLE = 1
    GIVEN_UP = 2


class _State(NamedTuple):
    """All that a search knows; ``counts`` are the scalars by the names below."""

    arena: IntArray
    first_watcher: IntArray
    value: IntArray
    level: IntArray
    reason: IntArray
    trail: IntArray
    level_starts: IntArray
    phase: IntArray
    activity: FloatArray
    heap: IntArray
    place: IntArray
    seen: IntArray
    learned: IntArray
    stack: IntArray
    counts: IntArray
    increment: FloatArray


FILLED, N_TRAIL, FRONT, N_LEVELS, N_HEAP, GIVEN, LUBY, STEPS = range(8)
"""Places in ``counts``."""


class Clauses:
    """Clauses, and what a search has learned of them.

    Parameters
    ----------
    n_variables
        Variables, numbered from 0.
    starts, literals
        Clause ``k`` is ``literals[starts[k]:starts[k + 1]]``, without repeated or opposite literals.
    """

    def __init__(
        self,
        n_variables: int,
        starts: IntArray,
        literals: IntArray,
    ) -> None:
        n = n_variables
        lengths = np.diff(starts)
        given = len(literals) + HEAD * len(lengths)
        self._n = n
        self._state = _State(
            arena=np.empty(given + max(ROOM, 4 * (n + HEAD)), np.int64),
            first_watcher=np.full(2 * n, -1, np.int64),
            value=np.zeros(2 * n, np.int64),
            level=np.zeros(n, np.int64),
            reason=np.full(n, -1, np.int64),
            trail=np.empty(n, np.int64),
            level_starts=np.zeros(2 * n + 2, np.int64),
            phase=np.zeros(n, np.int64),
            activity=np.zeros(n),
            heap=np.empty(n, np.int64),
            place=np.full(n, -1, np.int64),
            seen=np.zeros(n, np.int64),
            learned=np.empty(n + 1, np.int64),
            stack=np.empty(n + 1, np.int64),
            counts=np.zeros(8, np.int64),
            increment=np.ones(1),
        )
        self._possible = bool(_begin(np.asarray(starts, np.int64), np.asarray(literals, np.int64), self._state))

    @classmethod
    def of(cls, n_variables: int, clauses: list[list[int]]) -> Clauses:
        """From lists of literals; repeated literals count once, clauses with opposite ones are left out."""
        kept = [sorted(set(clause)) for clause in clauses]
        kept = [c for c in kept if not any(a ^ 1 == b and a % 2 == 0 for a, b in pairwise(c))]
        flat = np.array([literal for clause in kept for literal in clause], dtype=np.int64)
        return cls(n_variables, starts_of([len(clause) for clause in kept]), flat)

    def search(self, assumed: IntArray | None = None, *, deadline: float = np.inf) -> Ended:
        """Look for an assignment in which the assumed literals hold; ``IMPOSSIBLE`` is a proof that there is none.

        ``deadline`` is on the clock of ``time.monotonic``.
        """
        if not self._possible:
            return Ended.IMPOSSIBLE
        given = np.zeros(0, np.int64) if assumed is None else np.asarray(assumed, np.int64)
        while True:
            before = int(self._state.counts[STEPS])
            number = int(_search(given, AT_ONCE, self._state))
            ended = Ended.IMPOSSIBLE if number == UNDER_ASSUMPTIONS else Ended(number)
            time.spend(CLAUSE_STEP * (int(self._state.counts[STEPS]) - before))
            if number == Ended.IMPOSSIBLE:
                self._possible = False
            if ended is not Ended.GIVEN_UP or time.monotonic() > deadline:
                return ended

    def prefer(self, phase: IntArray, activity: FloatArray) -> None:
        """Values to try first from now on, and which variables to set first, as for a new search."""
        self._state.phase[:] = phase
        _order_by(np.asarray(activity, np.float64), self._state)

    @property
    def values(self) -> IntArray:
        """The values, 0 or 1, of the last assignment that was found."""
        return self._state.phase.copy()


@inner
def _swap(heap: IntArray, place: IntArray, i: int, j: int) -> None:
    heap[i], heap[j] = heap[j], heap[i]
    place[heap[i]], place[heap[j]] = i, j


@inner
def _rise(v: int, s: _State) -> None:
    """Put a variable where its activity belongs, after it rose."""
    i = s.place[v]
    while i > 0:
        above = (i - 1) // 2
        if s.activity[s.heap[above]] >= s.activity[s.heap[i]]:
            break
        _swap(s.heap, s.place, i, above)
        i = above


@inner
def _insert(v: int, s: _State) -> None:
    if s.place[v] < 0:
        s.place[v] = s.counts[N_HEAP]
        s.heap[s.counts[N_HEAP]] = v
        s.counts[N_HEAP] += 1
        _rise(v, s)


@inner
def _most_active(s: _State) -> int:
    """Take the variable of the largest activity out of the heap."""
    v = int(s.heap[0])
    last = s.counts[N_HEAP] - 1
    _swap(s.heap, s.place, 0, last)
    s.counts[N_HEAP] = last
    s.place[v] = -1
    i = 0
    while True:
        best = i
        for below in (2 * i + 1, 2 * i + 2):
            if below < last and s.activity[s.heap[below]] > s.activity[s.heap[best]]:
                best = below
        if best == i:
            return v
        _swap(s.heap, s.place, i, best)
        i = best


@inner
def _bump(v: int, s: _State) -> None:
    s.activity[v] += s.increment[0]
    if s.activity[v] > LARGEST:
        for u in range(s.activity.size):
            s.activity[u] /= LARGEST
        s.increment[0] /= LARGEST
    if s.place[v] >= 0:
        _rise(v, s)


@inner
def _watch(clause: int, s: _State) -> None:
    """Watch the first two literals of a clause."""
    for which in range(2):
        literal = s.arena[clause + HEAD + which]
        s.arena[clause + 2 + which] = s.first_watcher[literal]
        s.first_watcher[literal] = 2 * clause + which


@inner
def _set(literal: int, reason: int, s: _State) -> None:
    s.value[literal], s.value[literal ^ 1] = 1, -1
    v = literal >> 1
    s.level[v], s.reason[v] = s.counts[N_LEVELS], reason
    s.trail[s.counts[N_TRAIL]] = literal
    s.counts[N_TRAIL] += 1


@inner
def _back_to(level: int, s: _State) -> None:
    """Undo all levels above this one."""
    if s.counts[N_LEVELS] <= level:
        return
    start = s.level_starts[level]
    for i in range(s.counts[N_TRAIL] - 1, start - 1, -1):
        literal = s.trail[i]
        v = literal >> 1
        s.value[literal] = s.value[literal ^ 1] = 0
        s.phase[v] = 1 - (literal & 1)
        _insert(v, s)
    s.counts[N_TRAIL] = s.counts[FRONT] = start
    s.counts[N_LEVELS] = level


@inner
def _propagate(s: _State) -> int:
    """Set what clauses leave no choice about; the clause that cannot hold, -1 for none."""
    arena, value = s.arena, s.value
    while s.counts[FRONT] < s.counts[N_TRAIL]:
        false = s.trail[s.counts[FRONT]] ^ 1
        s.counts[FRONT] += 1
        before, at = -1, s.first_watcher[false]
        while at >= 0:
            s.counts[STEPS] += 1
            clause, which = at >> 1, at & 1
            following = arena[clause + 2 + which]
            other = arena[clause + HEAD + 1 - which]
            moved = False
            if value[other] != 1:
                for i in range(clause + HEAD + 2, clause + HEAD + arena[clause]):
                    literal = arena[i]
                    if value[literal] >= 0:
                        arena[i], arena[clause + HEAD + which] = false, literal
                        arena[clause + 2 + which] = s.first_watcher[literal]
                        s.first_watcher[literal] = at
                        moved = True
                        break
                if not moved:
                    if value[other] < 0:
                        return int(clause)
                    _set(other, clause, s)
            if moved and before < 0:
                s.first_watcher[false] = following
            elif moved:
                arena[(before >> 1) + 2 + (before & 1)] = following
            else:
                before = at
            at = following
    return -1


@compiled
def _begin(starts: IntArray, literals: IntArray, s: _State) -> bool:
    """Take up the given clauses; False where they contradict each other at once."""
    for v in range(s.level.size):
        _insert(v, s)
    filled = 0
    for k in range(starts.size - 1):
        length = starts[k + 1] - starts[k]
        if length == 0:
            return False
        if length == 1:
            literal = literals[starts[k]]
            if s.value[literal] < 0:
                return False
            if s.value[literal] == 0:
                _set(literal, -1, s)
            continue
        s.arena[filled], s.arena[filled + 1] = length, 0
        for i in range(length):
            s.arena[filled + HEAD + i] = literals[starts[k] + i]
        _watch(filled, s)
        filled += HEAD + length
    s.counts[FILLED] = s.counts[GIVEN] = filled
    return _propagate(s) < 0


@compiled
def _order_by(activity: FloatArray, s: _State) -> None:
    """Set variables in this order, those of larger activity first, until conflicts say otherwise."""
    s.increment[0] = 1.0
    s.counts[N_HEAP] = 0
    s.place[:] = -1
    for v in range(activity.size):
        s.activity[v] = activity[v]
        _insert(v, s)


@inner
def _redundant(literal: int, s: _State) -> bool:
    """Whether a literal follows from the other literals of what is learned, by its own reason."""
    reason = s.reason[literal >> 1]
    if reason < 0:
        return False
    for i in range(reason + HEAD, reason + HEAD + s.arena[reason]):
        v = s.arena[i] >> 1
        if v != literal >> 1 and s.seen[v] == 0 and s.level[v] > 0:
            return False
    return True


@inner
def _learn(conflict: int, s: _State) -> tuple[int, int]:
    """Find the clause of the first unique implication point, in ``learned``; its length, and the level it is set on."""
    n_learned, open_ones, at = 1, 0, s.counts[N_TRAIL] - 1
    literal, clause = -1, conflict
    while True:
        for i in range(clause + HEAD, clause + HEAD + s.arena[clause]):
            other = s.arena[i]
            v = other >> 1
            if other == literal or s.seen[v] or s.level[v] == 0:
                continue
            s.seen[v] = 1
            _bump(v, s)
            if s.level[v] == s.counts[N_LEVELS]:
                open_ones += 1
            else:
                s.learned[n_learned] = other
                n_learned += 1
        while s.seen[s.trail[at] >> 1] == 0:
            at -= 1
        literal = s.trail[at]
        at -= 1
        clause = s.reason[literal >> 1]
        s.seen[literal >> 1] = 0
        open_ones -= 1
        if open_ones == 0:
            break
    s.learned[0] = literal ^ 1
    for i in range(n_learned):
        s.stack[i] = s.learned[i]
    kept = 1
    for i in range(1, n_learned):
        if not _redundant(s.stack[i], s):
            s.learned[kept] = s.stack[i]
            kept += 1
    for i in range(1, n_learned):
        s.seen[s.stack[i] >> 1] = 0
    back = 0
    if kept > 1:
        # The second watched literal is one of the highest level.
        highest = 1
        for i in range(2, kept):
            if s.level[s.learned[i] >> 1] > s.level[s.learned[highest] >> 1]:
                highest = i
        s.learned[1], s.learned[highest] = s.learned[highest], s.learned[1]
        back = s.level[s.learned[1] >> 1]
    return kept, back


@inner
def _quality(length: int, s: _State) -> int:
    """How many levels the learned clause speaks of: fewer is better."""
    levels = 0
    for i in range(length):
        level = s.level[s.learned[i] >> 1]
        fresh = 1
        for j in range(i):
            if s.level[s.learned[j] >> 1] == level:
                fresh = 0
                break
        levels += fresh
        if levels >= 32:
            break
    return levels


@inner
def _forget(s: _State) -> None:
    """Drop the worse half of what was learned; nothing is set but on level 0, whose reasons nobody asks for."""
    how_many = np.zeros(33, np.int64)
    at, n = s.counts[GIVEN], 0
    while at < s.counts[FILLED]:
        how_many[min(s.arena[at + 1], 32)] += 1
        n += 1
        at += HEAD + s.arena[at]
    worst, kept = 2, how_many[0] + how_many[1] + how_many[2]
    while worst < 32 and kept + how_many[worst + 1] <= n // 2:
        worst += 1
        kept += how_many[worst]
    at, filled = s.counts[GIVEN], s.counts[GIVEN]
    room = s.arena.size - s.counts[GIVEN]
    while at < s.counts[FILLED]:
        length = s.arena[at]
        size = HEAD + length
        # Even short ones go where they alone fill half of the room.
        if s.arena[at + 1] <= worst and filled - s.counts[GIVEN] < room // 2:
            for i in range(size):
                s.arena[filled + i] = s.arena[at + i]
            filled += size
        at += size
    s.counts[FILLED] = filled
    s.first_watcher[:] = -1
    at = 0
    while at < filled:
        _watch(at, s)
        at += HEAD + s.arena[at]
    for i in range(s.counts[N_TRAIL]):
        s.reason[s.trail[i] >> 1] = -1


@inner
def _luby(i: int) -> int:
    """The number ``i`` of Luby's sequence, from 0 on: 1, 1, 2, 1, 1, 2, 4, …"""
    size, power = 1, 0
    while size < i + 1:
        power += 1
        size = 2 * size + 1
    while size - 1 != i:
        size = (size - 1) // 2
        power -= 1
        i = i % size
    return 1 << power


@compiled
def _search(assumed: IntArray, most: int, s: _State) -> int:
    """Search for so many conflicts: satisfied, impossible, given up, or impossible as assumed."""
    conflicts, since = 0, 0
    limit = RESTART * _luby(s.counts[LUBY])
    while True:
        conflict = _propagate(s)
        if conflict >= 0:
            conflicts += 1
            since += 1
            if s.counts[N_LEVELS] == 0:
                return 1
            length, back = _learn(conflict, s)
            quality = _quality(length, s)
            _back_to(back, s)
            if length == 1:
                _set(s.learned[0], -1, s)
            else:
                clause = s.counts[FILLED]
                s.arena[clause], s.arena[clause + 1] = length, quality
                for i in range(length):
                    s.arena[clause + HEAD + i] = s.learned[i]
                s.counts[FILLED] += HEAD + length
                _watch(clause, s)
                _set(s.learned[0], clause, s)
            s.increment[0] *= DECAY
            if s.counts[FILLED] + HEAD + s.level.size > s.arena.size:
                _back_to(0, s)
                if _propagate(s) >= 0:
                    return 1
                _forget(s)
            continue
        if since >= limit or conflicts >= most:
            if since >= limit:
                s.counts[LUBY] += 1
            _back_to(0, s)
            if conflicts >= most:
                return 2
            since, limit = 0, RESTART * _luby(s.counts[LUBY])
            continue
        literal = -1
        while s.counts[N_LEVELS] < assumed.size:
            wanted = assumed[s.counts[N_LEVELS]]
            if s.value[wanted] < 0:
                _back_to(0, s)
                return UNDER_ASSUMPTIONS
            if s.value[wanted] == 0:
                literal = wanted
                break
            # It holds already: a level of its own without anything in it.
            s.level_starts[s.counts[N_LEVELS]] = s.counts[N_TRAIL]
            s.counts[N_LEVELS] += 1
        if literal < 0:
            while s.counts[N_HEAP] > 0:
                v = _most_active(s)
                if s.value[2 * v] == 0:
                    literal = 2 * v + 1 - s.phase[v]
                    break
        if literal < 0:
            # Everything is set: undoing it keeps it as phases. Those set without a choice are among them.
            for i in range(s.counts[N_TRAIL]):
                s.phase[s.trail[i] >> 1] = 1 - (s.trail[i] & 1)
            _back_to(0, s)
            return 0
        s.level_starts[s.counts[N_LEVELS]] = s.counts[N_TRAIL]
        s.counts[N_LEVELS] += 1
        _set(literal, -1, s)
