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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected, afford
from powersum_check.numbers import FloatArray, IntArray, Table, add, groups_added, magnitude, outward, rows_added
from powersum_check.remainder import Remainder, read_remainder, written_scopes

GOES_ON, CLOSED, DIVIDES = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Block:
    """Tables of one shape, over the states that were there when it was made."""

    tables: IntArray
    values: FloatArray
    """One table a row."""
    error: FloatArray
    places: list[IntArray]
    """For each axis, where the number moved from each table and state is."""
    states: list[IntArray]
    """For each axis, which state of all that is."""


class Walk:
    """Where the walk stands."""

    def __init__(self, rest: Remainder) -> None:
        self.rest = rest
        self.starts = np.concatenate([[0], np.cumsum(rest.sizes)]).astype(np.int64)
        self.owner = np.repeat(np.arange(len(rest.sizes)), rest.sizes)
        self.alive = np.ones(len(self.owner), np.bool_)
        # A place is a variable of a table; each has a number moved for each of its states.
        self.place_starts: list[list[int]] = []
        state_of, at = [np.zeros(0, np.int64)], 0
        for scope, _ in rest.tables:
            self.place_starts.append([])
            for v in scope:
                self.place_starts[-1].append(at)
                at += rest.sizes[v]
                state_of.append(np.arange(self.starts[v], self.starts[v + 1]))
        self.state_of = np.concatenate(state_of)
        self.table_of = np.repeat(
            np.arange(len(rest.tables)), [sum(rest.sizes[v] for v in scope) for scope, _ in rest.tables]
        )
        self.moved = np.zeros(at)
        self.maxima, self.errors = np.zeros(len(rest.tables)), np.zeros(len(rest.tables))
        self.arrange()

    def arrange(self) -> None:
        """Blocks of tables over the states that are there, and their largest entries."""
        rest = self.rest
        left = [np.flatnonzero(part) for part in np.split(self.alive, self.starts[1:-1])] if rest.sizes else []
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for t, (scope, _) in enumerate(rest.tables):
            by_shape.setdefault(tuple(len(left[v]) for v in scope), []).append(t)
        self.blocks: list[Block] = []
        self.block_of, self.row = np.zeros((2, len(rest.tables)), np.int64)
        self.n_alive = int(self.alive.sum())
        for shape, tables in by_shape.items():
            values, error, places, states = [], [], [], []
            for t in tables:
                scope, table = rest.tables[t]
                values.append(table.values[np.ix_(*(left[v] for v in scope))])
                error.append(table.up)
                places.append([begin + left[v] for begin, v in zip(self.place_starts[t], scope, strict=True)])
                states.append([self.starts[v] + left[v] for v in scope])
            self.block_of[tables], self.row[tables] = len(self.blocks), np.arange(len(tables))
            self.blocks.append(
                Block(
                    np.array(tables),
                    np.array(values),
                    np.array(error),
                    [np.array([p[a] for p in places]) for a in range(len(shape))],
                    [np.array([s[a] for s in states]) for a in range(len(shape))],
                )
            )
        self.look_at(np.arange(len(rest.tables)))

    def has_shrunk(self) -> bool:
        """Whether blocks over the states that are there would be much smaller; none are made of nothing."""
        left = np.logical_or.reduceat(self.alive, self.starts[:-1]) if len(self.alive) else self.alive
        return bool(left.all()) and 2 * int(self.alive.sum()) < self.n_alive

    def look_at(self, tables: IntArray) -> None:
        """The largest entries of some tables, less what was moved, over the states that are there; and their errors."""
        for number in np.unique(self.block_of[tables]).tolist():
            block = self.blocks[number]
            rows = self.row[tables[self.block_of[tables] == number]]
            terms, axes = [block.values[rows]], len(block.places)
            for a in range(axes):
                moved, there = self.moved[block.places[a][rows]], self.alive[block.states[a][rows]]
                shape = [len(rows), *(moved.shape[1] if b == a else 1 for b in range(axes))]
                terms.append(np.where(there, -moved, -math.inf).reshape(shape))
            values, error = rows_added(terms)
            self.maxima[block.tables[rows]] = values.reshape(len(rows), -1).max(axis=1)
            self.errors[block.tables[rows]] = block.error[rows] + error

    def bounds(self) -> tuple[float, FloatArray]:
        """A bound on everything, and one for each state; both with their rounding."""
        own, error = groups_added(self.state_of, self.moved, len(self.owner))
        own = np.nextafter(own + error, math.inf)
        left = np.where(self.alive, own, -math.inf)
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
    walk = Walk(rest)
    places = _places(step, walk)
    kinds = step.integers("rounds", high=3).tolist()
    numbers, moves = step.integers("move_places", high=len(places)), step.floats("moves")
    magnitude(moves)
    gone, divided = _states(step, walk, "gone"), _states(step, walk, "branches").tolist()
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
        if kind == GOES_ON and not stack and walk.has_shrunk():
            walk.arrange()
        if kind == DIVIDES:
            if not divided:
                raise BadFile("branches ends too early")
            state = divided.pop(0)
            held = (len(stack) + 1) * (walk.alive.nbytes + walk.moved.nbytes + 2 * walk.maxima.nbytes)
            afford("boxes", held, step.memory)
            stack.append((state, walk.alive.copy(), walk.moved.copy(), walk.maxima.copy(), walk.errors.copy()))
            others = walk.owner == walk.owner[state]
            others[state] = False
            walk.alive[others] = False
        if kind == CLOSED:
            highest = max(highest, total)
            done = not stack
            if stack:
                state, walk.alive, walk.moved, walk.maxima, walk.errors = stack.pop()
                walk.alive[state] = False
    if not done or divided:
        raise Rejected("the walk ends before every box is closed")
    if highest == -math.inf or rest.high == -math.inf:
        return -math.inf, -math.inf
    return -math.inf, math.nextafter(highest + rest.high, math.inf)


def _places(step: Step, walk: Walk) -> IntArray:
    """Where the places are that the certificate numbers: tables over variables as it lists them, state by state."""
    rest = walk.rest
    found = [np.zeros(0, np.int64)]
    for named, (scope, _), starts in zip(written_scopes(step, rest), rest.tables, walk.place_starts, strict=True):
        found += [starts[scope.index(v)] + np.arange(rest.sizes[v]) for v in named]
    return np.concatenate(found)


def _states(step: Step, walk: Walk, name: str) -> NDArray[np.int64]:
    """Rows (variable, state) as numbers of states."""
    number = {v: k for k, v in enumerate(walk.rest.variables)}
    result = []
    for v, s in step.integers(name, columns=2).tolist():
        domain = step.domains[v] if v in number else np.zeros(0, np.int64)
        place = int(np.searchsorted(domain, s))
        if place >= len(domain) or domain[place] != s:
            raise Rejected(f"{name} has state {s} of variable {v}, which is not left")
        result.append(int(walk.starts[number[v]]) + place)
    return np.array(result, np.int64)
