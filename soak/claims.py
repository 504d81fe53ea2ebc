"""What powersum claims, held against the truth: every number of every snapshot, the status, the assignment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

import powersum as ps
from soak.cases import Case, Question
from soak.certificates import verified
from soak.oracle import Truth

ALLOWANCE = 0.0
"""Rounding that a bound may be false by, relative to ``1 + |truth|``, beside the oracle's own error."""

CLOSE = 1e-9
"""How close numbers that stand for the same must be, relative to ``1 + |truth|``: bounds may keep a distance."""

SAME, ROUNDED, RELATIVE = 1e-6, 1e-4, 1e-8
"""Bounds this close are called equal, and the answer optimal; further apart, or by a share of it, by rounding alone."""

Wrong = list[str]


def truth_of(case: Case, model: ps.Model, question: Question) -> Truth:
    """Brute force on the model's own numbers, which are what claims are about."""
    return Truth(case.cards, model.factors(), question.weights, question.evidence, question.order)


def slack(value: float, error: float, relative: float = ALLOWANCE) -> float:
    """How far from a true value a claim about it may be."""
    return error + (relative * (1.0 + abs(value)) if math.isfinite(value) else 0.0)


def wrong_tables(case: Case, model: ps.Model) -> Wrong:
    """The model's logs must be those of the tables it was given, to the last digits."""
    given = np.array([x for _, table in case.factors for x in table], dtype=np.longdouble)
    with np.errstate(divide="ignore"):
        logs = given if case.log else np.log(given)
    both = np.isneginf(logs) & np.isneginf(model.log_values)
    apart = np.abs(np.where(both, 0.0, logs - np.where(both, 0.0, model.log_values)))
    if np.any(apart > 4e-16 * np.maximum(np.abs(np.where(both, 0.0, logs)), 1e-3)):
        return [f"tables: logs differ by {float(apart.max())}"]
    return []


def wrong_history(history: Sequence[ps.Snapshot], truth: Truth) -> Iterator[str]:
    """Every snapshot holds, and bounds never get worse."""
    allowed = slack(truth.value, truth.error)
    last = None
    for at, now in enumerate(history):
        if math.isnan(now.log_upper) or math.isnan(now.log_lower):
            yield f"nan: snapshot {at} is {now}"
        elif not now.log_upper >= truth.value - allowed:
            yield f"upper: snapshot {at} claims {now.log_upper!r}, the truth is {truth.value!r}"
        elif not now.log_lower <= truth.value + allowed:
            yield f"lower: snapshot {at} claims {now.log_lower!r}, the truth is {truth.value!r}"
        elif now.log_lower > now.log_upper:
            yield f"crossed: snapshot {at} is {now}"
        elif last is not None and now.log_upper > last.log_upper:
            yield f"rising: upper of snapshot {at} is {now.log_upper!r} after {last.log_upper!r}"
        elif last is not None and now.log_lower < last.log_lower:
            yield f"falling: lower of snapshot {at} is {now.log_lower!r} after {last.log_lower!r}"
        last = now


def wrong_result(
    case: Case,
    model: ps.Model,
    question: Question,
    result: ps.Result,
    truth: Truth,
    seen: Sequence[ps.Snapshot],
    *,
    states: bool = True,
) -> Wrong:
    """All that is wrong with a result, its assignment if wanted, and with the snapshots on the way to it."""
    wrong = list(wrong_history(result.history, truth))
    ends = ps.Snapshot(0.0, 0, result.log_upper, result.log_lower)
    wrong += [f"shown, {text}" for text in wrong_history([*seen, ends], truth)]
    past = iter(result.history)
    if not all(snapshot in past for snapshot in seen):
        wrong.append(f"history: shown were {list(seen)}, the result has {list(result.history)}")
    if result.history and result.log_upper != result.history[-1].log_upper:
        wrong.append(f"history: it ends with {result.history[-1].log_upper!r}, the result has {result.log_upper!r}")
    wrong += _wrong_status(result, truth)
    if states:
        wrong += _wrong_assignment(case, model, question, result, truth)
    return [*wrong, *_wrong_certificate(model, question, result, truth)]


def _wrong_status(result: ps.Result, truth: Truth) -> Iterator[str]:
    allowed = slack(truth.value, truth.error, CLOSE)
    match result.status:
        case ps.Status.INFEASIBLE:
            if truth.value > -math.inf:
                yield f"infeasible: the truth is {truth.value!r}"
        case ps.Status.OPTIMAL:
            if truth.value == -math.inf:
                yield "optimal: nothing has positive probability"
            elif not result.gap <= max(ROUNDED, RELATIVE * abs(result.log_lower)):
                yield f"optimal: the bounds are {result.gap!r} apart"
            elif not abs(result.log_upper - truth.value) <= SAME + allowed:
                yield f"optimal: upper is {result.log_upper!r}, the truth {truth.value!r}"
            elif not abs(result.log_lower - truth.value) <= SAME + allowed:
                yield f"optimal: lower is {result.log_lower!r}, the truth {truth.value!r}"
        case _:
            if result.log_upper == -math.inf:
                yield f"status: {result.status} with an upper bound of -inf"


