"""The decomposed bound as a certificate has it: a chain of nodes for each region, one for each of its variables."""

from __future__ import annotations

import numpy as np

from powersum.bounds.gdd.regions import Regions
from powersum.core.arrays import FloatArray, Int32Array, IntArray, starts_of
from powersum.prepare.problem import Problem
from powersum.proof.format import Forest, enough, homes_of


def region_forest(
    problem: Problem,
    order: IntArray,
    regions: Regions,
    factor_cluster: Int32Array,
    delta: FloatArray,
    weights: FloatArray,
) -> Forest:
    """The regions at a point. Node k eliminates axis k; its scope is what is left of its region from there on."""
    n_axes = len(regions.axis_variable)
    owner = np.repeat(np.arange(len(regions.axis_start) - 1), np.diff(regions.axis_start))
    ends = regions.axis_start[1:][owner]
    lengths = ends - np.arange(n_axes)
    node_starts = starts_of(lengths)
    axes = (
        np.arange(int(node_starts[-1])) - np.repeat(node_starts[:-1], lengths) + np.repeat(np.arange(n_axes), lengths)
    )
    parent = np.where(np.arange(n_axes) + 1 < ends, np.arange(n_axes) + 1, -1)
    # A region without variables is a number, and has no node.
    first = np.where(np.diff(regions.axis_start) > 0, regions.axis_start[:-1], -1)
    weights = weights.copy()
    by_variable = np.argsort(regions.axis_variable, kind="stable")
    for nodes in np.split(by_variable, np.flatnonzero(np.diff(regions.axis_variable[by_variable])) + 1):
        if len(nodes):
            own = weights[nodes]
            enough(own, float(problem.tau[regions.axis_variable[nodes[0]]]))
            weights[nodes] = own

    in_block = np.diff(regions.block_start)
    block = np.repeat(np.arange(len(in_block)), in_block)
    # Every member of a block with shifts but the separator, which is its first, has its shifts one after another.
    place = np.arange(len(block)) - regions.block_start[block] - 1
    moved = np.flatnonzero((regions.block_size[block] > 0) & (place >= 0))
    block, place = block[moved], place[moved]
    separator = regions.member_region[regions.block_start[block]]
    scopes = [regions.axis_variable[regions.axis_start[r] : regions.axis_start[r + 1]] for r in separator.tolist()]
    sizes = regions.block_size[block].astype(np.int64)
    starts = regions.block_delta[block] + place * sizes
    places = [np.arange(a, a + n) for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
    none = np.zeros(0, dtype=np.int64)
    return Forest(
        order=problem.variables[order],
        node_starts=node_starts,
        node_variables=problem.variables[regions.axis_variable[axes]],
        parent=parent,
        weight=weights,
        home=homes_of(problem, first[factor_cluster]),
        edges=np.stack([first[separator], first[regions.member_region[moved]]], axis=1),
        edge_starts=starts_of([len(scope) for scope in scopes]),
        edge_variables=problem.variables[np.concatenate([none, *scopes])],
        shifts=delta[np.concatenate([none, *places])],
    )
