"""Mini-buckets with shifts and weights as a certificate has them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from powersum.bounds.buckets.partition import Partition
from powersum.bounds.buckets.wiring import Layout, intersections
from powersum.core.arrays import FloatArray, IntArray
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest, enough, homes_of


def bucket_forest(
    problem: Problem, order: IntArray, parts: Partition, layout: Layout, shifts: FloatArray, weights: FloatArray
) -> Forest:
    """The mini-buckets of a partition; weights of one variable are raised where they fall short in the last digit."""
    tau = problem.tau[order][layout.bucket]
    weights = np.where(tau == 0.0, 0.0, weights)
    for low, high in pairwise(layout.shared_starts.tolist()):
        nodes = layout.shared_nodes[low:high]
        own = weights[nodes]
        enough(own, float(tau[nodes[0]]))
        weights[nodes] = own
    edge_starts, edge_positions = intersections(parts.edges, parts.starts, parts.positions)
    variables = problem.variables[order]
    return Forest(
        order=variables,
        node_starts=parts.starts.copy(),
        node_variables=variables[parts.positions],
        parent=parts.parent.copy(),
        weight=weights,
        home=homes_of(problem, parts.factor_home),
        edges=parts.edges.copy(),
        edge_starts=edge_starts,
        edge_variables=variables[edge_positions],
        shifts=shifts,
    )
