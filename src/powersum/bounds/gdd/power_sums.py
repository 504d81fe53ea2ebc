"""The one operation every bound here is built from: the power sum of a table over its leading axis, and its gradient.

Tables are flat, first-eliminated axis outermost. A weight of 1 sums, 0 maximises. ``-inf`` entries are ordinary zeros
of probability: a column that is ``-inf`` throughout has power sum ``-inf`` and conditional beliefs 0, never NaN.
"""

from __future__ import annotations

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.fastmath import LOWEST, exp_of, log_of
from powersum.core.jit import inner


@inner
def _share(difference: float) -> float:
    """``exp(difference)`` for a difference ≤ 0; exactly 0 where it would underflow, so that zeros stay zeros."""
    return exp_of(difference) if difference > LOWEST else 0.0


@inner
def power_sum(
    source: FloatArray, source_at: int, card: int, rest: int, weight: float, target: FloatArray, target_at: int
) -> None:
    """Write the log power sum over the leading axis of ``source`` to ``target``; in place is allowed.

    In place is safe because column ``j`` is read completely before entry ``j`` is written, and later columns never
    read entry ``j`` again.
    """
    if weight == 0.0:
        for j in range(rest):
            top = source[source_at + j]
            for k in range(1, card):
                top = max(top, source[source_at + k * rest + j])
            target[target_at + j] = top
        return
    inverse = 1.0 / weight
    for j in range(rest):
        top = source[source_at + j]
        place = 0
        for k in range(1, card):
            value = source[source_at + k * rest + j]
            if value > top:
                top = value
                place = k
        if top == -np.inf:
            target[target_at + j] = top
            continue
        total = 1.0
        for k in range(card):
            if k != place:
                total += _share((source[source_at + k * rest + j] - top) * inverse)
        target[target_at + j] = top + weight * log_of(total)


@inner
def power_sum_with_beliefs(
    table: FloatArray, beliefs: FloatArray, at: int, card: int, rest: int, weight: float, target_at: int
) -> None:
    """As :func:`power_sum` into the same array at ``target_at``, and the conditional beliefs of the leading axis.

    ``beliefs[at + k * rest + j]`` becomes μ(k | j), the derivative of column j's power sum with respect to its entry k
    (paper, Theorem 5.1). For a maximum it is spread evenly over the entries that attain it.
    """
    inverse = 0.0 if weight == 0.0 else 1.0 / weight
    for j in range(rest):
        top = table[at + j]
        for k in range(1, card):
            top = max(top, table[at + k * rest + j])
        if top == -np.inf:
            for k in range(card):
                beliefs[at + k * rest + j] = 0.0
            table[target_at + j] = top
            continue
        total = 0.0
        if weight == 0.0:
            for k in range(card):
                hit = 1.0 if table[at + k * rest + j] == top else 0.0
                beliefs[at + k * rest + j] = hit
                total += hit
            table[target_at + j] = top
        else:
            for k in range(card):
                value = table[at + k * rest + j]
                share = 1.0 if value == top else _share((value - top) * inverse)
                beliefs[at + k * rest + j] = share
                total += share
            table[target_at + j] = top + weight * log_of(total)
        scale = 1.0 / total
        for k in range(card):
            beliefs[at + k * rest + j] *= scale
