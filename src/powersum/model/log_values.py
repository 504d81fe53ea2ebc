"""Table entries as natural logs: what may be one, and arrays of them as users hand them over."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.model.keys import as_text


def check_log_values(log_values: FloatArray) -> None:
    """Refuse what is no logarithm of a finite number."""
    # NaN is not below infinity either.
    if not (log_values < np.inf).all():
        raise InputError("a table entry is NaN or infinite")


def check_shape(given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuse another number of entries than the model has."""
    if given != shape:
        raise InputError(f"log_values has shape {given}: the model's has {shape}")


def log_values_of(log_values: Any, shape: tuple[int, ...]) -> FloatArray:
    """A copy of all table entries of a model, as many as there must be."""
    try:
        values = np.array(log_values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"log_values is {as_text(log_values)}: give an array of numbers") from None
    check_shape(values.shape, shape)
    check_log_values(values)
    return values
