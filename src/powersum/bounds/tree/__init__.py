"""The covering tree: weighted mini-buckets with annealed joint descent on shifts and weights."""

from powersum.bounds.tree.covering_tree import CoveringTree

__all__ = ["CoveringTree"]
