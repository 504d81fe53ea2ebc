"""Certificates put together: the question, the steps that prove its bounds, and a claim that the checker can verify."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from powersum._version import __version__
from powersum.core.arrays import IntArray
from powersum.model.certificate import Certificate
from powersum.model.query import Query
from powersum.model.question import Question
from powersum.prepare.ordering import elimination_order, order_cost
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from powersum.proof.boxes import renumbered
from powersum.proof.elimination import elimination_forest
from powersum.proof.format import Ground, Proof, Step, small
from powersum_check.check import VERSION

FEW, WIDE = 2, 18.0
"""Tries of an order that are enough, unless elimination along it has more entries than two to this."""

WIDEST = 30.0
"""Elimination of more entries than two to this is not worth a certificate: no one would wait for its check."""

TOLD = 24.0
"""The same for all distributions: the checker keeps its messages, and passes through the tree three times."""

ROOM = 1e-9
"""Room that a claim leaves for the checker's own rounding, as a share of the value or of 1."""

UNPROVEN = 1e-6
"""A certificate proves the bounds of an answer where it is this close to them, as a share of the value or of 1."""


def certificate_of(
    question: Question,
    ground: Ground,
    proof: Proof,
    *,
    log_lower: float,
    log_upper: float,
    states: IntArray | None = None,
    assignment: Mapping[int, int] | None = None,
    below: Sequence[Step] = (),
    log_below: float = -math.inf,
) -> Certificate:
    """A certificate of the bounds of an answer.

    Parameters
    ----------
    question, ground
        What is asked, and what it stands on.
    proof
        Of the upper bound.
    log_lower, log_upper
        The bounds of the answer; less is claimed where less is proven.
    states
        Original states under which what is left has the value ``log_lower``, -1 where a variable has none; they are
        proven by elimination of all others. None where there is nothing to prove by that.
    assignment
        States of the max variables that the lower bound is claimed for.
    below, log_below
        Steps that prove another lower bound for the same assignment, where that elimination is too wide.
    """
    steps = list(proof.steps)
    unproven = bool(assignment) or not proof.exact
    if states is not None and log_lower > -math.inf and unproven:
        value = None
        if shorter(log_below, log_lower):
            value = value_step(ground, {int(v): int(states[v]) for v in np.flatnonzero(states >= 0)})
        if value is not None:
            steps.append(value)
        else:
            log_lower = min(log_lower, log_below)
            if not all(any(step is other for other in steps) for step in below):
                steps += renumbered(below, len(steps))
    arrays: dict[str, Any] = {"weights": question.query.weights, **_question_arrays(question, ground)}
    for number, step in enumerate(steps):
        arrays |= {f"{number}/{name}": array for name, array in step.arrays.items()}
    head: dict[str, Any] = {
        "format": "powersum-certificate",
        "version": VERSION,
        "producer": f"powersum {__version__}",
        "model": question.model.structure,
        "claim": claim_of(log_lower, max(log_upper, proof.log_upper)),
        "steps": [{"kind": step.kind} for step in steps],
    }
    if assignment and log_lower > -math.inf:
        head["assignment"] = [[int(v), int(s)] for v, s in assignment.items()]
    return Certificate(head, arrays)


def claim_of(log_lower: float, log_upper: float) -> dict[str, float | str]:
    """What a certificate says of bounds that it proves, with room for the checker's rounding."""
    return {"log_lower": _number(weaker(log_lower, -1.0)), "log_upper": _number(weaker(log_upper, 1.0))}


def shorter(log_proven: float, log_claimed: float) -> bool:
    """Whether a lower bound that is proven is short of one that is claimed by more than rounding."""
    scale = abs(log_claimed) if math.isfinite(log_claimed) else 0.0
    # Two infinities alike differ by what is no number, which is not more.
    return log_claimed - log_proven > UNPROVEN * max(1.0, scale)


