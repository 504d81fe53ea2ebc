"""The corner bound: the bound that a reader of a network of conditional tables sees, in one pass.

A conditional table sums to one over its child. So a child that lies in no other table goes with its table, its parents
may then be such children, and what is no conditional table, an observation or a constraint, counts with its maximum. It
is a bound of weighted mini-buckets at a corner of the weights: in each bucket one mini-bucket, that of the child's
table, has all of the weight, and the others have weight 0. Descent from inside the weights hardly comes there.

Which axis of which table is a child is read off the numbers, from the parents down, by
:mod:`powersum.prepare.orientation`. Variables are eliminated the other way round. Where there are no conditional tables
the bound is one of mini-buckets along some order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from powersum.bounds.corner_kernels import eliminate
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray, IntArray, positions_of
from powersum.core.speed import CORNER_ENTRY, CORNER_TABLE, GROUP_ENTRY
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.model.rounding import UNIT, certain
from powersum.prepare.orientation import oriented
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest, homes_of, ranks

GROUPS, ENTRIES = (1024, 4096), 4e6
"""Entries of a mini-bucket of several tables, tried one after the other as far as all of them have so many entries.

Clauses that define a variable together are often in one mini-bucket of the second size only; the first may be tighter.
"""

SHARE = 0.1
"""Share of the time that it may take."""


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
    ways = [oriented(problem, rank)]
    if model is not None:
        # Where tables were multiplied the model's own tell more; where constraints were, those of the problem may.
        ways.append(oriented(problem, rank, model))
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
    constants, error, node_starts, positions, parent, weight, home = eliminate(
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
