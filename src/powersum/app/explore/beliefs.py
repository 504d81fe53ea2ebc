"""How probable each state is given what is observed, for the variables that are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from powersum.api.engine import MOST_VARIABLES, Engine
from powersum.api.inquiry import ask_next
from powersum.api.marginals import Marginals, marginals
from powersum.app.explore.ancestors import Ancestors
from powersum.app.explore.picture import MOST_LABELS
from powersum.core.errors import ImpossibleError
from powersum.model.keys import Place
from powersum.model.model import Model
from powersum.model.question import Question

SECONDS = 4.0
"""What beliefs may take where they are not exact: nobody waits longer after a click."""

MOST_NEXT = 8
"""Variables that are offered to be observed next."""


class Beliefs:
    """Distributions of single variables; an engine answers what is narrow, and of a large network a part is enough."""

    def __init__(self, model: Model) -> None:
        self._ancestors = Ancestors(model) if model.n_variables > MOST_VARIABLES else None
        self._engine = Engine(model, time_limit=SECONDS)
        self._wide = False

    def of(self, question: Question, variables: Sequence[int]) -> dict[str, Any]:
        """For each variable both sides of the probability of each state, or that the evidence is impossible."""
        place = {v: v for v in variables}
        try:
            if self._ancestors is not None and self._ancestors.apply:
                found, place = self._of_part(self._ancestors, question, variables)
            else:
                found = self._found(question, variables)
        except ImpossibleError as error:
            return {"impossible": str(error)}
        return beliefs_json(found, variables, place)

    @staticmethod
    def next_of(question: Question) -> list[dict[str, Any]]:
        """Which variables tell most about those that are maximised, most first, by both sides of the information."""
        about = [Place(v) for v in question.query.answered]
        found = ask_next(question.model, about, evidence=question.all_evidence, time_limit=SECONDS)
        return [
            {"id": question.model.variable(one.variable), "name": one.variable, "sides": list(one.information)}
            for one in found[:MOST_NEXT]
        ]

    def _found(self, question: Question, variables: Sequence[int]) -> Marginals:
        evidence = question.all_evidence
        if not self._wide:
            found = self._engine.marginals(evidence=evidence)
            self._wide = not found.exact
            return found
        return marginals(question.model, evidence=evidence, of=[Place(v) for v in variables], time_limit=SECONDS)

    @staticmethod
    def _of_part(
        ancestors: Ancestors, question: Question, variables: Sequence[int]
    ) -> tuple[Marginals, dict[int, int]]:
        """The same from what they depend on, where each variable has another number."""
        part, place = ancestors.of([*variables, *question.all_evidence])
        of = [Place(place[v]) for v in variables]
        evidence = {Place(place[v]): known for v, known in question.all_evidence.items()}
        return marginals(part, evidence=evidence, of=of, time_limit=SECONDS), place


def beliefs_json(found: Marginals, variables: Sequence[int], place: Mapping[int, int] | None = None) -> dict[str, Any]:
    """Both sides of each state of the variables, which may have other numbers in the distributions."""
    shown = {v: _shown(found, v if place is None else place[v]) for v in variables}
    return {"exact": found.exact, "beliefs": shown}


def _shown(found: Marginals, variable: int) -> list[list[float]]:
    return [_sides(found, variable, state) for state in range(min(len(found.at(variable)), MOST_LABELS))]


def _sides(found: Marginals, variable: int, state: int) -> list[float]:
    share = found.at(variable).at(state)
    if share.exact:
        return [float(share), float(share)]
    return [share.lower, share.upper]
