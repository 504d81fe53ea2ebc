"""First bounds in plain NumPy, there before what is compiled has been loaded: mini-buckets, once through and back.

Tables of a bucket that together are too large are split into groups. Each group of a max variable is maximised by
itself; of a sum variable one group is summed and the others are maximised: ``Σ f g ≤ (Σ f) max g``. On the way back
every variable takes the state that its groups like best. No sum is less than one of its terms, so the value of that
configuration is a bound from below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.exact.small import by_bucket, joined
from powersum.model.model import Model
from powersum.model.rounding import error_of_tables
from powersum.prepare.small import SmallTables, Table, log_sum, small_order, small_tables

GROUP_ENTRIES = 4096
"""Entries of a group of tables; a table that is larger is a group of its own."""

MOST_VARIABLES, MOST_FACTORS, MOST_ENTRIES = 5_000, 10_000, 2_000_000
"""Larger models are not looked at table by table in Python; nor are groups kept that have more entries together."""

WIDEST = 24
"""Buckets of more variables than this are split anyway, whatever the order makes of them."""


class QuickBounds(NamedTuple):
    """Bounds on a question from both sides, without rounding counted; infinite where there are none."""

    log_lower: float
    log_upper: float
    log_error: float
    """How far rounding can have moved them."""
    states: IntArray
    """The configuration whose value the lower bound is; -1 where a variable has no state in it."""


def quick_bounds(model: Model, evidence: Mapping[int, int], tau: FloatArray) -> QuickBounds:
    """Bounds on a question with weights 0 and 1.

    They take about a tenth of a second; there are none where they would take longer.
    """
    states = np.full(model.n_variables, -1, dtype=np.int64)
    too_large = model.n_variables > MOST_VARIABLES or model.n_factors > MOST_FACTORS
    if too_large or model.log_values.size > MOST_ENTRIES:
        return QuickBounds(-math.inf, math.inf, 0.0, states)
    small = small_tables(model, evidence, tau)
    last = {v for v in small.free if tau[v] == 0.0}
    found = small_order(small, last, math.inf, WIDEST)
    assert found is not None
    order = found[0]
    waiting = by_bucket(small.tables, order)
    constants = [small.log_constant]
    eliminated: list[int] = []
    kept: list[list[Table]] = []
    entries = 0
    for p, v in enumerate(order):
        summed = v not in last
        groups = _groups(waiting[p], p, small.cardinalities[v])
        for scope, table in groups:
            message = log_sum(table) if summed else table.max(axis=0)
            summed = False
            eliminated.append(small.cardinalities[v])
            entries += table.size
            if len(scope) > 1:
                waiting[scope[1]].append((scope[1:], message))
            else:
                constants.append(float(message))
        if entries <= MOST_ENTRIES:
            kept.append(groups)
        # The tables are not needed again.
        waiting[p] = []
    largest = sum(float(np.abs(table[table > -math.inf]).max(initial=0.0)) for _, table in small.tables)
    error = error_of_tables(np.array(eliminated, dtype=np.int64), len(small.tables), largest)
    log_upper = -math.inf if -math.inf in constants else math.fsum(constants)
    log_lower = -math.inf
    if log_upper > -math.inf and len(kept) == len(order):
        chosen = _liked_best(kept)
        if chosen is not None:
            states[order] = chosen
            log_lower = _value_at(states, small)
    return QuickBounds(log_lower, log_upper, error + small.log_error, states)


def _liked_best(kept: list[list[Table]]) -> IntArray | None:
    """A state for each place of the order, the last place first, by the groups of its bucket; None at a dead end."""
    chosen = np.empty(len(kept), dtype=np.int64)
    for p in range(len(kept) - 1, -1, -1):
        score = np.add.reduce([table[(slice(None), *chosen[list(scope[1:])])] for scope, table in kept[p]])
        chosen[p] = int(np.argmax(score))
        if score[chosen[p]] == -math.inf:
            return None
    return chosen


def _value_at(states: IntArray, small: SmallTables) -> float:
    """The value of a configuration of all variables that are left."""
    terms = [float(table[tuple(states[list(scope)])]) for scope, table in small.tables]
    return -math.inf if -math.inf in terms else math.fsum([small.log_constant, *terms])


def _groups(tables: list[Table], place: int, size: int) -> list[Table]:
    """Tables of one bucket as few larger ones, the largest first; a variable in no table has a flat one."""
    if not tables:
        return [((place,), np.zeros(size))]
    groups: list[tuple[dict[int, int], list[Table]]] = []
    for scope, table in sorted(tables, key=lambda one: -one[1].size):
        sizes = dict(zip(scope, table.shape, strict=True))
        for within, members in groups:
            if math.prod((within | sizes).values()) <= GROUP_ENTRIES:
                within.update(sizes)
                members.append((scope, table))
                break
        else:
            groups.append((sizes, [(scope, table)]))
    return [joined(members) for _, members in groups]
