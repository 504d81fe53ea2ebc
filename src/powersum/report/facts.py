"""What a question about a model involves, before any bound is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from powersum.arrays import IntArray
from powersum.bound import reduced_order
from powersum.model import Model
from powersum.query import Query
from powersum.tighten import DEFAULT_METHOD, start_method


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Size of a model. ``domains`` and ``cliques`` count variables by states and factors by scope."""

    variables: int
    factors: int
    domains: Mapping[int, int]
    cliques: Mapping[int, int]
    entries: int
    zeros: int


@dataclass(frozen=True, slots=True)
class Facts:
    """A question, what simplification leaves of it, and what answers cost.

    ``width`` is the constrained induced width of the order. ``log2_exact_bytes`` is the memory of exact elimination
    along it, as a logarithm to base 2 because it may be beyond any number of bytes; ``bound_bytes`` that of a bound.
    """

    task: str
    max_variables: int
    evidence: int
    model: ModelSize
    feasible: bool
    reduced: ModelSize
    components: int
    width: int
    log2_exact_bytes: float
    method: str
    bound_bytes: int


def describe(model: Model, query: Query, evidence: Mapping[int, int], order: IntArray | None = None) -> Facts:
    """Simplify, order and build, but do not tighten."""
    from powersum.ordering import order_cost
    from powersum.simplify import simplify

    problem = simplify(model, query, evidence)
    eliminated = reduced_order(problem, order)
    cost = order_cost(problem.model, eliminated)
    needs_bound = problem.feasible and problem.model.n_variables > 0
    sizes = (
        start_method(DEFAULT_METHOD, problem, eliminated, threads=1, seed=0, options={}).sizes() if needs_bound else {}
    )
    return Facts(
        task=query.task,
        max_variables=len(query.max_variables),
        evidence=len(evidence),
        model=_size(model),
        feasible=problem.feasible,
        reduced=_size(problem.model),
        components=problem.n_components,
        width=cost.width,
        log2_exact_bytes=cost.log2_total + math.log2(8),
        method=DEFAULT_METHOD,
        bound_bytes=int(sizes.get("bytes", 0)),
    )


def _size(model: Model) -> ModelSize:
    return ModelSize(
        variables=model.n_variables,
        factors=model.n_factors,
        domains=_counts(model.cardinalities),
        cliques=_counts(np.diff(model.scope_starts)),
        entries=model.log_values.size,
        zeros=int(np.isneginf(model.log_values).sum()),
    )


def _counts(numbers: IntArray) -> dict[int, int]:
    values, counts = np.unique(numbers, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))
