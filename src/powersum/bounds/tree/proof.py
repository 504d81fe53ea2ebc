"""The bound of a covering tree as a certificate has it: mini-buckets, and shifts and weights of its best point."""

from __future__ import annotations

from powersum.bounds.buckets.proof import bucket_forest
from powersum.bounds.tree.fixed_tree import FixedTree
from powersum.prepare.problem import Problem
from powersum.prepare.proof import Forest


def tree_forest(tree: FixedTree, problem: Problem) -> Forest:
    """The mini-buckets of a tree at its best point."""
    shifts, weights = tree.point()
    return bucket_forest(problem, tree.order, tree.parts, tree.layout, shifts, weights)
