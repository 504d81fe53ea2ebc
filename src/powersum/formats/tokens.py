"""Text to numbers: comments out, every word a double, and for errors the way back from a number to its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, shown
from powersum.formats.decimals import NOT_NUMERIC, Decimals

# Shorter texts are read with Python's own float: loading the compiled scanner would take longer than reading them.
COMPILED_FROM_BYTES = 4 << 20

_LARGEST_WHOLE = 1 << 53
_LINE_END = re.compile(rb"[\r\n]")
_COMMENT = re.compile(rb"#[^\r\n]*")
_FIRST_LINE = re.compile(rb"\A[ \t\v\f]*c[^\r\n]*")
_COMMENT_LINE = re.compile(rb"[\r\n][ \t\v\f]*c[^\r\n]*")
_WORD = re.compile(rb"\S+")
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
        Natural logs of the positive numbers too small for a normal double, by index; see :class:`Decimals`.
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
        return _error(self.path, self.text, self.start, self.skipped, index, message)

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
    """The text of a file without its comments."""
    return without_comments(load_text(path))


def load_text(path: PathLike) -> bytes:
    """The text of a file as it is."""
    return load(path).removeprefix(b"\xef\xbb\xbf")


def without_comments(text: bytes) -> bytes:
    """``text`` without what follows ``#`` on a line, and with lines that start with ``c`` emptied."""
    last = max(text.rfind(b"#"), text.rfind(b"c"))
    if last < 0:
        return text
    # Comments are mostly at the top: what comes after the last of them need not be searched.
    found = _LINE_END.search(text, last)
    end = found.start() if found else len(text)
    return _COMMENT_LINE.sub(b"\n", _FIRST_LINE.sub(b"", _COMMENT.sub(b"", text[:end]))) + text[end:]


def first_word(text: bytes) -> tuple[str, int]:
    """The first word of a text, in a form fit for messages, and where it ends; an empty word for a blank text."""
    found = _WORD.search(text)
    return (readable(found.group()), found.end()) if found else ("", len(text))


def read_numbers(path: PathLike, text: bytes, start: int = 0, skipped: int = 0) -> Numbers:
    """All of ``text[start:]`` as numbers; refuses what is not a finite decimal number."""
    convert = _convert_compiled if _is_large(text, start) else _convert_plain
    decimals = Decimals(lambda index, message: _error(path, text, start, skipped, index, message))
    return Numbers(path, text, start, skipped, convert(text, start, decimals), decimals.tiny)


def _is_large(text: bytes, start: int) -> bool:
    return len(text) - start >= COMPILED_FROM_BYTES


def _convert_plain(text: bytes, start: int, decimals: Decimals) -> FloatArray:
    """Numbers by way of Python's float."""
    words = text[start:].split()
    return decimals.doubles(words, range(len(words)), NOT_NUMERIC.search(text, start) is None)


def _convert_compiled(text: bytes, start: int, decimals: Decimals) -> FloatArray:
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
        numeric = NOT_NUMERIC.search(text, begins[0], ends[-1]) is None
        values[index[:n_hard]] = decimals.doubles(words, index[:n_hard].tolist(), numeric)


def _error(path: PathLike, text: bytes, start: int, skipped: int, index: int, message: str) -> InputError:
    """The error about one number. Searches for it from the start: only errors ask."""
    found = next(islice(_WORD.finditer(text, start), index, None))
    line = text.count(b"\n", 0, found.start()) + 1
    place = f"token {skipped + index + 1} (line {line})"
    return InputError(f"{shown(path)}: {place}: {message.format(readable(found.group()))}")


def readable(word: bytes) -> str:
    """A word on one line and not too long, whatever bytes are in it."""
    text = repr(word[:32])[2:-1]
    return text + "…" if len(word) > 32 else text
