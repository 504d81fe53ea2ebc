"""Mini-bucket trees: one structure for weighted mini-buckets, decomposed bounds (gdd) and exact elimination.

The variables are eliminated in an order. Each node of the tree adds up the factors, shifts and messages that are given
to it, and eliminates the first variable of its scope by a power sum with a weight of its own; the result is a message
to its parent. Why this is an upper bound, and when it is exact, is proven in docs/certificates.md; what the proof needs
is checked in :func:`read_tree`, in the same words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from powersum_check.archive import Archive
from powersum_check.box import Domains, read_groups
from powersum_check.errors import BadFile, Rejected
from powersum_check.model import Factor, Model, Question
from powersum_check.numbers import (
    LEAST_WEIGHT,
    MOST_AXES,
    FloatArray,
    Table,
    add,
    magnitude,
    normalised,
    power_sum,
    without,
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A checked tree. Variables with one state in ``domains``, the box it was made for, are in no scope."""

    domains: Domains
    order: tuple[int, ...]
    position: dict[int, int]
    """Where each free variable is in the order."""
    scopes: list[tuple[int, ...]]
    parent: list[int]
    weight: list[float]
    home: list[int]
    """The node of each factor; -1 for those that count with their largest entry, as those without free variables do."""
    groups: list[int]
    """Factors of one group are maximised together over variables that their node lacks."""
    edges: list[tuple[int, int, tuple[int, ...], FloatArray]]
    """A shift is added at the first node and taken away at the second: what is added to the model is 0, exactly."""
    nodes_of: dict[int, list[int]]
    """The nodes that eliminate each variable."""

    def exact(self, question: Question, domains: Domains) -> bool:
        """Whether the tree's value in a box is the value of the box."""
        return all(is_exact(self, question, domains, v) for v in self.order)


def read_tree(archive: Archive, prefix: str, model: Model, question: Question, domains: Domains) -> Tree:
    """Read a tree and check all that makes it valid but the numbers."""
    free = {v for v, d in enumerate(domains) if len(d) > 1}
    n = len(domains)
    order = archive.integers(prefix + "order", high=n).tolist()
    if len(order) != len(free) or set(order) != free:
        raise Rejected("order: does not name each variable with several states once")
    ranks = question.ranks()
    if any(ranks[u] > ranks[v] for u, v in pairwise(order)):
        raise Rejected("order: is not that of the question (larger weights first, max variables last)")
    position = {v: p for p, v in enumerate(order)}
    scopes = _scopes(archive, prefix + "node_starts", prefix + "node_variables", position)
    n_nodes = len(scopes)
    parent = archive.integers(prefix + "parent", low=-1, high=n_nodes).tolist()
    weight = archive.floats(prefix + "weight").tolist()
    home = archive.integers(prefix + "home", low=-1, high=n_nodes).tolist()
    if not len(parent) == len(weight) == n_nodes or len(home) != len(model.factors):
        raise BadFile(f"{prefix}parent, weight or home has not the right length")
    nodes_of: dict[int, list[int]] = {v: [] for v in order}
    if () in scopes:
        raise Rejected(f"node {scopes.index(())} has an empty scope")
    for node, scope in enumerate(scopes):
        nodes_of[scope[0]].append(node)
        above = parent[node]
        if above >= 0 and (above <= node or position[scopes[above][0]] <= position[scope[0]]):
            raise Rejected(f"node {node} sends its message to one that does not come later")
        if not (weight[node] == 0.0 or LEAST_WEIGHT <= weight[node] <= 1e6):
            raise Rejected(
                f"node {node} has a weight that is neither 0 nor a number from {LEAST_WEIGHT:g} to a million"
            )
    for v, nodes in nodes_of.items():
        # fsum is correctly rounded: its sign is that of the exact sum.
        if nodes and math.fsum([*(weight[node] for node in nodes), -question.weights[v]]) < 0.0:
            raise Rejected(f"the weights of variable {v} add up to less than that of the question")
    for k, factor in enumerate(model.factors):
        own = {v for v in factor.scope if v in free}
        if not own:
            home[k] = -1
    groups = read_groups(archive, prefix, model).tolist()
    edges = _edges(archive, prefix, scopes, position, domains)
    return Tree(domains, tuple(order), position, scopes, parent, weight, home, groups, edges, nodes_of)


def _scopes(archive: Archive, starts_name: str, variables_name: str, position: dict[int, int]) -> list[tuple[int, ...]]:
    """Scopes, each in the order of elimination."""
    variables = archive.integers(variables_name).tolist()
    starts = archive.starts(starts_name, len(variables)).tolist()
    scopes = [tuple(variables[a:b]) for a, b in pairwise(starts)]
    for scope in scopes:
        places = [position.get(v, -1) for v in scope]
        if len(scope) > MOST_AXES or -1 in places or any(a >= b for a, b in pairwise(places)):
            raise Rejected(f"{variables_name}: a scope is not in the order of elimination, or too long")
    return scopes


