"""The user's own files: UAI models, evidence and queries, and models as arrays. Strict, and bounded in memory."""

from __future__ import annotations

import gzip
import lzma
import math
import re
import zlib
from collections.abc import Iterator
from decimal import Context, Decimal
from io import BytesIO
from pathlib import Path

import numpy as np

from powersum_check.archive import PIECE, joined, read_bytes
from powersum_check.errors import BadFile
from powersum_check.limits import afford
from powersum_check.model import PER_FACTOR, Factor, Model, evidence_of
from powersum_check.numbers import MOST_AXES, FloatArray, Table, U, logs_of, magnitude

_COMMENT = re.compile(rb"#[^\r\n]*")
_COMMENT_LINE = re.compile(rb"(?<![^\r\n])[ \t\v\f]*c[^\r\n]*")
_AGRUM_SCOPE = re.compile(rb"(?m)^(\d++)(?: \d++)++   # [^\r\n]")
_AGRUM_TABLE = re.compile(rb"(?m)^\d+ # \{([0-9, ]*)\}[ \t]*\r?$")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,6})?")
_NOT_ZERO = re.compile(rb"[+\-.0]*[1-9]")
_STRANGE = re.compile(rb"[^0-9eE+\-.\s]")
_PER_WORD = 96
"""Bytes that are counted for a word: it, its double, its log."""
_LONGEST_WORD = 1000
_LEAST_NORMAL = 2.0**-1022


