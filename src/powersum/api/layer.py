"""What the layers for JAX and PyTorch have in common: rows of any precision in, bounds and slopes of it out."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.api.gradient import BoundFunction
from powersum.core.errors import InputError
from powersum.model.keys import as_text
from powersum.model.log_values import check_shape
from powersum.model.rounding import rounded_up


def check_gradient(gradient: object) -> None:
    """Refuse what is no :class:`powersum.BoundFunction`, such as a model."""
    if not isinstance(gradient, BoundFunction):
        raise InputError(f"gradient is {as_text(gradient)}: give a powersum.BoundFunction")


def check_numbers(gradient: BoundFunction, shape: tuple[int, ...], dtype: str) -> None:
    """Refuse log values of another shape than the model's, or of another type than single or double precision."""
    check_shape(shape, gradient.model.log_values.shape)
    if dtype not in ("float32", "float64"):
        raise InputError(f"log_values are of type {dtype}: give single or double precision")


def bounds_and_slopes(gradient: BoundFunction, log_values: Any, dtype: str) -> tuple[Any, Any]:
    """The bound of each row, rounded up to the precision asked for, and its slopes; a single row is one of its own.

    NaN or +inf among the log values of a row make both NaN: whoever differentiates looks for that, not for exceptions.
    """
    given = np.asarray(log_values, dtype=np.float64)
    rows = given.reshape(-1, given.shape[-1]).copy()
    values, slopes = np.full(len(rows), np.nan), np.full(rows.shape, np.nan)
    numbers = (rows < np.inf).all(axis=1)
    # Rows keep their numbers, by which they find their shifts again.
    rows[~numbers] = 0.0
    found = gradient.batch(rows)
    values[numbers], slopes[numbers] = found[0][numbers], found[1][numbers]
    return rounded_up(values, dtype).reshape(given.shape[:-1]), slopes.astype(dtype).reshape(given.shape)