def _edges(
    archive: Archive, prefix: str, scopes: list[tuple[int, ...]], position: dict[int, int], domains: Domains
) -> list[tuple[int, int, tuple[int, ...], FloatArray]]:
    """The shifts, if there are any: pairs of nodes, scopes that lie in both, tables one after another."""
    if prefix + "edges" not in archive:
        return []
    pairs = archive.integers(prefix + "edges", high=len(scopes), columns=2).tolist()
    shared = _scopes(archive, prefix + "edge_starts", prefix + "edge_variables", position)
    shifts = archive.floats(prefix + "shifts")
    if len(shared) != len(pairs):
        raise BadFile(f"{prefix}edges and their scopes are not equally many")
    edges, at = [], 0
    for (a, b), scope in zip(pairs, shared, strict=True):
        if not set(scope) <= set(scopes[a]) & set(scopes[b]):
            raise Rejected(f"the shift between nodes {a} and {b} has variables that one of them lacks")
        shape = [len(domains[v]) for v in scope]
        size = math.prod(shape)
        if at + size > len(shifts):
            raise BadFile(f"{prefix}shifts ends too early")
        edges.append((a, b, scope, shifts[at : at + size].reshape(shape)))
        at += size
    if at != len(shifts):
        raise BadFile(f"{prefix}shifts has {len(shifts) - at} numbers too many")
    return edges


def placed(table: Table, scope: tuple[int, ...], wider: tuple[int, ...]) -> Table:
    """A table with axes of length 1 for the variables that it lacks; both scopes are in the order of elimination."""
    lengths = dict(zip(scope, table.values.shape, strict=True))
    return Table(table.values.reshape([lengths.get(v, 1) for v in wider]), table.up, table.down)


def local(factor: Factor, tree: Tree, domains: Domains) -> tuple[tuple[int, ...], Table]:
    """A factor over the states of a box: the tree's free variables as axes in order, others looked up."""
    free = [v for v in factor.scope if len(tree.domains[v]) > 1]
    values = factor.table.values
    values = values[tuple(slice(None) if len(tree.domains[v]) > 1 else int(domains[v][0]) for v in factor.scope)]
    if any(len(domains[v]) < n for v, n in zip(free, values.shape, strict=True)):
        values = values[np.ix_(*(domains[v] for v in free))]
    axes = sorted(range(len(free)), key=lambda a: tree.position[free[a]])
    return tuple(free[a] for a in axes), Table(np.transpose(values, axes), factor.table.up, factor.table.down)


def _at_home(
    tree: Tree, factors: list[tuple[tuple[int, ...], Table]], memory: int
) -> list[tuple[tuple[int, ...], Table]]:
    """Factors as their nodes hold them: the maximum over variables that the node lacks, of those of one group together.

    That is an upper bound, and where the product does not depend on these variables it is the product itself.
    """
    lacking: set[tuple[int, int]] = set()
    members: dict[tuple[int, int], list[int]] = {}
    for k, (scope, table) in enumerate(factors):
        held = tree.scopes[tree.home[k]] if tree.home[k] >= 0 else ()
        # What a table itself does not depend on leaves before tables are multiplied.
        values = table.values
        flat = [a for a, v in enumerate(scope) if v not in held and (values == values.take([0], axis=a)).all()]
        for a in reversed(flat):
            values = np.asarray(values.take(0, axis=a))
        scope = tuple(v for a, v in enumerate(scope) if a not in flat)
        factors[k] = scope, Table(values, table.up, table.down)
        members.setdefault((tree.groups[k], tree.home[k]), []).append(k)
        if any(v not in held for v in scope):
            lacking.add((tree.groups[k], tree.home[k]))
    for group, node in lacking:
        held = tree.scopes[node] if node >= 0 else ()
        chosen = [k for k in members[group, node] if any(v not in held for v in factors[k][0])]
        maximum = _joint_maximum(tree, [factors[k] for k in chosen], held, memory)
        if maximum[1].down > sum(factors[k][1].down for k in chosen) and len(chosen) < len(members[group, node]):
            # Factors of the group that lack nothing may be 0 wherever the maximum loses something.
            chosen = members[group, node]
            maximum = _joint_maximum(tree, [factors[k] for k in chosen], held, memory)
        for k in chosen:
            factors[k] = (), Table(np.zeros(()))
        factors[chosen[0]] = maximum
    return factors


