"""AND/OR branch and bound over the max variables, with the covering tree as heuristic."""

from powersum.search.and_or import AndOr

__all__ = ["AndOr"]
