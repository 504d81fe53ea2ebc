"""A covering tree from what is left of an earlier one, for the same question or for another.

What is left comes from a certificate, or from a tree at hand.

Nothing of it is trusted. The order and the mini-buckets are wishes, of which a partition is made that is valid by the
way it is made: a factor, or a message, goes to a mini-bucket of its first variable that has all its variables, the one
it was in before if that will do; where none has them it becomes one. Shifts cancel whatever they are, and the weights
are shares that sum to the question's. So any file makes a valid bound, and that of the same question the same bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.buckets.sweeps import least_shares
from powersum.bounds.buckets.wiring import intersections
from powersum.bounds.tree.budget import cost_of
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core.arrays import FloatArray, IntArray, positions_of, starts_of
from powersum.prepare.problem import Problem
from powersum.proof.format import homes_of


class Edge(NamedTuple):
    """A shift between two mini-buckets: added at the first, taken away at the second."""

    first: int
    second: int
    scope: tuple[int, ...]
    shift: FloatArray
    """One axis for each variable of the scope, over the states that it had."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A tree as it was, in the variables and states of the original model."""

    order: list[int]
    scopes: list[tuple[int, ...]]
    parent: list[int]
    weight: list[float]
    home: list[int]
    """The mini-bucket of each factor, -1 for none."""
    edges: list[Edge]
    states: list[IntArray]
    """The states of each variable that the shifts are about."""


def saved_of(tree: FixedTree, problem: Problem) -> Saved:
    """What a tree leaves at its best point; it goes on undisturbed."""
    shifts, weights = tree.point()
    parts, variables = tree.parts, problem.variables[tree.order]
    low, high = problem.kept_state_starts[:-1].tolist(), problem.kept_state_starts[1:].tolist()
    states = [np.zeros(0, dtype=np.int64)] * len(problem.original_tau)
    for v, a, b in zip(problem.variables.tolist(), low, high, strict=True):
        states[v] = problem.kept_states[a:b]
    edge_starts, edge_positions = intersections(parts.edges, parts.starts, parts.positions)
    edges, at = [], 0
    for (first, second), scope in zip(
        parts.edges.tolist(), _scopes(edge_starts, variables[edge_positions]), strict=True
    ):
        shape = [len(states[v]) for v in scope]
        edges.append(Edge(first, second, scope, shifts[at : at + math.prod(shape)].reshape(shape)))
        at += math.prod(shape)
    return Saved(
        variables.tolist(),
        _scopes(parts.starts, variables[parts.positions]),
        parts.parent.tolist(),
        weights.tolist(),
        homes_of(problem, parts.factor_home).tolist(),
        edges,
        states,
    )


def _scopes(starts: IntArray, variables: IntArray) -> list[tuple[int, ...]]:
    """Stretches of an array as tuples."""
    numbers = variables.tolist()
    return [tuple(numbers[a:b]) for a, b in pairwise(starts.tolist())]


@dataclass(slots=True)
class _KeptNode:
    """A mini-bucket in the making: its scope by positions, and what it was before, -1 for nothing."""

    scope: tuple[int, ...]
    before: int
    items: list[int] = field(default_factory=list)
    """Factors by their numbers, and for each message a -1."""


