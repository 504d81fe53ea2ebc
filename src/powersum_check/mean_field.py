"""Jensen's inequality: a lower bound from a distribution in which most variables are independent.

For every distribution q and every order of elimination, the value of the question is at least

    E_q[log of the product of the factors]  +  Σ_v τ_v H(q_v)         (q a product of q_v)

for the weighted log partition function is the maximum over all q of that energy and the conditional entropies with
these weights (docs/certificates.md). A max variable adds no entropy; a point mass is its natural distribution. The
variables of a *core* have no distribution: a tree eliminates them exactly, given the means of all factors.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from powersum_check.box import Step
from powersum_check.errors import BadFile, Rejected
from powersum_check.model import Factor, Model
from powersum_check.numbers import FloatArray, U, entropy, mean, outward
from powersum_check.tree import read_tree, value


def mean_field(step: Step) -> float:
    """The bound, rounded down. ``q`` holds a non-negative number for each state of all variables outside the core.

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
    return outward([value(inner, tree)[0], *entropies], 0.0, error)[0]
