"""Compiled scanning of text: whitespace-separated decimal numbers to doubles, correct to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.jit import compiled
from powersum.formats.scopes import walk

# Powers of ten up to here are doubles without error, and so is a whole number up to 2**53: their product or quotient
# is rounded once, which is what a correct reader does.
_LARGEST_POWER = 22
_POWERS = np.array([10.0**k for k in range(_LARGEST_POWER + 1)])
_LARGEST_WHOLE = 1 << 53
_MOST_DIGITS = 18
_MOST_EXPONENT = 9999

compiled_walk = compiled(walk)


@compiled
def count_tokens(text: Any) -> int:
    """Number of words in ``text``, an array of bytes."""
    count = 0
    blank = True
    for byte in text:
        now_blank = byte == 32 or 9 <= byte <= 13
        if blank and not now_blank:
            count += 1
        blank = now_blank
    return count


@compiled
def scan(
    text: Any, position: int, values: FloatArray, count: int, hard: IntArray, starts: IntArray, stops: IntArray
) -> tuple[int, int, int]:
    """Read numbers from ``text[position:]`` into ``values[count:]``.

    Words that are no plain number, and numbers whose rounding takes more than one operation, are left to the caller:
    their index in ``values`` and their place in ``text`` are noted in ``hard``, ``starts``, ``stops``. Returns, when
    the text ends or these are full, the position, the count and the number of such words.
    """
    size = len(text)
    n_hard = 0
    while n_hard < len(hard):
        while position < size and (text[position] == 32 or 9 <= text[position] <= 13):
            position += 1
        if position == size:
            break
        start = position
        negative = text[position] == 45
        if negative or text[position] == 43:
            position += 1

        mantissa: Any = 0
        digits = 0
        scale = 0
        seen = False
        easy = True
        while position < size and 48 <= text[position] <= 57:
            seen = True
            mantissa = mantissa * 10 + (np.int64(text[position]) - 48)
            # Not «above 0»: the nineteenth digit may take it beyond the integers, where it is negative.
            digits += mantissa != 0
            easy = easy and digits <= _MOST_DIGITS
            position += 1
        if position < size and text[position] == 46:
            position += 1
            while position < size and 48 <= text[position] <= 57:
                seen = True
                mantissa = mantissa * 10 + (np.int64(text[position]) - 48)
                digits += mantissa != 0
                easy = easy and digits <= _MOST_DIGITS
                scale -= 1
                position += 1
        easy = easy and seen
        if position < size and (text[position] == 101 or text[position] == 69):
            position += 1
            down = position < size and text[position] == 45
            if down or (position < size and text[position] == 43):
                position += 1
            exponent: Any = 0
            seen = False
            while position < size and 48 <= text[position] <= 57:
                seen = True
                exponent = min(exponent * 10 + (np.int64(text[position]) - 48), _MOST_EXPONENT)
                position += 1
            # A capped exponent is none: after ten thousand zeros, e10000 makes an ordinary number.
            easy = easy and seen and exponent < _MOST_EXPONENT
            scale += -exponent if down else exponent

        if position < size and not (text[position] == 32 or 9 <= text[position] <= 13):
            easy = False
            while position < size and not (text[position] == 32 or 9 <= text[position] <= 13):
                position += 1

        value = 0.0
        if easy and mantissa != 0:
            easy = mantissa <= _LARGEST_WHOLE and -_LARGEST_POWER <= scale <= _LARGEST_POWER
            if easy:
                value = mantissa / _POWERS[-scale] if scale < 0 else mantissa * _POWERS[scale]
        if easy:
            values[count] = -value if negative else value
        else:
            hard[n_hard] = count
            starts[n_hard] = start
            stops[n_hard] = position
            n_hard += 1
        count += 1
    return position, count, n_hard
