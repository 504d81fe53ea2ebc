"""Exact answers to small questions in plain NumPy: most people's networks are done before a compiler is loaded.

The same bucket elimination as :mod:`powersum.exact.elimination`, with the same guarantee: values are logs, and how far
rounding can have moved them is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.model.model import Model
from powersum.prepare.small import SmallTables, Table, log_sum, small_order, small_tables

MOST_ENTRIES = 1_000_000
"""Table entries of all buckets together up to which a question is small: a few hundredths of a second."""

MOST_VARIABLES = 2_000
"""More variables than this are not looked at one by one in Python."""


@dataclass(frozen=True, slots=True)
class SmallAnswer:
    """The exact value, how far rounding can have moved it, and the best states of max variables not observed.

    ``components`` is the number of parts that do not depend on each other.
    """

    log_value: float
    log_error: float
    states: IntArray
    components: int


@dataclass(frozen=True, slots=True)
class _Bucket:
    """The sum of all tables of one bucket, its variable on the first axis, and what is left without that."""

    scope: tuple[int, ...]
    table: FloatArray
    message: FloatArray


class SmallElimination:
    """Elimination of a question that is known to be small; see :func:`small_elimination`.

    Attributes
    ----------
    tables
        What is eliminated.
    width
        Variables of the largest bucket, less one.
    entries
        Entries of all buckets together.
    """

    def __init__(
        self,
        small: SmallTables,
        order: list[int],
        width: int,
        entries: float,
        tau: FloatArray,
        evidence: Mapping[int, int],
    ) -> None:
        self.tables = small
        self.width = width
        self.entries = entries
        self._order, self._tau, self._evidence = order, tau, evidence
        self._is_max = [tau[v] == 0.0 for v in order]

    def run(self) -> SmallAnswer:
        """Eliminate all variables and trace the best states back."""
        log_value, buckets = self._eliminate()
        states = np.full(len(self._tau), -1, dtype=np.int64)
        if log_value > -math.inf:
            found = [-1] * len(buckets)
            for p in range(len(buckets) - 1, -1, -1):
                if self._is_max[p]:
                    place: tuple[Any, ...] = (slice(None), *(found[q] for q in buckets[p].scope[1:]))
                    found[p] = int(buckets[p].table[place].argmax())
            for p, v in enumerate(self._order):
                states[v] = found[p]
        components = sum(len(bucket.scope) == 1 for bucket in buckets)
        return SmallAnswer(log_value, self.tables.log_error, states, components)

    def max_buckets(self) -> tuple[float, list[tuple[int, FloatArray, tuple[int, ...]]]]:
        """The value, and the table of each max variable, from the last eliminated to the first.

        Each comes with its variable, whose axis is the first, and with the places in this list of the other axes.
        """
        log_value, buckets = self._eliminate()
        last = len(buckets) - 1
        found = [
            (self._order[p], buckets[p].table, tuple(last - q for q in buckets[p].scope[1:]))
            for p in range(last, -1, -1)
            if self._is_max[p]
        ]
        return log_value, found

    def marginals(self) -> tuple[FloatArray, BoolArray] | None:
        """Probabilities of all states of all variables, all of which must be summed over, and which may be possible.

        Variables one after another. A state that is not possible has probability 0; another may have one that is too
        small for a double. None where nothing is possible.
        """
        log_value, buckets = self._eliminate()
        if log_value == -math.inf:
            return None
        beliefs = [np.zeros(size) for size in self.tables.cardinalities]
        possible = [np.zeros(size, dtype=np.bool_) for size in self.tables.cardinalities]
        for v, state in self._evidence.items():
            beliefs[v][state] = 1.0
            possible[v][state] = True
        for p, joint in enumerate(_joints(buckets)):
            own = joint.reshape(joint.shape[0], -1).sum(axis=1)
            beliefs[self._order[p]] = own / own.sum()
            possible[self._order[p]] = buckets[p].table.reshape(len(own), -1).max(axis=1) > -math.inf
        return np.concatenate([*beliefs, np.zeros(0)]), np.concatenate([*possible, np.zeros(0, dtype=np.bool_)])

    def together(self, scopes: list[tuple[int, ...]]) -> list[FloatArray] | None:
        """Probabilities of the states of several variables together, for scopes of tables, all variables summed over.

        A scope has the variables of a table that are not observed; their axes stay in its order. None where nothing is
        possible.
        """
        log_value, buckets = self._eliminate()
        if log_value == -math.inf:
            return None
        joints = _joints(buckets)
        position = {v: p for p, v in enumerate(self._order)}
        found = []
        for scope in scopes:
            places = [position[v] for v in scope]
            if not places:
                found.append(np.ones(()))
                continue
            # All of them are in the bucket of the one that is eliminated first.
            first = min(places)
            outside = tuple(axis for axis, q in enumerate(buckets[first].scope) if q not in places)
            ascending = sorted(places)
            found.append(joints[first].sum(axis=outside).transpose([ascending.index(place) for place in places]))
        return found

    def _eliminate(self) -> tuple[float, list[_Bucket]]:
        """The value and all buckets; scopes are places in the order from here on, and axes sorted by them."""
        small = self.tables
        sizes = [small.cardinalities[v] for v in self._order]
        waiting = by_bucket(small.tables, self._order)
        constants = [small.log_constant]
        buckets: list[_Bucket] = []
        for p, parts in enumerate(waiting):
            within, table = joined(parts) if parts else ((p,), np.zeros(sizes[p]))
            message = table.max(axis=0) if self._is_max[p] else log_sum(table)
            buckets.append(_Bucket(within, table, message))
            if len(within) > 1:
                waiting[within[1]].append((within[1:], message))
            else:
                constants.append(float(message))
            # The tables themselves are not needed again.
            waiting[p] = []
        # Not fsum: an impossible part makes everything impossible.
        return (-math.inf if -math.inf in constants else math.fsum(constants)), buckets


def _joints(buckets: list[_Bucket]) -> list[FloatArray]:
    """The probabilities of all states of each bucket together, all variables summed over."""
    joint: list[FloatArray] = [np.zeros(0)] * len(buckets)
    for p in range(len(buckets) - 1, -1, -1):
        bucket = buckets[p]
        # Given the rest of its bucket a variable is independent of all that are eliminated later.
        given = np.exp(bucket.table - np.where(bucket.message > -math.inf, bucket.message, 0.0))
        rest = bucket.scope[1:]
        if rest:
            above = buckets[rest[0]].scope
            outside = tuple(axis for axis, q in enumerate(above) if q not in rest)
            given *= joint[rest[0]].sum(axis=outside)
        joint[p] = given
    return joint


def by_bucket(tables: list[Table], order: list[int]) -> list[list[Table]]:
    """The tables that go with each variable of an order; their scopes become places in it, ascending."""
    position = {v: p for p, v in enumerate(order)}
    buckets: list[list[Table]] = [[] for _ in order]
    for scope, table in tables:
        places = [position[v] for v in scope]
        by_place = sorted(range(len(places)), key=places.__getitem__)
        places.sort()
        buckets[places[0]].append((tuple(places), table.transpose(by_place)))
    return buckets


def joined(tables: list[Table]) -> Table:
    """The sum of tables whose axes follow one order, over all their variables."""
    scope = tuple(sorted(set().union(*(own for own, _ in tables))))
    total = _spread(*tables[0], scope)
    for own, table in tables[1:]:
        total = np.add(total, _spread(own, table, scope))
    return scope, total


def _spread(places: tuple[int, ...], table: FloatArray, scope: tuple[int, ...]) -> FloatArray:
    """A table with an axis for each variable of a larger scope, of length 1 for those it does not depend on."""
    if places == scope:
        return table
    sizes = dict(zip(places, table.shape, strict=True))
    return table.reshape([sizes.get(place, 1) for place in scope])


def small_elimination(
    model: Model, evidence: Mapping[int, int], tau: FloatArray, *, barren: bool = True
) -> SmallElimination | None:
    """The elimination of a question with weights 0 and 1, if it is small; else None, found out in little time.

    Parameters
    ----------
    model, evidence
        The model and its observed states.
    tau
        Weight of each variable.
    barren
        Whether variables that the value does not depend on may be left out.
    """
    if model.n_variables > MOST_VARIABLES or model.log_values.size > MOST_ENTRIES:
        return None
    small = small_tables(model, evidence, tau if barren else None)
    found = small_order(small, set(np.flatnonzero(tau == 0.0).tolist()), MOST_ENTRIES)
    return None if found is None else SmallElimination(small, *found, tau, evidence)
