"""Branch and bound over all variables: numbers move between tables and variables, states go, and boxes are divided.

For a maximum, any numbers may be taken from a table and given to a variable, state by state: every configuration keeps
its value, and the largest entries of all tables and variables together bound it. A certificate is a walk through boxes,
in *rounds*. In each of them numbers move, and then

* some states *go*: with one of them, every configuration of the box is bounded by the other maxima and its own number;
* the whole box may be *closed*: it is bounded by all maxima. The walk goes back to the last box that was divided;
* or it is divided: first the part in which a variable has a state, later, from the same numbers, the part without it.

When the first box is closed, every configuration has been bounded once: by the largest of these bounds at most.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected
from powersum_check.lanes import pieces, starts_of
from powersum_check.limits import afford, spend
from powersum_check.numbers import FloatArray, IntArray, Table, add, entries_added, groups_added, magnitude, outward
from powersum_check.remainder import Remainder, Tuples, read_remainder

GOES_ON, CLOSED, DIVIDES = 0, 1, 2


class Walk(Tuples):
    """Where the walk stands: which states are there, and what was moved from each place to its state."""

    def __init__(self, step: Step, rest: Remainder) -> None:
        super().__init__(step, rest)
        self.ups = np.array([table.up for _, table in rest.tables])
        self.alive, self.moved = np.ones(len(self.owner) + 1, np.bool_), np.zeros(len(self.state_of) + 1)
        self.maxima, self.errors = np.zeros((2, len(rest.tables)))
        self.look_at(np.arange(len(rest.tables)))

    def forget(self) -> None:
        """Forget tuples with states that are gone for good; but not the first of each table."""
        spend(8 * self.states.size)
        there = self.alive[self.states].all(axis=0)
        there[self.tuple_starts[:-1]] = True
        self.values, self.places, self.states = self.values[there], self.places[:, there], self.states[:, there]
        self.tuple_starts = starts_of(there)[self.tuple_starts]

    def look_at(self, tables: IntArray) -> None:
        """The largest entries of some tables, less what was moved, over the states that are there; and their errors."""
        at, begin = pieces(self.tuple_starts, tables)
        spend(1000 + 4 * (2 + len(self.places)) * len(at))
        values, error = entries_added([self.values[at], *(-self.moved[places[at]] for places in self.places)])
        for states in self.states:
            values[~self.alive[states[at]]] = -math.inf
        self.maxima[tables] = np.maximum.reduceat(values, begin[:-1])
        self.errors[tables] = self.ups[tables] + np.maximum.reduceat(error, begin[:-1])

    def bounds(self) -> tuple[float, FloatArray]:
        """A bound on everything, and one for each state; both with their rounding."""
        spend(5000 + 10 * (len(self.alive) + 4 * len(self.maxima)))
        own, error = groups_added(self.state_of, self.moved[:-1], len(self.owner))
        own = np.nextafter(own + error, math.inf)
        left = np.where(self.alive[:-1], own, -math.inf)
        best = np.maximum.reduceat(left, self.starts[:-1]) if len(left) else left
        if -math.inf in best or -math.inf in self.maxima:
            return -math.inf, np.full(len(own), -math.inf)
        _, total = outward([*self.maxima.tolist(), *best.tolist()], math.fsum(self.errors), 0.0)
        # A state that went before has a bound all the same, which nobody needs.
        single = add(own.shape, [Table(np.array(total)), Table(-best[self.owner]), Table(own)])
        return total, np.nextafter(single.values + single.up, math.inf)


def branching(step: Step) -> tuple[float, float]:
    """An upper bound on the value of a box in which everything is maximised."""
    rest = read_remainder(step)
    if rest.weight != 0.0:
        raise Rejected("only a maximum is bounded by branching")
    walk = Walk(step, rest)
    places = walk.named
    kinds = step.integers("rounds", high=3).tolist()
    numbers, moves = step.integers("move_places", high=len(places)), step.floats("moves")
    magnitude(moves)
    gone, branches = _states(step, rest, "gone"), _states(step, rest, "branches").tolist()
    divided = iter(branches)
    move_starts = step.starts("move_starts", len(moves)).tolist()
    gone_starts = step.starts("gone_starts", len(gone)).tolist()
    if not len(kinds) == len(move_starts) - 1 == len(gone_starts) - 1 or len(numbers) != len(moves):
        raise BadFile("rounds, moves and what goes do not fit together")
    highest, done = -math.inf, False
    stack: list[tuple[int, NDArray[np.bool_], FloatArray, FloatArray, FloatArray]] = []
    for k, kind in enumerate(kinds):
        if done:
            raise BadFile("rounds go on after the end")
        at = places[numbers[move_starts[k] : move_starts[k + 1]]]
        walk.moved[at] = moves[move_starts[k] : move_starts[k + 1]]
        walk.look_at(np.unique(walk.table_of[at]))
        total, single = walk.bounds()
        leaving = gone[gone_starts[k] : gone_starts[k + 1]]
        highest = max([highest, *single[leaving].tolist()])
        walk.alive[leaving] = False
        if kind == GOES_ON and not stack and len(leaving):
            walk.forget()
        if kind == DIVIDES:
            state = next(divided, None)
            if state is None:
                raise BadFile("branches ends too early")
            held = (len(stack) + 1) * (walk.alive.nbytes + walk.moved.nbytes + 2 * walk.maxima.nbytes)
            afford("boxes", held, step.memory)
            stack.append((state, walk.alive.copy(), walk.moved.copy(), walk.maxima.copy(), walk.errors.copy()))
            others = walk.owner == walk.owner[state]
            others[state] = False
            walk.alive[:-1][others] = False
        if kind == CLOSED:
            highest = max(highest, total)
            done = not stack
            if stack:
                state, walk.alive, walk.moved, walk.maxima, walk.errors = stack.pop()
                walk.alive[state] = False
    if not done or next(divided, None) is not None:
        raise Rejected("the walk ends before every box is closed")
    if highest == -math.inf or rest.high == -math.inf:
        return -math.inf, -math.inf
    return -math.inf, math.nextafter(highest + rest.high, math.inf)


def _states(step: Step, rest: Remainder, name: str) -> IntArray:
    """Rows (variable, state) as numbers of states."""
    pairs = ((v, s) for v in rest.variables for s in step.domains[v].tolist())
    number = {pair: k for k, pair in enumerate(pairs)}
    rows = [(v, s) for v, s in step.integers(name, columns=2).tolist()]
    for v, s in set(rows) - number.keys():
        raise Rejected(f"{name} has state {s} of variable {v}, which is not left")
    return np.array([number[row] for row in rows], np.int64)
