"""Models from pgmpy objects, known by what they offer and not by their class: pgmpy itself is never imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.interop.checks import checked_model
from powersum.model.model import Model


def from_pgmpy(network: Any) -> Model:
    """A model from a discrete network, factor graph or junction tree of pgmpy.

    Names of variables and labels of states are kept, as strings. Numbers in a question are places in the order of
    ``model.names``, not pgmpy's labels: ask for ``"3"`` to mean a node that pgmpy calls ``3``.

    Parameters
    ----------
    network
        An object with ``get_cpds()`` whose distributions are tables, or with ``get_factors()``.

    Examples
    --------
    With ``network = pgmpy.utils.get_example_model("alarm")``::

        model = ps.from_pgmpy(network)
        ps.solve(model, maximize=["HYPOVOLEMIA", "LVFAILURE"], evidence={"HRBP": "HIGH", "CVP": "LOW"})
    """
    directed = hasattr(network, "get_cpds")
    if not directed and not hasattr(network, "get_factors"):
        raise InputError(f"{type(network).__name__} is no pgmpy network: it has neither get_cpds() nor get_factors()")
    factors = list(network.get_cpds() if directed else network.get_factors())
    names: dict[Any, int] = {}
    sizes: list[int] = []
    labels: list[list[str]] = []
    for factor in factors:
        for variable, size in zip(factor.variables, _cardinality(factor), strict=True):
            if variable not in names:
                names[variable] = len(names)
                sizes.append(size)
                labels.append(_labels(factor, variable, size))
    if directed:
        _check_complete(network, factors)
    return checked_model(
        sizes,
        [_aligned(factor, names, labels, directed) for factor in factors],
        directed=directed,
        names=[str(name) for name in names],
        states=labels,
    )


def to_pgmpy(model: Model) -> Any:
    """A pgmpy network with the names, labels and tables of a model.

    A model of distributions becomes a ``DiscreteBayesianNetwork``, any other one a ``MarkovNetwork``, whose every
    variable needs a table.
    """
    try:
        models, discrete = import_module("pgmpy.models"), import_module("pgmpy.factors.discrete")
    except ModuleNotFoundError as error:
        raise InputError(f"to_pgmpy needs {error.name}, which is not installed: pip install pgmpy") from None
    names = [model.name(v) for v in range(model.n_variables)]
    labels = {
        name: [str(model.label(v, s)) for s in range(int(model.cardinalities[v]))] for v, name in enumerate(names)
    }
    factors = [(model.scope(k).tolist(), np.exp(model.factor(k)[1])) for k in range(model.n_factors)]
    children = [scope[-1] for scope, _ in factors if scope]
    if model.directed and sorted(children) == list(range(model.n_variables)):
        # Older releases have the same class under another name.
        network = (getattr(models, "DiscreteBayesianNetwork", None) or models.BayesianNetwork)()
        network.add_nodes_from(names)
        for scope, table in factors:
            *parents, child = scope
            network.add_edges_from([(names[p], names[child]) for p in parents])
            network.add_cpds(
                discrete.TabularCPD(
                    names[child],
                    int(model.cardinalities[child]),
                    np.moveaxis(table, -1, 0).reshape(int(model.cardinalities[child]), -1),
                    evidence=[names[p] for p in parents] or None,
                    evidence_card=[int(model.cardinalities[p]) for p in parents] or None,
                    state_names={names[v]: labels[names[v]] for v in scope},
                )
            )
        return network
    network = (getattr(models, "DiscreteMarkovNetwork", None) or models.MarkovNetwork)()
    network.add_nodes_from(names)
    for scope, table in factors:
        if not scope:
            raise InputError("to_pgmpy: the model has a factor without variables, which a MarkovNetwork cannot hold")
        own = [names[v] for v in scope]
        network.add_edges_from([(a, b) for k, a in enumerate(own) for b in own[k + 1 :]])
        network.add_factors(
            discrete.DiscreteFactor(own, list(table.shape), table, state_names={name: labels[name] for name in own})
        )
    return network


def _cardinality(factor: Any) -> list[int]:
    sizes = getattr(factor, "cardinality", None)
    if sizes is None or not hasattr(factor, "values"):
        raise InputError(f"{type(factor).__name__} is not a table: only discrete networks can be read")
    return [int(size) for size in sizes]


def _labels(factor: Any, variable: Any, size: int) -> list[str]:
    known = (getattr(factor, "state_names", None) or {}).get(variable)
    return [str(label) for label in (range(size) if known is None else known)]


def _aligned(
    factor: Any, names: dict[Any, int], labels: list[list[str]], directed: bool
) -> tuple[Sequence[int], FloatArray]:
    """Scope and table with every axis in the order of the variable's labels, the child of a distribution last."""
    table = np.asarray(factor.values, dtype=np.float64).reshape(_cardinality(factor))
    for axis, variable in enumerate(factor.variables):
        own = _labels(factor, variable, table.shape[axis])
        wanted = labels[names[variable]]
        # Two factors of one pgmpy model may list the same states in different orders.
        if own != wanted:
            if sorted(own) != sorted(wanted):
                raise InputError(f"variable {variable} has states {', '.join(wanted)} here and {', '.join(own)} there")
            table = np.take(table, [own.index(label) for label in wanted], axis=axis)
    scope = [names[variable] for variable in factor.variables]
    if directed:
        return [*scope[1:], scope[0]], np.moveaxis(table, 0, -1)
    return scope, table


def _check_complete(network: Any, factors: list[Any]) -> None:
    """Refuse a Bayesian network in which a node has no distribution."""
    described = {factor.variables[0] for factor in factors}
    for node in network.nodes():
        if node not in described:
            raise InputError(f"node {node} has no distribution: add one with add_cpds()")
