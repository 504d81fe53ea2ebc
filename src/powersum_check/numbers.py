"""The arithmetic: tables of natural logs in doubles, each with a proven bound on its distance from the true logs.

A :class:`Table` stands for a table of non-negative numbers f. Its promise is

    values - down  <=  log f  <=  values + up     wherever f > 0,  and  values = -inf exactly where f = 0.

The power sum is monotone, and adding a constant to a table adds the constant to its power sum. So an error of a table
is an error of at most the same size in its power sum (it is 1-Lipschitz in the sup norm), whatever the weight: errors
are single numbers that add up on the way, and each operation contributes a local error, proven beside it.

What is assumed of the machine: +, -, *, / of doubles are rounded to nearest (IEEE 754); ``exp`` and ``log`` of NumPy
and of Python are within 4 units in the last place. u = 2**-53; one unit in the last place of x is at most 2 u |x|.
The errors themselves are sums and products of non-negative doubles. What their own rounding may lose, a relative n u
for n operations, is covered by the factor in :func:`outward`, as long as n < 9e7; more than that no Python loop does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from powersum_check.errors import Rejected
from powersum_check.limits import spend

if TYPE_CHECKING:
    from powersum_check.balls import Balls

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

U = 2.0**-53
TINY = 1e-290
"""Added to local errors, so that none vanishes by underflow."""
LARGEST = 1e250
"""Tables with larger entries are refused: sums of them could overflow."""
LEAST_WEIGHT = 1e-300
"""Weights between 0 and this are refused: what is multiplied by them could lose digits by underflow."""
MOST_AXES = 30
"""NumPy allows 32 axes; where every axis has two states, no memory holds as many."""


@dataclass(frozen=True, slots=True)
class Table:
    """Logs with errors, see above."""

    values: FloatArray
    up: float = 0.0
    down: float = 0.0

    def worse(self, values: FloatArray, local: float) -> Table:
        """The result of an operation that has its own local error."""
        return Table(values, self.up + local, self.down + local)


MEASURE: ContextVar[Balls | None] = ContextVar("MEASURE", default=None)
"""Measures the local errors of operations, in place of the proofs here, where that is wanted."""


def magnitude(values: FloatArray) -> float:
    """The largest finite absolute value; 0 where there is none. NaN and +inf are refused."""
    if values.size == 0:
        return 0.0
    low, high = float(values.min()), float(values.max())
    if low == -math.inf:
        if high == -math.inf:
            return 0.0
        low = float(np.where(values > -math.inf, values, 0.0).min())
    largest = max(abs(low), abs(high))
    if not largest <= LARGEST:
        raise Rejected(f"a table has entries of size {largest:g}")
    return largest


def logs_of(probabilities: FloatArray) -> tuple[FloatArray, float]:
    """Logs of numbers that are exact but for a relative error u (decimal text read as a double), and their error.

    The relative error u of the number is 1.01 u in its log; 4 units in the last place are 8 u |log|.
    """
    logs = np.full(probabilities.shape, -math.inf)
    np.log(probabilities, out=logs, where=probabilities > 0.0)
    return logs, U * (2.0 + 9.0 * magnitude(logs))


def add(shape: Sequence[int], tables: Sequence[Table]) -> Table:
    """The sum of tables that can be broadcast to ``shape``: the product of what they stand for.

    Summing k doubles, in any order, errs by at most (k - 1) u 1.01 Σ|t|; nothing is added to -inf but -inf and finite
    numbers, so that no NaN arises.
    """
    spend((300 + math.prod(shape)) * (1 + 2 * len(tables)))
    total = np.zeros(shape)
    size = up = down = 0.0
    for table in tables:
        size += magnitude(table.values)
        total += table.values
        up += table.up
        down += table.down
    local = 2.0 * U * len(tables) * size + TINY if len(tables) > 1 else 0.0
    if local and (measure := MEASURE.get()):
        local = measure.of_sum([table.values for table in tables], total)
    return Table(total, up + local, down + local)


def power_sum(table: Table, weight: float) -> Table:
    """The power sum w log Σ exp(t / w) over the leading axis; the maximum, which is exact, for weight 0 or one state.

    Let top be the largest of m entries, δ = (t - top) / w <= 0 and s = Σ exp δ >= 1. The computed δ has a relative
    error of 2.01 u, which is at most 0.75 u in exp δ, for |δ| exp δ <= 1/e. With 8 u exp δ for ``exp`` itself and
    (m - 1) u s for the sum, s has a relative error of at most (1.8 m + 9) u, and log s an absolute one of that and
    8 u log m. (What underflows is smaller than TINY; δ overflows, to -inf, only where exp δ is 0.) Multiplying by w
    adds u w log m, adding top u times the result.
    """
    values = table.values
    spend(1000 + (2 if weight == 0.0 else 8) * values.size)
    m = values.shape[0]
    if weight == 0.0 or m == 1:
        return Table(np.asarray(values.max(axis=0)), table.up, table.down)
    top = np.asarray(values.max(axis=0))
    dead = top == -math.inf
    top[dead] = 0.0
    with np.errstate(over="ignore", under="ignore"):
        sums = np.exp((values - top) / weight).sum(axis=0)
    # Where nothing is summed, 1 is added, so that the log is finite.
    result = np.asarray(top + weight * np.log(sums + dead))
    result[dead] = -math.inf
    local = U * (weight * (2.0 * m + 10.0 + 10.0 * math.log(m)) + 2.0 * magnitude(result)) + TINY
    if measure := MEASURE.get():
        local = measure.of_power_sum(values, weight, result)
    return table.worse(result, local)


def power_sum_of(numbers: Sequence[float], weight: float) -> tuple[float, float]:
    """The power sum of a few exact numbers, and its error: as :func:`power_sum`, with the machine's own functions."""
    top = max(numbers)
    if weight == 0.0 or len(numbers) == 1 or top == -math.inf:
        return top, 0.0
    total = math.fsum(math.exp((number - top) / weight) for number in numbers)
    m, result = len(numbers), top + weight * math.log(total)
    local = U * (weight * (2.0 * m + 10.0 + 10.0 * math.log(m)) + 2.0 * max(abs(result), abs(top))) + TINY
    if measure := MEASURE.get():
        local = measure.of_power_sum(np.array(numbers), weight, np.array(result))
    return result, local


