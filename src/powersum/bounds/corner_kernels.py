"""The compiled elimination of the corner bound (see :mod:`powersum.bounds.corner`)."""

from __future__ import annotations

import math

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.growing import copy_to, grown
from powersum.core.jit import compiled, inner
from powersum.core.odometer import add_table, set_strides
from powersum.model.rounding import EXPONENTIAL, IMPOSSIBLE, UNIT

MOST_TRIED = 4
"""Mini-buckets of its variable, the latest ones, that a table is tried with: a variable may have very many tables."""


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
def eliminate(
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
