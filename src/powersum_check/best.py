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
from powersum_check.model import Question
from powersum_check.numbers import FloatArray, IntArray
from powersum_check.steps import Proven


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
    archive: Archive, head: dict[str, Any], question: Question, root: Domains, proven: Sequence[Proven], memory: int
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
    for k in range(1, len(states)):
        if ((states[:k] != states[k]).sum(axis=1) < distinct).any():
            raise Rejected(f"number {k + 1} of the best differs in fewer than {distinct} variables from one before it")
    if not isinstance(claims, list) or len(claims) != len(states) + 1:
        raise BadFile("best has not one claim for each assignment and one for the next")
    uppers = _Parts(archive, variables, states, distinct, root, proven, memory).uppers()
    lowers = _lowers(variables, proven)
    observed = {v: s for v, s in question.evidence.items() if question.weights[v] == 0.0}
    places = []
    for k, row in enumerate(states.tolist()):
        lower, upper = lowers.get(tuple(row), -math.inf), float(uppers[k])
        refuse_if_more(claims[k], lower, upper, f"number {k + 1} of the best")
        places.append(Place({**observed, **dict(zip(variables, row, strict=True))}, lower, upper))
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


def _lowers(variables: list[int], proven: Sequence[Proven]) -> dict[tuple[int, ...], float]:
    """The largest lower bound on the value of each assignment that some step's box has alone."""
    found: dict[tuple[int, ...], float] = {}
    for step in proven:
        if all(len(step.box[v]) == 1 for v in variables):
            states = tuple(int(step.box[v][0]) for v in variables)
            found[states] = max(found.get(states, -math.inf), step.log_lower)
    return found


class _Parts:
    """The parts as the certificate divides them: ``best_parts``, rows (step or -1, assignment to divide around or -1).

    A part that is divided is followed by its pieces, in the order of the variables, and by the rest, each with all that
    is in it. Which states they have is computed here.
    """

    def __init__(
        self,
        archive: Archive,
        variables: list[int],
        states: IntArray,
        distinct: int,
        root: Domains,
        proven: Sequence[Proven],
        memory: int,
    ) -> None:
        self._variables, self._states, self._distinct = variables, states.tolist(), distinct
        self._proven = proven
        rows = archive.integers("best_parts", low=-1, columns=2).tolist()
        self._above: list[int] = []
        """The part that each part is a piece of, -1 for the root."""
        self._upper: list[float] = []
        """The bound on each part by its own step, or by that of a part around it."""
        self._near: list[int] = []
        """The number of an assignment that all of the part is too near to, -1 where there is none."""
        # What a part that is divided may hold until all that is in it has been read: its box, and bounds of places.
        held = 8 * (len(root) + len(states) + max(map(len, root), default=0)) + 128 * len(variables)
        depth: list[int] = []
        waiting: list[tuple[int, Domains, int, int | None]] = [(-1, root, -1, 0)]
        for number, (step, around) in enumerate(rows):
            if not waiting:
                raise BadFile(f"best_parts has {len(rows) - number} rows too many")
            if step >= len(proven) or around >= len(self._states):
                raise BadFile("best_parts names a step or an assignment that does not exist")
            above, whole, center, at = waiting.pop()
            box, near = (whole, -1) if above < 0 else self._piece(whole, center, at)
            upper = self._upper[above] if above >= 0 else math.inf
            if step >= 0:
                if not within(box, proven[step].box):
                    raise Rejected(f"part {number} of the best is not within the box of step {step}")
                upper = min(upper, proven[step].log_upper)
            self._above.append(above)
            self._upper.append(upper)
            self._near.append(near)
            depth.append(1 if above < 0 else depth[above] + 1)
            if around >= 0:
                if held * depth[-1] > memory:
                    raise BadFile(f"best_parts divides parts so deeply that --memory, {memory} bytes, does not suffice")
                # The last one in is the next one out.
                waiting.append((number, box, around, None))
                waiting += [(number, box, around, at) for at in reversed(list(self._pieces(box, around)))]
            # Each that waits needs a row of its own, so that there are never more of them than the file is long.
            if len(waiting) > len(rows) - number - 1:
                raise BadFile(f"best_parts ends with {len(waiting) - (len(rows) - number - 1)} parts missing")
        if waiting:
            raise BadFile("best_parts has no rows")

    def uppers(self) -> FloatArray:
        """Bounds on all assignments that are not too near to the first k of the list, for k from 0 on."""
        n = len(self._states) + 1
        joined: dict[int, FloatArray] = {}
        found = np.full(n, math.inf)
        for number in reversed(range(len(self._above))):
            found = np.minimum(joined.pop(number, math.inf), np.full(n, self._upper[number]))
            if self._near[number] >= 0:
                found[self._near[number] + 1 :] = -math.inf
            above = self._above[number]
            joined[above] = np.maximum(joined.get(above, -math.inf), found)
        return found

    def _pieces(self, box: Domains, around: int) -> Iterator[int]:
        """The variables, as places in the list, by which a part is divided."""
        for at, (v, s) in enumerate(zip(self._variables, self._states[around], strict=True)):
            if len(box[v]) > 1 and s in box[v]:
                yield at

    def _piece(self, whole: Domains, around: int, at: int | None) -> tuple[Domains, int]:
        """A piece of a part, or the rest; and the assignment that it is too near to, or -1."""
        box, apart = list(whole), 0
        for v, s in list(zip(self._variables, self._states[around], strict=True))[:at]:
            if s in whole[v]:
                box[v] = np.array([s])
            else:
                apart += 1
        if at is not None:
            v = self._variables[at]
            box[v] = np.setdiff1d(whole[v], [self._states[around][at]])
            return box, -1
        return box, around if apart < self._distinct else -1
