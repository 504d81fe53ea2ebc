"""Grids: Ising- and Potts-like Markov networks, and Bayesian networks with a share of deterministic tables."""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.generate.blocks import Block, Instance, assemble, check_count, check_share, check_size, draw_query
from powersum.model.model import Model

KINDS = ("mixed", "attractive", "bayes")


def grid(
    rows: int,
    columns: int,
    *,
    states: int = 2,
    kind: str = "mixed",
    strength: float = 1.0,
    field: float = 0.5,
    deterministic: float = 0.5,
    share: float = 0.5,
    seed: int = 0,
) -> Instance:
    """A grid of ``rows`` by ``columns`` variables; variable ``r · columns + c`` is in row ``r``, column ``c``.

    Parameters
    ----------
    rows, columns, states
        The size of the grid and the number of states of each variable.
    kind
        ``"mixed"`` and ``"attractive"``: neighbours that agree get the factor ``exp(θ)``, where θ is uniform on
        (−strength, strength) or (0, strength). ``"bayes"``: each variable depends on its upper and its left
        neighbour, as in the grid networks of the UAI competitions.
    strength, field
        Of the Markov kinds: the largest |θ| of a pair and of a state.
    deterministic
        Of ``"bayes"``: the share of the tables with zeros and ones only.
    share
        Share of the variables in the query.
    seed
        The same seed gives the same instance.

    Examples
    --------
    >>> import powersum as ps
    >>> model, query = ps.generate.grid(12, 12, kind="bayes", deterministic=0.5)
    >>> model.directed, model.n_factors, len(query)
    (True, 144, 72)
    """
    check_count("rows", rows, 1)
    check_count("columns", columns, 1)
    check_count("states", states, 2)
    check_size("strength", strength)
    check_size("field", field)
    check_share("deterministic", deterministic)
    check_share("share", share)
    if kind not in KINDS:
        raise InputError(f"kind is {kind!r}: there is {', '.join(KINDS)}")
    rng = np.random.default_rng(seed)
    cells = np.arange(rows * columns).reshape(rows, columns)
    cardinalities = np.full(cells.size, states)
    if kind == "bayes":
        model = assemble(cardinalities, _bayes_blocks(rng, cells, states, deterministic), directed=True)
    else:
        low = 0.0 if kind == "attractive" else -strength
        model = _markov(rng, cells, cardinalities, states, (low, strength), field)
    return Instance(model, draw_query(rng, cells.ravel(), share))


def _markov(
    rng: np.random.Generator,
    cells: IntArray,
    cardinalities: IntArray,
    states: int,
    couplings: tuple[float, float],
    field: float,
) -> Model:
    """One factor for each variable and one for each pair of neighbours."""
    across = np.column_stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()])
    down = np.column_stack([cells[:-1].ravel(), cells[1:].ravel()])
    pairs = np.concatenate([across, down])
    theta = rng.uniform(*couplings, len(pairs))
    agree = np.eye(states).ravel()
    return assemble(
        cardinalities,
        [
            Block(cells.reshape(-1, 1), np.exp(rng.uniform(-field, field, (cells.size, states)))),
            Block(pairs, np.exp(theta[:, None] * agree)),
        ],
    )


def _bayes_blocks(rng: np.random.Generator, cells: IntArray, states: int, deterministic: float) -> list[Block]:
    """The distributions of the corner, of the first row and column, and of all others given their two neighbours."""
    scopes = [
        cells[:1, :1].reshape(-1, 1),
        np.column_stack([cells[0, :-1], cells[0, 1:]]),
        np.column_stack([cells[:-1, 0], cells[1:, 0]]),
        np.column_stack([cells[:-1, 1:].ravel(), cells[1:, :-1].ravel(), cells[1:, 1:].ravel()]),
    ]
    return [Block(s, _distributions(rng, len(s), s.shape[1], states, deterministic)) for s in scopes if len(s)]


def _distributions(rng: np.random.Generator, number: int, width: int, states: int, deterministic: float) -> FloatArray:
    """Random conditional distributions of the last of ``width`` variables; a share of them without chance."""
    given = states ** (width - 1)
    tables = rng.exponential(size=(number, given, states))
    tables /= tables.sum(axis=-1, keepdims=True)
    # A source without chance would be a constant: only variables with parents are made deterministic.
    if width > 1:
        certain = np.eye(states)[rng.integers(0, states, (number, given))]
        tables = np.where((rng.random(number) < deterministic)[:, None, None], certain, tables)
    return tables.reshape(number, given * states)
