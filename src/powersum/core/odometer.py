"""Walking through all entries of a table, the last axis fastest, while following them through another table.

``digits`` are the state of each axis of the table walked through; ``strides`` say how far apart neighbouring
states of each axis lie in the other table, 0 for an axis that it lacks.
"""

from __future__ import annotations

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import inner


@inner
def next_entry(entry: int, digits: IntArray, sizes: IntArray, strides: IntArray) -> int:
    """Count ``digits`` up by one; returns where ``entry`` of the other table moves. After the last it begins anew."""
    for axis in range(digits.size - 1, -1, -1):
        digits[axis] += 1
        entry += strides[axis]
        if digits[axis] < sizes[axis]:
            break
        entry -= digits[axis] * strides[axis]
        digits[axis] = 0
    return entry


@inner
def set_strides(scope: IntArray, cardinalities: IntArray, axes: IntArray, strides: IntArray) -> None:
    """Strides of a table over the variables ``scope``, along ``axes``; variables have their ``cardinalities``."""
    for axis in range(axes.size):
        strides[axis] = 0
    stride = 1
    for i in range(scope.size - 1, -1, -1):
        for axis in range(axes.size):
            if axes[axis] == scope[i]:
                strides[axis] = stride
        stride *= cardinalities[scope[i]]


@inner
def add_table(
    values: FloatArray, first: int, digits: IntArray, sizes: IntArray, strides: IntArray, target: FloatArray
) -> None:
    """Add the table that starts at ``values[first]`` to ``target``, which has axes of the given ``sizes``."""
    for axis in range(digits.size):
        digits[axis] = 0
    source = first
    for entry in range(target.size):
        target[entry] += values[source]
        source = next_entry(source, digits, sizes, strides)
