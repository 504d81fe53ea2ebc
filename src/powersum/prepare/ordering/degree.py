"""Approximate minimum degree on a quotient graph: the order for graphs too large, or too dense, for min-fill.

An eliminated variable becomes an element: the list of variables it left joined. Cliques are never written out, so the
memory stays that of the graph. Degrees are upper bounds, variables that cannot be told apart are treated as one; both
ideas are those of Amestoy, Davis and Duff (1996).
"""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.jit import compiled, inlined


@inlined
def _insert(variable: int, degree: int, head: IntArray, following: IntArray, preceding: IntArray) -> None:
    """Put a variable at the front of the list of its degree."""
    following[variable] = head[degree]
    preceding[variable] = -1
    if head[degree] >= 0:
        preceding[head[degree]] = variable
    head[degree] = variable


@inlined
def _scattered(number: int) -> int:
    """A hash whose sums tell sets apart; sums of the numbers themselves, or of multiples, would often agree."""
    mixed = number * 0x1E3779B97F4A7C15
    return (mixed ^ (mixed >> 32)) * 0x2545F4914F6CDD1D


@compiled
def min_degree(
    starts: IntArray, neighbours: IntArray, group: IntArray, by_group: IntArray, weight: IntArray, dense: int
) -> IntArray:
    """Eliminate next, within the first group not yet empty, a variable whose neighbours weigh about least.

    Parameters
    ----------
    starts, neighbours
        The graph.
    group, by_group
        Group of each variable, and the variables sorted by group. Ties go to the later one in ``by_group``.
    weight
        Of each variable, at least 1.
    dense
        Variables with more neighbours are put aside and come last in their group: their lists would be walked again
        for each neighbour.
    """
    n = len(group)
    # Lists of variable i: n_variables[i] variables, then n_elements[i] elements, from starts[i]. They only shrink.
    lists = neighbours.copy()
    n_variables = np.zeros(n, np.int64)
    n_elements = np.zeros(n, np.int64)
    alive = np.empty(n, np.int64)  # weight of a variable and all that were merged into it; 0 when it is gone
    degree = np.zeros(n, np.int64)
    left = 0
    for i in range(n):
        alive[i] = weight[i] if starts[i + 1] - starts[i] <= dense else 0
        left += alive[i]
    for i in range(n):
        for at in range(starts[i], starts[i + 1]):
            j = neighbours[at]
            if alive[j] > 0:
                lists[starts[i] + n_variables[i]] = j
                n_variables[i] += 1
                degree[i] += alive[j]
    # Elements lie one after another in a pool. Those alive never hold more entries than the graph, and the new one no
    # more than those it replaces: twice the graph suffices when dead ones are squeezed out now and then.
    pool = np.empty(2 * len(neighbours) + n, np.int64)
    pool_end = 0
    element_start = np.empty(n, np.int64)
    element_length = np.full(n, -1, np.int64)  # -1: no element, or absorbed by another
    element_weight = np.zeros(n, np.int64)
    made = np.empty(n, np.int64)
    n_made = 0

    head = np.full(left + 1, -1, np.int64)
    following = np.full(n, -1, np.int64)
    preceding = np.full(n, -1, np.int64)
    merged_into = np.full(n, -1, np.int64)  # chains of merged variables: next one, and the last of each chain
    chain_end = np.arange(n)
    in_element = np.full(n, -1, np.int64)
    outside = np.zeros(n, np.int64)  # stamp + weight of an element outside the new one
    stamp = 1
    bucket = np.full(n, -1, np.int64)
    bucket_next = np.full(n, -1, np.int64)
    signature = np.zeros(n, np.int64)
    seen = np.full(2 * n, -1, np.int64)

    order = np.empty(n, np.int64)
    done = 0
    opened = 0
    while opened < n:
        current = group[by_group[opened]]
        waiting = 0
        least = 0
        first = opened
        while opened < n and group[by_group[opened]] == current:
            i = by_group[opened]
            opened += 1
            if alive[i] > 0:
                _insert(i, degree[i], head, following, preceding)
                waiting += 1
        while waiting > 0:
            while head[least] < 0:
                least += 1
            p = head[least]
            head[least] = following[p]
            if following[p] >= 0:
                preceding[following[p]] = -1
            waiting -= 1
            left -= alive[p]
            alive[p] = 0
            i = p
            while i >= 0:
                order[done] = i
                done += 1
                i = merged_into[i]

            # The new element: all that p was joined to, directly or by elements, which it replaces.
            need = n_variables[p]
            for at in range(starts[p] + n_variables[p], starts[p] + n_variables[p] + n_elements[p]):
                need += max(element_length[lists[at]], 0)
            if pool_end + need > len(pool):
                pool_end = 0
                kept = 0
                for m in range(n_made):
                    e = made[m]
                    if element_length[e] > 0:
                        for at in range(element_length[e]):
                            pool[pool_end + at] = pool[element_start[e] + at]
                        element_start[e] = pool_end
                        pool_end += element_length[e]
                        made[kept] = e
                        kept += 1
                n_made = kept
            begin = pool_end
            total = 0
            for at in range(starts[p], starts[p] + n_variables[p]):
                i = lists[at]
                if alive[i] > 0 and in_element[i] != p:
                    in_element[i] = p
                    pool[pool_end] = i
                    pool_end += 1
                    total += alive[i]
            for at in range(starts[p] + n_variables[p], starts[p] + n_variables[p] + n_elements[p]):
                e = lists[at]
                for place in range(element_start[e], element_start[e] + element_length[e]):
                    i = pool[place]
                    if alive[i] > 0 and in_element[i] != p:
                        in_element[i] = p
                        pool[pool_end] = i
                        pool_end += 1
                        total += alive[i]
                element_length[e] = -1
            if pool_end == begin:
                continue
            made[n_made] = p
            n_made += 1
            element_start[p] = begin

            # How much of each other element lies outside the new one.
            stamp += left + 1
            for place in range(begin, pool_end):
                i = pool[place]
                if group[i] == current:
                    if preceding[i] >= 0:
                        following[preceding[i]] = following[i]
                    else:
                        head[degree[i]] = following[i]
                    if following[i] >= 0:
                        preceding[following[i]] = preceding[i]
                    waiting -= 1
                for at in range(starts[i] + n_variables[i], starts[i] + n_variables[i] + n_elements[i]):
                    e = lists[at]
                    if element_length[e] >= 0:
                        if outside[e] < stamp:
                            outside[e] = stamp + element_weight[e]
                        outside[e] -= alive[i]

            # New lists and degrees, as far as they lie outside the new element.
            for place in range(begin, pool_end):
                i = pool[place]
                write = starts[i]
                beyond = 0
                mixed = 0
                for at in range(starts[i], starts[i] + n_variables[i]):
                    j = lists[at]
                    if alive[j] > 0 and in_element[j] != p:
                        lists[write] = j
                        write += 1
                        beyond += alive[j]
                        mixed += _scattered(j)
                elements_from = starts[i] + n_variables[i]
                elements_to = elements_from + n_elements[i]
                n_variables[i] = write - starts[i]
                for at in range(elements_from, elements_to):
                    e = lists[at]
                    if element_length[e] < 0:
                        continue
                    if outside[e] > stamp:
                        lists[write] = e
                        write += 1
                        beyond += outside[e] - stamp
                        mixed += _scattered(n + e)
                    else:
                        # All of it lies within the new element.
                        element_length[e] = -1
                lists[write] = p
                n_elements[i] = write + 1 - starts[i] - n_variables[i]
                if beyond == 0 and group[i] == current:
                    # Nothing but p's own clique around it: it may follow at once.
                    total -= alive[i]
                    left -= alive[i]
                    alive[i] = 0
                    while i >= 0:
                        order[done] = i
                        done += 1
                        i = merged_into[i]
                    continue
                degree[i] = min(degree[i], beyond)
                signature[i] = mixed
                slot = mixed % n
                bucket_next[i] = bucket[slot]
                bucket[slot] = i

            # Variables of one group with the same lists cannot be told apart from now on: merge them.
            for place in range(begin, pool_end):
                i = pool[place]
                if alive[i] == 0:
                    continue
                slot = signature[i] % n
                i = bucket[slot]
                bucket[slot] = -1
                while i >= 0:
                    if bucket_next[i] >= 0:
                        stamp += 1
                        length = n_variables[i] + n_elements[i]
                        for at in range(starts[i], starts[i] + length):
                            seen[lists[at] + (n if at >= starts[i] + n_variables[i] else 0)] = stamp
                        previous = i
                        j = bucket_next[i]
                        while j >= 0:
                            same = (
                                signature[j] == signature[i]
                                and group[j] == group[i]
                                and n_variables[j] == n_variables[i]
                                and n_elements[j] == n_elements[i]
                            )
                            at = starts[j]
                            while same and at < starts[j] + length:
                                same = seen[lists[at] + (n if at >= starts[j] + n_variables[j] else 0)] == stamp
                                at += 1
                            if same:
                                alive[i] += alive[j]
                                alive[j] = 0
                                merged_into[chain_end[i]] = j
                                chain_end[i] = chain_end[j]
                                bucket_next[previous] = bucket_next[j]
                            else:
                                previous = j
                            j = bucket_next[j]
                    i = bucket_next[i]

            write = begin
            for place in range(begin, pool_end):
                i = pool[place]
                if alive[i] == 0:
                    continue
                pool[write] = i
                write += 1
                degree[i] = min(degree[i] + total, left) - alive[i]
                if group[i] == current:
                    _insert(i, degree[i], head, following, preceding)
                    least = min(least, degree[i])
                    waiting += 1
            pool_end = write
            element_length[p] = write - begin if write > begin else -1
            element_weight[p] = total

        for at in range(first, opened):
            i = by_group[at]
            if starts[i + 1] - starts[i] > dense:
                order[done] = i
                done += 1
    return order
