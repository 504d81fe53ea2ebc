"""Proofs of boxes: what the certificate of a run in a box says of it, and the steps of many boxes as one list.

A run proves its box like any other question, with evidence and likelihoods that leave the states of the box. Here these
states become the box of every step, and ``cover`` steps join parts (docs/certificates.md).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from powersum.core.arrays import BoolArray
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.proof.format import Array, Step, small


@dataclass(frozen=True, slots=True)
class BoxProof:
    """Steps about a box; the number of the one that bounds it from above, and of the one from below, if there is one.

    The bounds are those that the steps prove, with room for the checker's rounding.
    """

    steps: tuple[Step, ...]
    log_upper: float
    log_lower: float
    above: int | None = None
    below: int | None = None

    @property
    def upper_part(self) -> BoxProof:
        """The same without what is only for the lower bound."""
        if self.above is None:
            return NOTHING_PROVEN
        return BoxProof(self.steps[: self.above + 1], self.log_upper, -math.inf, self.above)


NOTHING_PROVEN = BoxProof((), math.inf, -math.inf)


def proof_of(
    certificate: Certificate, n_above: int, question: Question, asked: Question, allowed: Mapping[int, Collection[int]]
) -> BoxProof:
    """What the certificate of a run in a box says of it as a box of the whole question.

    The run was ``asked`` with a likelihood more for each variable of which several states, but not all, are left.
    """
    own, more = question.evidence.likelihoods, list(asked.evidence.likelihoods)
    if len(own) == len(more):
        return proof_in_box(certificate, n_above, allowed)
    kept = np.concatenate([np.ones(question.model.n_factors, dtype=np.bool_), np.array([v in own for v in more], bool)])
    return proof_in_box(certificate, n_above, allowed, kept)


def proof_in_box(
    certificate: Certificate, n_above: int, allowed: Mapping[int, Collection[int]], kept: BoolArray | None = None
) -> BoxProof:
    """What a certificate about a question with fewer states says of these states as a box of the whole question.

    Parameters
    ----------
    certificate, n_above
        The certificate; its first so many steps prove the upper bound, the last of them for all of the box.
    allowed
        The states that are left of each variable that has not all of them.
    kept
        Which of its factors the whole question has as well; the others are 1 for all states that are allowed.
    """
    head, arrays = certificate.head, certificate.arrays
    steps: list[Step] = []
    place: dict[int, int] = {}
    for number, entry in enumerate(head["steps"]):
        prefix = f"{number}/"
        own = {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
        rows = _cut(own.get("box"), allowed)
        if rows is None:
            # One of several cases, of states that are not allowed: nothing is left of it.
            continue
        if kept is not None:
            left = _kept_factors(own, kept)
            if left is None:
                return NOTHING_PROVEN
            own |= left
        place[number] = len(steps)
        # A part that names a step of which nothing is left has no states left, and needs no bound.
        steps.append(_renamed(Step(entry["kind"], {**own, **rows_of(sorted(rows))}), place))
    claim = {side: float(head["claim"][f"log_{side}"]) for side in ("lower", "upper")}
    above = place[n_above - 1] if n_above and claim["upper"] < math.inf else None
    below = len(steps) - 1 if steps and claim["lower"] > -math.inf else None
    return BoxProof(
        tuple(steps),
        math.inf if above is None else claim["upper"],
        -math.inf if below is None else claim["lower"],
        above,
        below,
    )


def empty_box(allowed: Mapping[int, Collection[int]]) -> BoxProof:
    """That evidence or likelihoods leave nothing of a box."""
    rows = _cut(None, allowed)
    assert rows is not None
    arrays = rows_of(sorted(rows))
    return BoxProof((Step("tree", {**arrays, "removed": arrays["box"]}),), -math.inf, -math.inf, 0)


class Steps(list[Step]):
    """Steps of a certificate as they are put down, each after all that it refers to."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: dict[int, tuple[BoxProof, int]] = {}

    def put(self, proof: BoxProof) -> int:
        """Put down a proof, once; returns the number of its first step."""
        if id(proof) not in self._begun:
            # The proof is held, for what its number is may not become another's.
            self._begun[id(proof)] = proof, len(self)
            self += renumbered(proof.steps, len(self))
        return self._begun[id(proof)][1]

    def add(self, step: Step, rows: Iterable[tuple[int, int]] = ()) -> int:
        """Put down one step about a box, given by its rows (variable, state) of what is left; returns its number."""
        self.append(replace(step, arrays={**step.arrays, **rows_of(rows)}))
        return len(self) - 1

    def cover(self, variable: int, steps: Mapping[int, int], rows: Iterable[tuple[int, int]], others: int = -1) -> int:
        """Put down that steps bound the parts of a box by states of a variable; returns the number of that step.

        ``steps`` names a step for each state, ``others`` one for all other states, if there are any.
        """
        parts = [row for state, step in steps.items() for row in ((variable, state, -1), (-1, -1, step))]
        return self.add(Step("cover", {"parts": small(np.array([*parts, (-1, -1, others)]))}), rows)


def renumbered(steps: Sequence[Step], first: int) -> list[Step]:
    """Steps that follow others: what they say of earlier ones moves along."""
    place = {number: number + first for number in range(len(steps))}
    return [_renamed(step, place) for step in steps]


def _renamed(step: Step, place: Mapping[int, int]) -> Step:
    """A step in which the steps that it names have other numbers, or none."""
    if step.kind != "cover":
        return step
    parts = step.arrays["parts"].astype(np.int64)
    parts[:, 2] = [place.get(number, -1) for number in parts[:, 2].tolist()]
    return replace(step, arrays={**step.arrays, "parts": small(parts)})


def rows_of(rows: Iterable[tuple[int, int]]) -> dict[str, Array]:
    """The array of a box, from pairs of a variable and a state that is left of it; none for the whole question."""
    listed = list(rows)
    return {"box": small(np.array(listed, dtype=np.int64).reshape(-1, 2))} if listed else {}


def _cut(box: Array | None, allowed: Mapping[int, Collection[int]]) -> set[tuple[int, int]] | None:
    """The rows of a box with only the states that are allowed; None where that leaves nothing of a variable."""
    rows = {(int(v), int(s)) for v, s in (() if box is None else box.tolist())}
    named = {v for v, _ in rows}
    rows = {(v, s) for v, s in rows if v not in allowed or s in allowed[v]}
    if named != {v for v, _ in rows}:
        return None
    return rows | {(v, s) for v, states in allowed.items() if v not in named for s in states}


def _kept_factors(arrays: Mapping[str, Array], kept: BoolArray) -> dict[str, Array] | None:
    """What a step says of each factor, of those alone that are kept; None where a table of it has none of them.

    The others are 1 throughout the box, so that tables, and all that a step says of them, stay what they are.
    """
    own = {}
    if "home" in arrays:
        own["home"] = arrays["home"][kept]
    if "groups" in arrays:
        # Groups may have any numbers, as long as there are as many factors.
        own["groups"] = small(np.unique(arrays["groups"][kept], return_inverse=True)[1].astype(np.int64))
    if "table_of" in arrays:
        own["table_of"] = arrays["table_of"][kept]
        if not np.array_equal(np.union1d(own["table_of"], [-1]), np.union1d(arrays["table_of"], [-1])):
            return None
    return own
