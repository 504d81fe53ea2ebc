"""What the tests of certificates share: the checker's word on a draft, and the truth by brute force."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import powersum_check as pc
from powersum.core.arrays import IntArray
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.prepare.problem import Problem
from powersum.proof.certificate import certificate_of, ground_of, value_step
from powersum.proof.format import Proof, Step
from tests.cases import Case
from tests.check.helpers import to_check
from tests.oracle import exact_value

CLOSE = 1e-8


class Draft:
    """A certificate about a case, step by step."""

    def __init__(self, case: Case, problem: Problem, order: IntArray | None) -> None:
        by = None if order is None else order.tolist()
        self._question = Question.of(case.model, evidence=case.evidence, weights=case.query, order=by)
        self.ground = ground_of(self._question, problem)
        self._steps: list[Step] = []

    def add(self, step: Step) -> None:
        """Add a step."""
        self._steps.append(step)

    def add_value(self, states: Mapping[int, int]) -> None:
        """Add a step that proves the value of an assignment, unless it is 0."""
        step = value_step(self.ground, states)
        if step is not None:
            self.add(step)

    def done(self, log_lower: float, log_upper: float, assignment: Mapping[int, int] | None = None) -> Certificate:
        """The certificate with a claim."""
        proof = Proof(self._steps, log_upper)
        return certificate_of(
            self._question, self.ground, proof, log_lower=log_lower, log_upper=log_upper, assignment=assignment
        )


def draft_of(case: Case, problem: Problem | None = None, order: IntArray | None = None) -> Draft:
    """A draft about a case."""
    return Draft(case, case.problem() if problem is None else problem, order)


def verified(case: Case, certificate: Certificate, folder: Path, order: IntArray | None = None) -> pc.Verified:
    """What the checker says of a certificate about this very question."""
    path = folder / "proof.zip"
    certificate.save(path)
    asked = order is not None and case.query.task == "power-sum"
    question = pc.Question(
        tuple(case.query.weights.tolist()),
        dict(case.evidence),
        order=tuple(order.tolist()) if asked and order is not None else None,
    )
    return pc.check(to_check(case.model), question, path)


def truth(case: Case, order: IntArray | None = None) -> float:
    """The value of the question."""
    by = None if order is None else order.tolist()
    return exact_value(case.model, case.query.weights, evidence=case.evidence, order=by)


def of_max(case: Case, states: IntArray) -> Mapping[int, int]:
    """The states of the max variables."""
    return {int(v): int(states[v]) for v in np.flatnonzero(case.query.weights == 0.0)}
