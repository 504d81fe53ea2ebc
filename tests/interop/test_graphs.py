"""Models from arrays and from NetworkX graphs."""

from __future__ import annotations

import numpy as np
import pytest

import powersum as ps
from powersum import InputError, Model
from tests.interop.networks import CLINIC, described, joint, library


def test_arrays() -> None:
    rng = np.random.default_rng(0)
    unary, pairwise = rng.random((3, 2)), rng.random((2, 2, 2))
    model = ps.from_arrays(unary, [[0, 1], [2, 1]], pairwise, names=["a", "b", "c"], states=["off", "on"])
    expected = np.einsum("a,b,c,ab,cb->abc", *unary, *pairwise)
    np.testing.assert_allclose(joint(model), expected)
    assert model.label(2, 1) == "on"


def test_one_table_for_all_edges_and_logs() -> None:
    model = ps.from_arrays(np.zeros((3, 2)), [[0, 1], [1, 2]], [[0.0, -np.inf], [1.0, 2.0]], log=True)
    assert model.factor(4).log_table.tolist() == [[0.0, -np.inf], [1.0, 2.0]]
    assert ps.from_arrays(np.ones((2, 3)), [], np.ones((3, 3))).n_factors == 2


def test_arrays_that_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"unary has shape \(2,\)"):
        ps.from_arrays([1, 1], [], [[1]])
    with pytest.raises(InputError, match=r"need \(2, 2\) or \(1, 2, 2\)"):
        ps.from_arrays(np.ones((2, 2)), [[0, 1]], np.ones((3, 3)))


def test_bayesian_network_as_a_graph() -> None:
    nx = library("networkx")
    graph = nx.DiGraph()
    for scope, log_table in CLINIC.factors():
        *parents, child = (CLINIC.name(v) for v in scope)
        graph.add_node(child, table=np.exp(log_table), states=CLINIC.states[scope[-1]] if CLINIC.states else None)
        graph.add_edges_from((parent, child) for parent in parents)
    model = ps.from_networkx(graph)
    assert model.directed
    assert described(model) == described(CLINIC)
    np.testing.assert_allclose(joint(model), joint(CLINIC))


def test_markov_network_as_a_graph() -> None:
    nx = library("networkx")
    graph = nx.Graph()
    graph.add_nodes_from(["b", "a"])
    graph.add_node("c", states=["x", "y", "z"])
    graph.add_edge("a", "b", table=[[1, 2], [3, 4]])
    model = ps.from_networkx(graph)
    # b was added first: it gives the rows, whichever way round the edge was written.
    wanted = Model.from_tables({("b", "a"): [[1, 2], [3, 4]]}, states={"c": ["x", "y", "z"]})
    np.testing.assert_allclose(joint(model), joint(wanted))
    assert model.states == (("0", "1"), ("0", "1"), ("x", "y", "z"))


def test_graphs_without_tables() -> None:
    nx = library("networkx")
    with pytest.raises(InputError, match="node a has no attribute 'table'"):
        ps.from_networkx(nx.DiGraph([("a", "b")]))
    with pytest.raises(InputError, match="edge a – b has no attribute 'table'"):
        ps.from_networkx(nx.Graph([("a", "b")]))
    graph = nx.Graph()
    graph.add_node("a")
    with pytest.raises(InputError, match="node a: neither a table nor labels"):
        ps.from_networkx(graph)
