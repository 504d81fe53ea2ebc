"""Text to numbers: comments out, every word a double, and for errors the way back from a number to its place."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from powersum.arrays import FloatArray, IntArray
from powersum.errors import InputError
from powersum.formats.files import PathLike, load, shown

# Shorter texts are read with Python's own float: loading the compiled scanner would take longer than reading them.
COMPILED_FROM_BYTES = 4 << 20

MIN_NORMAL = float(np.finfo(np.float64).tiny)
LARGEST_EXPONENT = 1_000_000
"""Powers of ten that a table entry may have; smaller numbers are nobody's probabilities."""

# ln 10 in two parts; the first has 32 bits, so that its product with an exponent is exact.
_LN10_HIGH = math.floor(math.log(10.0) * 2.0**30) / 2.0**30
_LN10_LOW = 6.208533736847395e-10

_LARGEST_WHOLE = 1 << 53
_LINE_END = re.compile(rb"[\r\n]")
_FIRST_COMMENT = re.compile(rb"\A[ \t\v\f]*[c#][^\r\n]*")
_COMMENT = re.compile(rb"[\r\n][ \t\v\f]*[c#][^\r\n]*")
_WORD = re.compile(rb"\S+")
_NOT_NUMERIC = re.compile(rb"[^0-9eE+\-.\s]")
_HARD_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The numbers in a text, in order, as doubles.

    Parameters
    ----------
    path
        The file, for messages.
    text
        What was read, without comments; its lines are those of the file.
    start, skipped
        Where in ``text`` the numbers begin, and the number of words before.
    values
        The numbers. All are finite.
    tiny
        Natural logs of the positive numbers too small for a normal double, by index: their doubles have lost digits,
        or all of the number, and a bound computed from them would be none.
    """

    path: PathLike
    text: bytes
    start: int
    skipped: int
    values: FloatArray
    tiny: dict[int, float]

    def __len__(self) -> int:
        return self.values.size

    @property
    def large(self) -> bool:
        """Whether there is so much text that compiled code is worth loading."""
        return _is_large(self.text, self.start)

    def error(self, index: int, message: str) -> InputError:
        """The error that says ``message`` about one number; ``{}`` in it stands for the number as written."""
        word, place = _locate(self.text, self.start, self.skipped, index)
        return InputError(f"{shown(self.path)}: {place}: {message.format(word)}")

    def ends_early(self, expected: str) -> InputError:
        """The error for a file that stops before ``expected``."""
        return InputError(f"{shown(self.path)}: ends after {self.skipped + len(self)} tokens, before {expected}")

    def whole(self, index: int, what: str) -> int:
        """The whole number ≥ 0 at ``index``."""
        if index >= len(self):
            raise self.ends_early(what)
        return int(self.wholes(index, index + 1, what)[0])

    def wholes(self, start: int, stop: int, what: str) -> IntArray:
        """The whole numbers ≥ 0 from ``start`` to ``stop``."""
        values = self.values[start:stop]
        bad = (values != np.floor(values)) | (values < 0) | (values > _LARGEST_WHOLE)
        if bad.any():
            raise self.error(start + int(np.argmax(bad)), f"{what} must be a whole number ≥ 0, not {{}}")
        return values.astype(np.int64)


def read_text(path: PathLike) -> bytes:
    """The text of a file; of lines that start with ``c`` or ``#`` only their ends are left."""
    text = load(path).removeprefix(b"\xef\xbb\xbf")
    return without_comments(text)


def without_comments(text: bytes) -> bytes:
    """``text`` with comment lines emptied."""
    last = max(text.rfind(b"#"), text.rfind(b"c"))
    if last < 0:
        return text
    # Comments are mostly at the top: what comes after the last of them need not be searched.
    found = _LINE_END.search(text, last)
    end = found.start() if found else len(text)
    return _COMMENT.sub(b"\n", _FIRST_COMMENT.sub(b"", text[:end])) + text[end:]


