"""Generalised dual decomposition: Algorithm 1 of the paper, on factor graphs and on junction graphs."""

from powersum.tighten.gdd.method import DIRECTIONS, GDD
from powersum.tighten.gdd.weights import STARTS

__all__ = ["DIRECTIONS", "GDD", "STARTS"]
