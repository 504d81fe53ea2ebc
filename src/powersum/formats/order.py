"""Elimination orders: ``.vo`` files."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from powersum.core.arrays import IntArray
from powersum.core.errors import InputError
from powersum.core.files import PathLike, saving, shown
from powersum.formats.lists import read_list, refuse_repeats
from powersum.model.keys import whole
from powersum.model.model import Model


def read_order(path: PathLike, model: Model | None = None) -> IntArray:
    """Read a ``.vo`` file: every variable once, first eliminated first.

    Parameters
    ----------
    path
        The file, plain or compressed: a count and that many variables.
    model
        Given, the order must be one of its variables.
    """
    numbers, order = read_list(path, None)
    n = len(order)
    if model is not None and n != model.n_variables:
        raise InputError(f"{shown(path)}: an order of {n} variables for a model of {model.n_variables}")
    outside = order >= n
    if outside.any():
        raise numbers.error(
            1 + int(np.argmax(outside)), f"variable {{}} is out of range: an order of {n} has variables 0 to {n - 1}"
        )
    refuse_repeats(numbers, order)
    return order


def write_order(order: Iterable[int], path: PathLike) -> None:
    """Write an elimination order, first eliminated first: a comment, the count, one variable a line."""
    listed = [str(whole(v, "a variable of the order")) for v in order]
    with saving(path) as handle:
        handle.write("\n".join(["# elimination order, first eliminated first", str(len(listed)), *listed, ""]).encode())
