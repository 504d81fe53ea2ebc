"""Names for the array types that cross module borders."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


def frozen(values: Any, dtype: Any) -> NDArray[Any]:
    """A contiguous read-only view of ``values`` as ``dtype``; copies only where the type or layout asks for it.

    The view protects against writing through the returned object, not against an owner who keeps writing to the
    array that was passed in: callers hand over arrays they do not touch again. For those of users there is ``owned``.
    """
    array = np.ascontiguousarray(values, dtype=dtype).view()
    array.setflags(write=False)
    return array


def owned(values: Any, dtype: Any) -> NDArray[Any]:
    """A contiguous read-only array of ``values`` as ``dtype``; copied where anybody else could still write to it."""
    array = np.ascontiguousarray(values, dtype=dtype)
    below: Any = array
    while isinstance(below, np.ndarray):
        if below.flags.writeable:
            array = array.copy()
            break
        below = below.base
    array.setflags(write=False)
    return array


def given_up(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only: whoever made it does not write to it again, so that ``owned`` need not copy it."""
    array.setflags(write=False)
    return array


def starts_of(lengths: Any) -> IntArray:
    """Where each of consecutive blocks of the given lengths starts, with the total as a last entry."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def positions_of(order: Any, n: int | None = None) -> IntArray:
    """The place of each of ``n`` numbers (by default as many as there are in ``order``) in ``order``; -1 if not there.

    Where ``order`` is a permutation, this is its inverse.
    """
    positions = np.full(len(order) if n is None else n, -1, dtype=np.int64)
    positions[order] = np.arange(len(order))
    return positions
