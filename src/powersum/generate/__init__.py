"""Realistic instances of any size, each with a query, the same for the same seed.

>>> import powersum as ps
>>> model, query = ps.generate.grid(3, 4, seed=1)
>>> model.n_variables, len(query)
(12, 6)
"""

from powersum.generate.blocks import Instance
from powersum.generate.diagnosis import diagnosis
from powersum.generate.grid import grid
from powersum.generate.pedigree import pedigree
from powersum.generate.random import random

__all__ = ["Instance", "diagnosis", "grid", "pedigree", "random"]
