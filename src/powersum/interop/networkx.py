"""Models from NetworkX graphs whose nodes and edges carry tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.errors import InputError
from powersum.interop.checks import checked_model
from powersum.model.model import Model


def from_networkx(graph: Any, *, table: str = "table", states: str = "states") -> Model:
    """A model from a NetworkX graph that carries tables as attributes.

    Parameters
    ----------
    graph
        ``DiGraph``: a Bayesian network. The table of each node has one axis for each parent, in the order of
        ``graph.predecessors(node)``, and the node's own axis last. ``Graph``: a Markov network. Edges need
        tables, nodes may have them. The rows of an edge's table belong to the node that comes first in
        ``graph.nodes``.
    table, states
        Names of the attributes for tables (probabilities) and for the labels of a node's states.

    Notes
    -----
    Variables are called ``str(node)``, in the order of ``graph.nodes``; numbers in a question are places in that order.

    Examples
    --------
    >>> import networkx as nx
    >>> import powersum as ps
    >>> graph = nx.DiGraph([("rain", "wet")])
    >>> graph.nodes["rain"].update(table=[0.8, 0.2], states=["no", "yes"])
    >>> graph.nodes["wet"].update(table=[[0.9, 0.1], [0.3, 0.7]], states=["no", "yes"])
    >>> dict(ps.solve(ps.from_networkx(graph), ["rain"], evidence={"wet": "yes"}).assignment)
    {'rain': 'yes'}
    """
    nodes = list(graph.nodes)
    number = {node: index for index, node in enumerate(nodes)}
    factors: list[tuple[tuple[int, ...], Any]] = []
    for node in nodes:
        parents = tuple(number[parent] for parent in graph.predecessors(node)) if graph.is_directed() else ()
        values = graph.nodes[node].get(table)
        if values is not None:
            factors.append(((*parents, number[node]), np.asarray(values, dtype=np.float64)))
        elif graph.is_directed():
            raise InputError(f"node {node} has no attribute {table!r}: a Bayesian network needs it on every node")
    if not graph.is_directed():
        for one, other, data in graph.edges(data=True):
            if table not in data:
                raise InputError(f"edge {one} – {other} has no attribute {table!r}")
            factors.append((tuple(sorted((number[one], number[other]))), np.asarray(data[table], dtype=np.float64)))
    labels = [graph.nodes[node].get(states) for node in nodes]
    sizes = _sizes(nodes, labels, factors)
    return checked_model(
        sizes,
        factors,
        directed=graph.is_directed(),
        names=[str(node) for node in nodes],
        states=None
        if not any(labels)
        else [[str(label) for label in own or range(size)] for own, size in zip(labels, sizes, strict=True)],
    )


def _sizes(nodes: list[Any], labels: list[Any], factors: list[tuple[tuple[int, ...], Any]]) -> list[int]:
    """Number of states of each node, from its labels or from a table."""
    sizes = [len(own) if own else 0 for own in labels]
    for scope, values in factors:
        for variable, size in zip(scope, values.shape, strict=False):
            sizes[variable] = sizes[variable] or size
    for node, size in zip(nodes, sizes, strict=True):
        if not size:
            raise InputError(f"node {node}: neither a table nor labels tell how many states it has")
    return sizes
