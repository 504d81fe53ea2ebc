"""What an earlier search has listed: nodes that are worth knowing, each of which is found out about anew.

A checkpoint lists the contexts that a bound rests on (docs/certificates.md). They are only hints where to look: no
number goes with them. Each is visited, those below before those above, and costs what this search finds it to cost, by
its own heuristic, its own eliminations, and what it knows by then of the children. So hints that are wrong, or made for
another tree, take time and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.bounds.tree.losses import Losses
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import without_counting
from powersum.core.speed import SEARCH_STEP
from powersum.prepare.problem import Problem
from powersum.search.and_or import AndOr
from powersum.search.pseudo_tree import PseudoTree
from powersum.search.values import Values, keep
from powersum.search.walk import EFFORT_OF_SETTLING, Walk, choose, look_around

AT_ONCE, SETTLED_AT_ONCE = 10000, 20
"""Contexts that are visited between two looks at the clock: of max variables, and of components."""


class ListedContexts(NamedTuple):
    """Contexts as certificates have them: original variables, how many each has, and their states one after another."""

    variables: IntArray
    counts: IntArray
    states: IntArray


class Recall:
    """Contexts to visit, by the search that shall know them.

    Parameters
    ----------
    search, problem
        A search that has not begun, and its problem.
    listed
        What to look at. How many states a context has is for the search to say: from a variable on that it does not
        know there is nothing to be learned.
    """

    def __init__(self, search: AndOr, problem: Problem, listed: ListedContexts) -> None:
        self._search = search
        shape = search.shape
        node_of = {int(problem.variables[shape.order[p]]): node for node, p in enumerate(shape.positions.tolist())}
        self._waiting: list[tuple[int, IntArray]] = []
        states = listed.states
        for variable, count in zip(listed.variables.tolist(), listed.counts.tolist(), strict=False):
            node = node_of.get(variable)
            if node is None or count * len(shape.contexts[node]) > len(states):
                break
            own, states = np.split(states, [count * len(shape.contexts[node])])
            if len(own):
                variables = search.losses.variables[shape.contexts[node]]
                self._waiting.append((node, _places(problem, variables, own.reshape(count, -1))))
        # The last comes first: components, then the variable that is set last, whose children those are.
        self._waiting.sort(key=lambda item: item[0])

    def __len__(self) -> int:
        """Contexts that are left to visit."""
        return sum(len(rows) for _, rows in self._waiting)

    def run(self, deadline: float) -> bool:
        """Visit what is left until a deadline; True once nothing is."""
        search = self._search
        while self._waiting and time.monotonic() < deadline:
            node, rows = self._waiting.pop()
            is_component = node >= search.shape.n_max
            now, later = np.split(rows, [SETTLED_AT_ONCE if is_component else AT_ONCE])
            if len(later):
                self._waiting.append((node, later))
            context = search.shape.contexts[node]
            costs = np.array([search.settled_cost(node, row) for row in now] if is_component else [])
            visit(search.losses, search.shape.tree, search.values, search.walk, node, context, now, costs)
            time.spend(SEARCH_STEP * len(now))
            search.make_room()
        return not self._waiting


def _places(problem: Problem, variables: IntArray, states: IntArray) -> IntArray:
    """Places of original states in the problem; rows with a state that it does not have are left out."""
    places = np.empty(states.shape, dtype=np.int64)
    there = np.ones(len(states), dtype=np.bool_)
    for k, v in enumerate(variables.tolist()):
        kept = problem.kept_states[problem.kept_state_starts[v] : problem.kept_state_starts[v + 1]]
        places[:, k] = np.minimum(np.searchsorted(kept, states[:, k]), len(kept) - 1)
        there &= kept[places[:, k]] == states[:, k]
    return np.ascontiguousarray(places[there])


@without_counting
def visit(
    losses: Losses,
    tree: PseudoTree,
    values: Values,
    walk: Walk,
    node: int,
    context: IntArray,
    rows: IntArray,
    costs: FloatArray,
) -> None:
    """Find out what a node costs in some contexts, or remember the exact costs that are given, and keep it."""
    parent, root = tree.parents[node], len(tree.parents) - 1
    for i in range(len(rows)):
        # The key of a node is made of the states of its context; that of the root, which has one, is part of all.
        first, second = tree.keys[tree.state_starts[root], 0], tree.keys[tree.state_starts[root], 1]
        for k in range(len(context)):
            walk.path[context[k]] = rows[i, k]
            place = tree.state_starts[context[k]] + rows[i, k]
            first ^= tree.keys[place, 0]
            second ^= tree.keys[place, 1]
        if len(costs):
            keep(values, first ^ tree.salts[node, 0], second ^ tree.salts[node, 1], costs[i], True, EFFORT_OF_SETTLING)
            continue
        place = tree.state_starts[parent] + walk.path[parent]
        walk.words[node, 0], walk.words[node, 1] = first ^ tree.keys[place, 0], second ^ tree.keys[place, 1]
        look_around(losses, tree, values, walk, node)
        _, cost, _, exact = choose(tree, walk, node)
        keep(values, first ^ tree.salts[node, 0], second ^ tree.salts[node, 1], cost, exact, 1)
