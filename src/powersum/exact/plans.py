"""Compiled plans of an engine: what one question needs of a model, in which order, and its value under any states.

A plan depends on which variables are observed and maximised, not on the states they are observed in. So it is made once
and serves all questions of its kind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.core.arrays import BoolArray, FloatArray, IntArray
from powersum.core.jit import compiled, inner
from powersum.exact.kernels import Buckets, ChoiceArray, Domains, Scratch, reduce_some, trace_back
from powersum.exact.wiring import EliminationWiring, message_sizes, place_messages, wire
from powersum.model.factors import Factors
from powersum.prepare.ordering.fill import min_fill

TRIES = 16
"""Most orders that are tried for one plan; further ones are tried only while all tries cost less than the answer."""


WIDEST = 40.0
"""Log to base 2 of table entries beyond which nothing is wired: the lists of axes alone would take gigabytes."""


class Structure(NamedTuple):
    """What is known about a model beside its factors.

    ``factors`` from ``starts[v]`` to ``starts[v + 1]`` are those of variable ``v``, ``places`` its places in their
    scopes. At each place of a scope ``constant`` is True where the table, summed over that variable, is the same number
    for all states of the others; ``log_sums`` is its log, ``widths`` how far the sums differ. ``summed`` is the number
    of a factor that is this table summed over that variable, -1 where there is none. Those come last: the first
    ``n_factors`` are the model's.
    """

    starts: IntArray
    factors: IntArray
    places: IntArray
    constant: BoolArray
    log_sums: FloatArray
    widths: FloatArray
    summed: IntArray
    n_factors: int


class PlanLayout(NamedTuple):
    """Where a plan's messages and choices lie, how large the two buffers are, and facts to tell.

    ``facts`` are the variables that are left, how many of them are maximised, the entries of the factors that are left,
    the components, and the width of the order.
    """

    factor_ids: IntArray
    factor_buckets: IntArray
    places: IntArray
    choice_places: IntArray
    needed: IntArray
    facts: IntArray


@inner
def needed_factors(
    factors: Factors, structure: Structure, is_max: BoolArray, given: BoolArray
) -> tuple[BoolArray, BoolArray, float, float]:
    """Factors and variables that an answer needs, and the log of all sums that are constant, and their uncertainty.

    A summed variable in one needed factor only, whose sum over it is constant, goes with that factor; where that sum is
    known, it takes the factor's place.
    """
    n = len(given)
    active = np.zeros(len(factors.scope_starts) - 1, np.bool_)
    free = ~given
    degree = np.zeros(n, np.int64)
    for f in range(structure.n_factors):
        active[f] = True
        for i in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
            degree[factors.scope_variables[i]] += 1
    stack = np.empty(n + len(factors.scope_variables), np.int64)
    height = 0
    for v in range(n):
        if degree[v] == 1 and free[v] and not is_max[v]:
            stack[height] = v
            height += 1
    log_constant = 0.0
    log_width = 0.0
    while height > 0:
        height -= 1
        v = stack[height]
        f = -1
        place = -1
        for at in range(structure.starts[v], structure.starts[v + 1]):
            if active[structure.factors[at]]:
                f = structure.factors[at]
                place = structure.places[at]
        if f >= 0 and not structure.constant[place] and structure.summed[place] >= 0:
            active[f] = False
            free[v] = False
            # All other variables are in as many factors as before.
            active[structure.summed[place]] = True
            continue
        if f < 0 or not structure.constant[place]:
            continue
        active[f] = False
        free[v] = False
        log_constant += structure.log_sums[place]
        log_width += structure.widths[place]
        for i in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
            u = factors.scope_variables[i]
            degree[u] -= 1
            if degree[u] == 1 and free[u] and not is_max[u]:
                stack[height] = u
                height += 1
    return active, free, log_constant, log_width


@inner
def graph_of(factors: Factors, factor_ids: IntArray, number: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Neighbours of each of the ``n`` numbered variables in the factors; ``number`` is -1 for all others."""
    starts = np.zeros(n + 1, np.int64)
    for round_ in range(2):
        if round_:
            for i in range(n):
                starts[i + 1] += starts[i]
        neighbours = np.empty(starts[n] if round_ else 0, np.int64)
        filled = starts[:-1].copy()
        for f in factor_ids:
            for i in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
                a = number[factors.scope_variables[i]]
                if a < 0:
                    continue
                for j in range(factors.scope_starts[f], factors.scope_starts[f + 1]):
                    b = number[factors.scope_variables[j]]
                    if b < 0 or b == a:
                        continue
                    if round_:
                        neighbours[filled[a]] = b
                        filled[a] += 1
                    else:
                        starts[a + 1] += 1
    # Each neighbour once, as min-fill counts degrees by these lists.
    seen = np.full(n, -1, np.int64)
    kept = 0
    begin = 0
    for a in range(n):
        end = starts[a + 1]
        for at in range(begin, end):
            b = neighbours[at]
            if seen[b] != a:
                seen[b] = a
                neighbours[kept] = b
                kept += 1
        begin = end
        starts[a + 1] = kept
    return starts, neighbours[:kept].copy()


