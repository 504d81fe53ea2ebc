"""Spanning trees of a graph given by its edges: how likely each edge is in a random one, and the heaviest one."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray, IntArray


def tree_shares(edges: IntArray) -> FloatArray:
    """Probability of each edge to be in a spanning tree drawn evenly from all (in each component).

    By Kirchhoff, it is the resistance between the edge's ends when every edge is a resistor of 1.
    """
    if not len(edges):
        return np.zeros(0)
    vertices, numbered = np.unique(edges, return_inverse=True)
    ends = numbered.reshape(-1, 2)
    incidence = np.zeros((len(edges), len(vertices)))
    rows = np.arange(len(edges))
    incidence[rows, ends[:, 0]] += 1.0
    incidence[rows, ends[:, 1]] -= 1.0
    inverse = np.linalg.pinv(incidence.T @ incidence)
    resistance = ((incidence @ inverse) * incidence).sum(axis=1)
    return np.asarray(np.clip(resistance, 1e-6, 1.0))


def heaviest_tree(edges: IntArray, weights: FloatArray) -> FloatArray:
    """1 for each edge of a spanning forest of largest total weight, 0 for the others (Kruskal)."""
    vertices, numbered = np.unique(edges, return_inverse=True)
    ends = numbered.reshape(-1, 2)
    leader = list(range(len(vertices)))

    def top(v: int) -> int:
        while leader[v] != v:
            leader[v] = leader[leader[v]]
            v = leader[v]
        return v

    chosen = np.zeros(len(edges))
    for e in np.argsort(-weights, kind="stable").tolist():
        one, two = top(int(ends[e, 0])), top(int(ends[e, 1]))
        if one != two:
            leader[one] = two
            chosen[e] = 1.0
    return chosen
