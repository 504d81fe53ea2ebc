"""Models from pgmpy: a small stand-in with the same interface, and pgmpy itself where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import powersum as ps
from powersum import InputError
from tests.interop.networks import CLINIC, described, joint, library


def table(variables: Sequence[Any], values: Any, state_names: Any = None) -> Any:
    """What a table of pgmpy offers; the first variable of a distribution is its child."""
    array = np.asarray(values, dtype=np.float64)
    return SimpleNamespace(
        variables=list(variables), cardinality=np.array(array.shape), values=array, state_names=state_names
    )


def bayesian(*cpds: Any, nodes: Sequence[Any] | None = None) -> Any:
    return SimpleNamespace(get_cpds=lambda: list(cpds), nodes=lambda: nodes or [cpd.variables[0] for cpd in cpds])


def test_child_comes_last_and_labels_are_aligned() -> None:
    network = bayesian(
        table(["rain"], [0.8, 0.2], {"rain": ["no", "yes"]}),
        # The same states in another order, as pgmpy allows.
        table(["wet", "rain"], [[0.7, 0.1], [0.3, 0.9]], {"wet": ["yes", "no"], "rain": ["yes", "no"]}),
    )
    model = ps.from_pgmpy(network)
    assert (model.names, model.states) == (("rain", "wet"), (("no", "yes"), ("yes", "no")))
    assert model.directed
    assert model.factor(1).scope == (0, 1)
    np.testing.assert_allclose(np.exp(model.factor(1).log_table), [[0.1, 0.9], [0.7, 0.3]])


def test_names_and_labels_that_are_no_strings() -> None:
    model = ps.from_pgmpy(SimpleNamespace(get_factors=lambda: [table([7, (1, 2)], np.ones((2, 2)), {7: [10, 20]})]))
    assert (model.names, model.states, model.directed) == (("7", "(1, 2)"), (("10", "20"), ("0", "1")), False)
    assert model.evidence({"7": "20"}) == {0: 1}


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (object(), "object is no pgmpy network"),
        (bayesian(SimpleNamespace(variables=["a"])), "SimpleNamespace is not a table: only discrete networks"),
        (bayesian(table("a", [0.5, 0.5]), nodes=["a", "b"]), r"node b has no distribution: add one with add_cpds\(\)"),
        (
            bayesian(table("a", [0.5, 0.5], {"a": ["x", "y"]}), table("ba", np.ones((2, 2)), {"a": ["x", "z"]})),
            "variable a has states x, y here and x, z there",
        ),
    ],
)
def test_refusals(network: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.from_pgmpy(network)


def test_pgmpy_itself() -> None:
    models, discrete = library("pgmpy.models"), library("pgmpy.factors.discrete")
    network = models.DiscreteBayesianNetwork()
    network.add_nodes_from(CLINIC.names)
    for scope, log_table in CLINIC.factors():
        *parents, child = [CLINIC.name(v) for v in scope]
        network.add_edges_from((parent, child) for parent in parents)
        states = {CLINIC.name(v): [str(CLINIC.label(v, s)) for s in range(int(CLINIC.cardinalities[v]))] for v in scope}
        columns = np.exp(log_table).reshape(-1, log_table.shape[-1]).T
        sizes = [int(CLINIC.cardinalities[v]) for v in scope[:-1]]
        network.add_cpds(
            discrete.TabularCPD(child, log_table.shape[-1], columns, parents or None, sizes or None, state_names=states)
        )
    assert network.check_model()
    model = ps.from_pgmpy(network)
    assert described(model) == described(CLINIC)
    for same in (model, ps.from_pgmpy(network.to_markov_model()), ps.from_pgmpy(network.to_junction_tree())):
        np.testing.assert_allclose(joint(same), joint(CLINIC), rtol=1e-12)
    answer = ps.solve(model, maximize=["cancer", "bronchitis"], evidence={"dyspnoea": "much", "xray": "shadow"})
    wanted = library("pgmpy.inference").VariableElimination(network)
    pair = wanted.query(["cancer", "bronchitis"], {"dyspnoea": "much", "xray": "shadow"}, show_progress=False)
    best = pair.assignment([int(np.argmax(pair.values))])[0]
    assert dict(answer.assignment) == dict(best)
