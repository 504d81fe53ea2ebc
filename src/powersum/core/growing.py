"""Arrays that grow within kernels.

Numba's own copies of slices compile their error messages, which takes a second for each caller: these are loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersum.core.jit import inner


@inner
def copy_to(target: NDArray[Any], values: NDArray[Any], count: int) -> None:
    """Write the first ``count`` values to the front of ``target``."""
    for i in range(count):
        target[i] = values[i]


@inner
def grown(array: NDArray[Any], needed: int) -> NDArray[Any]:
    """``array`` itself, or a copy with room for twice the ``needed`` entries if it has no room for them."""
    if needed <= array.size:
        return array
    larger = np.empty(2 * needed, array.dtype)
    copy_to(larger, array, array.size)
    return larger
