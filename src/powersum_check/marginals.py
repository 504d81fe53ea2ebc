"""Distributions of all variables from one certificate: the way down through a tree that eliminates everything exactly.

Where everything is summed and each variable has one node of weight 1, the product of a node's factors, of the messages
that it gets, and of the message that comes *down* to it is, up to one number, the sum of everything given the states of
the node's variables. The message down to a node is what its parent has without the node's own message, summed over what
the node lacks. At a node without a parent it is 1. Nodes that drop variables of their message, and all nodes below
them, have no such product: nothing is said of their variables.

All operations, and so their rounding, are those of :mod:`powersum_check.numbers`. What maximising loses anywhere in the
tree changes what is proven of any variable, so errors of the whole tree count beside those of the product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from powersum_check.box import Scope, Step, is_empty, placed, root_box, without_removed
from powersum_check.check import check
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import MEMORY, WORK, afford
from powersum_check.mean_field import mean_field
from powersum_check.model import Model, Question
from powersum_check.numbers import Table, add, normalised, power_sum
from powersum_check.shares import Share, shares_of
from powersum_check.steps import bounds_of_tree
from powersum_check.tree import Pass, Tree, read_tree, run

Sides = list[tuple[float, float]]
"""Lower and upper logs for the states of a variable, all up to the same number."""


def check_marginals(
    model: Model,
    question: Question,
    certificate: str | Path | bytes,
    *,
    memory: int = MEMORY,
    work: float = WORK,
) -> list[list[Share] | None]:
    """Check a certificate of the sum of everything; returns what it proves of the distribution of each variable.

    ``None`` stands for a variable that the first exact tree says nothing of. Observed variables have their one state.

    Raises
    ------
    Rejected
        Where the certificate fails, or nothing has positive probability.
    """
    if any(weight != 1.0 for weight in question.weights):
        raise BadFile("distributions are of a question that sums everything")
    root = root_box(model, question)
    found: list[list[Sides | None]] = []

    def tree_rule(step: Step) -> tuple[float, float]:
        whole = all(len(a) == len(b) for a, b in zip(step.domains, root, strict=True))
        step = replace(step, domains=without_removed(step))
        if is_empty(step.domains):
            return -math.inf, -math.inf
        tree = read_tree(step)
        if whole and not found and all(tree.exact.values()) and not tree.edges:
            found.append(_distributions(step, tree, model.cardinalities))
        return bounds_of_tree(step, tree)

    rules = {"tree": tree_rule, "mean-field": mean_field}
    verified = check(model, question, certificate, memory=memory, work=work, more=rules)
    if verified.log_upper == -math.inf:
        raise Rejected("every state has probability 0")
    if not found:
        raise Rejected("no step eliminates everything exactly")
    return [None if sides is None else shares_of(sides) for sides in found[0]]


def _distributions(step: Step, tree: Tree, cardinalities: Sequence[int]) -> list[Sides | None]:
    """The sums of everything by the states of each variable."""
    passed = run(step, tree, keep=True)
    if passed is None:
        return [None] * len(cardinalities)
    ends = [*passed.fixed, *(m for m, parent in zip(passed.messages, tree.parent, strict=True) if parent < 0)]
    up, down = sum(t.up for t in ends), sum(t.down for t in ends)
    sides: list[Sides | None] = [None] * len(cardinalities)
    for v, domain in enumerate(step.domains):
        # A variable of one state, or one that no table has; what a table loses that has it counts as an error.
        if not tree.nodes_of.get(v):
            sides[v] = _over(cardinalities[v], domain.tolist(), Table(np.zeros(len(domain)), up, down))
    for v, table in _down(step, tree, passed):
        wider = Table(table.values, table.up + up, table.down + down)
        sides[v] = _over(cardinalities[v], step.domains[v].tolist(), wider)
    return sides


def _down(step: Step, tree: Tree, passed: Pass) -> list[tuple[int, Table]]:
    """The variable of each node that tells it, and the sum of everything for each of its states."""
    inputs: list[list[tuple[int, Scope, Table]]] = [[] for _ in tree.scopes]
    """What each node holds: the node that sent it, or -1, and a table."""
    for node, (scope, table) in passed.factors:
        if node >= 0:
            inputs[node].append((-1, scope, table))
    for node, parent in enumerate(tree.parent):
        if parent >= 0:
            sent = tuple(v for v in tree.scopes[node][1:] if v in tree.scopes[parent])
            inputs[parent].append((node, sent, passed.messages[node]))
    result, told, held = [], [False] * len(tree.scopes), 0
    for node in reversed(range(len(tree.scopes))):
        scope, parent = tree.scopes[node], tree.parent[node]
        above = tree.scope_of(parent)
        told[node] = set(scope[1:]) <= set(above) and (parent < 0 or told[parent])
        if not told[node]:
            continue
        shape = [len(step.domains[v]) for v in scope]
        everything = add(shape, [placed(t, s, scope) for _, s, t in inputs[node]])
        result.append((scope[0], _summed(everything, scope, scope[:1])))
        for child, sent, _ in inputs[node]:
            if child >= 0:
                others = [placed(t, s, scope) for other, s, t in inputs[node] if other != child]
                message, _ = normalised(_summed(add(shape, others), scope, sent))
                held += message.values.nbytes
                afford("messages on the way down", held + 6 * 8 * math.prod(shape), step.memory)
                inputs[child].append((-1, sent, message))
    return result


def _summed(table: Table, scope: Scope, kept: Scope) -> Table:
    """The sum over all variables of a scope but those that are kept."""
    axes = [a for a, v in enumerate(scope) if v not in kept]
    rest = [a for a, v in enumerate(scope) if v in kept]
    values = table.values.transpose(axes + rest)
    lengths = [table.values.shape[a] for a in rest]
    return power_sum(replace(table, values=values.reshape([-1, *lengths])), 1.0)


def _over(size: int, domain: Sequence[int], table: Table) -> Sides:
    """Sides for all states of a variable; those outside the domain are impossible."""
    sides = [(-math.inf, -math.inf)] * size
    for s, log in zip(domain, table.values.tolist(), strict=True):
        sides[s] = (math.nextafter(log - table.down, -math.inf), math.nextafter(log + table.up, math.inf))
    return sides
