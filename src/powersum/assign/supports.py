"""Propagation of hard zeros: states that no tuple of some factor supports are taken out, to a fixpoint.

This is generalised arc consistency over all factors, sum variables included. Given an assignment of the max variables
it fixes many sum variables of pedigrees and grids, and it finds most dead ends of a partial assignment at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import IntArray, frozen, starts_of
from powersum.core.jit import inner
from powersum.model.factors import Factors
from powersum.model.model import Model

# Larger tables are not propagated: their tuples would take more memory and time than the pruning is worth.
LARGEST_TABLE = 1 << 16


class Supports(NamedTuple):
    """The positive tuples of each factor that has zeros.

    Factor ``f`` has ``counts[f]`` of them, one after another from ``place_starts[f]`` on in ``tuples``, each state as
    its flat number ``state_starts[v] + s``. ``factors`` lists, from ``factor_starts[v]`` on, the factors with zeros of
    each variable.
    """

    counts: IntArray
    place_starts: IntArray
    tuples: IntArray
    factor_starts: IntArray
    factors: IntArray
    state_starts: IntArray
    owner: IntArray
    """Variable of each flat state."""


def supports_of(model: Model) -> Supports:
    """Collect the positive tuples of all factors with zeros."""
    state_starts = starts_of(model.cardinalities)
    counts = np.zeros(model.n_factors, dtype=np.int64)
    lengths = np.zeros(model.n_factors, dtype=np.int64)
    parts: list[IntArray] = []
    sizes = np.diff(model.table_starts)
    owner = np.repeat(np.arange(model.n_factors), sizes)
    has_zeros = np.zeros(model.n_factors, dtype=np.bool_)
    has_zeros[owner[np.isneginf(model.log_values)]] = True
    for f in np.flatnonzero(has_zeros & (sizes <= LARGEST_TABLE) & (np.diff(model.scope_starts) > 0)).tolist():
        scope, table = model.factor(f)
        positive = np.argwhere(np.isfinite(table)) + state_starts[list(scope)]
        counts[f], lengths[f] = len(positive), positive.size
        parts.append(positive.ravel())
    constrained = counts > 0
    places = np.repeat(constrained, np.diff(model.scope_starts))
    variables = model.scope_variables[places]
    factors = np.repeat(np.arange(model.n_factors), np.diff(model.scope_starts))[places]
    by_variable = np.argsort(variables, kind="stable")
    return Supports(
        frozen(counts, np.int64),
        frozen(starts_of(lengths), np.int64),
        frozen(np.concatenate(parts) if parts else np.zeros(0), np.int64),
        frozen(starts_of(np.bincount(variables, minlength=model.n_variables)), np.int64),
        frozen(factors[by_variable], np.int64),
        frozen(state_starts, np.int64),
        frozen(np.repeat(np.arange(model.n_variables), model.cardinalities), np.int64),
    )


class Queue(NamedTuple):
    """Factors that wait for revision: a stack and a flag for each factor on it; and marks for states seen.

    ``trail`` lists the states taken out, their number first.
    """

    stack: IntArray
    waiting: IntArray
    seen: IntArray
    trail: IntArray


def new_queue(model: Model) -> Queue:
    """Working memory of :func:`propagate`."""
    n_states = int(model.cardinalities.sum())
    return Queue(
        np.zeros(model.n_factors, dtype=np.int64),
        np.zeros(model.n_factors, dtype=np.int64),
        np.zeros(n_states, dtype=np.int64),
        np.zeros(n_states + 1, dtype=np.int64),
    )


@inner
def push(f: int, height: int, supports: Supports, queue: Queue) -> int:
    """Put factor ``f`` on the stack unless it waits already or has no zeros; returns the new height."""
    if queue.waiting[f] or supports.counts[f] == 0:
        return height
    queue.waiting[f] = 1
    queue.stack[height] = f
    return height + 1


@inner
def propagate(
    height: int, factors: Factors, supports: Supports, alive: IntArray, sizes: IntArray, queue: Queue
) -> bool:
    """Revise the factors on the stack until nothing changes; False when a variable has no state left.

    ``alive[state]`` is 1 for a state still possible, ``sizes[v]`` their number for each variable; both are updated.
    Variables outside the part of interest may be given one alive state: revision then treats them as fixed.
    """
    while height > 0:
        height -= 1
        f = queue.stack[height]
        queue.waiting[f] = 0
        first, last = factors.scope_starts[f], factors.scope_starts[f + 1]
        arity = last - first
        place = supports.place_starts[f]
        for _ in range(supports.counts[f]):
            possible = 1
            for i in range(arity):
                possible &= alive[supports.tuples[place + i]]
            if possible:
                for i in range(arity):
                    queue.seen[supports.tuples[place + i]] = 1
            place += arity
        wiped = False
        for i in range(first, last):
            v = factors.scope_variables[i]
            killed = 0
            for state in range(supports.state_starts[v], supports.state_starts[v + 1]):
                if alive[state] and not queue.seen[state]:
                    alive[state] = 0
                    killed += 1
                    queue.trail[0] += 1
                    queue.trail[queue.trail[0]] = state
                queue.seen[state] = 0
            if killed:
                sizes[v] -= killed
                wiped |= sizes[v] == 0
                for at in range(supports.factor_starts[v], supports.factor_starts[v + 1]):
                    if supports.factors[at] != f:
                        height = push(supports.factors[at], height, supports, queue)
        if wiped:
            for h in range(height):
                queue.waiting[queue.stack[h]] = 0
            return False
    return True


@inner
def remove(state: int, supports: Supports, alive: IntArray, sizes: IntArray, queue: Queue) -> None:
    """Take one state out by hand."""
    alive[state] = 0
    sizes[supports.owner[state]] -= 1
    queue.trail[0] += 1
    queue.trail[queue.trail[0]] = state
