"""Cut a model into parts of equal size that share few variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import IntArray
from powersum.model.graph import adjacency

LEAST = 100
"""Variables for each part, of which fewer are not worth METIS, which complains of graphs that it finds too small."""


def cut_factors(
    n_variables: int, scope_starts: IntArray, scope_variables: IntArray, n_parts: int, seed: int
) -> IntArray:
    """The part of each factor: that of its first variable, so that variables at the seam belong to several parts.

    METIS cuts the graph of the variables where pymetis is installed. Elsewhere the variables are taken in reverse
    Cuthill-McKee order, in which neighbours are close to each other, and that is cut into equal lengths: strips, whose
    seams are a few times as long.
    """
    n_factors = len(scope_starts) - 1
    if n_parts == 1:
        return np.zeros(n_factors, dtype=np.int64)
    graph = adjacency(n_variables, scope_starts, scope_variables)
    pymetis = _metis() if n_variables >= LEAST * n_parts else None
    if pymetis is None:
        part = _strips(graph.starts, graph.neighbours, n_parts)
    else:
        whole = pymetis.CSRAdjacency(graph.starts, graph.neighbours)
        _, found = pymetis.part_graph(n_parts, whole, options=pymetis.Options(seed=seed))
        part = np.asarray(found, dtype=np.int64)
    of_factor = np.zeros(n_factors, dtype=np.int64)
    filled = np.diff(scope_starts) > 0
    of_factor[filled] = part[scope_variables[scope_starts[:-1][filled]]]
    return of_factor


def _metis() -> Any:
    try:
        import pymetis
    except ImportError:
        return None
    return pymetis


def _strips(starts: IntArray, neighbours: IntArray, n_parts: int) -> IntArray:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = len(starts) - 1
    graph = csr_array((np.ones(len(neighbours), dtype=np.int8), neighbours, starts), shape=(n, n))
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    part = np.empty(n, dtype=np.int64)
    part[order] = np.arange(n) * n_parts // n
    return part
