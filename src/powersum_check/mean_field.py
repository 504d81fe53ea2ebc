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
from powersum_check.model import Factor, Model, Question
from powersum_check.numbers import MEASURE, TINY, FloatArray, Table, U, magnitude, outward
from powersum_check.tree import read_tree, run


def mean_field(archive: Archive, prefix: str, model: Model, question: Question, domains: Domains, memory: int) -> float:
    """The bound, rounded down. ``q`` holds a non-negative number for each state of the box, variable by variable.

    Each number is divided by the sum of its variable's, in doubles; q_v is these quotients divided by their exact sum.
    So it is a distribution whatever the numbers are, and the quotients, each rounded once from a sum rounded once, are
    within a relative 2.1 u of it.
    """
    numbers = archive.floats(prefix + "q")
    if len(numbers) != sum(len(d) for d in domains):
        raise BadFile(f"{prefix}q has not one number for each state of the box")
    core: set[int] = set()
    if prefix + "core" in archive:
        core = set(archive.integers(prefix + "core", high=len(domains)).tolist())
    shares: list[FloatArray] = []
    tables = []
    terms: list[float] = []
    expected: list[Factor] = []
    error = 0.0
    at = 0
    for v, domain in enumerate(domains):
        row = numbers[at : at + len(domain)]
        at += len(domain)
        total = math.fsum(row)
        if not (row >= 0.0).all() or not 1e-200 < total < 1e200:
            raise Rejected(f"q of variable {v} is not a distribution")
        share = row / total
        # What q says of the core counts nothing: with weight 1 for every state, sums over the others are left.
        shares.append(np.ones(len(domain)) if v in core else share)
        if v in core:
            continue
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
        if weight[~used].size and not _truly_zero(shares, factor.scope, used):
            raise Rejected(f"q is too small on factor {k}: round the smallest shares to 0")
        # Where q is 0 (or underflows, TINY) a factor of 0 does no harm: 0 log 0 counts as 0.
        safe = np.where(used, values, 0.0)
        size = magnitude(safe)
        # The weight of a tuple has a relative error of (2.1 k + k) u, the product u more; weights add up to 1.
        local = 4.0 * U * (len(factor.scope) + 1) * size + factor.table.down + TINY * values.size * (1.0 + size)
        own = tuple(v for v in factor.scope if v in core)
        if own:
            others = tuple(a for a, v in enumerate(factor.scope) if v not in core)
            # Adding up n products errs by (n - 1) u times the sum of their sizes; -inf stays.
            local += 2.0 * U * math.prod(values.shape[a] for a in others) * size
            mean = np.asarray((weight * safe).sum(axis=others))
            expected.append(Factor(own, Table(mean, local, local)))
            continue
        expected.append(Factor((), Table(np.zeros(()))))
        if (values[used] == -math.inf).any():
            return -math.inf
        terms += (weight * safe).ravel().tolist()
        error += local
    measure = MEASURE.get()
    if not core:
        return (
            measure.mean_field(shares, question.weights, tables) if isinstance(measure, Balls) else _low(terms, error)
        )
    return _low([_low(terms, error), _core(archive, prefix, expected, question, domains, core, memory)], 0.0)


def _low(terms: list[float], error: float) -> float:
    return outward(terms, error, error)[0]


def _core(
    archive: Archive,
    prefix: str,
    expected: list[Factor],
    question: Question,
    domains: Domains,
    core: set[int],
    memory: int,
) -> float:
    """A lower bound on the core's own value, from the expectations of all factors given its states, by elimination."""
    places = [np.arange(len(d)) if v in core else np.zeros(1, np.int64) for v, d in enumerate(domains)]
    model = Model(tuple(len(d) if v in core else 1 for v, d in enumerate(domains)), tuple(expected))
    tree = read_tree(archive, prefix, model, question, places)
    if not tree.exact(question, places):
        raise Rejected("the core is not eliminated exactly")
    found = run(tree, model, question, places, memory)
    if found.dead:
        return -math.inf
    return outward(found.constants, found.fixed_up + found.up, found.fixed_down + found.down)[0]


def _truly_zero(
    shares: list[FloatArray], scope: tuple[int, ...], used: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> bool:
    """Whether the tuples that are not used have probability 0, not one that underflows."""
    positive = np.ones((), dtype=np.bool_)
    for v in scope:
        positive = positive[..., None] & (shares[v] > 0.0)
    return bool((positive == used).all())