def rebuilt(saved: Saved, problem: Problem, *, threads: int, memory: float) -> FixedTree | None:
    """The tree for a problem, at the point it was left; None where it takes more than so many bytes."""
    variable = positions_of(problem.variables, len(problem.original_tau))
    order = _order(saved, problem, variable)
    position = np.full(len(variable), -1, dtype=np.int64)
    position[problem.variables[order]] = np.arange(len(order))
    scopes = scopes_in_order(problem.model, order)
    nodes, parent, home = _mini_buckets(saved, problem, position, len(order), scopes.starts, scopes.positions)
    number = {node.before: k for k, node in enumerate(nodes) if node.before >= 0}
    edges = _edges(saved, nodes, number)
    parts = Partition(
        bucket=np.array([node.scope[0] for node in nodes], dtype=np.int64),
        starts=starts_of(np.array([len(node.scope) for node in nodes], dtype=np.int64)),
        positions=np.array([p for node in nodes for p in node.scope], dtype=np.int64),
        parent=np.array(parent, dtype=np.int64),
        factor_home=home,
        edges=np.array(list(edges), dtype=np.int64).reshape(-1, 2),
    )
    cardinalities = problem.model.cardinalities[order]
    log_sizes = np.bincount(np.repeat(np.arange(len(nodes)), np.diff(parts.starts)), scopes.log_sizes[parts.positions])
    # What a file wishes for may leave the integers.
    if log_sizes.max(initial=0.0) > np.log(max(memory, 1.0)) or cost_of(parts, scopes, cardinalities).bytes > memory:
        return None
    tree = FixedTree(problem, order, scopes, parts, threads=threads)
    if tree.exact:
        return tree
    parameters = np.zeros(tree.layout.n_parameters)
    starts, shared = intersections(parts.edges, parts.starts, parts.positions)
    at = 0
    for e, given in enumerate(edges.values()):
        axes = shared[starts[e] : starts[e + 1]].tolist()
        shape = [int(cardinalities[p]) for p in axes]
        size = int(np.prod(shape))
        table = parameters[at : at + size].reshape(shape)
        for edge, sign in given:
            table += sign * _shift(edge, saved, problem, position, variable, axes)
        at += size
    parameters[at:] = _logits(saved, nodes, tree)
    tree.go_on_from(parameters)
    return tree


def _order(saved: Saved, problem: Problem, variable: IntArray) -> IntArray:
    """The order of the problem's variables; those that are new come first in their block."""
    known = variable[np.array(saved.order, dtype=np.int64)]
    known = known[known >= 0]
    new = np.setdiff1d(np.arange(len(problem.variables)), known)
    order = np.concatenate([new, known])
    return np.asarray(order[np.argsort(problem.rank[order], kind="stable")], dtype=np.int64)


def _mini_buckets(
    saved: Saved, problem: Problem, position: IntArray, n: int, starts: IntArray, places: IntArray
) -> tuple[list[_KeptNode], list[int], IntArray]:
    """The mini-buckets that receive something, the parent of each, and the home of each factor.

    None has variables that nothing in its bucket mentions. A search sets those of a bucket before its variable is
    reached; any other may be in a branch of its own, and what a table says at its state of another moment is no bound.
    """
    wished: list[list[_KeptNode]] = [[] for _ in range(n)]
    for before, scope in enumerate(saved.scopes):
        own = tuple(sorted(p for p in position[list(scope)].tolist() if p >= 0))
        if own:
            wished[own[0]].append(_KeptNode(own, before))
    # The wish of a reduced factor is that of any of the original ones that it is made of.
    wish = np.full(problem.model.n_factors + 1, -1, dtype=np.int64)
    table_of = problem.fates.table_of[: len(saved.home)]
    wish[table_of] = np.array(saved.home, dtype=np.int64)[: len(table_of)]
    waiting: list[list[tuple[int, int, tuple[int, ...]]]] = [[] for _ in range(n)]
    for factor in range(problem.model.n_factors):
        scope = tuple(places[starts[factor] : starts[factor + 1]].tolist())
        if scope:
            waiting[scope[0]].append((factor, int(wish[factor]), scope))
    nodes: list[_KeptNode] = []
    parent: list[int] = []
    home = np.full(problem.model.n_factors, -1, dtype=np.int64)
    for bucket in range(n):
        here = wished[bucket]
        met = {p for _, _, scope in waiting[bucket] for p in scope}
        for node in here:
            node.scope = tuple(p for p in node.scope if p in met)
        sent: list[tuple[_KeptNode, int]] = []
        for item, wanted, scope in waiting[bucket]:
            able = [node for node in here if set(scope) <= set(node.scope)]
            taken = next((node for node in able if node.before == wanted), able[0] if able else None)
            if taken is None:
                taken = _KeptNode(scope, -1)
                here.append(taken)
            taken.items.append(item)
            if item < 0:
                sent.append((taken, -1 - item))
        here = [node for node in here if node.items]
        first = len(nodes)
        place = {id(node): first + k for k, node in enumerate(here)}
        for taken, sender in sent:
            parent[sender] = place[id(taken)]
        for node in here:
            home[[item for item in node.items if item >= 0]] = len(nodes)
            if len(node.scope) > 1:
                above = saved.parent[node.before] if node.before >= 0 else -1
                waiting[node.scope[1]].append((-1 - len(nodes), above, node.scope[1:]))
            nodes.append(node)
            parent.append(-1)
    return nodes, parent, home