def _joint_maximum(
    tree: Tree, tables: list[tuple[tuple[int, ...], Table]], held: tuple[int, ...], memory: int
) -> tuple[tuple[int, ...], Table]:
    """The maximum of a product over the variables that are not held."""
    lengths = {v: n for scope, table in tables for v, n in zip(scope, table.values.shape, strict=True)}
    union = tuple(sorted(lengths, key=lambda v: tree.position[v]))
    shape = [lengths[v] for v in union]
    if len(union) > MOST_AXES or 48 * math.prod(shape) > memory:
        raise BadFile("groups: the product of a group of factors is too large")
    product = add(shape, [placed(table, scope, union) for scope, table in tables])
    others = tuple(a for a, v in enumerate(union) if v not in held)
    return tuple(v for v in union if v in held), without(product, others)


@dataclass(slots=True)
class Pass:
    """What one pass through the tree has found. The value is the sum of all constants, within the errors."""

    constants: list[float]
    node_constants: list[float]
    messages: list[Table]
    """The messages of the nodes, less their constants; emptied on the way unless they are wanted."""
    factors: list[tuple[tuple[int, ...], Table]]
    fixed_up: float = 0.0
    fixed_down: float = 0.0
    """Errors of what has no node."""
    up: float = 0.0
    down: float = 0.0
    """Errors of messages that go to no parent."""
    dead: bool = False
    """True where the pass has found that everything is impossible."""


def is_exact(tree: Tree, question: Question, domains: Domains, variable: int) -> bool:
    """Whether eliminating a variable loses nothing: one node has it all, or there is nothing to eliminate."""
    nodes = tree.nodes_of[variable]
    return (
        len(domains[variable]) == 1
        or not nodes
        or (len(nodes) == 1 and tree.weight[nodes[0]] == question.weights[variable])
    )


def run(tree: Tree, model: Model, question: Question, domains: Domains, memory: int, *, keep: bool = False) -> Pass:
    """Pass through the tree in a box that lies within the tree's own."""
    factors = _at_home(tree, [local(factor, tree, domains) for factor in model.factors], memory)
    found = Pass([], [0.0] * len(tree.scopes), [Table(np.zeros(()))] * len(tree.scopes), factors)
    inputs: list[list[Table]] = [[] for _ in tree.scopes]
    for k, (scope, table) in enumerate(factors):
        if tree.home[k] >= 0:
            inputs[tree.home[k]].append(placed(table, scope, tree.scopes[tree.home[k]]))
        else:
            _fix(found, without(table, tuple(range(len(scope)))))
    for v in tree.order:
        if not tree.nodes_of[v]:
            _fix(found, power_sum(Table(np.zeros(len(domains[v]))), question.weights[v]))
    place = {v: np.searchsorted(tree.domains[v], domains[v]) for v in tree.order}
    for a, b, scope, shift in tree.edges:
        values = shift
        if scope and any(len(domains[v]) < n for v, n in zip(scope, shift.shape, strict=True)):
            values = shift[np.ix_(*(place[v] for v in scope))]
        magnitude(values)
        inputs[a].append(placed(Table(values), scope, tree.scopes[a]))
        inputs[b].append(placed(Table(-values), scope, tree.scopes[b]))
    # Bytes of messages that are kept: those that wait at each node, and all of them.
    received = [0] * len(tree.scopes)
    held = 0
    for node, scope in enumerate(tree.scopes):
        shape = [len(domains[v]) for v in scope]
        size = 8 * math.prod(shape)
        if held + 6 * size > memory:
            raise BadFile(f"node {node} takes {6 * size} bytes more, and --memory allows {memory}")
        message = power_sum(add(shape, inputs[node]), tree.weight[node])
        inputs[node] = []
        if not keep:
            held -= received[node]
        message, constant = normalised(message)
        if float(message.values.max()) == -math.inf:
            found.dead = True
            return found
        found.constants.append(constant)
        found.node_constants[node] = constant
        above = tree.parent[node]
        target = tree.scopes[above] if above >= 0 else ()
        kept = tuple(v for v in scope[1:] if v in target)
        message = without(message, tuple(a for a, v in enumerate(scope[1:]) if v not in target))
        if above >= 0:
            inputs[above].append(placed(message, kept, target))
            received[above] += message.values.nbytes
        else:
            found.up += message.up
            found.down += message.down
        held += message.values.nbytes
        if keep:
            found.messages[node] = message
    return found


def _fix(found: Pass, constant: Table) -> None:
    """Take in a number that belongs to no node."""
    found.constants.append(float(constant.values))
    found.fixed_up += constant.up
    found.fixed_down += constant.down
    found.dead = found.dead or found.constants[-1] == -math.inf
