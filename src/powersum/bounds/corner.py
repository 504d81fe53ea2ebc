"""The corner bound: the bound that a reader of a network of conditional tables sees, in one pass.

A conditional table sums to one over its child. So a child that lies in no other table goes with its table, its parents
may then be such children, and what is no conditional table, an observation or a constraint, counts with its maximum. It
is a bound of weighted mini-buckets at a corner of the weights: in each bucket one mini-bucket, that of the child's
table, has all of the weight, and the others have weight 0. Descent from inside the weights hardly comes there.

Which axis of which table is a child is read off the numbers, so that it holds for MARKOV files, under evidence and for
weights between 0 and 1 as well: the sum is the same for all parents, or at most one. The choice is made from the
parents down: a table in which one variable is not yet known makes that variable its child. In a Bayesian network this
finds an acyclic choice for all variables, however many axes look like a child. Variables are eliminated the other way
round. Where there are no conditional tables the bound is one of mini-buckets along some order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from powersum.core import work_time as time
from powersum.core.arrays import BoolArray, FloatArray, IntArray, positions_of, starts_of
from powersum.core.growing import copy_to, grown
from powersum.core.jit import compiled, inner
from powersum.core.odometer import add_table, set_strides
from powersum.core.speed import CORNER_ENTRY, CORNER_TABLE, GROUP_ENTRY
from powersum.model.graph import incidence
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.model.rounding import EXPONENTIAL, IMPOSSIBLE, UNIT, certain
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest, homes_of, ranks

GROUPS, ENTRIES = (1024, 4096), 4e6
"""Entries of a mini-bucket of several tables, tried one after the other as far as all of them have so many entries.

