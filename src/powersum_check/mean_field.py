"""Jensen's inequality: a lower bound from a distribution in which all variables are independent.

For every distribution q and every order of elimination, the value of the question is at least

    E_q[log of the product of the factors]  +  Σ_v τ_v H(q_v)         (q a product of q_v)

for the weighted log partition function is the maximum over all q of that energy and the conditional entropies with
these weights (docs/certificates.md). A max variable adds no entropy; a point mass is its natural distribution.
"""

from __future__ import annotations

import math

import numpy as np

from powersum_check.archive import Archive
from powersum_check.balls import Balls
from powersum_check.box import Domains
from powersum_check.errors import BadFile, Rejected
from powersum_check.model import Model, Question
from powersum_check.numbers import MEASURE, TINY, FloatArray, U, magnitude, outward


def mean_field(archive: Archive, prefix: str, model: Model, question: Question, domains: Domains) -> float:
    """The bound, rounded down. ``q`` holds a non-negative number for each state of the box, variable by variable.

    Each number is divided by the sum of its variable's, in doubles; q_v is these quotients divided by their exact sum.
    So it is a distribution whatever the numbers are, and the quotients, each rounded once from a sum rounded once, are
    within a relative 2.1 u of it.
    """
    numbers = archive.floats(prefix + "q")
    if len(numbers) != sum(len(d) for d in domains):
        raise BadFile(f"{prefix}q has not one number for each state of the box")
    shares: list[FloatArray] = []
    tables = []
    terms: list[float] = []
    error = 0.0
    at = 0
    for v, domain in enumerate(domains):
        row = numbers[at : at + len(domain)]
        at += len(domain)
        total = math.fsum(row)
        if not (row >= 0.0).all() or not 1e-200 < total < 1e200:
            raise Rejected(f"q of variable {v} is not a distribution")
        share = row / total
        shares.append(share)
        positive = share[share > 0.0]
        # -s log s: an error of 2.1 u s changes it by 2.1 u s (|log s| + 1), log by 8 u |s log s|, the products by 2 u.
        terms += (-question.weights[v] * positive * np.log(positive)).tolist()
        size = float(np.sum(positive * (1.0 - np.log(positive))))
        error += 16.0 * U * question.weights[v] * size + 1e-280 * len(domain)
    for k, factor in enumerate(model.factors):
        weight = np.ones(())
        for v in factor.scope:
            weight = weight[..., None] * shares[v]
        values = factor.table.values
        if factor.scope:
            values = values[np.ix_(*(domains[v] for v in factor.scope))]
        tables.append((factor.scope, values, factor.table.down))
        used = weight > 0.0
        if (values[used] == -math.inf).any():
            return -math.inf
        # Where q is 0 (or underflows, TINY) a factor of 0 does no harm: 0 log 0 counts as 0.
        safe = np.where(used, values, 0.0)
        terms += (weight * safe).ravel().tolist()
        size = magnitude(safe)
        # The weight of a tuple has a relative error of (2.1 k + k) u, the product u more; weights add up to 1.
        error += 4.0 * U * (len(factor.scope) + 1) * size + factor.table.down + TINY * values.size * (1.0 + size)
        if weight[~used].size and not _truly_zero(shares, factor.scope, used):
            raise Rejected(f"q is too small on factor {k}: round the smallest shares to 0")
    if isinstance(measure := MEASURE.get(), Balls):
        return measure.mean_field(shares, question.weights, tables)
    return outward(terms, error, error)[0]


def _truly_zero(
    shares: list[FloatArray], scope: tuple[int, ...], used: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> bool:
    """Whether the tuples that are not used have probability 0, not one that underflows."""
    positive = np.ones((), dtype=np.bool_)
    for v in scope:
        positive = positive[..., None] & (shares[v] > 0.0)
    return bool((positive == used).all())
