"""Models from and to pyAgrum objects; pyAgrum is imported only to make one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from powersum.arrays import FloatArray
from powersum.errors import InputError
from powersum.model import Model


def from_pyagrum(network: Any) -> Model:
    """A model from a ``BayesNet`` or a ``MarkovRandomField`` of pyAgrum, with its names and labels.

    Parameters
    ----------
    network
        An object with ``cpt(node)`` for each node, or with ``factors()`` and ``factor(…)``.

    Notes
    -----
    pyAgrum reads numbers in BIF, NET and DSL files in single precision: 0.1 arrives as 0.10000000149, and distributions
    no longer sum to one. Where all entries of a network are of this kind, each is taken as the shortest decimal number
    that gives it, which is the one in the file if that has up to seven digits.

    Examples
    --------
    With ``network = pyagrum.loadBN("asia.bif")``::

        model = ps.from_pyagrum(network)
        ps.solve(model, maximize=["bronchitis", "lung_cancer"], evidence={"dyspnoea": "0"})
    """
    directed = hasattr(network, "cpt")
    if hasattr(network, "utility"):
        raise InputError("an influence diagram has decisions and utilities: make it a Bayesian network first")
    if not directed and not hasattr(network, "factors"):
        raise InputError(f"{type(network).__name__} is no network of pyAgrum: it has neither cpt() nor factors()")
    nodes = sorted(network.nodes())
    variables = [network.variable(node) for node in nodes]
    number = {variable.name(): index for index, variable in enumerate(variables)}
    tensors = [network.cpt(node) for node in nodes] if directed else [network.factor(f) for f in network.factors()]
    # The first variable of a tensor runs fastest and is the last axis of its array: the child of a distribution.
    scopes = [[number[name] for name in reversed(tensor.names)] for tensor in tensors]
    tables = _as_in_the_file([np.asarray(tensor.toarray(), dtype=np.float64) for tensor in tensors])
    return Model.from_factors(
        [variable.domainSize() for variable in variables],
        zip(scopes, tables, strict=True),
        directed=directed,
        names=list(number),
        states=[list(variable.labels()) for variable in variables],
    )


def to_pyagrum(model: Model) -> Any:
    """A ``BayesNet`` of pyAgrum from a Bayesian network; variables without names are called ``x0``, ``x1``, ….

    Examples
    --------
    ``pyagrum.lib.image.export(ps.to_pyagrum(model), "model.png")`` draws a model with pyAgrum's own tools.
    """
    if not model.directed:
        raise InputError("only a Bayesian network can become a BayesNet of pyAgrum; write a Markov network as .uai")
    gum = import_pyagrum("to_pyagrum")
    network = gum.BayesNet()
    names = model.names or [f"x{v}" for v in range(model.n_variables)]
    for v, name in enumerate(names):
        labels = [str(model.label(v, state)) for state in range(int(model.cardinalities[v]))]
        network.add(gum.LabelizedVariable(name, name, labels))
    described = set()
    for scope, log_table in model.factors():
        if not scope or scope[-1] in described:
            raise InputError("not a Bayesian network: each variable needs exactly one table, of which it is the last")
        described.add(scope[-1])
        child = names[scope[-1]]
        # pyAgrum runs through parents from the last added to the first.
        for parent in reversed(scope[:-1]):
            network.addArc(names[parent], child)
        network.cpt(child)[:] = np.exp(log_table)
    if len(described) < model.n_variables:
        missing = min(set(range(model.n_variables)) - described)
        raise InputError(f"not a Bayesian network: variable {names[missing]} has no table")
    return network


def import_pyagrum(purpose: str) -> Any:
    """The library, under today's or its older name; without it an error that says what to install."""
    with warnings.catch_warnings():
        # Its compiled part warns while it loads, and crashes where warnings are errors.
        warnings.simplefilter("ignore")
        for name in ("pyagrum", "pyAgrum"):
            try:
                return __import__(name)
            except ModuleNotFoundError as error:
                if error.name != name:
                    raise
    raise InputError(f"{purpose} needs pyAgrum: pip install 'powersum[formats]'")


def _as_in_the_file(tables: list[FloatArray]) -> list[FloatArray]:
    """The decimal numbers behind tables that are single precision throughout; other tables as they are."""
    single = [table.astype(np.float32) for table in tables]
    if not all(np.array_equal(table, rounded) for table, rounded in zip(tables, single, strict=True)):
        return tables
    return [rounded.astype(str).astype(np.float64) for rounded in single]