Clauses that define a variable together are often in one mini-bucket of the second size only; the first may be tighter.
"""

MOST_TRIED = 4
"""Mini-buckets of its variable, the latest ones, that a table is tried with: a variable may have very many tables."""

SHARE = 0.1
"""Share of the time that it may take."""

NEARLY = 1e-3
"""How far logs of sums may lie apart to count as one number: files have few digits, and no bound rests on it."""

MOST_LOOKED_UP = 1 << 16
"""Entries of tables whose sums are judged for possible states of the parents alone; in larger ones for all."""


@dataclass(frozen=True, slots=True, eq=False)
class Corner:
    """The corner bound on a problem, without the problem's constant, and the mini-buckets that it is made of.

    Parameters
    ----------
    log_upper
        The bound, rounding counted.
    log_error
        By how much it was rounded up.
    order
        The variables of the problem, first eliminated first.
    starts, variables
        Scopes of mini-buckets, in the order of elimination.
    parent, weight
        The mini-bucket that receives each message, -1 for none, and the weight that each has.
    home
        The mini-bucket of each factor.
    """

    log_upper: float
    log_error: float
    order: IntArray
    starts: IntArray
    variables: IntArray
    parent: IntArray
    weight: FloatArray
    home: IntArray

    def above(self, problem: Problem) -> float:
        """The bound on the question that the problem was made of, all rounding counted."""
        return certain(self.log_upper + problem.log_constant, problem.log_error)

    def forest(self, problem: Problem) -> Forest:
        """The mini-buckets as a certificate has them."""
        return Forest(
            order=problem.variables[self.order],
            node_starts=self.starts,
            node_variables=problem.variables[self.variables],
            parent=self.parent,
            weight=self.weight,
            home=homes_of(problem, self.home),
        )


def corner_of(question: Question, problem: Problem, seconds: float = math.inf) -> Corner | None:
    """The corner bound on what a question was simplified to; None where it would take a tenth of these seconds.

    It is the floor under all methods: every entry takes it before anything else, and reports no bound above it.
    """
    needed = CORNER_TABLE * problem.model.n_factors + CORNER_ENTRY * len(problem.model.log_values)
    if needed > SHARE * seconds:
        return None
    time.spend(needed)
    return corner(problem, rank_of(question), question.observed.model, entries=SHARE * seconds / GROUP_ENTRY)


def rank_of(question: Question) -> IntArray:
    """For each original variable its place in the elimination: those of one place may go in any order."""
    # Sums and maxima have one value whatever the order within the blocks; other weights may have an order of their own.
    order = question.order if question.query.task == "power-sum" else None
    return question.query.rank if order is None else ranks(question.query.weights, order)


def corner(problem: Problem, rank: IntArray, model: Model | None = None, *, entries: float = math.inf) -> Corner:
    """The corner bound on a problem.

    Parameters
    ----------
    problem
        The simplified problem.
    rank
        What :func:`rank_of` says of the question.
    model
        The model that it was made of, likelihoods included: simplification multiplies tables by each other, and some
        conditional tables can only be told from before. None where it is not at hand.
    entries
        How many entries all mini-buckets may have, if that is less than usual.
    """
    ways = [_oriented(problem, rank)]
    if model is not None:
        # Where tables were multiplied the model's own tell more; where constraints were, those of the problem may.
        ways.append(_oriented(problem, rank, model))
        if all(np.array_equal(a, b) for a, b in zip(*ways, strict=True)):
            ways.pop()
    least, *larger = GROUPS
    most = min(ENTRIES, entries) / max(problem.model.n_factors, 1)
    limits = [int(min(ENTRIES / max(problem.model.n_factors, 1), least)), *(size for size in larger if size <= most)]
    return min((_along(problem, *way, limit) for way in ways for limit in limits), key=lambda one: one.log_upper)


def _along(problem: Problem, known: IntArray, own: IntArray, limit: int) -> Corner:
    """The bound for an order in which variables become known, and the table of which each is the child.

    Mini-buckets of several tables have at most ``limit`` entries.
    """
    reduced, tau = problem.model, problem.tau
    eliminated = np.ascontiguousarray(known[::-1])
    position = positions_of(eliminated)
    constants, error, node_starts, positions, parent, weight, home = _eliminate(
        reduced.cardinalities[eliminated],
        tau[eliminated],
        own[eliminated],
        reduced.scope_starts,
        position[reduced.scope_variables],
        reduced.table_starts,
        reduced.log_values,
        limit,
    )
    value = -math.inf if (constants == -math.inf).any() else math.fsum(constants)
    error += 2.0 * UNIT * abs(value) if value > -math.inf else 0.0
    return Corner(
        log_upper=certain(value, error),
        log_error=error,
        order=eliminated,
        starts=node_starts,
        variables=eliminated[positions],
        parent=parent,
        weight=weight,
        home=home,
    )


def _oriented(problem: Problem, places: IntArray, model: Model | None = None) -> tuple[IntArray, IntArray]:
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


@inner
def _joined(first: IntArray, n_first: int, second: IntArray, n_second: int, out: IntArray) -> int:
    """The union of a rising scope and another one, rising; returns the length, -1 where there is no room for it."""
    length = n_first
    if length > out.size:
        return -1
    copy_to(out, first, n_first)
    for i in range(n_second):
        place = 0
        while place < length and out[place] < second[i]:
            place += 1
        if place < length and out[place] == second[i]:
            continue
        if length == out.size:
            return -1
        for j in range(length, place, -1):
            out[j] = out[j - 1]
        out[place] = second[i]
        length += 1
    return length


@inner
def _size(scope: IntArray, length: int, cardinalities: IntArray) -> float:
    """Entries of a table over a scope."""
    size = 1.0
    for i in range(length):
        size *= cardinalities[scope[i]]
    return size


@inner
def _power_sum(table: FloatArray, size: int, states: int, weight: float, out: FloatArray, first: int) -> None:
    """The power sum over the leading axis of the first ``size`` entries of a table."""
    rest = size // states
    for column in range(rest):
        top = -np.inf
        for entry in range(column, size, rest):
            top = max(top, table[entry])
        if weight > 0.0 and top > -np.inf:
            total = 0.0
            for entry in range(column, size, rest):
                total += math.exp((table[entry] - top) / weight)
            top += weight * math.log(total)
        out[first + column] = top


@compiled
def _eliminate(
    cardinalities: IntArray,
    tau: FloatArray,
    own: IntArray,
    scope_starts: IntArray,
    scope_positions: IntArray,
    table_starts: IntArray,
    log_values: FloatArray,
    limit: int,
) -> tuple[FloatArray, float, IntArray, IntArray, IntArray, FloatArray, IntArray]:
    """Eliminate everything, variables spoken of by their position in the order.

    Returns the constants whose sum is the bound, how far rounding can have moved them together, and mini-buckets:
    starts and positions of their scopes, parents, weights, and the home of each factor. Rounding is that of each table
    added up, as in :mod:`powersum.model.rounding`: an item goes to one place, and so does its error.
    """
    n_variables, n_factors = cardinalities.size, scope_starts.size - 1
    # Items are factors, then the messages of mini-buckets by number. Their scopes are in the order of their axes.
    lows, highs = np.empty(2 * n_factors + 16, np.int64), np.empty(2 * n_factors + 16, np.int64)
    firsts, homes = np.empty(2 * n_factors + 16, np.int64), np.full(2 * n_factors + 16, -1, np.int64)
    following = np.empty(2 * n_factors + 16, np.int64)
    positions = np.empty(2 * scope_positions.size + 16, np.int64)
    copy_to(positions, scope_positions, scope_positions.size)
    filled = scope_positions.size
    messages = np.empty(1024)
    n_messages = 0
    head = np.full(n_variables, -1, np.int64)
    constants = np.zeros(n_factors + n_variables + 16)
    n_constants = 0
    # Largest magnitude of the possible entries of each item.
    sizes_of = np.zeros(2 * n_factors + 16)
    error = 0.0
    weights = np.empty(n_factors + n_variables + 16)
    node_starts = np.zeros(n_factors + n_variables + 17, np.int64)
    node_positions = np.empty(2 * scope_positions.size + 16, np.int64)
    n_nodes = 0
    widest = 1
    while 2**widest < limit:
        widest += 1
    for k in range(n_factors):
        lows[k], highs[k], firsts[k] = scope_starts[k], scope_starts[k + 1], table_starts[k]
        widest = max(widest, highs[k] - lows[k])
        for entry in range(table_starts[k], table_starts[k + 1]):
            if log_values[entry] > IMPOSSIBLE:
                sizes_of[k] = max(sizes_of[k], abs(log_values[entry]))
        if lows[k] == highs[k]:
            constants[n_constants] = log_values[table_starts[k]]
            n_constants += 1
            continue
        next_one = n_variables
        for place in range(lows[k], highs[k]):
            next_one = min(next_one, positions[place])
        following[k] = head[next_one]
        head[next_one] = k
    union = np.empty(widest, np.int64)
    table, cost = np.empty(1024), np.empty(1024)
    digits, sizes, strides = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest, np.int64)
    for p in range(n_variables):
        count = 0
        item = head[p]
        while item >= 0:
            count += 1
            item = following[item]
        if count == 0:
            constants = grown(constants, n_constants + 1)
            constants[n_constants] = tau[p] * math.log(cardinalities[p])
            error += 4.0 * UNIT * constants[n_constants]
            n_constants += 1
            continue
        here = np.empty(count, np.int64)
        item = head[p]
        for i in range(count - 1, -1, -1):
            here[i] = item
            item = following[item]
        # The item that has the weight: what has become of the table whose child the variable is.
        chief = -1
        if own[p] >= 0:
            chief = own[p]
            while homes[chief] >= 0:
                chief = n_factors + homes[chief]
        leader = -1
        for i in range(count):
            if here[i] == chief:
                leader = i
        if leader < 0:
            # Or the one of which the sum is least above the largest entry.
            leader, least = 0, np.inf
            for i in range(count if tau[p] > 0.0 and count > 1 else 0):
                item = here[i]
                length = highs[item] - lows[item]
                values = log_values if item < n_factors else messages
                place, stride, size = -1, 1, 1
                for axis in range(length - 1, -1, -1):
                    states = cardinalities[positions[lows[item] + axis]]
                    if positions[lows[item] + axis] == p:
                        place, stride = axis, size
                    size *= states
                states = cardinalities[p]
                if place < 0:
                    continue
                cost = grown(cost, states)
                highest, most = -np.inf, -np.inf
                for row in range(size // states):
                    start = firsts[item] + row // stride * stride * states + row % stride
                    top = -np.inf
                    for s in range(states):
                        top = max(top, values[start + s * stride])
                    if top > -np.inf:
                        total = 0.0
                        for s in range(states):
                            total += math.exp((values[start + s * stride] - top) / tau[p])
                        highest, most = max(highest, top), max(most, top + tau[p] * math.log(total))
                if highest > -np.inf and most - highest < least:
                    leader, least = i, most - highest
        here[0], here[leader] = here[leader], here[0]
        groups = np.empty((count, widest), np.int64)
        lengths, group_of = np.zeros(count, np.int64), np.zeros(count, np.int64)
        n_groups = 0
        scope = np.empty(widest, np.int64)
        for i in range(count):
            item = here[i]
            low, high = lows[item], highs[item]
            own_size = _size(positions[low:high], high - low, cardinalities)
            best, best_growth = -1, np.inf
            for tried in range(min(n_groups, MOST_TRIED + 1)):
                group = 0 if tried == 0 else n_groups - tried
                length = _joined(groups[group], lengths[group], positions[low:high], high - low, union)
                if length < 0:
                    continue
                before = _size(groups[group], lengths[group], cardinalities)
                growth = _size(union, length, cardinalities) / before
                if growth * before <= max(float(limit), max(own_size, before)) and growth < best_growth:
                    best, best_growth = group, growth
            if best < 0:
                best = n_groups
                n_groups += 1
            length = _joined(groups[best], lengths[best], positions[low:high], high - low, scope)
            copy_to(groups[best], scope, length)
            lengths[best] = length
            group_of[i] = best
        for group in range(n_groups):
            length = lengths[group]
            axes = groups[group, :length]
            size = 1
            for axis in range(length):
                sizes[axis] = cardinalities[axes[axis]]
                size *= sizes[axis]
            table = grown(table, size)
            for entry in range(size):
                table[entry] = 0.0
            members, added = 0, 0.0
            for i in range(count):
                if group_of[i] != group:
                    continue
                item = here[i]
                members += 1
                added += sizes_of[item]
                set_strides(positions[lows[item] : highs[item]], cardinalities, axes, strides)
                values = log_values if item < n_factors else messages
                add_table(values, firsts[item], digits[:length], sizes[:length], strides[:length], table[:size])
                homes[item] = n_nodes
            states = sizes[0]
            message = n_factors + n_nodes
            if message >= lows.size:
                lows, highs, firsts = grown(lows, message + 1), grown(highs, message + 1), grown(firsts, message + 1)
                following, homes = grown(following, message + 1), grown(homes, message + 1)
                sizes_of = grown(sizes_of, message + 1)
            homes[message] = -1
            messages = grown(messages, n_messages + size // states)
            weights = grown(weights, n_nodes + 1)
            weights[n_nodes] = tau[p] if group == 0 else 0.0
            _power_sum(table, size, states, weights[n_nodes], messages, n_messages)
            sizes_of[message] = 0.0
            for entry in range(n_messages, n_messages + size // states):
                if messages[entry] > IMPOSSIBLE:
                    sizes_of[message] = max(sizes_of[message], abs(messages[entry]))
            if members > 1:
                error += UNIT * members * added
            if weights[n_nodes] > 0.0:
                terms = weights[n_nodes] * (2.0 * states + EXPONENTIAL)
                error += UNIT * (terms + 4.0 * (added + sizes_of[message]))
            node_starts = grown(node_starts, n_nodes + 2)
            node_starts[n_nodes + 1] = node_starts[n_nodes] + length
            node_positions = grown(node_positions, node_starts[n_nodes] + length)
            copy_to(node_positions[node_starts[n_nodes] :], axes, length)
            n_nodes += 1
            if length == 1:
                constants = grown(constants, n_constants + 1)
                constants[n_constants] = messages[n_messages]
                n_constants += 1
                continue
            positions = grown(positions, filled + length - 1)
            copy_to(positions[filled:], axes[1:], length - 1)
            lows[message], highs[message], firsts[message] = filled, filled + length - 1, n_messages
            filled += length - 1
            n_messages += size // states
            following[message] = head[axes[1]]
            head[axes[1]] = message
    parents = np.empty(n_nodes, np.int64)
    for node in range(n_nodes):
        parents[node] = homes[n_factors + node]
    return (
        constants[:n_constants].copy(),
        error,
        node_starts[: n_nodes + 1].copy(),
        node_positions[: node_starts[n_nodes]].copy(),
        parents,
        weights[:n_nodes].copy(),
        homes[:n_factors].copy(),
    )
