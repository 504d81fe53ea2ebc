"""XMLBIF 0.3 (``.xmlbif``, ``.bifxml``), read at full precision."""

from __future__ import annotations

import re

from powersum.core.errors import InputError
from powersum.core.files import PathLike, load
from powersum.formats.decimals import logs_of
from powersum.formats.network import Network, short
from powersum.formats.xml import walk
from powersum.interop.checks import INFLUENCE_DIAGRAM
from powersum.model.model import Model

ORDER = "powersum order = GIVEN slowest, FOR fastest"
"""A property of the network with which powersum says that the format's own order of tables is meant."""

_TABLES = ("DEFINITION", "PROBABILITY")


def read_xmlbif(path: PathLike) -> Model:
    """Read an XMLBIF file, plain or compressed, with its names and labels; numbers as in :func:`read_bif`."""
    reader = _XmlbifReader(path)
    walk(path, load(path), reader.start, reader.end)
    return reader.model()


class _XmlbifReader:
    """What has been read of the variable or distribution that is being read, and the network so far."""

    def __init__(self, path: PathLike) -> None:
        self._network = Network(path, child_first=False, line_of=int)
        self._stack: list[str] = []
        self._words: dict[str, list[str]] = {}
        self._certain = False
        self._table: tuple[str, int] | None = None
        # A distribution may come before the variables it is about.
        self._pending: list[tuple[list[str], list[str], tuple[str, int] | None, int]] = []

    def start(self, tag: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""
        kind = tag.upper()
        if not self._stack and kind != "BIF":
            raise self._network.error(line, f"expected the element BIF, found {short(tag)}")
        self._stack.append(kind)
        if kind == "VARIABLE" or kind in _TABLES:
            self._words = {}
            self._table = None
        if kind == "VARIABLE":
            nature = {name.upper(): value for name, value in attributes.items()}.get("TYPE", "nature")
            if nature.lower() in ("decision", "utility"):
                raise self._network.error(line, INFLUENCE_DIAGRAM)

    def end(self, tag: str, text: str, line: int) -> None:
        """An element ends, with all its text."""
        kind = self._stack.pop()
        within = self._stack[-1] if self._stack else ""
        if kind == "VARIABLE":
            names = self._words.get("NAME", [])
            if len(names) != 1:
                raise self._network.error(line, f"a variable has {len(names)} names")
            self._network.declare(names[0], self._words.get("OUTCOME", self._words.get("VALUE", [])), line)
        elif kind in _TABLES:
            self._pending.append((self._words.get("FOR", []), self._words.get("GIVEN", []), self._table, line))
        elif kind == "TABLE" and within in _TABLES:
            if self._table is not None:
                raise self._network.error(line, "a distribution has two tables")
            self._table = (text, line)
        elif kind == "PROPERTY" and within == "NETWORK":
            self._certain = self._certain or " ".join(text.split()) == ORDER
        elif within == "VARIABLE" or within in _TABLES:
            self._words.setdefault(kind, []).append(" ".join(text.split()))

    def model(self) -> Model:
        """The model, once the file has been read."""
        while self._pending:
            children, parents, table, line = self._pending.pop(0)
            if len(children) != 1:
                raise self._network.error(line, f"a distribution is for {len(children)} variables, not for one")
            scope = self._network.scope(children[0], parents, line)
            if table is None:
                raise self._network.error(line, f"the distribution of variable {short(children[0])} has no table")
            self._read_table(children[0], scope, *table)
        return self._network.model()

    def _read_table(self, name: str, scope: tuple[int, ...], text: str, line: int) -> None:
        # What is not ASCII is no number either way, and must not become one.
        content = text.encode("ascii", "replace")
        words = content.split()
        size = self._network.size(scope, line)
        if len(words) != size:
            raise self._network.error(line, f"variable {short(name)}: {len(words)} numbers where {size} are needed")

        def complain(index: int, message: str) -> InputError:
            found = list(re.finditer(rb"\S+", content))[index]
            word = short(text[found.start() : found.end()])
            there = line + content.count(b"\n", 0, found.start())
            return self._network.error(there, f"variable {short(name)}: {message.replace('{}', word)}")

        self._network.add(scope, logs_of(words, complain), certain=self._certain)
