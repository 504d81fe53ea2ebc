"""Jensen's inequality: a lower bound from a distribution in which most variables are independent.

For every distribution q and every order of elimination, the value of the question is at least

    E_q[log of the product of the factors]  +  Σ_v τ_v H(q_v)         (q a product of q_v)

for the weighted log partition function is the maximum over all q of that energy and the conditional entropies with
these weights (docs/certificates.md). A max variable adds no entropy; a point mass is its natural distribution. The
variables of a *core* have no distribution: a tree eliminates them exactly, given the means of all factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import spend
from powersum_check.model import Factor, Model
from powersum_check.numbers import MEASURE, TINY, FloatArray, Table, U, magnitude, outward
from powersum_check.tree import read_tree, value


def entropy(shares: FloatArray) -> Table:
    """The entropy of the distribution that ``shares`` are once they are divided by their exact sum.

    They are quotients of numbers by their sum, each rounded once from a sum rounded once, so within a relative 2.1 u
    of the distribution. In -s log s that is 2.1 u s (|log s| + 1); ``log`` adds 8 u |s log s|, the product u, adding up
    m terms m u times their sum.
    """
    positive = shares[shares > 0.0]
    result = float(-np.sum(positive * np.log(positive)))
    local = U * (12.0 + len(shares)) * float(np.sum(positive * (1.0 - np.log(positive)))) + TINY * len(shares)
    if measure := MEASURE.get():
        local = measure.of_entropy(shares, result)
    return Table(np.array(result), local, local)


def mean(table: Table, shares: Sequence[FloatArray | None]) -> Table:
    """The mean of the logs over the axes that have shares, which are distributions as in :func:`entropy`.

    -inf counts where its probability is positive. With k such axes the probability of a tuple has a relative error of
    (2.1 k + k) u, the product u more; probabilities add up to 1, and adding up n products errs by (n - 1) u times the
    sum of their sizes. Shares whose products underflow are refused, so that what is not counted has probability 0.
    """
    spend(1000 + 8 * table.values.size)
    weight, used = np.ones(()), np.ones((), np.bool_)
    for own in shares:
        weight = weight[..., None] * (np.ones(1) if own is None else own)
        used = used[..., None] & (np.ones(1, np.bool_) if own is None else own > 0.0)
    if ((weight > 0.0) != used).any():
        raise Rejected("shares are so small that their products vanish: round them to 0")
    values = np.where(used, table.values, 0.0)
    axes = tuple(a for a, own in enumerate(shares) if own is not None)
    result = np.asarray((weight * values).sum(axis=axes))
    n = math.prod(table.values.shape[a] for a in axes)
    size = magnitude(values)
    local = U * (4.0 * len(axes) + 2.0 * n + 2.0) * size + TINY * n * (1.0 + size)
    if measure := MEASURE.get():
        local = measure.of_mean(values, shares, result)
    return table.worse(result, local)


def mean_field(step: Step) -> tuple[float, float]:
    """The bound, rounded down, and nothing from above.

    ``q`` holds a non-negative number for each state of all variables outside the core.

    Each number is divided by the sum of its variable's, in doubles; q_v is these quotients divided by their exact sum.
    So it is a distribution whatever the numbers are.
    """
    domains = step.domains
    core = set(step.integers("order", high=len(domains)).tolist())
    numbers = step.floats("q")
    if len(numbers) != sum(len(d) for v, d in enumerate(domains) if v not in core):
        raise BadFile("q has not one number for each state of each variable outside the core")
    shares: list[FloatArray | None] = [None] * len(domains)
    entropies, error = [], 0.0
    for v in (v for v in range(len(domains)) if v not in core):
        row, numbers = np.split(numbers, [len(domains[v])])
        total = math.fsum(row)
        if not (row >= 0.0).all() or not 1e-200 < total < 1e200:
            raise Rejected(f"q of variable {v} is not a distribution")
        shares[v] = row / total
        own, weight = entropy(row / total), step.question.weights[v]
        entropies.append(weight * float(own.values))
        error += weight * own.down + 2.0 * U * abs(entropies[-1])
    factors = []
    for factor in step.model.factors:
        inside = np.ix_(*(domains[v] for v in factor.scope))
        table = replace(factor.table, values=np.asarray(factor.table.values[inside]))
        expected = mean(table, [shares[v] for v in factor.scope])
        factors.append(Factor(tuple(v for v in factor.scope if v in core), expected))
    sizes = tuple(len(d) if v in core else 1 for v, d in enumerate(domains))
    inner = replace(step, model=Model(sizes, tuple(factors)), domains=[np.arange(size) for size in sizes])
    tree = read_tree(inner)
    if not all(tree.exact.values()):
        raise Rejected("the core is not eliminated exactly")
    return outward([value(inner, tree)[0], *entropies], 0.0, error)[0], math.inf
