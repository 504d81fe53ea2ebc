"""Exponential and logarithm in single precision, eight numbers at a time, and how a kernel takes that of its numbers.

The same constructions as in :mod:`powersum.core.fastmath`, with polynomials no longer than single precision needs.
Relative error about 1e-7: what is computed with these guides a search and is never a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import types
from numba.extending import overload

from powersum.core.bits import bits_of, float_of, fused, number_of
from powersum.core.fastmath import exp_of, log_of
from powersum.core.jit import compiled, inner
from powersum.core.lanes import Lanes

SingleArray = np.ndarray[tuple[int], np.dtype[np.float32]]

LOWEST_SINGLE = -87.0
"""Below this an exponential would leave the normal numbers of single precision."""

Function = TypeVar("Function", bound=Callable[..., Any])

_ONE, _TWO = np.float32(1.0), np.float32(2.0)
_LOG2_E = np.float32(1.44269504)
# Minus log 2 in two parts: the first has so few bits that its product with the exponent is exact.
_MINUS_LN2_HIGH, _MINUS_LN2_LOW = np.float32(-0.693145752), np.float32(-1.42860677e-6)
_LN2 = np.float32(0.6931472)
# Adding 1.5 * 2**23 rounds to an integer, which then stands in the low bits of the sum.
_ROUNDER = np.float32(12582912.0)
_EXPONENT = np.int32(23)
# The bits of 1/sqrt 2.
_ROOT_HALF = np.int32(0x3F3504F3)

# Fits at Chebyshev nodes: of (exp r - 1 - r) / r² on |r| <= log(2)/2, relative error 1e-8, …
_E2, _E3, _E4, _E5, _E6 = (np.float32(c) for c in (0.5, 0.16666573286, 0.04166645557, 0.00836377684, 0.00139345450))
# … of 2 artanh(f) / f in f², for f <= 1/3 (4e-9) …
_A0, _A1, _A2, _A3, _A4 = (np.float32(c) for c in (2.0, 0.66666316986, 0.40024852753, 0.27961418033, 0.28174656630))
# … and for f < 0.1716 (3e-10).
_L0, _L1, _L2, _L3 = (np.float32(c) for c in (2.0, 0.66666817665, 0.39974269271, 0.29939916730))


@compiled
def exp_single(x: Any) -> Any:
    """``exp(x)`` for ``LOWEST_SINGLE <= x <= 87``."""
    shifted = fused(x, _LOG2_E, _ROUNDER)
    k = shifted - _ROUNDER
    r = fused(k, _MINUS_LN2_LOW, fused(k, _MINUS_LN2_HIGH, x))
    r2 = r * r
    high = fused(_E6, r2, fused(r, _E5, _E4))
    y = fused(fused(high, r2, fused(r, _E3, _E2)), r2, r + _ONE)
    return number_of(bits_of(y) + (bits_of(shifted) << _EXPONENT), x)


@compiled
def log1p_single(x: Any) -> Any:
    """``log(1 + x)`` for ``0 <= x <= 1``."""
    f = x / (x + _TWO)
    z = f * f
    return f * fused(fused(fused(fused(z, _A4, _A3), z, _A2), z, _A1), z, _A0)


@compiled
def log_single(x: Any) -> Any:
    """``log(x)`` for normal positive ``x``."""
    bits = bits_of(x)
    steps = (bits - _ROOT_HALF) >> _EXPONENT
    m = number_of(bits - (steps << _EXPONENT), x)
    f = (m - _ONE) / (m + _ONE)
    z = f * f
    y = f * fused(fused(fused(z, _L3, _L2), z, _L1), z, _L0)
    return fused(float_of(steps, x), _LN2, y)


def _by_precision(double: Any, single: Any) -> Callable[[Any], Any]:
    """A function for kernels that are compiled for numbers of either precision, one or eight at a time."""
    # Lanes are nothing that Python could hand over.
    double, single = inner(double.py_func), inner(single.py_func)

    def chosen(x: Any) -> Any:
        return double(x)

    register: Any = overload(chosen, jit_options={"error_model": "numpy", "nogil": True})
    register(lambda x: (lambda x: single(x)) if x in (types.float32, Lanes(types.float32)) else (lambda x: double(x)))
    return chosen


@compiled
def _log1p(x: float) -> float:
    return log_of(1.0 + x)


exp_of_either = _by_precision(exp_of, exp_single)
log_of_either = _by_precision(log_of, log_single)
log1p_of_either = _by_precision(_log1p, log1p_single)
