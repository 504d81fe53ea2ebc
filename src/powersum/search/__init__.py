"""Search: branch and bound over the max variables with the tightened bound as heuristic."""

from powersum.search.best_first import BestFirst
from powersum.search.heuristic import Heuristic, heuristic_of

__all__ = ["BestFirst", "Heuristic", "heuristic_of"]
