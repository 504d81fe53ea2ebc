"""Models from and to pyAgrum objects; pyAgrum is imported only to make one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.interop.checks import INFLUENCE_DIAGRAM, checked_model
from powersum.interop.distributions import MAX_ENTRIES, factor_of_each
from powersum.model.model import Model


def from_pyagrum(network: Any) -> Model:
    """A model from a ``BayesNet`` or a ``MarkovRandomField`` of pyAgrum.

    Parameters
    ----------
    network
        An object with ``cpt(node)`` for each node, or with ``factors()`` and ``factor(…)``.

    Notes
    -----
    pyAgrum reads numbers in BIF, NET and DSL files in single precision: 0.1 arrives as 0.10000000149, and distributions
    no longer sum to one. Where all entries of a network are of this kind, each is taken as the shortest decimal number
    that gives it, which is the one in the file if that has up to seven digits. Positive numbers below 1e-45 have become
    zeros before they get here: read BIF files with :func:`powersum.read`, which keeps them.

    Nodes that pyAgrum computes (noisy-OR, noisy-AND, logit, aggregators) become tables. Distributions that do not sum
    to one are taken as they are, and named in ``model.notes``.

    Examples
    --------
    With ``network = pyagrum.loadBN("asia.bif")``::

        model = ps.from_pyagrum(network)
        ps.solve(model, maximize=["bronchitis", "lung_cancer"], evidence={"dyspnoea": "0"})
    """
    directed = hasattr(network, "cpt")
    if hasattr(network, "utility"):
        raise InputError(INFLUENCE_DIAGRAM)
    if not directed and not hasattr(network, "factors"):
        raise InputError(f"{type(network).__name__} is no network of pyAgrum: it has neither cpt() nor factors()")
    nodes = sorted(network.nodes())
    variables = [network.variable(node) for node in nodes]
    number = {variable.name(): index for index, variable in enumerate(variables)}
    tensors = [network.cpt(node) for node in nodes] if directed else [network.factor(f) for f in network.factors()]
    # The first variable of a tensor runs fastest and is the last axis of its array: the child of a distribution.
    scopes = [[number[name] for name in reversed(tensor.names)] for tensor in tensors]
    for scope in scopes:
        if math.prod(variables[v].domainSize() for v in scope) > MAX_ENTRIES:
            raise InputError(f"the table of {variables[scope[-1]].name()} would have more than {MAX_ENTRIES} entries")
    tables = as_in_the_file([_table(tensor) for tensor in tensors])
    return checked_model(
        [variable.domainSize() for variable in variables],
        list(zip(scopes, tables, strict=True)),
        directed=directed,
        names=list(number),
        states=[list(variable.labels()) for variable in variables],
    )


def _table(tensor: Any) -> FloatArray:
    """The entries of a tensor, first variable last.

    ``toarray`` of one that pyAgrum computes on demand gives whatever was in memory; a copy in the order it has anyway
    is computed entry by entry.
    """
    return np.asarray(tensor.reorganize(list(tensor.names)).toarray(), dtype=np.float64)


def to_pyagrum(model: Model) -> Any:
    """A ``BayesNet`` of pyAgrum; variables without names are called ``x0``, ``x1``, ….

    Examples
    --------
    ``pyagrum.lib.image.export(ps.to_pyagrum(model), "model.png")`` draws a model with pyAgrum's own tools.
    """
    factors = factor_of_each(model)
    gum = import_pyagrum("to_pyagrum")
    network = gum.BayesNet()
    names = model.names or [f"x{v}" for v in range(model.n_variables)]
    for v, name in enumerate(names):
        labels = [str(model.label(v, state)) for state in range(int(model.cardinalities[v]))]
        network.add(gum.LabelizedVariable(name, name, labels))
    for child, factor in zip(names, factors, strict=True):
        scope, log_table = model.factor(factor)
        # pyAgrum runs through parents from the last added to the first.
        for parent in reversed(scope[:-1]):
            network.addArc(names[parent], child)
        with np.errstate(over="ignore", under="ignore"):
            table = np.exp(log_table)
        if not np.isfinite(table).all() or ((table < np.finfo(np.float64).tiny) & (log_table > -np.inf)).any():
            raise InputError(f"variable {child}: a table entry is beyond the doubles that pyAgrum computes with")
        network.cpt(child)[:] = table
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
    raise InputError(f"{purpose} needs pyAgrum, which is not installed: pip install pyagrum")


def as_in_the_file(tables: list[FloatArray]) -> list[FloatArray]:
    """The decimal numbers behind tables that are single precision throughout; other tables as they are."""
    single = [table.astype(np.float32) for table in tables]
    if not all(np.array_equal(table, rounded) for table, rounded in zip(tables, single, strict=True)):
        return tables
    return [rounded.astype(str).astype(np.float64) for rounded in single]
