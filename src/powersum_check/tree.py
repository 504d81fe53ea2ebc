"""Mini-bucket trees: one structure for weighted mini-buckets, decomposed bounds (gdd) and exact elimination.

The variables are eliminated in an order. Each node of the tree adds up the factors, shifts and messages that are given
to it, and eliminates the first variable of its scope by a power sum with a weight of its own; the result is a message
to its parent. Why this is an upper bound, and when it is exact, is proven in docs/certificates.md; what the proof needs
is checked in :func:`read_tree`, in the same words.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from powersum_check.box import Located, Scope, Step, local, placed, product
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import afford, spend
from powersum_check.numbers import (
    LEAST_WEIGHT,
    MOST_AXES,
    Table,
    add,
    magnitude,
    normalised,
    outward,
    power_sum,
    without,
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A checked tree."""

    position: dict[int, int]
    """Where each variable is in the order."""
    scopes: list[Scope]
    parent: list[int]
    weight: list[float]
    home: list[int]
    """The node of each factor; -1 for those that count with their largest entry."""
    edges: list[tuple[int, int, Located]]
    """A shift is added at the first node and taken away at the second: what is added to the model is 0, exactly."""
    nodes_of: dict[int, list[int]]
    """The nodes that eliminate each variable."""
    exact: dict[int, bool]
    """Whether eliminating a variable loses nothing: one node has it all, or there is nothing to eliminate."""

    def scope_of(self, node: int) -> Scope:
        """What a node holds; nothing, if it is none."""
        return self.scopes[node] if node >= 0 else ()


def read_tree(step: Step) -> Tree:
    """Read a tree and check all that makes it valid but the numbers."""
    domains, question = step.domains, step.question
    order = step.integers("order", high=len(domains)).tolist()
    position = {v: p for p, v in enumerate(order)}
    if len(position) < len(order) or any(len(d) > 1 and v not in position for v, d in enumerate(domains)):
        raise Rejected("order: does not name each variable with several states once")
    ranks = question.ranks()
    if any(ranks[u] > ranks[v] for u, v in pairwise(order)):
        raise Rejected("order: is not that of the question (larger weights first, max variables last)")
    scopes = _scopes(step, "node", position)
    n_nodes = len(scopes)
    parent = step.integers("parent", low=-1, high=n_nodes).tolist()
    weight = step.floats("weight").tolist()
    home = step.integers("home", low=-1, high=n_nodes).tolist()
    if not len(parent) == len(weight) == n_nodes or len(home) != len(step.model.factors):
        raise BadFile("parent, weight or home has not the right length")
    if () in scopes:
        raise Rejected(f"node {scopes.index(())} has an empty scope")
    nodes_of: dict[int, list[int]] = {v: [] for v in order}
    for node, scope in enumerate(scopes):
        nodes_of[scope[0]].append(node)
        above = parent[node]
        if above >= 0 and (above <= node or position[scopes[above][0]] <= position[scope[0]]):
            raise Rejected(f"node {node} sends its message to one that does not come later")
        if not (weight[node] == 0.0 or LEAST_WEIGHT <= weight[node] <= 1e6):
            raise Rejected(f"node {node} has a weight that is neither 0 nor from {LEAST_WEIGHT:g} to a million")
    exact = {}
    for v, nodes in nodes_of.items():
        own, needed = [weight[node] for node in nodes], question.weights[v]
        # fsum is correctly rounded: its sign is that of the exact sum.
        if nodes and math.fsum([*own, -needed]) < 0.0:
            raise Rejected(f"the weights of variable {v} add up to less than that of the question")
        exact[v] = len(domains[v]) == 1 or not nodes or own == [needed]
    edges = _edges(step, scopes, position) if "edges" in step else []
    return Tree(position, scopes, parent, weight, home, edges, nodes_of, exact)


def _scopes(step: Step, name: str, position: dict[int, int]) -> list[Scope]:
    """Scopes, each in the order of elimination."""
    scopes = step.pieces(f"{name}_starts", step.integers(f"{name}_variables").tolist())
    for scope in scopes:
        places = [position.get(v, -1) for v in scope]
        if len(scope) > MOST_AXES or -1 in places or any(a >= b for a, b in pairwise(places)):
            raise Rejected(f"{name}_variables: a scope is not in the order of elimination, or too long")
    return scopes


def _edges(step: Step, scopes: list[Scope], position: dict[int, int]) -> list[tuple[int, int, Located]]:
    """The shifts: pairs of nodes, scopes that lie in both, tables one after another."""
    pairs = step.integers("edges", high=len(scopes), columns=2).tolist()
    shared = _scopes(step, "edge", position)
    shapes = [[len(step.domains[v]) for v in scope] for scope in shared]
    starts = [0, *accumulate(math.prod(shape) for shape in shapes)]
    shifts = step.floats("shifts")
    if len(shared) != len(pairs) or starts[-1] != len(shifts):
        raise BadFile("edges, their scopes and shifts do not fit together")
    magnitude(shifts)
    edges = []
    for (a, b), scope, shape, (first, end) in zip(pairs, shared, shapes, pairwise(starts), strict=True):
        if not set(scope) <= set(scopes[a]) & set(scopes[b]):
            raise Rejected(f"the shift between nodes {a} and {b} has variables that one of them lacks")
        edges.append((a, b, (scope, Table(shifts[first:end].reshape(shape)))))
    return edges


