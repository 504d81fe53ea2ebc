"""What a question about a model involves, before any bound is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from powersum.api.bounding import checked_order, reduced_order
from powersum.bounds.registry import start_method
from powersum.core.arrays import IntArray
from powersum.model.model import Model
from powersum.model.question import Question
from powersum.prepare.sizes import LOG2_BYTES_PER_ENTRY

if TYPE_CHECKING:
    from powersum.prepare.problem import Problem

IBOUNDS = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 40, 50)
LARGEST_TREE = 2**40


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
    along it, as a logarithm to base 2 because it may be beyond any number of bytes; ``gdd_bytes`` that of the
    decomposed bound; ``tree_bytes`` that of the covering tree for each i-bound, the last of which is exact or huge.
    ``notes`` are those of the model.
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
    gdd_bytes: int
    tree_bytes: Mapping[int, int]
    notes: tuple[str, ...]


def describe(question: Question) -> Facts:
    """Simplify, order and build, but do not tighten: for ``powersum info``, which answers nothing else."""
    from powersum.prepare.ordering import order_cost
    from powersum.prepare.simplify import simplified

    order = checked_order(question)
    problem = simplified(question)
    eliminated = reduced_order(problem, order)
    cost = order_cost(problem.model, eliminated)
    needs_bound = problem.feasible and problem.model.n_variables > 0
    gdd_bytes = 0
    if needs_bound:
        gdd_bytes = int(start_method("gdd", problem, eliminated, threads=1, seed=0, options={}).sizes()["bytes"])
    return Facts(
        task=question.query.task,
        max_variables=len(question.query.max_variables),
        evidence=len(question.evidence.states),
        model=_size(question.model),
        feasible=problem.feasible,
        reduced=_size(problem.model),
        components=problem.n_components,
        width=cost.width,
        log2_exact_bytes=cost.log2_total + LOG2_BYTES_PER_ENTRY,
        gdd_bytes=gdd_bytes,
        tree_bytes=_tree_bytes(problem, eliminated) if needs_bound else {},
        notes=question.model.notes,
    )


def _tree_bytes(problem: Problem, order: IntArray) -> dict[int, int]:
    """Bytes of the covering tree at growing i-bounds, up to an exact one or the last that anybody would afford."""
    from powersum.bounds.buckets.partition import limits_of, partition
    from powersum.bounds.buckets.scopes import scopes_in_order
    from powersum.bounds.tree.budget import cost_of

    scopes = scopes_in_order(problem.model, order)
    cardinalities = problem.model.cardinalities[order]
    costs: dict[int, int] = {}
    for ibound in IBOUNDS:
        cost = cost_of(partition(scopes, limits_of(ibound)), scopes, cardinalities)
        costs[ibound] = cost.bytes
        if cost.exact or cost.bytes > LARGEST_TREE:
            break
    return costs


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
