"""A tree that leaves some variables and factors out, and what it leaves: tables for another way to value them.

The value of the box is at most that of the tree times that of the tables. Go through the order of elimination: a
variable that the tree leaves has no node, so every node that has it in its scope has an earlier first variable, and has
dropped it from its message before its turn comes. Then the tables alone have it, and what the tree holds is a factor in
front. Where the variables that are left have one weight, their power sums commute, and the tables can be valued in any
order. Where dropping loses nothing, the two together are the value itself; what it loses is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from powersum_check.box import Located, Step, local, product
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import afford
from powersum_check.model import Factor, Model
from powersum_check.numbers import Table, without
from powersum_check.tree import read_tree, value, without_flat

Place = tuple[int, int, int]
"""A table, an axis of it, and a state there (counted within the box)."""
PER_PLACE = 300
"""Bytes that are counted for a place."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """What a tree leaves. Variables are numbered anew, and all have several states."""

    variables: list[int]
    """Their numbers in the model, rising."""
    sizes: list[int]
    tables: list[Located]
    places: list[Place]
    """As the certificate numbers them: of each table the variables that it names, of these all states."""
    weights: list[float]
    """The weight of each variable."""
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
    named = step.integers("table_variables", high=len(domains)).tolist()
    left = [v for v in several if v in set(named) and not tree.nodes_of[v]]
    weights = [step.question.weights[v] for v in left]
    if len(set(weights)) > 1 and step.question.order is not None:
        raise Rejected("variables that the tree leaves have different weights in an order of their own")
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
    scopes = [
        tuple(number.get(v, -1) for v in named[a:b]) for a, b in pairwise(step.starts("table_starts", len(named)))
    ]
    sizes = [len(domains[v]) for v in left]
    if len(scopes) != len(tables):
        raise BadFile("there are not as many tables as table_of names")
    places = list[Place]()
    for t, scope in enumerate(scopes):
        if len(set(scope)) < len(scope) or not set(scope) <= set(tables[t][0]):
            raise Rejected("table_variables names a variable that a table does not have, or one twice")
        afford("places", PER_PLACE * (len(places) + sum(sizes[v] for v in scope)), step.memory)
        places += [(t, tables[t][0].index(v), s) for v in scope for s in range(sizes[v])]
    return Remainder(left, sizes, tables, places, weights, *value(inner, tree))
