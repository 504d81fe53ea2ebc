"""A case as arguments of powersum's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import powersum as ps
from soak.cases import Case, Question
from soak.claims import truth_of
from soak.oracle import Truth
from soak.roads import schedule


def way(case: Case) -> dict[str, Any]:
    """The schedule of the case's road."""
    return {"schedule": schedule(case.road, case.trouble)}


def prepared(case: Case) -> tuple[ps.Model, Question, Truth]:
    """The model, the first question, and the truth about it."""
    model, question = case.model(), case.questions[0]
    return model, question, truth_of(case, model, question)


def asked(case: Case, question: Question) -> dict[str, Any]:
    """The question as keywords: by weights where it has others than 0 and 1, else by what is maximised."""
    evidence = case.evidence(question)
    weights = np.array(question.weights)
    if not np.all((weights == 0.0) | (weights == 1.0)):
        return {"weights": weights, "evidence": evidence}
    maximised = np.flatnonzero(weights == 0.0).tolist()
    return {"maximize": [f"x{v}" for v in maximised] if case.named else maximised, "evidence": evidence}
