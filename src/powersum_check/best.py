"""The k best: that no assignment but those listed before it is better than each, from bounds on parts of the others.

Assignments are of the max variables. All of them are one part, the root. A part may be divided *around* a listed
assignment a: by the first variable, in the order of the list, in which an assignment of the part differs from a where
it could agree with it. What is left at the end is the *rest*: it agrees with a wherever the part allows, and differs
from it in just those variables in which the part does not have a's state. Are these fewer than the ``distinct`` that
are asked for, the rest is too near to a, and does not count once a has been taken. Any part may name a step whose box
lies around it: the step's upper bound then holds for each of its assignments, as values of boxes never rise when boxes
get smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum_check.archive import Archive
from powersum_check.box import Domains, within
from powersum_check.claims import refuse_if_more
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import afford, spend
from powersum_check.model import Question
from powersum_check.numbers import FloatArray
from powersum_check.steps import Proven, lower_bound


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
    distinct, claims = told["distinct"], told.get("claims")
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
    rows = archive.integers("best_parts", low=-1, columns=2).tolist()
    uppers = _uppers(rows, variables, states.tolist(), distinct, root, proven, archive.room.left)
    observed = {v: s for v, s in question.evidence.items() if question.weights[v] == 0.0}
    places = []
    for k, row in enumerate(states.tolist()):
        assignment = {**observed, **dict(zip(variables, row, strict=True))}
        place = Place(assignment, lower_bound(proven, assignment), float(uppers[k]))
        refuse_if_more(claims[k], place.log_lower, place.log_upper, f"number {k + 1} of the best")
        places.append(place)
    refuse_if_more(claims[-1], -math.inf, float(uppers[-1]), "what comes after the best")
    return Best(tuple(places), float(uppers[-1]), distinct)


def told_best(best: Best) -> Iterator[str]:
    """The best assignments as lines of text."""
    for number, place in enumerate(best.places, 1):
        states = " ".join(f"{v} {s}" for v, s in sorted(place.assignment.items()))
        yield f"best {number}: {place.log_lower!r} <= log value <= {place.log_upper!r}: {states}"
    others = "every other one" if best.distinct == 1 else f"all that differ from these in {best.distinct} variables"
    yield f"{others}: log value <= {best.log_upper_next!r}"
    if best.places and best.tolerance < math.inf:
        yield f"so these are the {len(best.places)} best in order, to within {best.tolerance:.3g}"


def _pieces(
    part: Domains, variables: list[int], center: list[int], number: int, distinct: int
) -> Iterator[tuple[Domains, int]]:
    """The pieces of a part divided around an assignment, and the rest; each with the number of it if it is too near."""
    rest, apart = list(part), 0
    for v, s in zip(variables, center, strict=True):
        if s not in part[v]:
            apart += 1
        elif len(part[v]) > 1:
            piece = list(rest)
            piece[v], rest[v] = np.setdiff1d(part[v], [s]), np.array([s])
            yield piece, -1
    yield rest, number if apart < distinct else -1


def _uppers(
    rows: list[list[int]],
    variables: list[int],
    states: list[list[int]],
    distinct: int,
    root: Domains,
    proven: Sequence[Proven],
    memory: int,
) -> FloatArray:
    """Bounds on all assignments that are not too near to the first k of the list, for k from 0 on.

    The rows are ``best_parts``: (step or -1, assignment to divide around or -1). A part that is divided is followed by
    its pieces, in the order of the variables, and by the rest, each with all that is in it.
    """
    parts: list[tuple[int, float, int]] = []
    """Of each part: the one that it is a piece of, the bound by its own step, and what it is too near to, or -1."""
    # What a part that is divided may hold until all that is in it has been read: its box, and bounds of places.
    held = 8 * (2 * len(root) + len(states) + max(map(len, root), default=0)) + 128 * len(variables)
    waiting = [(-1, iter([(root, -1)]))]
    for number, (step, around) in enumerate(rows):
        if step >= len(proven) or around >= len(states):
            raise BadFile("best_parts names a step or an assignment that does not exist")
        while waiting and (piece := next(waiting[-1][1], None)) is None:
            waiting.pop()
        if not waiting or piece is None:
            raise BadFile(f"best_parts has {len(rows) - number} rows too many")
        box, near = piece
        spend(3000 + 400 * len(box) + 10 * len(states))
        if step >= 0 and not within(box, proven[step].box):
            raise Rejected(f"part {number} of the best is not within the box of step {step}")
        parts.append((waiting[-1][0], proven[step].log_upper if step >= 0 else math.inf, near))
        if around >= 0:
            afford("parts of the best that are divided so deeply", held * (len(waiting) + 1), memory)
            waiting.append((number, _pieces(box, variables, states[around], around, distinct)))
    if any(next(pieces, None) for _, pieces in waiting):
        raise BadFile("best_parts ends with parts missing")
    joined: dict[int, FloatArray] = {}
    for number, (above, upper, near) in reversed(list(enumerate(parts))):
        bound = np.minimum(joined.pop(number, math.inf), np.full(len(states) + 1, upper))
        if near >= 0:
            bound[near + 1 :] = -math.inf
        joined[above] = np.maximum(joined.get(above, -math.inf), bound)
    return joined[-1]
