"""Exact maximisation of a region: some max variables and the sum variables around them, everything else given.

With no free max variable this evaluates; with all of them free it is exact inference; between, it is the move of a
large-neighbourhood search. Structure follows the assignment: zeros are propagated first, so that only variables with
a choice left are ordered and eliminated, which often makes narrow what is wide in the abstract.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.assign.order import hanging, order_region, region_graph
from powersum.assign.supports import Queue, Supports, propagate, push
from powersum.assign.thin import thin_out
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.exact.kernels import Buckets, ChoiceArray, Domains, Scratch, reduce_some, trace_back
from powersum.exact.wiring import message_sizes, place_messages, wire
from powersum.model.factors import Factors

TOO_WIDE = np.inf
"""What :func:`maximise_region` returns when the region does not fit the work or memory allowed."""

ROUNDS = 3
"""How often a region is thinned out at most."""

ORDERED_FIRST = 200
"""Regions with more variables that have a choice are thinned out before they are ordered, which would be in vain."""

MOST_INPUTS = 64.0
"""Numbers that may be added up for each table entry of the work allowed: few, but where one variable has thousands of
neighbours."""

THINNING = 0.1
"""Table entries that count as much work as thinning out does for each pair of variables."""

SPARE, SMALL_TABLES = 4.0, 6.0
"""A thinned region may have tables of up to this many bits less than the work allowed, and of as many less again each
time that this is too much. Of more than 2 to the sum of both variables, that is less: most tables are that much
smaller than the largest, in bits."""


@inner
def _after(first: IntArray, second: IntArray, sizes: IntArray) -> IntArray:
    """One order after the other, of the variables that still have a choice.

    A plain loop, for Numba takes seconds to compile a concatenation.
    """
    both = np.empty(len(first) + len(second), np.int64)
    count = 0
    for order in (first, second):
        for v in order:
            if sizes[v] > 1:
                both[count] = v
                count += 1
    return both[:count]


@inner
def _list_choices(variables: IntArray, supports: Supports, alive: IntArray, domains: Domains, active: IntArray) -> Any:
    """List the states that are left of each variable, and in ``active`` those with a choice; their number."""
    n_active: Any = np.int64(0)
    for v in variables:
        slot = first = supports.state_starts[v]
        for state in range(first, supports.state_starts[v + 1]):
            if alive[state]:
                domains.states[slot] = state - first
                slot += 1
        if domains.sizes[v] > 1:
            active[n_active] = v
            n_active += 1
    return n_active


@compiled
def maximise_region(
    variables: IntArray,
    region_factors: IntArray,
    n_factors: int,
    assignment: IntArray,
    base_alive: IntArray,
    weights: FloatArray,
    table_starts: IntArray,
    factors: Factors,
    supports: Supports,
    queue: Queue,
    alive: IntArray,
    domains: Domains,
    position: IntArray,
    bases: IntArray,
    buffer: FloatArray,
    choices: ChoiceArray,
    work_limit: float,
    seed: int,
    kept: IntArray,
    scratch: Scratch,
    work: FloatArray,
) -> float:
    """Largest sum over the free ``variables`` of the product of ``region_factors``, all other variables given.

    ``assignment`` holds the states of the given variables and receives those of the free max variables.
    ``region_factors`` are all factors that touch a free variable. Returns -inf where nothing is possible and
    :data:`TOO_WIDE` where the work or memory allowed do not do; both leave ``assignment`` as it was.
    Where ``seed`` is above 0, a region too wide is thinned out instead: some of its max variables, chosen with that
    seed, keep the states that ``assignment`` gives them.
    ``kept`` is an elimination order for where all its variables, and no others, have a choice; else one is found here.
    ``work`` receives the number of table entries that were looked at, and of variables that have a choice.
    ``alive``, ``domains``, ``position`` and ``bases`` are scratch for whole models; ``position`` must be -1 throughout.
    """
    work[0] = work[1] = 0.0
    state_starts = supports.state_starts
    scope_starts, scope_variables = factors.scope_starts, factors.scope_variables
    # Given variables of the region: one alive state each. Free ones: those possible a priori.
    for k in range(n_factors):
        f = region_factors[k]
        for i in range(scope_starts[f], scope_starts[f + 1]):
            v = scope_variables[i]
            for state in range(state_starts[v], state_starts[v + 1]):
                alive[state] = 0
            domains.sizes[v] = 1
            # A sum variable is never given: it is among the free ones, which the next loop sets.
            state = max(assignment[v], 0)
            alive[state_starts[v] + state] = 1
            domains.states[state_starts[v]] = state
    for v in variables:
        count = 0
        for state in range(state_starts[v], state_starts[v + 1]):
            alive[state] = base_alive[state]
            count += base_alive[state]
        domains.sizes[v] = count
        if count == 0:
            return -np.inf
    # Typed: for a literal 0 Numba would compile what it is passed to once more.
    height: Any = np.int64(0)
    queue.trail[0] = 0
    for k in range(n_factors):
        height = push(region_factors[k], height, supports, queue)
    if not propagate(height, factors, supports, alive, domains.sizes, queue):
        return -np.inf
    active = np.empty(len(variables), np.int64)
    bits = np.log2(work_limit)
    n_active = _list_choices(variables, supports, alive, domains, active)
    first = order = np.empty(0, np.int64)
    if len(kept) and n_active == len(kept):
        order = kept
    else:
        for p in range(n_active):
            position[active[p]] = p
        starts, neighbours = region_graph(n_active, position, region_factors, n_factors, factors)
        first, first_entries = hanging(active, n_active, starts, neighbours, weights, domains.sizes)
        if len(first) > 0:
            for i in range(len(first)):
                first[i] = active[first[i]]
                position[first[i]] = -1
            rest: Any = np.int64(0)
            for p in range(n_active):
                if position[active[p]] >= 0:
                    position[active[p]] = rest
                    active[rest] = active[p]
                    rest += 1
            n_active = rest
            starts, neighbours = region_graph(n_active, position, region_factors, n_factors, factors)
        narrow = False
        if seed == 0 or n_active <= ORDERED_FIRST:
            order, log2_total = order_region(active, n_active, starts, neighbours, weights, domains.sizes, bits)
            narrow = len(order) == n_active and 2.0**log2_total + first_entries <= work_limit
        spare = max(SPARE, np.log2(max(n_active, 1)) - SMALL_TABLES)
        thinned, tables = 0, 0.0
        # After a contradiction nothing is left to thin out.
        while not narrow and seed > 0 and thinned < ROUNDS and tables < np.inf:
            thinned += 1
            work[0] += THINNING * n_active * n_active
            order, tables = thin_out(
                active,
                n_active,
                position,
                starts,
                neighbours,
                weights,
                assignment,
                factors,
                supports,
                queue,
                alive,
                domains.sizes,
                bits - spare - SPARE * (thinned - 1),
                seed,
            )
            narrow = tables + first_entries <= work_limit
        for p in range(n_active):
            position[active[p]] = -1
        if not narrow:
            return TOO_WIDE
        if thinned:
            n_active = _list_choices(variables, supports, alive, domains, active)
    # What is held may have fixed variables that were ordered before.
    order = _after(first, order, domains.sizes)
    n_active = np.int64(len(order))
    for p in range(n_active):
        position[order[p]] = p
    wiring, factor_buckets = wire(order, position, region_factors[:n_factors], factors)
    for p in range(n_active):
        position[order[p]] = -1
    entries, total = message_sizes(wiring, domains.sizes, np.inf)
    is_max = np.empty(n_active, np.bool_)
    for p in range(n_active):
        is_max[p] = weights[order[p]] == 0.0
    places, needed, choice_places, choices_needed = place_messages(wiring, entries, is_max)
    if needed > len(buffer) or choices_needed > len(choices) or total > work_limit:
        return TOO_WIDE
    added = 0.0
    for p in range(n_active):
        added += float(entries[p]) * domains.sizes[order[p]] * (wiring.input_starts[p + 1] - wiring.input_starts[p])
    if added > MOST_INPUTS * work_limit:
        return TOO_WIDE
    work[0] += total
    work[1] = n_active
    value = 0.0
    for k in range(n_factors):
        f = region_factors[k]
        base = table_starts[f]
        for i in range(scope_starts[f], scope_starts[f + 1]):
            v = scope_variables[i]
            if domains.sizes[v] == 1:
                base += factors.strides[i] * domains.states[state_starts[v]]
        bases[f] = base
        if factor_buckets[k] < 0:
            value += factors.log_values[base]
    buckets = Buckets(wiring, domains, bases, factors.log_values, scratch)
    reached = np.zeros(2, np.int64)
    value += reduce_some(weights, buckets, buffer, places, choices, choice_places, reached, np.inf)
    if value > -np.inf:
        for v in variables:
            if weights[v] == 0.0:
                assignment[v] = domains.states[state_starts[v]]
        trace_back(wiring, domains, choices, choice_places, assignment)
    return value