@compiled
def make_plan(
    factors: Factors,
    structure: Structure,
    table_starts: IntArray,
    cardinalities: IntArray,
    log2_cardinalities: FloatArray,
    is_max: BoolArray,
    given: BoolArray,
) -> tuple[tuple[IntArray, ...], tuple[IntArray, ...], float, float, float]:
    """The plan for observed and maximised variables; also its constant, that one's error, and its work.

    Wiring and layout are plain tuples: to name their parts on the way to Python would take longer than all the rest.
    """
    active, free, log_constant, log_width = needed_factors(factors, structure, is_max, given)
    factor_ids = np.flatnonzero(active)
    variables = np.flatnonzero(free)
    n = len(variables)
    number = np.full(len(free), -1, np.int64)
    for i in range(n):
        number[variables[i]] = i
    starts, neighbours = graph_of(factors, factor_ids, number, n)
    group = np.zeros(n, np.int64)
    by_group = np.empty(n, np.int64)
    weight = np.empty(n, np.int64)
    log2_sizes = np.empty(n, np.float64)
    filled = 0
    for which in range(2):
        for i in range(n):
            if is_max[variables[i]] == (which == 1):
                group[i] = which
                by_group[filled] = i
                filled += 1
    best = np.zeros(0, np.int64)
    width, log2_total, work = n, np.inf, 0
    for i in range(n):
        log2_sizes[i] = log2_cardinalities[variables[i]]
    if n > 0:
        for attempt in range(TRIES):
            # Edges counted and weighted by turns.
            for i in range(n):
                weight[i] = cardinalities[variables[i]] if attempt % 2 == 0 else 1
            order, width_now, log2_now, work_now = min_fill(
                starts, neighbours, group, by_group, weight, log2_sizes, 0, attempt, n, log2_total, 2_000_000_000
            )
            work += work_now
            if len(order) and log2_now < log2_total:
                best, width, log2_total = order, width_now, log2_now
            if 2.0**log2_total <= work:
                break
    # Nothing may be left, which is not wide.
    too_wide = n > 0 and log2_total > WIDEST
    n_wired = 0 if too_wide else n
    position = np.full(len(free), -1, np.int64)
    order = np.empty(n_wired, np.int64)
    for i in range(n_wired):
        order[i] = variables[best[i]]
        position[order[i]] = i
    wiring, factor_buckets = wire(order, position, factor_ids, factors)
    entries, total = message_sizes(wiring, cardinalities, 2.0**WIDEST)
    keep_choices = np.empty(n_wired, np.bool_)
    for i in range(n_wired):
        keep_choices[i] = is_max[order[i]]
    needed = np.zeros(2, np.int64)
    facts = np.zeros(5, np.int64)
    facts[0], facts[1], facts[4] = n, keep_choices.sum(), width
    for f in factor_ids:
        facts[2] += table_starts[f + 1] - table_starts[f]
    for b in range(n_wired):
        facts[3] += wiring.parents[b] < 0
    places, needed[0], choice_places, needed[1] = place_messages(wiring, entries, keep_choices)
    if too_wide:
        total = np.inf
    return (
        (
            wiring.axis_starts,
            wiring.axes,
            wiring.input_starts,
            wiring.inputs,
            wiring.stride_starts,
            wiring.strides,
            wiring.parents,
        ),
        (factor_ids, factor_buckets, places, choice_places, needed, facts),
        log_constant,
        log_width,
        total,
    )


@inner
def bases_of(factors: Factors, structure: Structure, table_starts: IntArray, given: IntArray) -> IntArray:
    """Where the slice of each factor begins whose variables have the states ``given``; -1 where one has none."""
    bases = table_starts[:-1].copy()
    for v in range(len(given)):
        if given[v] > 0:
            for at in range(structure.starts[v], structure.starts[v + 1]):
                bases[structure.factors[at]] += given[v] * factors.strides[structure.places[at]]
    return bases


@compiled
def run_plan(
    wiring: EliminationWiring,
    layout: PlanLayout,
    factors: Factors,
    structure: Structure,
    table_starts: IntArray,
    tau: FloatArray,
    domains: Domains,
    scratch: Scratch,
    choices: ChoiceArray,
    given: IntArray,
    states: IntArray,
) -> tuple[float, float]:
    """The value of a plan, without its constant, where variables are observed in the states ``given``.

    Also the same where all variables are summed: maximised ones come last, so that only they are reduced once more,
    from a copy of the messages that reach them. Fills ``states`` of the maximised variables; the places of the messages
    are for all states, so that they fit.
    """
    bases = bases_of(factors, structure, table_starts, given)
    value = 0.0
    for k in range(len(layout.factor_ids)):
        if layout.factor_buckets[k] < 0:
            value += factors.log_values[bases[layout.factor_ids[k]]]
    buffer = np.empty(max(1, layout.needed[0]), np.float64)
    n_sums = 0
    while n_sums < len(layout.places) and tau[wiring.axes[wiring.axis_starts[n_sums]]] > 0.0:
        n_sums += 1
    buckets = Buckets(wiring, domains, bases, factors.log_values, scratch)
    reached = np.zeros(2, np.int64)
    value += reduce_some(tau, buckets, buffer, layout.places[:n_sums], choices, layout.choice_places, reached, np.inf)
    log_sum = value
    if n_sums < len(layout.places):
        ones, none = np.ones(len(tau)), layout.places[:0]
        log_sum += reduce_some(ones, buckets, buffer.copy(), layout.places, choices, none, reached.copy(), np.inf)
        value += reduce_some(tau, buckets, buffer, layout.places, choices, layout.choice_places, reached, np.inf)
    trace_back(wiring, domains, choices, layout.choice_places, states)
    return value, log_sum