def first_word(text: bytes) -> tuple[str, int]:
    """The first word of a text, in a form fit for messages, and where it ends; an empty word for a blank text."""
    found = _WORD.search(text)
    return (readable(found.group()), found.end()) if found else ("", len(text))


def read_numbers(path: PathLike, text: bytes, start: int = 0, skipped: int = 0) -> Numbers:
    """All of ``text[start:]`` as numbers; refuses what is not a finite decimal number."""
    convert = _convert_compiled if _is_large(text, start) else _convert_plain
    hard = _Hard(path, text, start, skipped, {})
    return Numbers(path, text, start, skipped, convert(text, start, hard), hard.tiny)


def _is_large(text: bytes, start: int) -> bool:
    return len(text) - start >= COMPILED_FROM_BYTES


@dataclass(frozen=True, slots=True)
class _Hard:
    """Reads the words that need care, one at a time, and collects the numbers too small for a double."""

    path: PathLike
    text: bytes
    start: int
    skipped: int
    tiny: dict[int, float]

    def value(self, index: int, word: bytes) -> float:
        """The double for a word; see :class:`Numbers` for the smallest."""
        try:
            value = math.nan if _NOT_NUMERIC.search(word) else float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            shown_word, place = _locate(self.text, self.start, self.skipped, index)
            raise InputError(f"{shown(self.path)}: {place}: {shown_word} is not a finite number")
        if abs(value) >= MIN_NORMAL:
            return value
        log = log_of_decimal(word)
        if log == -math.inf:
            return 0.0
        if math.isnan(log):
            shown_word, place = _locate(self.text, self.start, self.skipped, index)
            raise InputError(f"{shown(self.path)}: {place}: {shown_word} is too small, but not zero")
        if word.startswith(b"-"):
            return -MIN_NORMAL
        self.tiny[index] = log
        # Whoever does not ask for the log sees a number that is neither zero nor whole.
        return MIN_NORMAL


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


def _convert_plain(text: bytes, start: int, hard: _Hard) -> FloatArray:
    """Numbers by way of Python's float."""
    words = text[start:].split()
    return _doubles(words, range(len(words)), _NOT_NUMERIC.search(text, start) is None, hard)


def _convert_compiled(text: bytes, start: int, hard: _Hard) -> FloatArray:
    """Numbers by way of the compiled scanner, which leaves long ones to Python's float."""
    from powersum.formats.scan_kernels import count_tokens, scan

    array: Any = np.frombuffer(text, np.uint8)[start:]
    values = np.empty(count_tokens(array))
    index, starts, stops = (np.empty(_HARD_AT_ONCE, np.int64) for _ in range(3))
    position = count = 0
    while True:
        position, count, n_hard = scan(array, position, values, count, index, starts, stops)
        if n_hard == 0:
            return values
        begins, ends = (starts[:n_hard] + start).tolist(), (stops[:n_hard] + start).tolist()
        words = [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
        numeric = _NOT_NUMERIC.search(text, begins[0], ends[-1]) is None
        values[index[:n_hard]] = _doubles(words, index[:n_hard].tolist(), numeric, hard)


def _doubles(words: list[bytes], indices: Sequence[int], numeric: bool, hard: _Hard) -> FloatArray:
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
            # A zero without an exponent is a zero, or has hundreds of digits.
            suspects = [k for k in odd if len(words[k]) > 300 or b"e" in words[k].lower()]
    for k in suspects:
        values[k] = hard.value(indices[k], words[k])
    return values


def _locate(text: bytes, start: int, skipped: int, index: int) -> tuple[str, str]:
    """A word as messages show it, and its place. Searches from the start: only errors ask."""
    found = next(islice(_WORD.finditer(text, start), index, None))
    line = text.count(b"\n", 0, found.start()) + 1
    return readable(found.group()), f"token {skipped + index + 1} (line {line})"


def readable(word: bytes) -> str:
    """A word on one line and not too long, whatever bytes are in it."""
    text = repr(word[:32])[2:-1]
    return text + "…" if len(word) > 32 else text
