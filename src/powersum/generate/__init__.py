"""Realistic instances of any size, each with a query, the same for the same seed.

>>> import powersum as ps
>>> model, query = ps.generate.grid(3, 4, seed=1)
>>> model.n_variables, len(query)
(12, 6)
"""

from powersum.generate.blocks import Instance
from powersum.generate.detections import detection
from powersum.generate.diagnostic import diagnosis
from powersum.generate.diagrams import pomdp, wildcatter
from powersum.generate.formulas import formula
from powersum.generate.grids import grid
from powersum.generate.pedigrees import pedigree
from powersum.generate.plans import plan
from powersum.generate.random_factors import random

__all__ = ["Instance", "detection", "diagnosis", "formula", "grid", "pedigree", "plan", "pomdp", "random", "wildcatter"]