def shortfall(certificate: Certificate, log_lower: float, log_upper: float) -> tuple[str, ...]:
    """A note for each bound of an answer that its certificate does not prove as it stands."""
    notes = []
    for side, name, claimed in ((1.0, "upper", log_upper), (-1.0, "lower", log_lower)):
        number = certificate.head["claim"][f"log_{name}"]
        proven = side * math.inf if number is None else float(number)
        if shorter(-side * proven, -side * claimed):
            text = f"log_{name} = {proven:.6f}" if math.isfinite(proven) else f"no {name} bound"
            notes.append(f"The certificate proves less than the answer says: {text}.")
    return tuple(notes)


def ground_of(question: Question, problem: Problem) -> Ground:
    """What the steps of a certificate stand on."""
    # Sums and maxima have one value whatever the order, as max variables are last; blocks have one for any of theirs.
    query = question.query
    order = question.order if query.task == "power-sum" else None
    if order is None and query.blocks is not None:
        order = np.argsort(query.blocks, kind="stable")
    observed = question.observed
    return Ground(observed.model, question.query.weights, observed.states, order, problem)


def value_step(ground: Ground, states: Mapping[int, int], *, above: bool = False) -> Step | None:
    """Prove from below what is left when some variables have these states, by elimination of all others.

    With ``above`` from both sides: then there is a reason for each state that it leaves out. None where nothing is
    left, or where it is too wide.
    """
    evidence = {**ground.evidence, **states}
    problem = simplify(ground.model, Query(ground.weights), evidence)
    if not problem.feasible:
        return None
    if ground.order is None:
        order = elimination_order(problem.model, problem.tau, restarts=FEW)
        if order_cost(problem.model, order).log2_total > WIDE:
            order = elimination_order(problem.model, problem.tau)
    else:
        order = problem.reduced_order(ground.order)
    if order_cost(problem.model, order).log2_total > WIDEST:
        return None
    forests = [elimination_forest(problem, order)]
    if not above:
        return replace(ground, problem=problem).tree(forests, box=True)
    box = small(np.array(sorted(states.items()), dtype=np.int64).reshape(-1, 2))
    return replace(ground, problem=problem, evidence=evidence).tree(forests, {"box": box})


def sum_certificate(question: Question) -> Certificate | None:
    """A certificate that tells the distributions of all variables; None where elimination is too wide.

    Barren variables stay, for what is summed out before all others says nothing of its distribution.
    """
    model, observed = question.observed
    problem = simplify(model, question.query, observed, barren=False)
    if not problem.feasible:
        return None
    order = elimination_order(problem.model, problem.tau)
    if order_cost(problem.model, order).log2_total > TOLD:
        return None
    ground = ground_of(question, problem)
    proof = Proof([ground.tree([elimination_forest(problem, order)])], math.inf, exact=True)
    return certificate_of(question, ground, proof, log_lower=-math.inf, log_upper=math.inf)


def _question_arrays(question: Question, ground: Ground) -> dict[str, Any]:
    """Evidence, likelihoods and order as arrays."""
    arrays: dict[str, Any] = {}
    known = question.evidence
    if known.states:
        arrays["evidence"] = np.array(sorted(known.states.items()), dtype=np.int64)
    if known.likelihoods:
        arrays["likelihood_variables"] = np.array(list(known.likelihoods), dtype=np.int64)
        arrays["likelihood_values"] = np.concatenate([np.asarray(row) for row in known.likelihoods.values()])
    if ground.order is not None:
        arrays["order"] = ground.order
    return arrays


def weaker(log_value: float, direction: float) -> float:
    """A bound with room for rounding in a direction: 1 for an upper bound, -1 for a lower one."""
    if not math.isfinite(log_value):
        return log_value
    return log_value + direction * ROOM * max(1.0, abs(log_value))


def _number(value: float) -> float | str:
    """A number as JSON has it."""
    return value if math.isfinite(value) else str(value)
