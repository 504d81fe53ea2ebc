"""Models from pgmpy: a small stand-in with the same interface, and pgmpy itself where it is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
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


def test_to_pgmpy_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """By stand-ins for pgmpy's classes, and by pgmpy itself where it is installed."""
    try:
        importlib.import_module("pgmpy.models")
    except ModuleNotFoundError:
        stand_in(monkeypatch)
    for model in (CLINIC, ps.generate.grid(2, 2, seed=1).model.with_names("abcd")):
        again = ps.from_pgmpy(ps.to_pgmpy(model))
        names = [model.name(v) for v in range(model.n_variables)]
        assert sorted(again.names or ()) == sorted(names)
        for result in (ps.solve(model), ps.solve(again)):
            assert result.log_upper == pytest.approx(ps.solve(model).log_upper, abs=1e-6)
        asked = [names[0], names[2]]
        assert dict(ps.solve(again, asked).assignment) == {
            name: str(state) for name, state in ps.solve(model, asked).assignment.items()
        }


def test_without_pgmpy_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pgmpy", None)
    monkeypatch.setitem(sys.modules, "pgmpy.models", None)
    with pytest.raises(ps.InputError, match="which is not installed: pip install pgmpy"):
        ps.to_pgmpy(CLINIC)


class _Network:
    """A network that takes what it is given, as pgmpy's do."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self.tables: list[Any] = []

    def add_nodes_from(self, names: list[str]) -> None:
        self._nodes += names

    def add_edges_from(self, edges: list[tuple[str, str]]) -> None:
        assert all(end in self._nodes for edge in edges for end in edge)

    def nodes(self) -> list[str]:
        return self._nodes


class _Bayesian(_Network):
    def add_cpds(self, table: Any) -> None:
        self.tables.append(table)

    def get_cpds(self) -> list[Any]:
        return self.tables


class _Markov(_Network):
    def add_factors(self, table: Any) -> None:
        self.tables.append(table)

    def get_factors(self) -> list[Any]:
        return self.tables


class _Factor:
    def __init__(self, variables: list[str], cardinality: list[int], values: Any, state_names: Any) -> None:
        self.variables, self.cardinality, self.state_names = variables, cardinality, state_names
        self.values = np.asarray(values).reshape(cardinality)


def _cpd(
    name: str, size: int, values: Any, evidence: Any = None, evidence_card: Any = None, state_names: Any = None
) -> _Factor:
    assert np.asarray(values).shape == (size, int(np.prod(evidence_card or [1])))
    return _Factor([name, *(evidence or [])], [size, *(evidence_card or [])], values, state_names)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules named like pgmpy's."""
    models, discrete = ModuleType("pgmpy.models"), ModuleType("pgmpy.factors.discrete")
    models.DiscreteBayesianNetwork, models.DiscreteMarkovNetwork = _Bayesian, _Markov  # type: ignore[attr-defined]
    discrete.TabularCPD, discrete.DiscreteFactor = _cpd, _Factor  # type: ignore[attr-defined]
    for name, module in (("pgmpy.models", models), ("pgmpy.factors.discrete", discrete)):
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("pgmpy", "pgmpy.factors"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
