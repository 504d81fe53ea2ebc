"""Which table is the conditional table of which variable, read off the numbers, and an order of causes before effects.

A table is conditional on all but one of its variables, its child, where its sum over the child is the same for all
parents, or at most one. This holds for MARKOV files, under evidence and for weights between 0 and 1 as well. The choice
is made from the parents down: a table in which one variable is not yet known makes that variable its child. In a
Bayesian network this finds an acyclic choice for all variables, however many axes look like a child.
"""

from __future__ import annotations

import math

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray, positions_of, starts_of
from powersum.core.jit import compiled, inner
from powersum.model.graph import incidence
from powersum.model.model import Model
from powersum.prepare.problem import Problem

NEARLY = 1e-3
"""How far logs of sums may lie apart to count as one number: files have few digits, and no bound rests on it."""

MOST_LOOKED_UP = 1 << 16
"""Entries of tables whose sums are judged for possible states of the parents alone; in larger ones for all."""


def causal_order(problem: Problem) -> IntArray:
    """The variables, causes before effects; those without a conditional table by their numbers, where needed next."""
    return oriented(problem, np.zeros(len(problem.original_tau), dtype=np.int64))[0]


def oriented(problem: Problem, places: IntArray, model: Model | None = None) -> tuple[IntArray, IntArray]:
    """The variables in the order in which they become known, and the table of each of which it is the child, or -1.

    Tables that tell children are those of the model, then those of the problem. Variables of the model that have gone
    from the problem become known with the others: their tables do not tell children of others.
    """
    reduced, n_variables = problem.model, problem.model.n_variables
    all_possible = np.ones(int(reduced.cardinalities.sum()), dtype=np.bool_)
    scope, starts, variables = reduced.scope_variables, reduced.scope_starts, problem.variables
    children = _children(*_tables(reduced), all_possible, np.arange(n_variables), problem.tau)
    tables = np.arange(reduced.n_factors)
    if model is not None:
        owner = np.repeat(np.arange(model.n_variables), model.cardinalities)
        free = np.bincount(owner[problem.possible], minlength=model.n_variables) > 1
        free[problem.variables] = False
        variables = np.concatenate([problem.variables, np.flatnonzero(free)])
        numbers = positions_of(variables, model.n_variables)
        first = _children(*_tables(model), problem.possible, numbers, problem.original_tau[variables])
        inside = numbers[model.scope_variables]
        owner = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))
        kept = inside >= 0
        lengths = np.bincount(owner[kept], minlength=model.n_factors)
        scope = np.concatenate([inside[kept], scope])
        starts = starts_of(np.concatenate([lengths, np.diff(starts)]))
        children = np.concatenate([first[kept], children])
        tables = np.concatenate([problem.fates.table_of, tables])
    rank = np.unique(places[variables], return_inverse=True)[1].astype(np.int64)
    tables_of = incidence(len(variables), starts, scope)
    known, own = _orient(
        rank,
        # Copies, because an array that may not be written to is another type to the compiler.
        np.array(starts, np.int64),
        np.array(scope, np.int64),
        children,
        np.asarray(tables, np.int64),
        len(tables) - reduced.n_factors,
        np.asarray(tables_of.starts, np.int64),
        np.asarray(tables_of.factors, np.int64),
    )
    return known[known < n_variables], own[:n_variables]


def _tables(model: Model) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, IntArray]:
    return (
        model.cardinalities,
        model.scope_starts,
        model.scope_variables,
        model.table_starts,
        model.log_values,
        starts_of(model.cardinalities),
    )


