"""A tree that leaves some variables and factors out, and what it leaves: tables for another way to value them.

The value of the box is at most that of the tree times that of the tables. Go through the order of elimination: a
variable that the tree leaves has no node, so every node that has it in its scope has an earlier first variable, and has
dropped it from its message before its turn comes. Then the tables alone have it, and what the tree holds is a factor in
front. The variables that are left must have one and the same weight: then their power sums commute, and the tables can
be valued in any order. Where dropping loses nothing, the two together are the value itself; what it loses is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from powersum_check.box import Located, Scope, Step, local, product
from powersum_check.errors import BadFile, Rejected
from powersum_check.lanes import owners, starts_of
from powersum_check.limits import afford, spend
from powersum_check.model import Factor, Model
from powersum_check.numbers import Table, without
from powersum_check.tree import read_tree, value, without_flat


@dataclass(frozen=True, slots=True)
class Remainder:
    """What a tree leaves. Variables are numbered anew, and all have several states."""

    variables: list[int]
    """Their numbers in the model, rising."""
    sizes: list[int]
    tables: list[Located]
    weight: float
    """The one weight of all variables."""
    low: float
    high: float
    """The value of everything else, and τ log |states| of each variable: what is left is a mean over states."""


def read_remainder(step: Step) -> Remainder:
    """Value the tree of a step, and multiply the factors that it leaves into tables.

    ``table_of`` gives the table of each factor, -1 for those that the tree has; ``table_variables`` names the variables
    of all tables. Others that have no node count in the tree, as always.
    """
    domains, factors = step.domains, step.model.factors
    table_of = step.integers("table_of", low=-1, high=max(len(factors), 1)).tolist()
    if len(table_of) != len(factors):
        raise BadFile("table_of has not one entry for each factor")
    one = Factor((), Table(np.zeros(())))
    kept = tuple(one if t >= 0 else factor for t, factor in zip(table_of, factors, strict=True))
    inner = replace(step, model=Model(step.model.cardinalities, kept))
    tree = read_tree(inner)
    several = [v for v, d in enumerate(domains) if len(d) > 1]
    named = set(step.integers("table_variables", high=len(domains)).tolist())
    left = [v for v in several if v in named and not tree.nodes_of[v]]
    weights = {step.question.weights[v] for v in left}
    if len(weights) > 1:
        raise Rejected("variables that the tree leaves have different weights")
    weight = weights.pop() if weights else 0.0
    number, position = {v: k for k, v in enumerate(left)}, {v: v for v in several}
    members: dict[int, list[Located]] = {}
    for t, factor in zip(table_of, factors, strict=True):
        if t >= 0:
            located = local(factor, domains, position)
            members.setdefault(t, []).append(without_flat(*located, keep=number))
    if set(members) != set(range(len(members))):
        raise BadFile("table_of leaves out a number")
    tables = []
    for t in range(len(members)):
        scope, table = product(members[t], position, step.memory)
        # On others no table should depend; where one does, its maximum is no lower bound.
        table = without(table, tuple(a for a, v in enumerate(scope) if v not in number))
        tables.append((tuple(number[v] for v in scope if v in number), table))
    return Remainder(left, [len(domains[v]) for v in left], tables, weight, *value(inner, tree))


def _written_scopes(step: Step, rest: Remainder) -> list[Scope]:
    """The variables over which the certificate writes of each table, as it lists them: each is one of the table's."""
    scopes = step.pieces("table_starts", step.integers("table_variables", high=len(step.domains)).tolist())
    number = {v: k for k, v in enumerate(rest.variables)}
    if len(scopes) != len(rest.tables):
        raise BadFile("there are not as many tables as table_of names")
    result = []
    for named, (whole, _) in zip(scopes, rest.tables, strict=True):
        scope = tuple(number.get(v, -1) for v in named)
        if len(set(scope)) < len(scope) or not set(scope) <= set(whole):
            raise Rejected("table_variables names a variable that a table does not have, or one twice")
        result.append(scope)
    return result


class Tuples:
    """All tuples of all tables that a tree leaves, by their states. A *place* is a state of a variable of a table."""

    def __init__(self, step: Step, rest: Remainder) -> None:
        self.sizes, tables = rest.sizes, rest.tables
        self.starts = starts_of(self.sizes)
        """Where the states of each variable begin."""
        self.owner = owners(self.starts)
        arity = max((len(scope) for scope, _ in tables), default=0)
        # Of each tuple: places and states, those that are looked at once more, values, and working copies of these.
        needed = 32 * (arity + 3) * sum(table.values.size for _, table in tables)
        afford("tuples", needed, step.memory)
        spend(needed)
        values, tuples, state_of = [np.zeros(0)], [np.zeros((2, arity, 0), np.int64)], [np.zeros(0, np.int64)]
        named, end = [np.zeros(0, np.int64)], 0
        ends = [0]
        for written, (scope, table) in zip(_written_scopes(step, rest), tables, strict=True):
            begin = end + starts_of([self.sizes[v] for v in scope])
            end = int(begin[-1])
            ends.append(end)
            state_of += [np.arange(self.starts[v], self.starts[v + 1]) for v in scope]
            named += [begin[scope.index(v)] + np.arange(self.sizes[v]) for v in written]
            index = np.indices(table.values.shape).reshape(len(scope), table.values.size)
            # Short tuples are filled up with the last place, where nothing happens, and a state that is always there.
            tuples.append(np.full((2, arity, table.values.size), -1))
            tuples[-1][0, : len(scope)] = begin[:-1, None] + index
            tuples[-1][1, : len(scope)] = self.starts[list(scope), None] + index
            values.append(table.values.ravel())
        self.values, (self.places, self.states) = np.concatenate(values), np.concatenate(tuples, axis=2)
        self.tuple_starts = starts_of([len(own) for own in values[1:]])
        """Where the tuples of each table begin."""
        self.state_of, self.table_of = np.concatenate(state_of), owners(np.array(ends))
        """State and table of each place."""
        self.named = np.concatenate(named)
        """The places as the certificate numbers them: tables over variables as it lists them, state by state."""