def _wrong_assignment(
    case: Case, model: ps.Model, question: Question, result: ps.Result, truth: Truth
) -> Iterator[str]:
    maximised = [v for v, weight in enumerate(question.weights) if weight == 0.0]
    if not result.assignment:
        if maximised and result.log_lower > -math.inf:
            yield f"assignment: there is none, and log_lower is {result.log_lower!r}"
        return
    if set(result.assignment) != {model.name(v) for v in maximised}:
        yield f"assignment: it has {sorted(result.assignment)}, maximised are {maximised}"
        return
    states = {v: model.state(v, result.assignment[model.name(v)]) for v in maximised}
    if any(question.evidence.get(v, state) != state for v, state in states.items() if v in truth.observed):
        yield f"assignment: {states} contradicts the evidence"
        return
    value, error = truth.assigned(states)
    allowed = slack(value, error)
    if not result.log_lower <= value + allowed:
        yield f"value: log_lower is {result.log_lower!r}, the assignment has {value!r}"
    if result.status is ps.Status.OPTIMAL and not value >= truth.value - SAME - slack(truth.value, truth.error, CLOSE):
        yield f"optimal: the assignment has {value!r}, the truth is {truth.value!r}"
    solved = case.entry != "bound" and not result.notes and result.log_lower > -math.inf
    # A barren variable whose sum is 1 but for 1e-9 is left out, and that counted as rounding of the bound.
    if solved and not abs(result.log_lower - value) <= slack(value, error, CLOSE) + CLOSE * len(case.cards):
        yield f"value: log_lower is {result.log_lower!r} and should be that of the assignment, {value!r}"


def _wrong_certificate(model: ps.Model, question: Question, result: ps.Result, truth: Truth) -> Iterator[str]:
    """Where a result has a certificate, the checker must accept it, prove what is claimed, and prove nothing false."""
    certificate = getattr(result, "certificate", None)
    if certificate is None:
        return
    try:
        lower, upper = verified(model, question, certificate)
    except Exception as error:
        yield f"certificate: {type(error).__name__}: {error}"
        return
    # The checker rounds outwards: what it proves holds without any allowance.
    if not upper >= truth.value - truth.error or not lower <= truth.value + truth.error:
        yield f"certificate: {lower!r} to {upper!r} is accepted, the truth is {truth.value!r}"
    # Less may be proven than the answer says, but not in silence. What counts as less is a share of what is said, which
    # may be far from the truth.
    above, below = (slack(said, truth.error, SAME) + SAME for said in (result.log_upper, result.log_lower))
    noted = any("certificate proves less" in note for note in result.notes)
    if not noted and (not upper <= result.log_upper + above or not lower >= result.log_lower - below):
        yield f"certificate: it proves {lower!r} to {upper!r}, claimed is {result.log_lower!r} to {result.log_upper!r}"


def wrong_marginals(found: ps.Marginals, truth: Truth) -> Iterator[str]:
    """Distributions, and the right ones where they are called exact."""
    if truth.value == -math.inf:
        if found.exact:
            yield "marginals: nothing has positive probability, and they are called exact"
        return
    for v, (belief, right) in enumerate(zip(found.beliefs, truth.marginals(), strict=True)):
        if belief.shape != right.shape or not np.all(belief >= 0) or not abs(belief.sum() - 1.0) < 1e-9:
            yield f"marginals: of variable {v} {belief.tolist()} is no distribution"
        elif v in truth.observed and not np.array_equal(belief, right):
            yield f"marginals: of observed variable {v} it is {belief.tolist()}"
        elif found.exact and not np.abs(belief - right).max() <= SAME:
            yield f"marginals: of variable {v} it is {belief.tolist()}, the truth {right.tolist()}"
        # The sides hold whether or not anything is exact; the truth has rounding of its own.
        lower, upper = np.exp(found.log_lower[v]), np.exp(found.log_upper[v])
        allowed = 2.0 * truth.error + 1e-15
        if not (belief >= lower * (1.0 - CLOSE)).all() or not (belief <= upper * (1.0 + CLOSE) + 1e-300).all():
            yield f"marginals: of variable {v} {belief.tolist()} is outside {lower.tolist()} to {upper.tolist()}"
        if not (lower <= right * (1.0 + allowed)).all() or not (upper >= right * (1.0 - allowed)).all():
            yield f"marginals: of variable {v} {lower.tolist()} to {upper.tolist()}, the truth {right.tolist()}"