def _at_home(step: Step, tree: Tree) -> list[tuple[int, Located]]:
    """Factors as their nodes hold them: the maximum over variables that the node lacks, of those of one group together.

    That is an upper bound, and where the product does not depend on these variables it is the product itself.
    """
    result = []
    for group in step.groups():
        members: dict[int, list[Located]] = {}
        for k in group:
            located = local(step.model.factors[k], step.domains, tree.position)
            # What a table itself does not depend on leaves before tables are multiplied.
            lean = without_flat(*located, keep=tree.scope_of(tree.home[k]))
            members.setdefault(tree.home[k], []).append(lean)
        for node, tables in members.items():
            held = tree.scope_of(node)
            if not set().union(*(scope for scope, _ in tables)) <= set(held):
                # With those that lack nothing: they may be 0 wherever the maximum loses something.
                whole, table = product(tables, tree.position, step.memory)
                scope = tuple(v for v in whole if v in held)
                tables = [(scope, without(table, tuple(a for a, v in enumerate(whole) if v not in held)))]
            result += [(node, located) for located in tables]
    return result


def without_flat(scope: Scope, table: Table, keep: Container[int]) -> Located:
    """A table without those axes on which it does not depend, unless they are to be kept."""
    spend(100 + (1 + len(scope)) * table.values.size)
    flat = [a for a, v in enumerate(scope) if v not in keep and (table.values == table.values.take([0], a)).all()]
    values = table.values[tuple(0 if a in flat else slice(None) for a in range(len(scope)))]
    left = tuple(v for a, v in enumerate(scope) if a not in flat)
    return left, Table(np.asarray(values), table.up, table.down)


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass through the tree has found: the value is the sum of all constants and of what goes to no parent."""

    factors: list[tuple[int, Located]]
    """Factors with the nodes that hold them."""
    fixed: list[Table]
    """Numbers that belong to no node."""
    constants: list[float]
    """The largest entry of each node's message, which is taken off."""
    messages: list[Table]
    """What is left of it, at the node's parent; where it is not wanted any more, its errors alone."""


def run(step: Step, tree: Tree, *, keep: bool = False) -> Pass | None:
    """Pass through the tree; None where everything turns out to be impossible. Messages are kept if wanted."""
    factors = _at_home(step, tree)
    inputs: list[list[Table]] = [[] for _ in tree.scopes]
    fixed = [
        power_sum(Table(np.zeros(len(step.domains[v]))), step.question.weights[v])
        for v, nodes in tree.nodes_of.items()
        if not nodes
    ]
    for node, (scope, table) in factors:
        if node >= 0:
            inputs[node].append(placed(table, scope, tree.scopes[node]))
        else:
            fixed.append(without(table, tuple(range(len(scope)))))
    if any(float(number.values) == -math.inf for number in fixed):
        return None
    for a, b, (scope, shift) in tree.edges:
        inputs[a].append(placed(shift, scope, tree.scopes[a]))
        inputs[b].append(placed(Table(-shift.values), scope, tree.scopes[b]))
    found = Pass(factors, fixed, [], [])
    # Bytes of messages that are kept: those that wait at each node, and all of them.
    received = [0] * len(tree.scopes)
    held = 0
    for node, scope in enumerate(tree.scopes):
        shape = [len(step.domains[v]) for v in scope]
        size = 8 * math.prod(shape)
        spend(2000)
        afford(f"messages with node {node}", held + 6 * size, step.memory)
        message, constant = normalised(power_sum(add(shape, inputs[node]), tree.weight[node]))
        if constant == -math.inf:
            return None
        inputs[node] = []
        above = tree.scope_of(tree.parent[node])
        message = without(message, tuple(a for a, v in enumerate(scope[1:]) if v not in above))
        found.constants.append(constant)
        found.messages.append(message if keep else Table(np.zeros(()), message.up, message.down))
        if above:
            inputs[tree.parent[node]].append(placed(message, tuple(v for v in scope[1:] if v in above), above))
            received[tree.parent[node]] += message.values.nbytes
        held += message.values.nbytes - (0 if keep else received[node])
    return found


def value(step: Step, tree: Tree) -> tuple[float, float]:
    """The value of a tree from above, and from below where it is exact."""
    found = run(step, tree)
    if found is None:
        return -math.inf, -math.inf
    leaving = [message for message, above in zip(found.messages, tree.parent, strict=True) if above < 0]
    ends = found.fixed + leaving
    constants = [*found.constants, *(float(number.values) for number in found.fixed)]
    low, high = outward(constants, sum(t.up for t in ends), sum(t.down for t in ends))
    return low if all(tree.exact.values()) else -math.inf, high
