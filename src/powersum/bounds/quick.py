"""A first bound in plain NumPy, there before what is compiled has been loaded: mini-buckets, once through.

Tables of a bucket that together are too large are split into groups. Each group of a max variable is maximised by
itself; of a sum variable one group is summed and the others are maximised: ``Σ f g ≤ (Σ f) max g``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.exact.small import by_bucket, joined
from powersum.model.model import Model
from powersum.model.rounding import error_of_tables
from powersum.prepare.small import Table, log_sum, small_order, small_tables

GROUP_ENTRIES = 4096
"""Entries of a group of tables; a table that is larger is a group of its own."""

MOST_VARIABLES, MOST_ENTRIES = 5_000, 2_000_000
"""Larger models are not looked at table by table in Python."""

WIDEST = 24
"""Buckets of more variables than this are split anyway, whatever the order makes of them."""


def quick_bound(model: Model, evidence: Mapping[int, int], tau: FloatArray) -> tuple[float, float]:
    """A bound from above on a question with weights 0 and 1, and how far rounding can have moved it.

    It takes about a tenth of a second; infinity where it would take longer.
    """
    if model.n_variables > MOST_VARIABLES or model.log_values.size > MOST_ENTRIES:
        return math.inf, 0.0
    small = small_tables(model, evidence, tau)
    last = {v for v in small.free if tau[v] == 0.0}
    found = small_order(small, last, math.inf, WIDEST)
    assert found is not None
    order = found[0]
    waiting = by_bucket(small.tables, order)
    constants = [small.log_constant]
    eliminated: list[int] = []
    for p, v in enumerate(order):
        summed = v not in last
        for scope, table in _groups(waiting[p], p, small.cardinalities[v]):
            message = log_sum(table) if summed else table.max(axis=0)
            summed = False
            eliminated.append(small.cardinalities[v])
            if len(scope) > 1:
                waiting[scope[1]].append((scope[1:], message))
            else:
                constants.append(float(message))
        # The tables are not needed again.
        waiting[p] = []
    largest = sum(float(np.abs(table[table > -math.inf]).max(initial=0.0)) for _, table in small.tables)
    error = error_of_tables(np.array(eliminated, dtype=np.int64), len(small.tables), largest)
    log_upper = -math.inf if -math.inf in constants else math.fsum(constants)
    return log_upper, error + small.log_error


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
