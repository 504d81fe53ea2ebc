"""Preparation of small questions in plain NumPy: nothing is compiled, nor is the compiler loaded.

Only what pays for small models is done: evidence goes in, barren variables go out, and an order is found greedily.
Zeros stay where they are; elimination does not mind them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.rounding import error_of_tables, magnitudes

BARREN_TOLERANCE = 1e-9
"""How far the sums of a distribution may lie apart, relative to their size, and still count as one constant."""

Table = tuple[tuple[int, ...], FloatArray]
"""Scope and logs, one axis a variable."""


@dataclass(slots=True)
class SmallTables:
    """The tables of a model under evidence.

    Parameters
    ----------
    cardinalities
        States of each variable of the model.
    free
        The variables that are left, neither observed nor summed out.
    tables
        What is left of the factors that still have a variable.
    log_constant
        The sum of all that has none any more.
    log_error
        How far rounding can carry the value of any elimination of these tables, the constant included.
    """

    cardinalities: list[int]
    free: list[int]
    tables: list[Table]
    log_constant: float
    log_error: float


def small_tables(model: Model, evidence: Mapping[int, int], tau: FloatArray | None) -> SmallTables:
    """Put the evidence in and, with weights 0 and 1 given, take barren variables out.

    Barren is a variable that is summed over and lies in one table only, which sums to one constant, such as a leaf
    of a Bayesian network; with it gone, its parents may be leaves. The largest of sums that differ in their last
    digits is taken; how far they differ is error.
    """
    sizes = model.cardinalities.tolist()
    scope_starts, table_starts = model.scope_starts.tolist(), model.table_starts.tolist()
    scope_variables, log_values = model.scope_variables.tolist(), model.log_values
    tables: list[Table] = []
    constants: list[float] = []
    for k in range(model.n_factors):
        scope = scope_variables[scope_starts[k] : scope_starts[k + 1]]
        table = log_values[table_starts[k] : table_starts[k + 1]].reshape([sizes[v] for v in scope])
        if any(v in evidence for v in scope):
            table = table[tuple(evidence.get(v, slice(None)) for v in scope)]
            scope = [v for v in scope if v not in evidence]
        if scope:
            tables.append((tuple(scope), table))
        else:
            constants.append(float(table))
    free = [v for v in range(len(sizes)) if v not in evidence]
    log_error = error_of_tables(
        model.cardinalities[free],
        model.n_factors,
        float(magnitudes(log_values, model.table_starts[:-1]).sum()) if model.n_factors else 0.0,
    )
    if tau is not None:
        gone, sums, widths = _barren(tables, tau)
        if gone:
            tables = [table for number, table in enumerate(tables) if number not in gone]
            free = [v for v in free if v not in gone.values()]
            constants += sums
            log_error += math.fsum(widths)
    return SmallTables(sizes, free, tables, math.fsum(constants), log_error)


def _barren(tables: list[Table], tau: FloatArray) -> tuple[dict[int, int], list[float], list[float]]:
    """The tables that can go, each with the variable that goes with it, their constants and how uncertain these are.

    Any variable that is summed over and lies in one table only may be summed out at once; what is looked for is a sum
    that does not depend on the others.
    """
    within: dict[int, set[int]] = {}
    for number, (scope, _) in enumerate(tables):
        for v in scope:
            within.setdefault(v, set()).add(number)
    waiting = [v for v, places in within.items() if len(places) == 1 and tau[v] == 1.0]
    gone: dict[int, int] = {}
    sums: list[float] = []
    widths: list[float] = []
    while waiting:
        v = waiting.pop()
        if len(within[v]) != 1:
            continue
        (number,) = within[v]
        scope, table = tables[number]
        rows = log_sum(np.moveaxis(table, scope.index(v), 0))
        least, most = float(rows.min()), float(rows.max())
        if least == -math.inf or most - least > BARREN_TOLERANCE:
            continue
        gone[number] = v
        sums.append(most)
        widths.append(most - least)
        for u in scope:
            within[u].discard(number)
            if len(within[u]) == 1 and tau[u] == 1.0:
                waiting.append(u)
    return gone, sums, widths


def log_sum(table: FloatArray) -> FloatArray:
    """Log of the sum over the first axis; ``-inf`` where all are."""
    top = table.max(axis=0)
    safe = np.where(top > -math.inf, top, 0.0)
    total = np.exp(table - safe).sum(axis=0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(total) + safe)


def small_order(
    small: SmallTables, last: set[int], most: float, widest: float = math.inf
) -> tuple[list[int], int, float] | None:
    """A greedy order, the smallest bucket next and ``last`` at the end, its width, and the entries of all buckets.

    None where these are more than ``most``. Buckets of more than ``widest`` variables are not joined: whoever splits
    them has no use for a join, which takes long in a dense graph.
    """
    sizes = small.cardinalities
    near: dict[int, set[int]] = {v: {v} for v in small.free}
    for scope, _ in small.tables:
        for v in scope:
            near[v].update(scope)
    order: list[int] = []
    entries = 0.0
    width = 0
    for group in ([v for v in small.free if v not in last], [v for v in small.free if v in last]):
        members = set(group)
        cost = {v: math.prod([sizes[u] for u in near[v]], start=1.0) for v in group}
        heap = [(cost[v], v) for v in group]
        heapq.heapify(heap)
        while heap:
            claimed, v = heapq.heappop(heap)
            # What a variable cost before its neighbourhood changed stays in the heap, and is passed over here.
            if v not in members or claimed != cost[v]:
                continue
            entries += claimed
            if entries > most:
                return None
            order.append(v)
            members.discard(v)
            bucket = near.pop(v)
            bucket.discard(v)
            width = max(width, len(bucket))
            for u in bucket:
                if len(bucket) <= widest:
                    near[u] |= bucket
                near[u].discard(v)
                if u in members:
                    cost[u] = math.prod([sizes[w] for w in near[u]], start=1.0)
                    heapq.heappush(heap, (cost[u], u))
    return order, width, entries
