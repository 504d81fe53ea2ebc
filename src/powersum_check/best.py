"""The k best: that no assignment but those listed before it is better than each, by a cover of all assignments.

An assignment is *near* one that is listed if they differ in fewer variables than ``distinct``. A part of the cover may
be called near a listed assignment if all of it is: then nothing of it counts for the places after that one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum_check.archive import Archive
from powersum_check.box import Domains
from powersum_check.claims import refuse_if_more
from powersum_check.cover import Proven, cover, lower_bound
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import spend
from powersum_check.model import Question


@dataclass(frozen=True, slots=True)
class Place:
    """One of the best: its value is at least ``log_lower``.

    No assignment that differs in enough variables from those of the places before it has more than ``log_upper``.
    """

    assignment: dict[int, int]
    log_lower: float
    log_upper: float


@dataclass(frozen=True, slots=True)
class Best:
    """The best assignments in order, and what no other one exceeds that differs in ``distinct`` variables from all."""

    places: tuple[Place, ...]
    log_upper_next: float
    distinct: int = 1

    @property
    def tolerance(self) -> float:
        """How much better than the one listed what belongs at a place could be: 0, or rounding, if it is proven."""
        return max((max(place.log_upper - place.log_lower, 0.0) for place in self.places), default=0.0)


def verified_best(
    archive: Archive, head: dict[str, Any], question: Question, root: Domains, proven: Sequence[Proven]
) -> Best | None:
    """What a certificate proves about the best assignments, if it lists any; refuses it where it claims more."""
    told = head.get("best")
    if told is None:
        return None
    if not isinstance(told, dict) or type(told.get("distinct")) is not int or told["distinct"] < 1:
        raise BadFile("best does not say in how many variables assignments differ")
    distinct: int = told["distinct"]
    claims = told.get("claims")
    variables = archive.integers("best_variables", high=len(root)).tolist()
    free = {v for v, weight in enumerate(question.weights) if weight == 0.0} - question.evidence.keys()
    if len(set(variables)) < len(variables) or set(variables) != free:
        raise BadFile("best_variables does not name each max variable that is not observed once")
    states = archive.integers("best_states", columns=len(variables))
    if len(states) and (states >= np.array([len(root[v]) for v in variables])).any():
        raise BadFile("best_states has a state that does not exist")
    spend(len(states) * states.size)
    for k in range(1, len(states)):
        if ((states[:k] != states[k]).sum(axis=1) < distinct).any():
            raise Rejected(f"number {k + 1} of the best differs in fewer than {distinct} variables from one before it")
    if not isinstance(claims, list) or len(claims) != len(states) + 1:
        raise BadFile("best has not one claim for each assignment and one for the next")

    def near(part: Domains, listed: int) -> bool:
        pairs = zip(variables, states[listed].tolist(), strict=True)
        return sum(bool(part[v].tolist() != [s]) for v, s in pairs) < distinct

    rows = archive.integers("best_parts", low=-1, columns=3).tolist()
    uppers = cover(rows, root, proven, question, archive.room.left, len(states), near)[1].tolist()
    observed = {v: s for v, s in question.evidence.items() if question.weights[v] == 0.0}
    places = []
    for k, row in enumerate(states.tolist()):
        assignment = {**observed, **dict(zip(variables, row, strict=True))}
        place = Place(assignment, lower_bound(proven, assignment), uppers[k])
        refuse_if_more(claims[k], place.log_lower, place.log_upper, f"number {k + 1} of the best")
        places.append(place)
    refuse_if_more(claims[-1], -math.inf, uppers[-1], "what comes after the best")
    return Best(tuple(places), uppers[-1], distinct)


def told_best(best: Best) -> Iterator[str]:
    """The best assignments as lines of text."""
    for number, place in enumerate(best.places, 1):
        states = " ".join(f"{v} {s}" for v, s in sorted(place.assignment.items()))
        yield f"best {number}: {place.log_lower!r} <= log value <= {place.log_upper!r}: {states}"
    others = "every other one" if best.distinct == 1 else f"all that differ from these in {best.distinct} variables"
    yield f"{others}: log value <= {best.log_upper_next!r}"
    if best.places and best.tolerance < math.inf:
        yield f"so these are the {len(best.places)} best in order, to within {best.tolerance:.3g}"
