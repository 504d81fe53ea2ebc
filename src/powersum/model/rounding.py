"""How far rounding can carry a computed value from the true one: every bound that is reported includes it.

The power sum ``w log Σ exp(x / w)`` is monotone in every entry and 1-Lipschitz in the largest change of its entries. So
an error made in one table moves the final value by at most its own size, and the errors of all tables add up.

What one table adds, in units of :data:`UNIT` (the rounding of one operation):

* adding up ``k`` inputs: ``k`` times the sum of their largest magnitudes, and as much again twice for the largest entry
  taken off and put back;
* the sum of exponentials: an exponential of x = -g has the relative error of its polynomial (below ``2 ** 7`` units)
  and 3 g from its argument, and ``g exp(-g)`` is at most 0.37, so that ``m`` states make less than ``2 m`` and the
  polynomial's; the logarithm of a number of at least 1 makes a few units; all of it is multiplied by w. States that
  underflow are less than a unit together;
* weights of one variable's mini-buckets sum to its own weight up to a few units each; a power sum changes by at most
  ``log m`` times the change of its weight.

Entries that stand for impossible states are left out: their true value is ``-inf``, and no rounding raises them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersum.core.arrays import FloatArray, IntArray
from powersum.model.model import Model

UNIT = 2.0**-53
"""Relative error of one operation in double precision."""

IMPOSSIBLE = -1e290
"""Values below this stand for the log of 0; sums of real ones never come near it."""

EXPONENTIAL = 160.0
"""Units that exponentials and the logarithm add to one power sum, beside two for each state."""

WORST_SHARE = 1e-7
"""A value that rounding might have moved by more than this share of it (or of 1) does not count: the point at which it
was computed is none."""


def magnitude(log_values: FloatArray) -> float:
    """Largest magnitude of the entries that are not impossible."""
    finite = log_values[log_values > IMPOSSIBLE]
    return float(np.abs(finite).max(initial=0.0))


def magnitudes(log_values: FloatArray, starts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
    """Largest magnitude of the possible entries in each stretch; the last one goes on to the end.

    ``starts`` rise strictly.
    """
    if not len(starts):
        return np.zeros(0)
    sizes = np.abs(log_values)
    sizes[log_values <= IMPOSSIBLE] = 0.0
    return np.asarray(np.maximum.reduceat(sizes, starts))


def elimination_error(model: Model, largest_weight: float = 1.0) -> float:
    """Rounding of any elimination of all variables of a model, or of what is left of it when some are fixed.

    Whatever the order, there are at most ``n_factors + n_variables`` inputs to at most ``n_variables`` power sums, and
    no intermediate value is larger than all tables and domains together.
    """
    largest = float(magnitudes(model.log_values, model.table_starts[:-1]).sum()) if model.n_factors else 0.0
    return error_of_tables(model.cardinalities, model.n_factors, largest, largest_weight)


def error_of_tables(cardinalities: IntArray, n_tables: int, largest: float, largest_weight: float = 1.0) -> float:
    """The same for tables that are in no model; ``largest`` is the sum of their :func:`magnitude`."""
    weight = max(largest_weight, 1.0)
    largest += weight * float(np.log(cardinalities).sum())
    inputs = n_tables + 6.0 * len(cardinalities) + 8.0
    sums = 2.0 * float(cardinalities.sum()) + EXPONENTIAL * len(cardinalities)
    return float(UNIT * (inputs * largest + weight * sums))


def certain(log_value: float, log_error: float) -> float:
    """An upper bound from a value and how far rounding may have moved it; infinity where that is too far, or no number.

    Minus infinity stays what it is: it stands for impossible states, which rounding does not touch.
    """
    if math.isnan(log_value) or not log_error < math.inf:
        return math.inf
    if log_value == -math.inf:
        return log_value
    if not log_error <= WORST_SHARE * max(1.0, abs(log_value)):
        return math.inf
    return log_value + log_error


def rounded_up(values: Any, dtype: Any) -> NDArray[Any]:
    """Upper bounds in another precision, none of them below what it was."""
    exact = np.asarray(values, dtype=np.float64)
    turned = exact.astype(dtype)
    above = np.nextafter(turned, np.asarray(np.inf, dtype=turned.dtype))
    return np.where(turned < exact, above, turned)
