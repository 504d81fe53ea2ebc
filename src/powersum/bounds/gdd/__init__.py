"""Generalised dual decomposition: Algorithm 1 of the paper, on factor graphs and on junction graphs."""

from powersum.bounds.gdd.method import DIRECTIONS, GDD
from powersum.bounds.gdd.weights import STARTS

__all__ = ["DIRECTIONS", "GDD", "STARTS"]
