"""Exponential and logarithm without branches, which LLVM vectorises inside loops (about 1 ns an entry, not 6).

``math.exp`` is a call into the C library and keeps a loop scalar. Range reduction, a polynomial and an exponent put
together by integer arithmetic are plain instructions that run on several numbers at a time. Relative error about 1e-15.
Compiled code may call these with :class:`~powersum.core.lanes.Lanes` as well.
"""

from __future__ import annotations

from powersum.core.bits import bits_of, fused, number_of
from powersum.core.jit import compiled

# Below this a result would leave the normal doubles, where the exponent cannot be put together by a shift.
LOWEST = -708.0

_LOG2_E = 1.4426950408889634
# log 2 in two parts: the first has so few bits that its product with the exponent is exact.
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds to an integer, which then stands in the low bits of the sum.
_ROUNDER = 6755399441055744.0


@compiled
def exp_of(x: float) -> float:
    """``exp(x)`` for ``LOWEST <= x <= 700``, relative error below 1e-14."""
    shifted = fused(x, _LOG2_E, _ROUNDER)
    k = shifted - _ROUNDER
    r = fused(k, -_LN2_LOW, fused(k, -_LN2_HIGH, x))
    # Taylor polynomial of degree 11 on |r| <= log(2)/2; pairs first (Estrin), so that the chain of operations is short.
    r2 = r * r
    r4 = r2 * r2
    low = fused(fused(r, 0.16666666666666666, 0.5), r2, r + 1.0)
    middle = fused(
        fused(r, 0.0001984126984126984, 0.001388888888888889),
        r2,
        fused(r, 0.008333333333333333, 0.041666666666666664),
    )
    high = fused(
        fused(r, 2.505210838544172e-08, 2.755731922398589e-07),
        r2,
        fused(r, 2.7557319223985893e-06, 2.48015873015873e-05),
    )
    y = fused(fused(high, r4, middle), r4, low)
    result: float = number_of(bits_of(y) + (bits_of(shifted) << 52), x)
    return result


@compiled
def log_of(x: float) -> float:
    """``log(x)`` for normal positive ``x``."""
    bits = bits_of(x)
    # Exponent such that the mantissa lies in [1/sqrt 2, sqrt 2): 0x3FE6A09E... are the bits of 1/sqrt 2.
    steps = (bits - 0x3FE6A09E667F3BCD) >> 52
    m = number_of(bits - (steps << 52), x)
    # log m = 2 artanh f, a series in f² with |f| < 0.1716.
    f = (m - 1.0) / (m + 1.0)
    z = f * f
    z2 = z * z
    low = fused(fused(z, 0.2857142857142857, 0.4), z2, fused(z, 0.6666666666666666, 2.0))
    middle = fused(
        fused(z, 0.13333333333333333, 0.15384615384615385), z2, fused(z, 0.18181818181818182, 0.2222222222222222)
    )
    high = fused(z, 0.10526315789473684, 0.11764705882352941)
    y = fused(fused(high, z2 * z2, middle), z2 * z2, low)
    # The integer as a double without a conversion instruction, which older vector units lack.
    k = number_of(bits_of(_ROUNDER) + steps, x) - _ROUNDER
    result: float = fused(k, _LN2_HIGH, fused(y, f, k * _LN2_LOW))
    return result
