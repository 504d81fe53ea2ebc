"""Check a certificate: recompute what it proves, and compare that with what it claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from powersum_check.archive import Archive
from powersum_check.arrays import longest
from powersum_check.best import Best, verified_best
from powersum_check.box import Step, held_by, restricted, root_box
from powersum_check.claims import refuse_if_more
from powersum_check.cover import Proven, lower_bound
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import ACCOUNT, MEMORY, WORK, Work, spend
from powersum_check.model import Model, Question, evidence_of, with_likelihoods
from powersum_check.numbers import MEASURE
from powersum_check.steps import Rule, prove

if TYPE_CHECKING:
    from powersum_check.balls import Balls

VERSION = 6


@dataclass(frozen=True, slots=True)
class Verified:
    """What has been proven, natural logs: computed here, rounded outwards, and at least as good as the claim."""

    log_lower: float
    log_upper: float
    question: Question
    """What has been checked: the caller's question, or the certificate's where the caller gave none."""
    assignment: dict[int, int] | None = None
    """States of the max variables that have a value of at least ``log_lower``, where the certificate gives them."""
    n_steps: int = 0
    best: Best | None = None
    """The best assignments in order, where the certificate lists them."""
    sides: tuple[int | None, int | None] = (None, None)
    """Numbers of the steps about the whole question with the largest lower and the least upper bound."""

    @property
    def proves_nothing(self) -> bool:
        """Whether all bounds are infinite on their own side."""
        bounds = [(self.log_lower, self.log_upper)]
        if self.best is not None:
            bounds += [(place.log_lower, place.log_upper) for place in self.best.places]
            bounds.append((-math.inf, self.best.log_upper_next))
        return all(bound == (-math.inf, math.inf) for bound in bounds)


def question_of(archive: Archive, model: Model) -> Question:
    """The question that a certificate says it answers."""
    weights = tuple(archive.floats("weights").tolist())
    pairs = archive.integers("evidence", columns=2).tolist() if "evidence" in archive else []
    likelihoods: dict[int, tuple[float, ...]] = {}
    if "likelihood_variables" in archive:
        numbers = archive.floats("likelihood_values").tolist()
        for v in archive.integers("likelihood_variables", high=len(model.cardinalities)).tolist():
            if v in likelihoods:
                raise BadFile(f"variable {v} has likelihoods twice")
            likelihoods[v] = tuple(numbers[: model.cardinalities[v]])
            del numbers[: model.cardinalities[v]]
        if numbers:
            raise BadFile("likelihood_values has too many numbers")
    order = tuple(archive.integers("order").tolist()) if "order" in archive else None
    question = Question(weights, evidence_of(pairs, "evidence"), likelihoods, order)
    question.refuse_if_wrong(model)
    return question


def check(
    model: Model,
    question: Question | None,
    certificate: str | Path | bytes,
    *,
    memory: int = MEMORY,
    work: float = WORK,
    more: Mapping[str, Rule] | None = None,
    measure: Balls | None = None,
) -> Verified:
    """Check that a certificate proves its claim about a question (None: its own); returns the bounds that it proves.

    See :func:`powersum_check.check`. ``more`` are rules beyond the kernel's; ``measure`` finds the rounding of each
    operation in place of the proofs in :mod:`powersum_check.numbers`.
    """
    tokens = MEASURE.set(measure), ACCOUNT.set(Work(work))
    try:
        return _check(model, question, certificate, memory, more or {})
    finally:
        MEASURE.reset(tokens[0])
        ACCOUNT.reset(tokens[1])


def _check(
    model: Model, question: Question | None, certificate: str | Path | bytes, memory: int, more: Mapping[str, Rule]
) -> Verified:
    archive = Archive(certificate, memory, longest=longest(model))
    room = archive.room
    room.take("the model", model.held)
    head = archive.json("head")
    if head.get("format") != "powersum-certificate" or head.get("version") != VERSION:
        raise BadFile(f"{archive.name}: not a powersum certificate of version {VERSION}")
    if head.get("model") != model.digest():
        raise Rejected("the certificate is about another model")
    claimed = question_of(archive, model)
    if question is not None:
        question.refuse_if_wrong(model)
        if not claimed.same_as(question):
            raise Rejected("the certificate answers another question (weights, evidence, likelihoods or order)")
    heads = head.get("steps")
    if not isinstance(heads, list) or not all(isinstance(one, dict) and type(one.get("kind")) is str for one in heads):
        raise BadFile(f"{archive.name}: steps is not a list of objects, each of a kind")
    whole = with_likelihoods(model, claimed)
    if measure := MEASURE.get():
        whole = replace(whole, factors=tuple(map(measure.measured, whole.factors)))
    root = root_box(model, claimed)
    proven: list[Proven] = []
    for number, one in enumerate(heads):
        before = room.taken
        spend(1000 + 50 * len(root))
        step = Step(archive, number, whole, claimed, root, one["kind"])
        step = replace(step, domains=restricted(step))
        try:
            proven.append(Proven(step.domains, *prove(step, proven, more)))
        except Rejected as error:
            raise Rejected(f"step {number}: {error}") from None
        # What is left of a step is its box.
        room.taken = before
        room.take("the boxes of steps", held_by(step.domains, root))
    assignment = _assignment(head, model, claimed)
    lower = lower_bound(proven, assignment or {})
    roots = [n for n, p in enumerate(proven) if all(len(a) == len(b) for a, b in zip(p.box, root, strict=True))]
    below = max(roots, key=lambda n: proven[n].log_lower, default=None)
    above = min(roots, key=lambda n: proven[n].log_upper, default=None)
    upper = math.inf if above is None else proven[above].log_upper
    refuse_if_more(head.get("claim"), lower, upper)
    best = verified_best(archive, head, claimed, root, proven)
    return Verified(lower, upper, claimed, assignment, len(heads), best, (below, above))


def _assignment(head: dict[str, Any], model: Model, question: Question) -> dict[int, int] | None:
    """States of all max variables, if the certificate names them."""
    pairs = head.get("assignment")
    if pairs is None:
        return None
    if not isinstance(pairs, list) or not all(
        isinstance(p, list) and len(p) == 2 and all(type(x) is int for x in p) for p in pairs
    ):
        raise BadFile("the assignment is not a list of pairs (variable, state)")
    states: dict[int, int] = dict(pairs)
    wanted = {v for v, w in enumerate(question.weights) if w == 0.0}
    if len(states) < len(pairs) or set(states) != wanted:
        raise BadFile("the assignment does not name each max variable once")
    if not all(0 <= s < model.cardinalities[v] for v, s in states.items()):
        raise BadFile("the assignment names a state that does not exist")
    return states
