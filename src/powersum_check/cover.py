"""Covers: a decision tree divides a box into parts; bounds on the parts give bounds on the box.

Rows (v, s, j) list the parts in pre-order; the first row is about the whole box.

* v >= 0 divides the part by variable v: next come the rows of its half with x_v = s, then those of the half with
  x_v != s.
* v = -1 divides nothing; s >= 0 then names a listed assignment that all of the part is *near* (see best.py).
* j >= 0 names a step, whose bounds count for the part: from above if the step's box has all of the part, from below if
  it has nothing else. For a box never has more value than a box around it.

**Joined.** Two halves have upper bounds U1, U2; their power sum with weight τ_v is an upper bound on the part if no
variable of a larger weight is eliminated after v, among those that have several states in the part. For up to v
elimination only groups terms, and later power sums move inside by Minkowski's inequality. If U1 = U2 = 0, no order
matters. Lower bounds join likewise if no variable with several states is eliminated after v: then the power sum of the
halves' values is the value. Any two halves are disjoint and have all of their part, so power sums of halves may nest.

Bounds on single assignments join by the maximum, in any order: each assignment is in one of the halves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from powersum_check.box import Domains, is_empty, within
from powersum_check.errors import BadFile, Rejected
from powersum_check.limits import afford, spend
from powersum_check.model import Question
from powersum_check.numbers import FloatArray, Table, outward, power_sum


@dataclass(frozen=True, slots=True)
class Proven:
    """Bounds on the value of a box."""

    box: Domains
    log_lower: float
    log_upper: float


def lower_bound(proven: Sequence[Proven], assignment: Mapping[int, int]) -> float:
    """The largest lower bound of all steps whose box has no other states of the variables that are assigned."""
    spend(20 * len(proven) * (5 + len(assignment)))
    fitting = (p for p in proven if all(len(d := p.box[v]) <= 1 and not (d != s).any() for v, s in assignment.items()))
    return max((p.log_lower for p in fitting), default=-math.inf)


def cover(
    rows: Sequence[Sequence[int]],
    box: Domains,
    proven: Sequence[Proven],
    question: Question,
    memory: int,
    n_listed: int = 0,
    near: Callable[[Domains, int], bool] | None = None,
) -> tuple[float, FloatArray]:
    """The lower bound on a box, and upper bounds without what is near the first 0, 1, …, ``n_listed`` assignments.

    ``near`` tells whether all of a part is near an assignment; with it, upper bounds are those of single assignments.
    """
    ranks, weights = question.ranks(), question.weights
    own: list[tuple[float, float, float | None, bool]] = []
    """Of each part: bounds by its step, the weight by which its halves join from above, and whether from below."""
    waiting = [box]
    held = 512 + 8 * (2 * len(box) + n_listed + max(map(len, box), default=0))
    for number, (v, s, j) in enumerate(rows):
        spend(3000 + 400 * len(box) + 10 * n_listed)
        if not waiting:
            raise BadFile(f"a cover has {len(rows) - number} rows too many")
        if not (v < len(box) and j < len(proven) and (v >= 0 or s < n_listed)):
            raise BadFile("a cover names a variable, a step or an assignment that does not exist")
        part = waiting.pop()
        low, high, weight, adds = -math.inf, math.inf, None, False
        if is_empty(part):
            high = -math.inf
        elif j >= 0:
            high = proven[j].log_upper if within(part, proven[j].box) else math.inf
            low = proven[j].log_lower if within(proven[j].box, part) else -math.inf
        if v >= 0:
            halves = list(part), list(part)
            halves[0][v], halves[1][v] = part[v][part[v] != s], part[v][part[v] == s]
            waiting += halves
            afford("a cover that is divided so deeply", held * len(waiting), memory)
            later = [weights[u] for u, d in enumerate(part) if len(d) > 1 and ranks[u] > ranks[v]]
            adds = not later
            if near is not None and weights[v] != 0.0:
                raise Rejected(f"part {number} of a cover of assignments is divided by variable {v}, which is summed")
            if near is not None or max(later, default=0.0) <= weights[v]:
                weight = weights[v]
        elif s >= 0 and not (near and near(part, s)):
            raise Rejected(f"part {number} of a cover is not near assignment {s}")
        own.append((low, high, weight, adds))
    if waiting:
        raise BadFile("a cover ends with parts missing")
    joined: list[tuple[float, FloatArray]] = []
    for (v, s, _), (low, high, weight, adds) in zip(reversed(rows), reversed(own), strict=True):
        uppers = np.full(n_listed + 1, high)
        if v >= 0:
            (low1, uppers1), (low2, uppers2) = joined.pop(), joined.pop()
            uppers = np.minimum(uppers, _joined_above(uppers1, uppers2, weight))
            low = max(low, _joined(low1, low2, weights[v])[0] if adds else -math.inf)
        elif s >= 0:
            uppers[s + 1 :] = -math.inf
        joined.append((low, uppers))
    return joined[0]


def _joined_above(first: FloatArray, second: FloatArray, weight: float | None) -> FloatArray:
    """Upper bounds on a part from those on its halves; without a weight there are none where anything is possible."""
    larger = np.maximum(first, second)
    if weight is None:
        return np.where(larger == -math.inf, larger, math.inf)
    if weight == 0.0:
        return larger
    return np.array([_joined(a, b, weight)[1] for a, b in zip(first.tolist(), second.tolist(), strict=True)])


def _joined(first: float, second: float, weight: float) -> tuple[float, float]:
    """Bounds on the power sum of two exact numbers."""
    if math.inf in (first, second):
        return math.inf, math.inf
    table = power_sum(Table(np.array([first, second])), weight)
    return outward([float(table.values)], table.up, table.down)
