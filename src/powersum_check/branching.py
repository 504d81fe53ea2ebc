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
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import afford
from powersum_check.numbers import FloatArray, Table, add, magnitude, outward
from powersum_check.remainder import Remainder, read_remainder

GOES_ON, CLOSED, DIVIDES = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Box:
    """Where the walk stands. Its arrays are replaced, never changed: boxes that were divided keep theirs."""

    alive: list[NDArray[np.bool_]]
    """Of each variable, which states are there."""
    moved: list[list[FloatArray]]
    """Of each table and each axis, what was moved to each state."""
    maxima: list[float]
    """Of each table the largest entry less what was moved, when this was last looked at; with its rounding."""
    own: list[FloatArray]
    """What was moved to each state of each variable, with its rounding."""

    def copy(self) -> Box:
        return Box(list(self.alive), list(map(list, self.moved)), list(self.maxima), list(self.own))


class Walk:
    """The tables, and the box that is looked at."""

    def __init__(self, rest: Remainder) -> None:
        self.rest = rest
        self.axes: list[list[tuple[int, int]]] = [[] for _ in rest.sizes]
        """The tables and axes of each variable."""
        for t, (scope, _) in enumerate(rest.tables):
            for axis, v in enumerate(scope):
                self.axes[v].append((t, axis))
        self.box = Box(
            [np.ones(size, np.bool_) for size in rest.sizes],
            [[np.zeros(rest.sizes[v]) for v in scope] for scope, _ in rest.tables],
            [_largest(table) for _, table in rest.tables],
            [np.zeros(size) for size in rest.sizes],
        )

    def look_at(self, t: int) -> None:
        """The largest entry of a table, less what was moved, over the states that are there."""
        scope, table = self.rest.tables[t]
        rows, n = [], len(scope)
        for axis, (v, moved) in enumerate(zip(scope, self.box.moved[t], strict=True)):
            left = np.where(self.box.alive[v], -moved, -math.inf)
            rows.append(Table(left.reshape((1,) * axis + (-1,) + (1,) * (n - axis - 1))))
        total = add(table.values.shape, [table, *rows])
        self.box.maxima[t] = _largest(total)

    def move(self, places: list[int], numbers: list[float]) -> None:
        """Move numbers to places, and look at what depends on them."""
        tables, variables = set(), set()
        for place, number in zip(places, numbers, strict=True):
            t, axis, s = self.rest.places[place]
            row = self.box.moved[t][axis].copy()
            row[s] = number
            self.box.moved[t][axis] = row
            tables.add(t)
            variables.add(self.rest.tables[t][0][axis])
        for t in tables:
            self.look_at(t)
        for v in variables:
            total = add([self.rest.sizes[v]], [Table(self.box.moved[t][axis]) for t, axis in self.axes[v]])
            self.box.own[v] = np.nextafter(total.values + total.up, math.inf)

    def remove(self, v: int, states: NDArray[np.bool_]) -> None:
        """Take states of a variable out of the box; what is known of tables stays a bound."""
        self.box.alive[v] = self.box.alive[v] & ~states

    def bounds(self) -> tuple[list[float], float]:
        """The largest number of each variable, and the bound that these and those of tables give; rounded up."""
        best = [
            float(own[alive].max(initial=-math.inf)) for own, alive in zip(self.box.own, self.box.alive, strict=True)
        ]
        return best, outward([*self.box.maxima, *best], 0.0, 0.0)[1]


def branching(step: Step) -> tuple[float, float]:
    """An upper bound on the value of a box in which everything is maximised."""
    rest = read_remainder(step)
    if rest.weight != 0.0:
        raise Rejected("only a maximum is bounded by branching")
    kinds = step.integers("rounds", high=3).tolist()
    numbers, moves = step.integers("move_places", high=len(rest.places)).tolist(), step.floats("moves")
    magnitude(moves)
    gone, branches = _states(step, rest, "gone"), iter(_states(step, rest, "branches"))
    move_starts = step.starts("move_starts", len(moves)).tolist()
    gone_starts = step.starts("gone_starts", len(gone)).tolist()
    if not len(kinds) == len(move_starts) - 1 == len(gone_starts) - 1 or len(numbers) != len(moves):
        raise BadFile("rounds, moves and what goes do not fit together")
    held = 200 * (sum(rest.sizes) + sum(len(scope) + 1 for scope, _ in rest.tables))
    walk = Walk(rest)
    highest, done = -math.inf, False
    waiting: list[tuple[int, NDArray[np.bool_], Box]] = []
    for k, kind in enumerate(kinds):
        if done:
            raise BadFile("rounds go on after the end")
        first, end = move_starts[k : k + 2]
        walk.move(numbers[first:end], moves[first:end].tolist())
        best, total = walk.bounds()
        for v, s in gone[gone_starts[k] : gone_starts[k + 1]]:
            if total > -math.inf:
                highest = max(highest, outward([total, -best[v], walk.box.own[v][s]], 0.0, 0.0)[1])
            walk.remove(v, np.arange(rest.sizes[v]) == s)
        if kind == DIVIDES:
            v, s = next(branches, (-1, 0))
            if v < 0:
                raise BadFile("branches ends too early")
            afford("boxes", held * (len(waiting) + 1), step.memory)
            state = np.arange(rest.sizes[v]) == s
            waiting.append((v, state, walk.box))
            walk.box = walk.box.copy()
            walk.remove(v, ~state)
        if kind == CLOSED:
            highest = max(highest, total)
            done = not waiting
            if waiting:
                v, state, walk.box = waiting.pop()
                walk.remove(v, state)
    if not done or next(branches, None) is not None:
        raise Rejected("the walk ends before every box is closed")
    if highest == -math.inf or rest.high == -math.inf:
        return -math.inf, -math.inf
    return -math.inf, math.nextafter(highest + rest.high, math.inf)


def _largest(table: Table) -> float:
    """The largest entry, with its error."""
    largest = float(table.values.max())
    return math.nextafter(largest + table.up, math.inf) if largest > -math.inf else largest


def _states(step: Step, rest: Remainder, name: str) -> list[tuple[int, int]]:
    """Rows (variable, state) as numbers of variables that are left and of their states in the box."""
    number = {
        (v, s): (k, place) for k, v in enumerate(rest.variables) for place, s in enumerate(step.domains[v].tolist())
    }
    rows = [(v, s) for v, s in step.integers(name, columns=2).tolist()]
    for v, s in set(rows) - number.keys():
        raise Rejected(f"{name} has state {s} of variable {v}, which is not left")
    return [number[row] for row in rows]
