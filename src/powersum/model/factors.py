"""The factors of a model as compiled code reads them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray, frozen
from powersum.model.model import Model


class Factors(NamedTuple):
    """The factors of a model as kernels read them; ``strides`` has one entry for each place of a scope. Read-only."""

    scope_starts: IntArray
    scope_variables: IntArray
    strides: IntArray
    log_values: FloatArray


def factors_of(model: Model) -> Factors:
    """The model's factors as kernels read them."""
    cards = model.cardinalities[model.scope_variables]
    strides = np.ones(len(cards), dtype=np.int64)
    # The stride of a place is the product of the cardinalities after it in its scope; scopes are short, so the number
    # of rounds is small and each is one NumPy operation over all factors.
    last = np.repeat(model.scope_starts[1:], np.diff(model.scope_starts)) - 1
    places = np.arange(len(cards))
    for shift in range(1, int(np.diff(model.scope_starts).max(initial=1))):
        inside = places + shift <= last
        strides[inside] *= cards[places[inside] + shift]
    return Factors(model.scope_starts, model.scope_variables, frozen(strides, np.int64), model.log_values)


def configuration_value(model: Model, states: IntArray) -> float:
    """The value of a configuration of all variables, added up exactly; ``-inf`` where a factor excludes it."""
    strides = factors_of(model).strides
    # A sum up to each place, for scopes can be empty.
    sums = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(strides * states[model.scope_variables])])
    places = model.table_starts[:-1] + sums[model.scope_starts[1:]] - sums[model.scope_starts[:-1]]
    terms = model.log_values[places]
    return -math.inf if np.isneginf(terms).any() else math.fsum(terms)