def normalised(table: Table) -> tuple[Table, float]:
    """The table less its largest entry c, and c; as it is where c is 0 or -inf. One subtraction errs by u |t - c|."""
    spend(3 * table.values.size)
    constant = float(table.values.max())
    if constant in (0.0, -math.inf):
        return table, constant
    values = table.values - constant
    local = 2.0 * U * magnitude(values) + TINY
    if measure := MEASURE.get():
        local = measure.of_sum([table.values, np.array(-constant)], values)
    return table.worse(values, local), constant


def without(table: Table, axes: tuple[int, ...]) -> Table:
    """The maximum over some axes, which bounds the table from above for all their states.

    From below it is off by the spread over these axes, infinitely so where some but not all of them are -inf.
    """
    if not axes:
        return table
    spend(3 * table.values.size)
    high, low = np.asarray(table.values.max(axis=axes)), np.asarray(table.values.min(axis=axes))
    alive = high > -math.inf
    spread = float(np.max(high[alive] - low[alive], initial=0.0))
    return Table(high, table.up, table.down + spread * (1.0 + 4.0 * U))


def outward(constants: Sequence[float], up: float, down: float) -> tuple[float, float]:
    """Lower and upper bound on the sum of the constants with errors; the sum itself is correctly rounded."""
    total = math.fsum(constants)
    if total == -math.inf:
        return -math.inf, -math.inf
    slack = 4.0 * U * abs(total) + TINY
    low = total - (down * (1.0 + 1e-8) + slack)
    high = total + (up * (1.0 + 1e-8) + slack)
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
