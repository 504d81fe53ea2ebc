"""The Bayesian Interchange Format (``.bif``), in the dialects that people share, read at full precision."""

from __future__ import annotations

import re
from itertools import chain
from typing import NamedTuple

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.core.files import PathLike, load
from powersum.formats.decimals import logs_of
from powersum.formats.network import Network, short
from powersum.model.model import Model

# A comment that is never closed goes on to the end, so that no part of a file is searched again and again.
_COMMENT = rb"//[^\r\n]*+|/\*(?s:.*?)(?:\*/|\Z)"
# What a statement is made of, up to its end: quoted words may hold anything, comments too.
_STUFF = rb'(?:[^;{}()"/]++|"[^"\r\n]*+"|' + _COMMENT + rb"|/)*+"
_SKIPPED = re.compile(rb"(?:\s++|" + _COMMENT + rb")*+")
_COMMENTS = re.compile(rb'"[^"\r\n]*+"|(' + _COMMENT + rb")")
_NAME = re.compile(rb'"([^"\r\n]*+)"|([^\s,;{}()\[\]|"]++)')
_PROPERTY = re.compile(rb'property\b(?:(?:[^;"]++|"[^"\r\n]*+")*+;|[^;]*+;)')
_TYPE = re.compile(rb"type\s++(\S+?)\s*+\[\s*+(\d++)\s*+\]\s*+\{(" + _STUFF + rb")\}\s*+;?")
_HEADER = re.compile(rb"\((" + _STUFF + rb")\)")
_HEAD_WORD = re.compile(rb'"([^"]*)"|([^\s,|"]+)|(\|)')
_LIST_WORD = re.compile(rb'"([^"]*)"|([^\s,"]+)')
_ROW = re.compile(rb"(?:\((" + _STUFF + rb")\)|(table|default)\b)(" + _STUFF + rb");")
_LETTERS = re.compile(rb"[^\s,;{}()\[\]|\"]+|.", re.DOTALL)


class _Row(NamedTuple):
    """One line of a distribution: the states of the parents and the numbers, as written, and where these begin."""

    labels: bytes
    numbers: bytes
    place: int


def read_bif(path: PathLike) -> Model:
    """Read a ``.bif`` file, plain or compressed, with its names and labels.

    Numbers are rounded once, to the nearest double, before their log is taken; those below the smallest normal double
    keep their full value.
    """
    return _BifReader(path, load(path).removeprefix(b"\xef\xbb\xbf")).read()


