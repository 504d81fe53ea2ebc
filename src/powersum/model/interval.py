"""Interval: a probability known from both sides, kept as natural logs so that none is too small for it."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from typing import Any

from powersum.core.errors import InputError

SAME = 1e-6
"""Sides whose logs are this close count as one number."""

CLOSE = math.log(1e3)
"""Sides whose logs are further apart than this tell an order of magnitude at most."""

NEARLY_ONE = math.log(0.9995)
"""An upper side from here on is printed as 100 % and says nothing."""

_ULPS = 4.0 * 2.0**-53
_LEAST = 1e-300


@dataclass(frozen=True, slots=True)
class Interval:
    """A probability between two sides that both hold; a narrow one behaves as a number.

    ``float(p)``, ``round(p, 3)``, ``f"{p:.4f}"``, ``1 - p`` and ``2 * p`` work where the sides are one number up to
    rounding. ``p > q`` works where the sides decide it. Elsewhere these raise ``InputError``. ``str(p)`` shows both
    sides.

    Parameters
    ----------
    log_lower, log_upper
        The probability is at least ``exp(log_lower)`` and at most ``exp(log_upper)``.

    Examples
    --------
    >>> import math
    >>> from powersum.model.interval import Interval
    >>> print(Interval(math.log(0.25), math.log(0.25)))
    25 %
    >>> wide = Interval(math.log(0.2), math.log(0.25))
    >>> print(wide)
    20 % to 25 %
    >>> wide > 0.1, f"{Interval(math.log(0.25), math.log(0.25)):.4f}"
    (True, '0.2500')
    """

    log_lower: float
    log_upper: float

    @classmethod
    def ratio(cls, above: tuple[float, float], below: tuple[float, float]) -> Interval:
        """The share that one value has of another one that is no smaller, both as logs from both sides.

        The differences are rounded outward.
        """
        if above[1] == -math.inf:
            return cls(-math.inf, -math.inf)
        lower = -math.inf if above[0] == -math.inf or below[1] == math.inf else above[0] - below[1]
        upper = 0.0 if above[1] == math.inf or below[0] == -math.inf else above[1] - below[0]
        upper = min(math.nextafter(upper, math.inf), 0.0)
        return cls(min(math.nextafter(lower, -math.inf), upper), upper)

    @property
    def lower(self) -> float:
        """The probability is at least this, rounded down."""
        return math.exp(self.log_lower) * (1.0 - _ULPS) if self.log_lower < 0.0 else 1.0

    @property
    def upper(self) -> float:
        """The probability is at most this, rounded up."""
        if self.log_upper == -math.inf:
            return 0.0
        return min(1.0, math.exp(self.log_upper) * (1.0 + _ULPS) + _LEAST)

    @property
    def exact(self) -> bool:
        """True where both sides are one number, up to rounding."""
        return self.log_upper == self.log_lower or self.log_upper - self.log_lower <= SAME

    @property
    def informative(self) -> bool:
        """True where the two sides are within a factor of 1,000, or the probability is nearly 0."""
        return self.log_upper - self.log_lower <= CLOSE or self.log_upper <= -CLOSE

    def __float__(self) -> float:
        if not self.exact:
            raise InputError(f"the probability is an interval, {self}: use .lower and .upper")
        return min(1.0, math.exp(0.5 * (self.log_lower + self.log_upper)) if self.log_upper > -math.inf else 0.0)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)

    def __add__(self, other: Any) -> float:
        return float(self) + float(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> float:
        return float(self) - float(other)

    def __rsub__(self, other: Any) -> float:
        return float(other) - float(self)

    def __mul__(self, other: Any) -> float:
        return float(self) * float(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> float:
        return float(self) / float(other)

    def __rtruediv__(self, other: Any) -> float:
        return float(other) / float(self)

    def __gt__(self, other: Any) -> bool:
        """Whether it is larger: decided by the sides, and an error where they do not decide it."""
        least, most = _sides(other)
        low, high = _sides(self)
        if low > most or high <= least:
            return bool(low > most)
        raise InputError(f"{self} > {other} is not decided: the probability is an interval; use .lower and .upper")

    def __lt__(self, other: Any) -> bool:
        least, most = _sides(other)
        low, high = _sides(self)
        if high < least or low >= most:
            return bool(high < least)
        raise InputError(f"{self} < {other} is not decided: the probability is an interval; use .lower and .upper")

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __str__(self) -> str:
        if self.exact:
            return _percent(0.5 * (self.log_lower + self.log_upper), decimal.ROUND_HALF_EVEN)
        lower, upper = _percent(self.log_lower, decimal.ROUND_FLOOR), _percent(self.log_upper, decimal.ROUND_CEILING)
        if self.log_lower == -math.inf:
            return f"at most {upper}" if self.log_upper < 0.0 else "unknown"
        if self.log_upper >= NEARLY_ONE and not self.informative:
            return f"at least {lower}"
        return f"{lower} to {upper}"


def _sides(value: Any) -> tuple[float, float]:
    """Both sides of an interval, one number where it is narrow; of a number the number twice."""
    if isinstance(value, Interval) and not value.exact:
        return value.lower, value.upper
    return float(value), float(value)


def _percent(log_probability: float, rounding: str) -> str:
    """A probability in per cent, of three digits as people read it; one too small for that as a power of ten."""
    context = decimal.Context(prec=3, rounding=rounding)
    if log_probability == -math.inf:
        return "0 %"
    if log_probability > math.log(1e-6):
        return f"{context.create_decimal_from_float(100.0 * math.exp(log_probability)).normalize():f} %"
    exponent = math.floor(log_probability / math.log(10.0))
    digits = context.create_decimal_from_float(math.exp(log_probability - exponent * math.log(10.0)))
    # Rounding, of this or of the exponent, may have left the digits at 10 or a little below 1.
    exponent, digits = exponent + digits.adjusted(), digits.scaleb(-digits.adjusted())
    return f"{digits.normalize():f}e{exponent:d}"