@compiled
def _children(
    cardinalities: IntArray,
    scope_starts: IntArray,
    scope_variables: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    state_starts: IntArray,
    possible: BoolArray,
    numbers: IntArray,
    tau: FloatArray,
) -> BoolArray:
    """For each variable of each scope whether the table sums over it to a constant, or to at most one.

    Parents have their possible states.
    """
    found = np.zeros(scope_variables.size, np.bool_)
    widest, largest = 1, 1
    for k in range(scope_starts.size - 1):
        widest = max(widest, scope_starts[k + 1] - scope_starts[k])
        largest = max(largest, table_starts[k + 1] - table_starts[k])
    digits = np.zeros(widest, np.int64)
    sums = np.empty(largest)
    for k in range(scope_starts.size - 1):
        low, high = scope_starts[k], scope_starts[k + 1]
        first, size = table_starts[k], table_starts[k + 1] - table_starts[k]
        top = -np.inf
        for entry in range(first, first + size):
            top = max(top, log_values[entry])
        if top == -np.inf:
            continue
        looked_up = size <= MOST_LOOKED_UP
        stride = size
        for axis in range(high - low):
            v = scope_variables[low + axis]
            states = cardinalities[v]
            stride //= states
            if numbers[v] < 0 or tau[numbers[v]] == 0.0:
                continue
            weight = tau[numbers[v]]
            for row in range(size // states):
                sums[row] = 0.0
            for entry in range(size):
                value = log_values[first + entry]
                if value > -np.inf:
                    sums[entry // (stride * states) * stride + entry % stride] += math.exp((value - top) / weight)
            least, most = np.inf, 0.0
            for i in range(high - low):
                digits[i] = 0
            for row in range(size // states):
                alive = True
                if looked_up:
                    for i in range(high - low):
                        if i != axis and not possible[state_starts[scope_variables[low + i]] + digits[i]]:
                            alive = False
                    for i in range(high - low - 1, -1, -1):
                        if i != axis:
                            digits[i] += 1
                            if digits[i] < cardinalities[scope_variables[low + i]]:
                                break
                            digits[i] = 0
                if alive and sums[row] > 0.0:
                    least, most = min(least, sums[row]), max(most, sums[row])
            if most > 0.0:
                flat = weight * math.log(most / least) <= NEARLY
                found[low + axis] = flat or top + weight * math.log(most) <= NEARLY
    return found


@compiled
def _orient(
    rank: IntArray,
    starts: IntArray,
    variables: IntArray,
    children: BoolArray,
    tables: IntArray,
    n_first: int,
    incident_starts: IntArray,
    incident_tables: IntArray,
) -> tuple[IntArray, IntArray]:
    """The order in which variables become known, and the table of each of which it is the child, -1 without one.

    Variables of one rank follow those of larger ones. The first ``n_first`` tables are the model's.
    """
    n_variables, n_tables = rank.size, tables.size
    known = np.empty(n_variables, np.int64)
    own = np.full(n_variables, -1, np.int64)
    is_known = np.zeros(n_variables, np.bool_)
    used = np.zeros(n_tables, np.bool_)
    # How many variables of each table are not known, and their sum: where it is one, the sum is that variable.
    unknown, total = np.zeros(n_tables, np.int64), np.zeros(n_tables, np.int64)
    for k in range(n_tables):
        for place in range(starts[k], starts[k + 1]):
            unknown[k] += 1
            total[k] += variables[place]
    n_ranks = 0
    for v in range(n_variables):
        n_ranks = max(n_ranks, rank[v] + 1)
    # Tables with one variable that is not known, by its rank: lists for the model's and for the problem's.
    head = np.full((2, n_ranks), -1, np.int64)
    following = np.full(n_tables, -1, np.int64)
    for k in range(n_tables - 1, -1, -1):
        if unknown[k] == 1:
            _put(k, total[k], rank, starts, variables, children, n_first, head, following)
    # Variables by rank, and by number within one: places after those of lower ranks.
    places = np.zeros(n_ranks + 1, np.int64)
    for v in range(n_variables):
        places[rank[v] + 1] += 1
    for r in range(n_ranks):
        places[r + 1] += places[r]
    by_rank = np.empty(n_variables, np.int64)
    for v in range(n_variables):
        by_rank[places[rank[v]]] = v
        places[rank[v]] += 1
    end, at = n_variables, 0
    while end > 0:
        begin = end
        while begin > 0 and rank[by_rank[begin - 1]] == rank[by_rank[end - 1]]:
            begin -= 1
        r = rank[by_rank[end - 1]]
        root = begin
        while True:
            v, table = -1, -1
            for kind in range(2):
                while v < 0 and head[kind, r] >= 0:
                    k = head[kind, r]
                    head[kind, r] = following[k]
                    if unknown[k] == 1 and not (kind == 1 and used[k]):
                        v, table = total[k], tables[k]
                if v >= 0:
                    break
            if v < 0:
                while root < end and is_known[by_rank[root]]:
                    root += 1
                if root == end:
                    break
                v = by_rank[root]
            known[at] = v
            at += 1
            is_known[v] = True
            own[v] = table
            if table >= 0:
                used[n_first + table] = True
            for place in range(incident_starts[v], incident_starts[v + 1]):
                k = incident_tables[place]
                unknown[k] -= 1
                total[k] -= v
                if unknown[k] == 1:
                    _put(k, total[k], rank, starts, variables, children, n_first, head, following)
        end = begin
    return known, own


@inner
def _put(
    table: int,
    variable: int,
    rank: IntArray,
    starts: IntArray,
    variables: IntArray,
    children: BoolArray,
    n_first: int,
    head: IntArray,
    following: IntArray,
) -> None:
    """Put a table in the list of its last variable's rank, if that can be its child."""
    for place in range(starts[table], starts[table + 1]):
        if variables[place] == variable and children[place]:
            kind = 0 if table < n_first else 1
            following[table] = head[kind, rank[variable]]
            head[kind, rank[variable]] = table
