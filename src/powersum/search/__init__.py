"""AND/OR branch and bound over the max variables, with the covering tree as heuristic."""

from powersum.search.and_or import AndOr
from powersum.search.heuristic import Heuristic, heuristic_of

__all__ = ["AndOr", "Heuristic", "heuristic_of"]
