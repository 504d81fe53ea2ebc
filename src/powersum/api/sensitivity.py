"""How an answer depends on each table entry: the slope of its value, and how far the entry may move.

Multiply one entry by t. The value of any assignment y, relative to what it was, is then ``1 - p + p t``, where p is the
probability of the entry's states given y and the evidence: at most t for t > 1, at most 1 for t < 1, and known for the
answer itself. So the answer stays the best as long as its lead over all others, times its own factor, is at least that.
"""

from __future__ import annotations

import math

import numpy as np

from powersum.api.gradient import BoundFunction
from powersum.core.arrays import FloatArray
from powersum.exact.small import small_elimination
from powersum.model.explanation import Sensitivity
from powersum.model.keys import Place
from powersum.model.question import Question
from powersum.prepare.conditioned import conditioned

MOST_ENTRIES = 50
"""So many entries are told of: those that may move least."""

SLOPE_ERROR = 1e-9
"""Slopes are probabilities by elimination, right to more digits than this."""


def sensitivity(question: Question, states: dict[int, int], log_lead: float) -> tuple[Sensitivity, ...]:
    """The entries that the answer hangs on most.

    Parameters
    ----------
    question
        The question; evidence and limits count.
    states
        The answer.
    log_lead
        How much more its log value is than that of any other assignment, at least. Without a lead nothing is known
        about how far entries may move.
    """
    model = question.model
    slopes = _slopes(question, states)
    # What evidence excludes may be anything, and a factor of 0 changes nothing.
    known = conditioned(question)
    places = np.sort(np.concatenate((known.entries, known.constants)))
    places = places[places < model.log_values.size]
    places = places[model.log_values[places] > -math.inf]
    least, most = _range(slopes[places] if slopes is not None else None, len(places), log_lead)
    if model.directed:
        # A probability cannot grow beyond 1.
        most[model.log_values[places] + most >= 0.0] = math.inf
    room = np.minimum(most, -least)
    slope = np.zeros(len(places)) if slopes is None else slopes[places]
    near = np.lexsort((places, -slope, room))[:MOST_ENTRIES]
    near = near[room[near] < math.inf]
    factors = np.searchsorted(model.table_starts, places[near], side="right") - 1
    return tuple(
        _entry(question, int(factor), int(place), None if slopes is None else float(slopes[place]), low, high)
        for factor, place, low, high in zip(
            factors, places[near], least[near].tolist(), most[near].tolist(), strict=True
        )
    )


def _slopes(question: Question, states: dict[int, int]) -> FloatArray | None:
    """Derivatives of the answer's log value by all log entries; None where they would not be exact."""
    model = question.model
    shown, observed = question.observed
    fixed = {**observed, **states}
    tau = np.ones(model.n_variables)
    small = small_elimination(shown, fixed, tau, barren=False)
    if small is not None:
        scopes = [tuple(v for v in model.scope(k).tolist() if v not in fixed) for k in range(model.n_factors)]
        together = small.together(scopes)
        if together is None:
            return None
        slopes = np.zeros(model.log_values.size)
        for k, joint in enumerate(together):
            table = slopes[model.table_starts[k] : model.table_starts[k + 1]]
            table = table.reshape(model.cardinalities[model.scope(k)])
            table[tuple(fixed.get(v, slice(None)) for v in model.scope(k).tolist())] = joint
        return slopes
    limits = question.limits
    evidence = question.all_evidence
    evidence.update((Place(v), Place(s)) for v, s in states.items())
    tree = BoundFunction(
        model, evidence=evidence, sweeps=0, memory=limits.bytes, threads=limits.threads, seed=limits.seed
    )
    return tree()[1] if tree.exact else None


def _range(slopes: FloatArray | None, count: int, log_lead: float) -> tuple[FloatArray, FloatArray]:
    """Logs of the factors by which each entry may be multiplied, from and to."""
    if not log_lead > 0.0:
        return np.zeros(count), np.zeros(count)
    low = np.zeros(count) if slopes is None else np.clip(slopes - SLOPE_ERROR, 0.0, 1.0)
    high = np.ones(count) if slopes is None else np.clip(slopes + SLOPE_ERROR, 0.0, 1.0)
    # Exponents beyond the doubles are as good as infinite.
    lead = math.exp(log_lead) if log_lead < 700.0 else math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(low * lead >= 1.0, math.inf, log_lead + np.log1p(-low) - np.log1p(-low * lead))
        fall = (1.0 / lead - (1.0 - high)) / high
        least = np.where(fall > 0.0, np.log(fall), -math.inf)
    return least, most


def _entry(question: Question, factor: int, place: int, slope: float | None, least: float, most: float) -> Sensitivity:
    model = question.model
    scope = model.scope(factor)
    digits = np.unravel_index(place - int(model.table_starts[factor]), model.cardinalities[scope])
    return Sensitivity(
        factor=factor,
        states={model.name(int(v)): model.label(int(v), int(s)) for v, s in zip(scope, digits, strict=True)},
        directed=model.directed,
        log_value=float(model.log_values[place]),
        slope=slope,
        log_factor_lower=least,
        log_factor_upper=most,
    )
