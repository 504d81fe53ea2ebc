"""A question about fewer states: the same model and evidence, with only some states of some variables allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from powersum.model.keys import Place
from powersum.model.question import Question


def restricted(question: Question, allowed: Mapping[int, Collection[int]]) -> dict[int, Any] | None:
    """The question's evidence with only these states of these variables; None where nothing is left of one.

    A state that is not allowed has likelihood 0, so that the value of every other configuration stays what it is.
    """
    states, likelihoods = question.evidence
    evidence = question.all_evidence
    for variable, kept in allowed.items():
        if not kept or (variable in states and states[variable] not in kept):
            return None
        size = int(question.model.cardinalities[variable])
        if variable in likelihoods:
            own = [value if state in kept else 0.0 for state, value in enumerate(likelihoods[variable])]
            if not any(own):
                return None
            evidence[Place(variable)] = own
        elif len(kept) == 1:
            evidence[Place(variable)] = Place(*kept)
        elif len(kept) < size and variable not in states:
            evidence[Place(variable)] = [1.0 if state in kept else 0.0 for state in range(size)]
    return evidence