def text_of(path: str | Path, data: bytes, limit: int) -> bytes:
    """The text of a file's bytes, plain or compressed by gzip or xz."""
    text = data
    try:
        if data[:2] == b"\x1f\x8b":
            with gzip.open(BytesIO(data)) as packed:
                text = joined(str(path), iter(lambda: packed.read(PIECE), b""), (limit - len(data)) // 3)
        elif data[:6] == b"\xfd7zXZ\x00":
            text = joined(str(path), _unpacked_xz(data, limit), (limit - len(data)) // 3)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise BadFile(f"{path}: cannot be unpacked ({type(error).__name__})") from None
    # It is there three times while its comments and words are looked at.
    afford(f"{path}: its text", 3 * len(text), limit)
    return text.removeprefix(b"\xef\xbb\xbf")


def _unpacked_xz(data: bytes, limit: int) -> Iterator[bytes]:
    """What is packed in any number of streams of xz. A stream may ask for gigabytes to be unpacked with."""
    at = 0
    while at < len(data):
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limit)
        while not stream.eof:
            more = data[at : at + PIECE] if stream.needs_input else b""
            at += len(more)
            if stream.needs_input and not more:
                raise EOFError
            yield stream.decompress(more, PIECE)
        at -= len(stream.unused_data)
        while data[at : at + 4] == bytes(4):
            at += 4


def _words(path: str | Path, text: bytes, limit: int) -> list[bytes]:
    """The words of a text, of which none is too long for a number, if memory allows to make them."""
    count, before = 0, True
    for begin in range(0, len(text), PIECE):
        codes = np.frombuffer(text[begin : begin + PIECE], np.uint8)
        blank = (codes == 32) | ((codes >= 9) & (codes <= 13))
        count += int(before and not blank[0]) + int(np.count_nonzero(blank[:-1] & ~blank[1:]))
        before = bool(blank[-1])
    afford(f"{path}: its words", _PER_WORD * count + 3 * len(text), limit)
    words = text.split()
    if max(map(len, words), default=0) > _LONGEST_WORD:
        raise BadFile(f"{path}: a word has more than {_LONGEST_WORD} letters")
    return words


def without_comments(text: bytes) -> bytes:
    """The text without what follows ``#`` on a line, and without lines that begin with ``c``."""
    return _COMMENT_LINE.sub(b"", _COMMENT.sub(b"", text))


def read_text(path: str | Path, limit: int) -> bytes:
    """The text of a file without comments."""
    return without_comments(text_of(path, read_bytes(path, limit), limit))


def _doubles(path: str | Path, words: list[bytes]) -> FloatArray:
    """Correctly rounded doubles of decimal numbers, as Python's own conversion gives them."""
    try:
        if _STRANGE.search(b" ".join(words)):
            raise ValueError
        values = np.fromiter(map(float, words), np.float64, len(words))
    except ValueError:
        bad = next(word for word in words if not _NUMBER.fullmatch(word))
        raise BadFile(f"{path}: {bad[:40]!r} is not a number") from None
    if not np.isfinite(values).all():
        raise BadFile(f"{path}: {words[int(np.argmin(np.isfinite(values)))][:40]!r} is not a finite number")
    return values


def _wholes(path: str | Path, words: list[bytes], values: FloatArray, what: str) -> list[int]:
    """Whole numbers; what is too small for a double is none, although its double is 0."""
    whole = (values >= 0) & (values <= 2.0**53) & (values == np.floor(values))
    if not whole.all() or any(_NOT_ZERO.match(words[k]) for k in np.flatnonzero(values == 0.0)):
        raise BadFile(f"{path}: {what}: not a whole number")
    return [int(v) for v in values]


def read_uai(path: str | Path, text: bytes, limit: int) -> Model:
    """A model in the UAI format: a stream of words; line breaks mean nothing."""
    words = _words(path, without_comments(text), limit)
    if not words or words[0].upper() not in (b"MARKOV", b"BAYES"):
        raise BadFile(f"{path}: does not begin with MARKOV or BAYES")
    kind = words.pop(0).upper()
    values = _doubles(path, words)
    at = 0

    def take(count: int, what: str) -> slice:
        nonlocal at
        if count > len(values) - at:
            raise BadFile(f"{path}: ends before {what}")
        at += count
        return slice(at - count, at)

    def wholes(count: int, what: str) -> list[int]:
        these = take(count, what)
        return _wholes(path, words[these], values[these], what)

    (n,) = wholes(1, "the number of variables")
    cards = wholes(n, "the numbers of states")
    if min(cards, default=1) < 1:
        raise BadFile(f"{path}: variable {cards.index(min(cards))} has no states")
    (n_factors,) = wholes(1, "the number of factors")
    afford(f"{path}: its factors", PER_FACTOR * min(n_factors, len(values)) + _PER_WORD * len(words), limit)
    scopes = [wholes(wholes(1, f"the scope of factor {k}")[0], f"the scope of factor {k}") for k in range(n_factors)]
    own = _scopes_of_agrum(text, kind == b"BAYES", scopes)
    factors = []
    for k, scope in enumerate(scopes):
        shape_of(path, k, scope, cards)
        scope = own[k] if own else scope
        shape = [cards[v] for v in scope]
        (declared,) = wholes(1, f"the table of factor {k}")
        if declared != math.prod(shape):
            raise BadFile(
                f"{path}: the table of factor {k} has {declared} entries, its scope asks for {math.prod(shape)}"
            )
        entries = take(declared, f"the table of factor {k} is complete")
        factors.append(_factor(path, tuple(scope), shape, values[entries], words[entries]))
    if at < len(values):
        raise BadFile(f"{path}: {len(values) - at} words are left after the last table")
    note = "" if own in (None, scopes) else f"{path}: tables are read in the order of pyAgrum, which wrote the file"
    return Model(tuple(cards), tuple(factors), note)


def _scopes_of_agrum(text: bytes, directed: bool, scopes: list[list[int]]) -> list[list[int]] | None:
    """The variables of all tables, first one slowest, in a file that pyAgrum wrote; ``None`` for other files.

    It is told by its comments: behind each scope of a Bayesian network the name of the child, whose parents are listed
    the other way round; behind the size of each table of a Markov network the table's variables, first one fastest.
    """
    found = [match[1] for match in (_AGRUM_SCOPE if directed else _AGRUM_TABLE).finditer(text)]
    if not found or len(found) != len(scopes):
        return None
    if directed:
        return [[*scope[-2::-1], *scope[-1:]] for scope in scopes]
    own = [[int(word[:18]) for word in reversed(words.replace(b",", b" ").split())] for words in found]
    return own if all(sorted(a) == sorted(b) for a, b in zip(own, scopes, strict=True)) else None


def shape_of(path: str | Path, k: int, scope: list[int], cards: list[int]) -> list[int]:
    """The shape of a factor's table."""
    if any(v >= len(cards) for v in scope) or len(set(scope)) < len(scope):
        raise BadFile(f"{path}: the scope of factor {k} is not a set of the variables 0 to {len(cards) - 1}")
    if len(scope) > MOST_AXES:
        raise BadFile(f"{path}: factor {k} has more than {MOST_AXES} variables, which NumPy does not allow")
    return [cards[v] for v in scope]


def _factor(
    path: str | Path, scope: tuple[int, ...], shape: list[int], values: FloatArray, words: list[bytes]
) -> Factor:
    """One factor; entries below the normal doubles have their log from the decimal digits."""
    if values.size and values.min() < 0.0:
        raise BadFile(f"{path}: a table entry is negative")
    logs, error = logs_of(values)
    exact = True
    for k in np.flatnonzero(values < _LEAST_NORMAL).tolist():
        if not _NUMBER.fullmatch(words[k]):
            raise BadFile(f"{path}: {words[k][:40]!r} has too large an exponent")
        number = Decimal(words[k].decode("ascii"))
        if number < 0:
            raise BadFile(f"{path}: a table entry is negative")
        if number:
            exact = False
            # Forty digits: the only error that counts is that of the double.
            logs[k] = float(Context(prec=40, Emin=-999999999, Emax=999999999).ln(number))
    error = max(error, U * (2.0 + 9.0 * magnitude(logs)))
    return Factor(scope, Table(logs.reshape(shape), error, error), values.reshape(shape) if exact else None)


def read_evidence(path: str | Path, limit: int) -> dict[int, int]:
    """Evidence ``k v1 x1 … vk xk``; the older form with one sample, whose number stands alone on the first line."""
    text = read_text(path, limit)
    words = _words(path, text, limit)
    tokens = _wholes(path, words, _doubles(path, words), "evidence")
    # Lines that are not blank: two tell the older form.
    first, _, rest = text.strip().replace(b"\r", b"\n").partition(b"\n")
    if not tokens or tokens == [0]:
        return {}
    one_record = len(tokens) == 1 + 2 * tokens[0]
    two_lines = len(first.split()) == 1 and bool(rest.strip()) and b"\n" not in rest.strip()
    one_sample = two_lines and tokens[0] == 1 and len(tokens) == 2 + 2 * tokens[1]
    if one_record == one_sample:
        raise BadFile(f"{path}: is not one record of evidence: k v1 x1 … vk xk")
    pairs = tokens[1:] if one_record else tokens[2:]
    return evidence_of(zip(pairs[::2], pairs[1::2], strict=True), str(path))


def read_list(path: str | Path, limit: int) -> list[int]:
    """A query or an order: a count and as many different variables."""
    words = _words(path, read_text(path, limit), limit)
    tokens = _wholes(path, words, _doubles(path, words), "a list of variables")
    if not tokens or len(tokens) != tokens[0] + 1 or len(set(tokens[1:])) != tokens[0]:
        raise BadFile(f"{path}: is not a count and as many different variables")
    return tokens[1:]