class _BifReader:
    """A walk through the text, block by block."""

    def __init__(self, path: PathLike, text: bytes) -> None:
        self._text = text
        self._place = 0
        self._network = Network(path, child_first=True, line_of=lambda place: text.count(b"\n", 0, place) + 1)
        self._encoding = "utf-8"
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            # Files older than that: every byte is a letter, of some European language.
            self._encoding = "latin-1"

    def read(self) -> Model:
        """The whole file."""
        blocks = {b"network": self._read_network, b"variable": self._read_variable, b"probability": self._read_table}
        while self._next():
            found = _NAME.match(self._text, self._place)
            read = blocks.get(found.group(2) or b"") if found else None
            if found is None or read is None:
                raise self._unexpected("network, variable or probability")
            self._place = found.end()
            read()
        return self._network.model()

    def _read_network(self) -> None:
        if self._next() != b"{":
            self._name("the name of the network")
        self._take(b"{")
        while self._next() != b"}":
            self._pass_over()
        self._place += 1

    def _read_variable(self) -> None:
        begin = self._place
        name = self._name("the name of a variable")
        self._take(b"{")
        labels: list[str] | None = None
        while self._next() != b"}":
            found = _TYPE.match(self._text, self._place)
            if found is None:
                if self._text.startswith(b"type", self._place):
                    raise self._error(f"variable {short(name)}: expected type discrete [ … ] {{ … }};")
                self._pass_over()
                continue
            kind, count = found.group(1), int(found.group(2)[:12])
            if kind != b"discrete":
                raise self._error(
                    f"variable {short(name)} is {short(self._decoded(kind))}: only discrete ones are read"
                )
            words = self._words(found.group(3), count)
            if len(words) != count:
                raise self._error(f"variable {short(name)} has {count} states, but {len(words)} are listed")
            labels = [self._decoded(word) for word in words]
            self._place = found.end()
        if labels is None:
            raise self._network.error(begin, f"variable {short(name)}: expected type discrete [ … ] {{ … }};")
        self._place += 1
        self._network.declare(name, labels, begin)

    def _read_table(self) -> None:
        self._next()
        begin = self._place
        found = _HEADER.match(self._text, self._place)
        if found is None:
            raise self._unexpected("the variables of a distribution, as ( child | parents )")
        parts = _HEAD_WORD.findall(self._plain(found.group(1)))
        names = [self._decoded(quoted or word) for quoted, word, bar in parts if not bar]
        # The bar is often missing: the first variable is the child either way.
        if not names or [k for k, part in enumerate(parts) if part[2]] not in ([], [1]):
            raise self._error("a distribution must be of one variable, given any number of others")
        scope = self._network.scope(names[0], names[1:], begin)
        self._place = found.end()
        self._take(b"{")
        rows: list[_Row] = []
        special: dict[bytes, _Row] = {}
        while self._next() != b"}":
            found = _ROW.match(self._text, self._place)
            if found is None:
                if self._text.startswith(b"property", self._place):
                    self._pass_over()
                    continue
                raise self._unexpected("a row, table, default or property")
            labels, kind, numbers = found.groups()
            row = _Row(labels or b"", numbers, found.start(3))
            if kind is None:
                rows.append(row)
            elif kind in special:
                raise self._error(f"variable {short(names[0])} has two entries {kind.decode()}")
            else:
                special[kind] = row
            self._place = found.end()
        self._place += 1
        if b"table" in special:
            if rows or b"default" in special:
                raise self._network.error(begin, f"variable {short(names[0])} has a whole table and rows besides")
            size = self._network.size(scope, begin)
            self._network.add(scope, self._numbers([special[b"table"]], size, names[0]), certain=False)
        else:
            self._network.add(scope, self._by_rows(scope, names[0], rows, special.get(b"default"), begin), certain=True)

    def _by_rows(
        self, scope: tuple[int, ...], name: str, rows: list[_Row], default: _Row | None, begin: int
    ) -> FloatArray:
        """The table of a variable from its rows, in whatever order they are."""
        size = len(self._network.states[scope[-1]])
        count = self._network.size(scope, begin) // size
        places = self._row_numbers(scope[:-1], name, rows)
        if len(np.unique(places)) < len(rows):
            first = next(k for k in range(len(rows)) if places[k] in places[:k])
            raise self._error(f"variable {short(name)} has two rows {self._shown(rows[first])}", rows[first].place)
        if len(rows) < count and default is None:
            given = set(places.tolist())
            missing = next(k for k in range(count) if k not in given)
            states = np.unravel_index(missing, [len(self._network.states[v]) for v in scope[:-1]])
            labels = [self._network.states[v][int(k)] for v, k in zip(scope[:-1], states, strict=True)]
            what = f"row ({', '.join(map(short, labels))[:150]})" if labels else "table"
            raise self._network.error(begin, f"the distribution of variable {short(name)} lacks its {what}")
        table = np.empty((count, size))
        if default is not None:
            table[:] = self._numbers([default], size, name)
        table[places] = self._numbers(rows, size, name).reshape(-1, size)
        return table.ravel()

    def _row_numbers(self, parents: tuple[int, ...], name: str, rows: list[_Row]) -> IntArray:
        """Which joint state of the parents each row is for."""
        words = [self._words(row.labels, len(parents)) for row in rows]
        places = np.zeros(len(rows), dtype=np.int64)
        for own, row in zip(words, rows, strict=True):
            if len(own) != len(parents):
                raise self._error(
                    f"variable {short(name)}: row {self._shown(row)} has {len(own)} states for {len(parents)} parents",
                    row.place,
                )
        for parent, column in zip(parents, zip(*words, strict=True), strict=False):
            labels = self._network.states[parent]
            states = {label.encode(self._encoding): k for k, label in enumerate(labels)}
            try:
                found = np.fromiter((states[word] for word in column), np.int64, len(rows))
            except KeyError:
                first = next(k for k, word in enumerate(column) if word not in states)
                other = list(self._network.numbers)[parent]
                raise self._error(
                    f"variable {short(name)}: {short(self._decoded(column[first]))} is no state of {short(other)}",
                    rows[first].place,
                ) from None
            places = places * len(labels) + found
        return places

    def _numbers(self, rows: list[_Row], size: int, name: str) -> FloatArray:
        """The logs of all numbers in rows of ``size`` numbers."""
        words = [self._plain(row.numbers).replace(b",", b" ").split() for row in rows]
        for own, row in zip(words, rows, strict=True):
            if len(own) != size:
                raise self._error(f"variable {short(name)}: {len(own)} numbers where {size} are needed", row.place)

        def complain(index: int, message: str) -> InputError:
            row = rows[index // size]
            # Comments are blanked, not taken out: a word is where it is in the file.
            found = list(re.finditer(rb"[^\s,]+", self._plain(row.numbers)))[index % size]
            word = short(self._decoded(found.group()))
            return self._error(f"variable {short(name)}: {message.replace('{}', word)}", row.place + found.start())

        return logs_of(list(chain.from_iterable(words)), complain)

    def _words(self, text: bytes, count: int) -> list[bytes]:
        """Names in a list, with commas or without; where that fits the ``count`` better, blanks are part of names."""
        if b'"' not in text and b"/" not in text:
            words = text.replace(b",", b" ").split()
            parts = text
        else:
            parts = self._plain(text)
            words = [quoted or word for quoted, word in _LIST_WORD.findall(parts)]
        if len(words) == count or b'"' in parts:
            return words
        listed = [b" ".join(part.split()) for part in parts.split(b",")]
        return listed if len(listed) == count and all(listed) else words

    def _plain(self, text: bytes) -> bytes:
        """Text with its comments blanked."""
        if b"/" not in text:
            return text
        return _COMMENTS.sub(lambda m: re.sub(rb"[^\r\n]", b" ", m.group()) if m.group(1) else m.group(), text)

    def _next(self) -> bytes:
        """Pass over blanks and comments; the character that comes then, none at the end."""
        found = _SKIPPED.match(self._text, self._place)
        self._place = found.end() if found else self._place
        return self._text[self._place : self._place + 1]

    def _take(self, mark: bytes) -> None:
        if self._next() != mark:
            raise self._unexpected(mark.decode())
        self._place += 1

    def _name(self, what: str) -> str:
        self._next()
        found = _NAME.match(self._text, self._place)
        if found is None:
            raise self._unexpected(what)
        self._place = found.end()
        return self._decoded(found.group(1) or found.group(2) or b"")

    def _pass_over(self) -> None:
        """Pass over a property."""
        found = _PROPERTY.match(self._text, self._place)
        if found is None:
            raise self._unexpected("a property or }")
        self._place = found.end()

    def _decoded(self, word: bytes) -> str:
        return word.decode(self._encoding)

    def _shown(self, row: _Row) -> str:
        return f"({short(' '.join(self._decoded(row.labels).split()))})"

    def _error(self, message: str, place: int | None = None) -> InputError:
        return self._network.error(self._place if place is None else place, message)

    def _unexpected(self, what: str) -> InputError:
        found = _LETTERS.match(self._text, self._place)
        if found is None:
            return self._error(f"the file ends where {what} is expected")
        return self._error(f"expected {what}, found {short(found.group().decode(self._encoding, 'replace'))}")
