"""Certificates of the k best: the values of those listed, and upper bounds on the parts that all others are in.

A part is asked about with likelihoods that forbid states. In its certificate these become the box of every step, as the
cubes do. A part is divided around an assignment by one variable after another (docs/certificates.md, covers).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from powersum.exact.small import small_elimination
from powersum.model.certificate import Certificate
from powersum.model.question import Question
from powersum.prepare.simplify import simplify
from powersum.proof.boxes import BoxProof, Steps
from powersum.proof.certificate import certificate_of, claim_of, ground_of, shorter, value_step
from powersum.proof.format import Proof, small
from powersum.run.best_parts import Part, States


class Listed(NamedTuple):
    """An assignment in the list: what was proven where it was found, and the bounds that its result has."""

    states: States
    proof: BoxProof
    log_lower: float
    log_upper: float


def best_certificate(
    question: Question,
    root: Part,
    *,
    variables: Sequence[int],
    distinct: int,
    listed: Sequence[Listed],
    log_upper_next: float,
    k: int,
) -> tuple[Certificate, tuple[str, ...]]:
    """A certificate of the best assignments, and notes where it proves less than is said of the first k and the next.

    Parameters
    ----------
    question
        The whole question.
    root
        The part of all assignments; every part was divided around some that is in the list.
    variables, distinct
        What the assignments are of, in the order by which parts were divided, and in how many variables they differ.
    listed
        The assignments, of which the first k were asked for.
    log_upper_next
        The bound on what comes after those.
    """
    writer = _Writer(question, variables, distinct, listed)
    uppers = writer.divide(root)
    said = [*((one.log_lower, one.log_upper) for one in listed[:k]), (-math.inf, log_upper_next)]
    proven = [*zip(writer.lowers, uppers, strict=False), (-math.inf, uppers[-1])]
    claims, notes = [], []
    for number, (lower, upper) in enumerate(proven):
        claims.append(claim_of(lower, max(upper, said[number][1]) if number < len(said) else upper))
        if number < len(said) and (shorter(lower, said[number][0]) or shorter(-upper, -said[number][1])):
            what = f"number {number + 1}" if number < k else "the next one"
            notes.append(f"The certificate proves less than the answer says of {what}: {lower:.6f} to {upper:.6f}.")
    # The claim about the whole question rests on a step about all of it, whatever its parts prove together.
    whole = root.proof.log_upper if root.proof.above is not None else math.inf
    if shorter(-whole, -listed[0].log_upper):
        notes.append(f"The certificate proves less than the answer says of the whole: at most {whole:.6f}.")
    observed = {v: s for v, s in question.evidence.states.items() if question.query.weights[v] == 0.0}
    plain = certificate_of(
        question,
        writer.ground,
        Proof(writer.steps, whole),
        log_lower=writer.lowers[0],
        log_upper=max(whole, listed[0].log_upper),
        assignment=observed | dict(zip(variables, listed[0].states, strict=True)),
    )
    arrays = {
        "best_variables": small(np.array(variables, dtype=np.int64)),
        "best_states": small(np.array([one.states for one in listed], dtype=np.int64).reshape(len(listed), -1)),
        "best_parts": small(np.array(writer.rows, dtype=np.int64)),
    }
    head = {**plain.head, "best": {"distinct": distinct, "claims": claims}}
    return Certificate(head, {**plain.arrays, **arrays}), tuple(notes)


class _Writer:
    """Steps and parts as they are put down.

    Attributes
    ----------
    steps, rows
        What is in the certificate.
    lowers
        The lower bound that is proven for each assignment in the list.
    """

    def __init__(self, question: Question, variables: Sequence[int], distinct: int, listed: Sequence[Listed]) -> None:
        model, observed = question.observed
        self.ground = ground_of(question, simplify(model, question.query, observed))
        self._variables = variables
        self._distinct = distinct
        self._number = {one.states: number for number, one in enumerate(listed)}
        self.steps = Steps()
        self.rows: list[tuple[int, int, int]] = []
        self.lowers: list[float] = []
        self._values: list[tuple[int, float]] = []
        for one in listed:
            self._write_value(dict(zip(variables, one.states, strict=True)), one)

    def _write_value(self, states: Mapping[int, int], one: Listed) -> None:
        """Put down what proves the value of an assignment: its elimination, or what was proven where it was found."""
        step, log_upper, number = value_step(self.ground, states, above=True), math.inf, len(self.steps)
        if step is None:
            self.lowers.append(one.proof.log_lower)
            self.steps.put(one.proof)
        else:
            exact = small_elimination(self.ground.model, {**self.ground.evidence, **states}, self.ground.weights)
            if exact is not None:
                answer = exact.run()
                log_upper = answer.log_value + answer.log_error
            self.lowers.append(one.log_lower)
            self.steps.append(step)
        self._values.append((number, log_upper))

    def divide(self, root: Part) -> list[float]:
        """Put down all parts; returns bounds on what is not too near to the first n of the list, for n from 0 on."""
        above: list[int] = []
        uppers: list[float] = []
        near: list[int] = []
        centers: list[int] = []
        waiting: list[tuple[int, Part, int]] = [(-1, root, -1)]
        while waiting:
            whole, part, step = waiting.pop()
            upper = uppers[whole] if whole >= 0 else math.inf
            center = centers[whole] if part.apart >= 0 else -1
            if part.apart == 0 and self._values[center][1] < upper:
                # The assignment itself.
                step, upper = self._values[center]
            if part.proof.above is not None and part.proof.log_upper < upper:
                upper = part.proof.log_upper
                step = self.steps.put(part.proof.upper_part) + part.proof.above
            number = len(above)
            above.append(whole)
            uppers.append(upper)
            near.append(center if part.apart < self._distinct else -1)
            centers.append(-1 if part.center is None else self._number[part.center])
            if not part.parts:
                self.rows.append((-1, near[-1], step))
                continue
            for v, s in self._divisions(part):
                self.rows.append((v, s, step))
                step = -1
            *pieces, rest = part.parts
            waiting += [*((number, piece, -1) for piece in pieces), (number, rest, step)]
        return _joined(above, uppers, near, len(self._number) + 1)

    def _divisions(self, part: Part) -> Iterator[tuple[int, int]]:
        """The variables and states by which a part is divided around an assignment, one for each piece."""
        assert part.center is not None
        for v, s in zip(self._variables, part.center, strict=True):
            kept = part.allowed.get(v, range(int(self.ground.model.cardinalities[v])))
            if s in kept and len(kept) > 1:
                yield v, s


def _joined(above: Sequence[int], uppers: Sequence[float], near: Sequence[int], n: int) -> list[float]:
    """Bounds on the first part without what is near to the first of the list, of which there are 0 to n - 1.

    Parts come after those that they are pieces of.
    """
    pieces = np.full((len(above), n), -math.inf)
    divided = np.zeros(len(above), dtype=np.bool_)
    for part in range(len(above) - 1, -1, -1):
        own = np.minimum(uppers[part], pieces[part] if divided[part] else math.inf)
        own = np.broadcast_to(own, n).copy()
        if near[part] >= 0:
            own[near[part] + 1 :] = -math.inf
        if above[part] < 0:
            return [float(bound) for bound in own]
        pieces[above[part]] = np.maximum(pieces[above[part]], own)
        divided[above[part]] = True
    raise AssertionError("there is a first part")