def _edges(
    saved: Saved, nodes: list[_KeptNode], number: dict[int, int]
) -> dict[tuple[int, int], list[tuple[Edge, float]]]:
    """Pairs of mini-buckets that exchange shifts, with those there were, and enough to join all of one variable."""
    edges: dict[tuple[int, int], list[tuple[Edge, float]]] = {}
    root = list(range(len(nodes)))

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for edge in saved.edges:
        a, b = number.get(edge.first, -1), number.get(edge.second, -1)
        if a < 0 or b < 0 or a == b or nodes[a].scope[0] != nodes[b].scope[0]:
            continue
        key, sign = ((b, a), -1.0) if (b, a) in edges else ((a, b), 1.0)
        edges.setdefault(key, []).append((edge, sign))
        root[find(a)] = find(b)
    first = 0
    for node in range(len(nodes)):
        if nodes[node].scope[0] != nodes[first].scope[0]:
            first = node
        if find(node) != find(first):
            edges[first, node] = []
            root[find(node)] = find(first)
    return edges


def _shift(
    edge: Edge, saved: Saved, problem: Problem, position: IntArray, variable: IntArray, axes: list[int]
) -> FloatArray:
    """The shift of an edge over the axes of now: 0 for states that are new; any number would do."""
    table = edge.shift
    kept: list[int] = []
    # From the last axis on, so that what goes does not move the others.
    for axis in range(len(edge.scope) - 1, -1, -1):
        v = edge.scope[axis]
        if position[v] in axes:
            reduced = int(variable[v])
            low, high = problem.kept_state_starts[reduced : reduced + 2].tolist()
            now = problem.kept_states[low:high]
            place = np.minimum(np.searchsorted(saved.states[v], now), len(saved.states[v]) - 1)
            same = (saved.states[v][place] == now).reshape([-1 if a == axis else 1 for a in range(table.ndim)])
            table = table.take(place, axis=axis) * same
            kept.append(v)
        else:
            fixed = np.flatnonzero(saved.states[v] == problem.fixed_states[v])
            table = np.asarray(table.take(int(fixed[0]) if len(fixed) else 0, axis=axis))
    kept.reverse()
    by_place = sorted(range(len(kept)), key=lambda k: int(position[kept[k]]))
    held = {int(position[v]) for v in kept}
    table = np.transpose(table, by_place)
    lengths = iter(table.shape)
    return np.asarray(table.reshape([next(lengths) if p in held else 1 for p in axes]))


def _logits(saved: Saved, nodes: list[_KeptNode], tree: FixedTree) -> FloatArray:
    """What makes the weights of each variable's mini-buckets the shares that they had; new ones have the mean."""
    layout = tree.layout
    before = np.array([nodes[k].before for k in layout.shared_nodes.tolist()], dtype=np.int64)
    given = np.where(before >= 0, np.append(np.array(saved.weight), 0.0)[before], np.nan)
    counts = np.diff(layout.shared_starts)
    owner = np.repeat(np.arange(len(counts)), counts)
    known = np.bincount(owner, np.isfinite(given), minlength=len(counts))
    sums = np.bincount(owner, np.nan_to_num(given), minlength=len(counts))
    mean = np.where(sums > 0.0, sums, 1.0) / np.maximum(np.where(sums > 0.0, known, 1.0), 1.0)
    filled = np.where(np.isnan(given) | (sums[owner] <= 0.0), mean[owner], given)
    shares = filled / np.bincount(owner, filled, minlength=len(counts))[owner]
    least = least_shares(counts)[owner]
    return np.log(np.maximum(shares - least, 1e-3 * least))
