"""How probable each state is given what is observed, for the variables that are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from powersum.answer.engine import Engine
from powersum.answer.marginals import Marginals, impossible, marginals
from powersum.core.errors import InputError
from powersum.explore.picture import MOST_LABELS
from powersum.model.model import Model
from powersum.model.question import Question

SECONDS, MEMORY = 4.0, 1e9
"""What beliefs may take where they are not exact: nobody waits longer after a click."""


class Beliefs:
    """Distributions of single variables; an engine answers what is narrow."""

    def __init__(self, model: Model) -> None:
        self._engine = Engine(model, time_limit=SECONDS, memory=MEMORY)
        self._wide = False

    def of(self, question: Question, variables: Sequence[int]) -> dict[str, Any]:
        """For each variable both sides of the probability of each state, or that the evidence is impossible."""
        try:
            found = self._found(question, variables)
        except InputError as error:
            if str(error) != str(impossible(question)):
                raise
            return {"impossible": str(error)}
        shown = {v: [_sides(found, v, s) for s in range(min(len(found[v]), MOST_LABELS))] for v in variables}
        return {"exact": found.exact, "beliefs": shown}

    def _found(self, question: Question, variables: Sequence[int]) -> Marginals:
        evidence = question.all_evidence
        if not self._wide:
            found = self._engine.marginals(evidence)
            self._wide = not found.exact
            return found
        return marginals(question.model, evidence, of=variables, time_limit=SECONDS, memory=MEMORY)


def _sides(found: Marginals, variable: int, state: int) -> list[float]:
    share = found[variable][state]
    if share.exact:
        return [float(share), float(share)]
    return [share.lower, share.upper]
