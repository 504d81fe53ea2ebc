"""Diagnosis: risks cause diseases, diseases cause findings, each by a graded noisy-or; some findings are known."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.generate.blocks import Block, Instance, assemble, check_count, check_share, draw_query

# Shares of risks and diseases; the rest are findings.
RISKS, DISEASES = 0.1, 0.3
# Larger tables are avoided by taking fewer parents.
LARGEST_TABLE = 20_000


def diagnosis(
    variables: int = 203,
    *,
    states: int = 7,
    parents: int = 3,
    observed: float = 0.3,
    share: float = 0.5,
    seed: int = 0,
) -> Instance:
    """A three-layer network of risks, diseases and findings; every state but 0 is a degree of severity.

    A child's severity is the largest that any of its parents, or chance, brings about (noisy-max, the graded form of
    noisy-or). Observed findings are sampled from the model and clamped as variables with one state.
    ``diagnosis(203, states=7)`` and ``diagnosis(359, states=6)`` have the size of the two networks of the paper.

    Parameters
    ----------
    variables
        Number of variables in all layers.
    states
        The largest number of states; most variables have two.
    parents
        The largest number of parents.
    observed
        Share of the findings that are known. With 0 the model is a Bayesian network.
    share
        Share of the unknown variables in the query.
    seed
        The same seed gives the same instance.

    Examples
    --------
    >>> import powersum as ps
    >>> model, query = ps.generate.diagnosis(40, observed=0.5, seed=3)
    >>> model.n_variables, model.name(0), model.name(39)
    (40, 'risk1', 'finding24')
    """
    check_count("variables", variables, 3)
    check_count("states", states, 2)
    check_count("parents", parents, 1)
    check_share("observed", observed)
    check_share("share", share)
    rng = np.random.default_rng(seed)
    risks = max(1, round(RISKS * variables))
    diseases = max(1, round(DISEASES * variables))
    layers = np.repeat([0, 1, 2], [risks, diseases, variables - risks - diseases])
    # Severity levels beyond yes and no become rarer with their number; one variable has them all.
    cardinalities = np.minimum(2 + rng.geometric(0.6, variables) - 1, states)
    cardinalities[rng.integers(risks)] = states

    scopes: list[IntArray] = []
    tables: list[FloatArray] = []
    values = np.zeros(variables, dtype=np.int64)
    for child in range(variables):
        causes = _causes(rng, child, layers, cardinalities, parents)
        scopes.append(np.append(causes, child))
        tables.append(_noisy_max(rng, cardinalities[causes], int(cardinalities[child])))
        chances = tables[-1][tuple(values[causes])]
        values[child] = rng.choice(len(chances), p=chances)

    known = np.flatnonzero(layers == 2)
    known = rng.permutation(known)[: round(observed * len(known))]
    for finding in known.tolist():
        tables[finding] = tables[finding][..., values[finding] : values[finding] + 1]
    cardinalities[known] = 1
    model = assemble(
        cardinalities,
        [Block(scope[None, :], table.reshape(1, -1)) for scope, table in zip(scopes, tables, strict=True)],
        directed=known.size == 0,
        names=[f"{layer}{number}" for layer, number in _names(layers)],
    )
    return Instance(model, draw_query(rng, np.flatnonzero(cardinalities > 1), share))


def _names(layers: IntArray) -> list[tuple[str, int]]:
    """Layer and number within it of each variable, counted from 1."""
    words = ("risk", "disease", "finding")
    firsts = np.searchsorted(layers, layers)
    return [(words[layer], i - first + 1) for i, (layer, first) in enumerate(zip(layers, firsts, strict=True))]


def _causes(rng: np.random.Generator, child: int, layers: IntArray, cardinalities: IntArray, parents: int) -> IntArray:
    """Parents from the layer above, as many as the largest table allows; risks have none."""
    above = np.flatnonzero(layers == layers[child] - 1)
    number = min(int(rng.integers(1, parents + 1)), len(above))
    causes = np.sort(rng.choice(above, number, replace=False)) if number else above
    sizes = cardinalities[child] * np.cumprod(cardinalities[causes])
    return causes[: int(np.searchsorted(sizes, LARGEST_TABLE, side="right"))]


def _noisy_max(rng: np.random.Generator, parent_states: IntArray, states: int) -> FloatArray:
    """The distribution of a child's severity: the largest of what each parent and chance alone cause."""
    # Every line holds P(severity ≤ y) of one cause at one of its states; independent causes multiply.
    at_most = np.cumsum(_decreasing(rng, 0.85 + 0.1 * rng.random(), states))
    for axis, count in enumerate(parent_states.tolist()):
        effect = rng.uniform(0.3, 0.9)
        lines = np.ones((count, states))
        for level in range(1, count):
            healthy = 1 - effect * level / (count - 1)
            lines[level] = np.cumsum(_decreasing(rng, healthy, states))
        shape = [1] * len(parent_states) + [states]
        shape[axis] = count
        at_most = at_most * lines.reshape(shape)
    return np.clip(np.diff(at_most, axis=-1, prepend=0.0), 0.0, None) / at_most[..., -1:]


def _decreasing(rng: np.random.Generator, healthy: float, states: int) -> FloatArray:
    """Probability ``healthy`` of state 0, the rest spread over the others."""
    return np.append(healthy, (1 - healthy) * rng.dirichlet(np.full(states - 1, 2.0)))
