"""The one part of a model file that must be read in steps: where each scope begins depends on those before it."""

from __future__ import annotations

from powersum.core.arrays import FloatArray, IntArray


def walk(values: FloatArray, position: int, n_variables: int, counts: IntArray) -> tuple[int, int]:
    """Fill ``counts`` with the lengths of the scopes that begin at ``position``.

    Stops before a length that cannot be one, or at the end of ``values``. Returns the number of lengths found and the
    position after the last of these scopes. Plain Python, which :mod:`powersum.formats.scan_kernels` compiles as it is.
    """
    for factor in range(len(counts)):
        if position >= len(values):
            return factor, position
        count = values[position]
        if not (0.0 <= count <= n_variables) or count != int(count):
            return factor, position
        counts[factor] = int(count)
        position += 1 + int(count)
    return len(counts), position
