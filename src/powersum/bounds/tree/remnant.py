"""What is kept of a covering tree whose problem loses states: its structure, and a point for the states that are left.

The same mini-buckets over fewer states are a tree again, and the shifts at these states are a point of it. Its bound is
at most that of the whole at the same point, for every table is a part of what it was. So a box, some variables set to
one state each, begins where the box around it has ended, and costs no more memory than its point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.scopes import scopes_in_order
from powersum.bounds.buckets.wiring import intersections, products
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.core.arrays import BoolArray, FloatArray, IntArray, starts_of
from powersum.prepare.problem import Problem
from powersum.prepare.simplify.restriction import restrict
from powersum.prepare.simplify.tables import Tables


class Remnant(NamedTuple):
    """The structure of a tree: the same for all boxes of its problem."""

    order: IntArray
    parts: Partition
    edge_starts: IntArray
    edge_variables: IntArray
    """The variables of the shift on each edge, in the order in which its axes are."""


def remnant_of(tree: FixedTree) -> Remnant:
    """The structure of a tree."""
    starts, positions = intersections(tree.parts.edges, tree.parts.starts, tree.parts.positions)
    return Remnant(tree.order, tree.parts, starts, tree.order[positions])


def places_within(left: Remnant, n_parameters: int, cardinalities: IntArray, alive: BoolArray) -> IntArray:
    """Which parameters of a tree, for variables of so many states, are about those states that are ``alive``."""
    # A copy: to compiled code, an array that may not be written to is of another type.
    starts = starts_of(products(left.edge_starts, left.edge_variables, cardinalities.copy()))
    n_shifts = int(starts[-1])
    nobody = np.zeros(0, dtype=np.int64)
    # Places go through the tables in the shifts' stead: as floating-point numbers they are exact.
    places = np.arange(n_shifts, dtype=np.float64)
    shifts = Tables(cardinalities, left.edge_starts, left.edge_variables, starts, places, nobody)
    kept = restrict(shifts, alive, keep_axes=True).log_values.astype(np.int64)
    return np.concatenate([kept, np.arange(n_shifts, n_parameters)])


def tree_at(left: Remnant, problem: Problem, point: FloatArray, *, threads: int) -> FixedTree:
    """The tree over a problem with the same variables and factors, at a point that fits its states."""
    scopes = scopes_in_order(problem.model, left.order)
    return FixedTree(problem, left.order, scopes, left.parts, threads=threads, start=point)
