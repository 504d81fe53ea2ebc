"""Certificates put together: the question, the steps that prove its bounds, and a claim that the checker can verify."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from powersum._version import __version__
from powersum.core.arrays import IntArray
from powersum.exact.proof import elimination_forest
from powersum.model.certificate import Certificate, digest
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.ordering import elimination_order
from powersum.prepare.problem import Problem
from powersum.prepare.proof import Ground, Step
from powersum.prepare.simplify import simplify

ROOM = 1e-9
"""Room that a claim leaves for the checker's own rounding, as a share of the value or of 1."""


class Draft:
    """A certificate while it is made.

    Parameters
    ----------
    model
        The model as it was asked about.
    observed
        The same with likelihoods beside its factors.
    query, evidence
        The question.
    problem
        What simplification made of it.
    likelihoods
        The numbers of the factors beside the model's, by rising variable.
    order
        Order of elimination of all variables, where it was given.
    """

    def __init__(
        self,
        model: Model,
        observed: Model,
        query: Query,
        evidence: Mapping[int, int],
        problem: Problem,
        likelihoods: Mapping[int, Sequence[float]] | None = None,
        order: IntArray | None = None,
    ) -> None:
        self._model, self._query, self._likelihoods = model, query, likelihoods or {}
        # Sums and maxima have one value whatever the order, as max variables are always last.
        part_of_question = order is not None and query.task == "power-sum"
        self.ground = Ground(observed, query.weights, evidence, order if part_of_question else None, problem)
        self._steps: list[Step] = []

    def add(self, step: Step) -> int:
        """Add a step; its number."""
        self._steps.append(step)
        return len(self._steps) - 1

    def add_value(self, states: Mapping[int, int]) -> None:
        """Prove from below what is left when some variables have these states, by elimination of all others."""
        ground = self.ground
        problem = simplify(ground.model, self._query, {**ground.evidence, **states})
        if not problem.feasible:
            return
        inside = Ground(ground.model, ground.weights, ground.evidence, ground.order, problem)
        order = elimination_order(problem.model, problem.tau) if ground.order is None else None
        if order is None:
            order = problem.reduced_order(np.asarray(ground.order))
        self.add(inside.tree([elimination_forest(problem, order)], box=True))

    def done(
        self,
        log_lower: float,
        log_upper: float,
        assignment: Mapping[int, int] | None = None,
        *,
        log_error: float = 0.0,
    ) -> Certificate:
        """The certificate of these bounds; ``log_error`` is the rounding that they count."""
        arrays: dict[str, Any] = {"weights": self._query.weights, **self._question()}
        for number, step in enumerate(self._steps):
            arrays |= {f"{number}/{name}": array for name, array in step.arrays.items()}
        head: dict[str, Any] = {
            "format": "powersum-certificate",
            "version": 1,
            "producer": f"powersum {__version__}",
            "model": digest(self._model),
            "claim": {
                "log_lower": _number(weaker(log_lower, -1.0, log_error)),
                "log_upper": _number(weaker(log_upper, 1.0, log_error)),
            },
            "steps": [{"kind": step.kind, **step.options} for step in self._steps],
        }
        if assignment:
            head["assignment"] = [[int(v), int(s)] for v, s in assignment.items()]
        return Certificate(head, arrays)

    def _question(self) -> dict[str, Any]:
        """Evidence, likelihoods and order as arrays."""
        ground = self.ground
        arrays: dict[str, Any] = {}
        if ground.evidence:
            arrays["evidence"] = np.array(sorted(ground.evidence.items()), dtype=np.int64)
        if self._likelihoods:
            arrays["likelihood_variables"] = np.array(list(self._likelihoods), dtype=np.int64)
            arrays["likelihood_values"] = np.concatenate([np.asarray(row) for row in self._likelihoods.values()])
        if ground.order is not None:
            arrays["order"] = ground.order
        return arrays


def weaker(log_value: float, direction: float, log_error: float = 0.0) -> float:
    """A bound with room for rounding in a direction: 1 for an upper bound, -1 for a lower one."""
    if not math.isfinite(log_value):
        return log_value
    return log_value + direction * (ROOM * max(1.0, abs(log_value)) + 2.0 * log_error)


def _number(value: float) -> float | str:
    """A number as JSON has it."""
    return value if math.isfinite(value) else str(value)
