"""Decimal numbers to doubles and their logs, correct to the last bit and never a false zero."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.model.model import log_of_probabilities

MIN_NORMAL = float(np.finfo(np.float64).tiny)
LARGEST_EXPONENT = 1_000_000
"""Powers of ten that a table entry may have; smaller numbers are nobody's probabilities."""

# ln 10 in two parts; the first has 32 bits, so that its product with an exponent is exact.
_LN10_HIGH = math.floor(math.log(10.0) * 2.0**30) / 2.0**30
_LN10_LOW = 6.208533736847395e-10

NOT_NUMERIC = re.compile(rb"[^0-9eE+\-.\s]")


@dataclass(frozen=True, slots=True)
class Decimals:
    """Reads words as numbers, and collects those too small for a double.

    Parameters
    ----------
    complain
        Makes the error that says something about one number: from its index and a message in which ``{}`` stands for
        the number as written.
    tiny
        Natural logs of the positive numbers too small for a normal double, by index: their doubles have lost digits,
        or all of the number, and a bound computed from them would be none.
    """

    complain: Callable[[int, str], InputError]
    tiny: dict[int, float] = field(default_factory=dict)

    def doubles(self, words: list[bytes], indices: Sequence[int], numeric: bool) -> FloatArray:
        """The doubles for words with these indices; ``numeric`` where nothing but signs and digits is in them."""
        suspects: Sequence[int] = range(len(words))
        values = np.zeros(len(words))
        # Python's float would also take nan, inf and 1_000; of words without such letters it takes the numbers only.
        if numeric:
            try:
                values = np.fromiter(map(float, words), np.float64, count=len(words))
            except ValueError:
                pass
            else:
                odd = np.flatnonzero(~((np.abs(values) >= MIN_NORMAL) & np.isfinite(values))).tolist()
                # A zero without an exponent is a zero, or has hundreds of digits; 1e999 is the shortest that is not.
                long = [k for k in odd if len(words[k]) > 4]
                suspects = [k for k in long if len(words[k]) > 300 or b"e" in words[k].lower()]
        for k in suspects:
            values[k] = self._double(indices[k], words[k])
        return values

    def _double(self, index: int, word: bytes) -> float:
        """The double for a word that needs care."""
        try:
            value = math.nan if NOT_NUMERIC.search(word) else float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.complain(index, "{} is not a finite number")
        if abs(value) >= MIN_NORMAL:
            return value
        log = log_of_decimal(word)
        if log == -math.inf:
            return 0.0
        if math.isnan(log):
            raise self.complain(index, "{} is too small, but not zero")
        if word.startswith(b"-"):
            return -MIN_NORMAL
        self.tiny[index] = log
        # Whoever does not ask for the log sees a number that is neither zero nor whole.
        return MIN_NORMAL


def logs_of(words: list[bytes], complain: Callable[[int, str], InputError]) -> FloatArray:
    """Natural logs of table entries; refuses what is not a finite decimal number ≥ 0."""
    decimals = Decimals(complain)
    values = decimals.doubles(words, range(len(words)), NOT_NUMERIC.search(b" ".join(words)) is None)
    if values.size and float(values.min()) < 0.0:
        raise complain(int(np.argmax(values < 0.0)), "{} is negative")
    logs = log_of_probabilities(values)
    for index, log in decimals.tiny.items():
        logs[index] = log
    return logs


def log_of_decimal(word: bytes) -> float:
    """Natural log of the absolute value of a decimal number of any exponent; NaN beyond ``LARGEST_EXPONENT``."""
    mantissa, _, exponent = word.lower().lstrip(b"+-").partition(b"e")
    whole, _, fraction = mantissa.partition(b".")
    digits = (whole + fraction).lstrip(b"0")
    if not digits:
        return -math.inf
    # Counted before int(), which takes long numbers slowly and refuses the longest.
    significant = exponent.lstrip(b"+-").lstrip(b"0")
    if len(significant) > 9:
        return math.nan
    power = int(exponent or b"0") - len(fraction) + len(digits) - 1
    if abs(power) > LARGEST_EXPONENT:
        return math.nan
    leading = float(digits[:1] + b"." + digits[1:40])
    return math.fsum((power * _LN10_HIGH, power * _LN10_LOW, math.log(leading)))
