"""Branching: a maximum over all variables from above, by a decision tree as in cover.py and numbers that move.

For a maximum, any numbers may be taken from a table and given to a variable, state by state: every configuration keeps
its value. So the largest entries of all tables and the largest numbers of all variables, over the states of a part,
bound every configuration of the part. Rows (v, s, m) list the parts in pre-order, as those of a cover do; m >= 0 makes
a *move* first: from then on, in all of the part, so much has been moved at these places.

A half of a part has the same tables and fewer states of one variable v: its bound is that of the part, less the largest
number of v, plus the largest of v in the half. The largest entries of tables are looked at only when numbers move at
them: over fewer states they are still bounds. Every configuration is in one part that is not divided, so the largest
bound of these parts bounds them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import afford, spend
from powersum_check.numbers import FloatArray, Table, add, magnitude, outward
from powersum_check.remainder import Remainder, read_remainder

States = NDArray[np.bool_]
Axes = list[list[tuple[int, int]]]
"""The tables of each variable, and its axis in them."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some states of each variable, and what has been moved. Parts share lists and arrays, and never change them."""

    alive: list[States]
    moved: list[list[FloatArray]]
    """Of each table and each axis, what was moved to each state."""
    maxima: list[float]
    """Of each table the largest entry less what was moved, when this was last looked at; with its rounding."""
    own: list[FloatArray]
    """What was moved to each state of each variable, with its rounding."""
    bound: float
    """No configuration has more."""

    def best(self, v: int) -> float:
        """The largest number of a variable."""
        return float(self.own[v][self.alive[v]].max(initial=-math.inf))

    def half(self, v: int, states: States) -> Part:
        """What of the part has some states of a variable."""
        alive = list(self.alive)
        alive[v] = alive[v] & states
        half = replace(self, alive=alive)
        if self.bound == -math.inf:
            return half
        return replace(half, bound=outward([self.bound, -self.best(v), half.best(v)], 0.0, 0.0)[1])

    def after(self, rest: Remainder, axes: Axes, places: Sequence[int], numbers: Sequence[float]) -> Part:
        """The part after a move."""
        moved, maxima, own = list(map(list, self.moved)), list(self.maxima), list(self.own)
        tables, variables = set(), set()
        for place, number in zip(places, numbers, strict=True):
            t, axis, s = rest.places[place]
            moved[t][axis] = moved[t][axis].copy()
            moved[t][axis][s] = number
            tables.add(t)
            variables.add(rest.tables[t][0][axis])
        for t in tables:
            scope, table = rest.tables[t]
            rows = []
            for axis, v in enumerate(scope):
                less = np.where(self.alive[v], -moved[t][axis], -math.inf)
                rows.append(Table(less.reshape((1,) * axis + (-1,) + (1,) * (len(scope) - axis - 1))))
            maxima[t] = _largest(add(table.values.shape, [table, *rows]))
        for v in variables:
            total = add([rest.sizes[v]], [Table(moved[t][axis]) for t, axis in axes[v]])
            own[v] = np.nextafter(total.values + total.up, math.inf)
        return bounded(Part(self.alive, moved, maxima, own, 0.0))


def bounded(part: Part) -> Part:
    """The part with the bound that its tables and variables give."""
    best = [part.best(v) for v in range(len(part.own))]
    return replace(part, bound=outward([*part.maxima, *best], 0.0, 0.0)[1])


def branching(step: Step) -> tuple[float, float]:
    """An upper bound on the value of a box in which everything is maximised."""
    rest = read_remainder(step)
    if any(rest.weights):
        raise Rejected("only a maximum is bounded by branching")
    rows = step.integers("parts", low=-1, columns=3).tolist()
    places, moves = step.integers("move_places", high=len(rest.places)).tolist(), step.floats("moves")
    magnitude(moves)
    starts = step.starts("move_starts", len(moves)).tolist()
    if len(places) != len(moves):
        raise BadFile("move_places and moves do not fit together")
    number = {v: k for k, v in enumerate(rest.variables)}
    axes: Axes = [[] for _ in rest.sizes]
    for t, (scope, _) in enumerate(rest.tables):
        for axis, v in enumerate(scope):
            axes[v].append((t, axis))
    held = 200 * (sum(rest.sizes) + sum(len(scope) + 1 for scope, _ in rest.tables))
    waiting = [
        bounded(
            Part(
                [np.ones(size, np.bool_) for size in rest.sizes],
                [[np.zeros(rest.sizes[v]) for v in scope] for scope, _ in rest.tables],
                [_largest(table) for _, table in rest.tables],
                [np.zeros(size) for size in rest.sizes],
                0.0,
            )
        )
    ]
    highest = -math.inf
    for v, s, m in rows:
        spend(20_000 + 100 * len(rest.sizes))
        if not waiting:
            raise BadFile("rows go on after the last part")
        part = waiting.pop()
        if m >= 0:
            if m >= len(starts) - 1:
                raise BadFile("a row names a move that does not exist")
            spend(1000 * (len(rest.tables) + len(rest.sizes)))
            first, end = starts[m : m + 2]
            part = part.after(rest, axes, places[first:end], moves[first:end].tolist())
        if v < 0:
            highest = max(highest, part.bound)
            continue
        if v not in number or s not in step.domains[v]:
            raise Rejected(f"a part is divided by state {s} of variable {v}, which is not left")
        afford("boxes", held * (len(waiting) + 2), step.memory)
        same = step.domains[v] == s
        waiting += [part.half(number[v], ~same), part.half(number[v], same)]
    if waiting:
        raise Rejected("the rows end before every part is bounded")
    if highest == -math.inf or rest.high == -math.inf:
        return -math.inf, -math.inf
    return -math.inf, math.nextafter(highest + rest.high, math.inf)


def _largest(table: Table) -> float:
    """The largest entry, with its error."""
    largest = float(table.values.max())
    return math.nextafter(largest + table.up, math.inf) if largest > -math.inf else largest
