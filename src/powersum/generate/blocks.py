"""What the generators share: many factors of one shape at a time, and a query drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, given_up, starts_of
from powersum.core.errors import InputError
from powersum.model.model import Model, log_of_probabilities


class Instance(NamedTuple):
    """A generated model and the variables to maximise."""

    model: Model
    query: list[int]


class Block(NamedTuple):
    """Factors of one shape: a row of ``scopes`` and a row of ``tables`` (probabilities) for each."""

    scopes: IntArray
    tables: FloatArray


def assemble(
    cardinalities: IntArray, blocks: Sequence[Block], *, directed: bool = False, names: Sequence[str] | None = None
) -> Model:
    """One model of all blocks, without a Python object for a factor."""
    return Model(
        cardinalities=cardinalities,
        scope_starts=starts_of(np.concatenate([np.full(len(b.scopes), b.scopes.shape[1]) for b in blocks])),
        scope_variables=np.concatenate([b.scopes.ravel() for b in blocks]),
        table_starts=starts_of(np.concatenate([np.full(len(b.scopes), b.tables.shape[1]) for b in blocks])),
        log_values=given_up(log_of_probabilities(np.concatenate([b.tables.ravel() for b in blocks]))),
        directed=directed,
        names=None if names is None else tuple(names),
    )


def repeated(scopes: IntArray, table: FloatArray) -> Block:
    """The same table on every scope."""
    return Block(scopes, np.broadcast_to(table.ravel(), (len(scopes), table.size)))


def draw_query(rng: np.random.Generator, candidates: IntArray, share: float) -> list[int]:
    """A share of the candidates, drawn at random, in ascending order."""
    chosen = rng.permutation(candidates)[: round(share * len(candidates))]
    return sorted(int(v) for v in chosen)


def check_count(name: str, value: int, least: int) -> None:
    """Refuse a number that is too small."""
    if value < least:
        raise InputError(f"{name} is {value}: it must be {least} or more")


def check_share(name: str, value: float) -> None:
    """Refuse what is not a share from 0 to 1."""
    if not 0.0 <= value <= 1.0:
        raise InputError(f"{name} is {value}: it must be between 0 and 1")


def check_size(name: str, value: float) -> None:
    """Refuse a strength that is negative or not finite."""
    if not 0.0 <= value < np.inf:
        raise InputError(f"{name} is {value}: it must be a number ≥ 0")
