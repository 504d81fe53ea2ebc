"""Exact elimination as a certificate has it: one bucket for each variable."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import IntArray
from powersum.exact.wiring import EliminationWiring, wire
from powersum.model.factors import factors_of
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest, homes_of


def elimination_forest(problem: Problem, order: IntArray) -> Forest:
    """The buckets of an elimination of all variables of a problem along an order."""
    model = problem.model
    position = np.empty(model.n_variables, dtype=np.int64)
    position[order] = np.arange(model.n_variables)
    wired, buckets = wire(np.ascontiguousarray(order), position, np.arange(model.n_factors), factors_of(model))
    wiring = EliminationWiring(*wired)
    return Forest(
        order=problem.variables[order],
        node_starts=wiring.axis_starts.copy(),
        node_variables=problem.variables[wiring.axes[: wiring.axis_starts[-1]]],
        parent=wiring.parents.copy(),
        weight=problem.tau[order],
        home=homes_of(problem, buckets),
    )
