"""Bayesian networks out: BIF, XMLBIF and XDSL, with every number such that it reads back as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from itertools import product
from xml.sax.saxutils import escape

from powersum.core.errors import InputError
from powersum.core.files import PathLike, saving, shown
from powersum.formats.words import words_of
from powersum.formats.xmlbif import ORDER
from powersum.interop.distributions import factor_of_each
from powersum.model.model import Model

_BARE = re.compile(r"(?!.*(?://|/\*))[^\s,;{}()\[\]|\"]+")


def write_bif(model: Model, path: PathLike) -> None:
    """Write a Bayesian network as ``.bif``; words that the format would take apart are in quotes."""
    _write(model, path, _bif_word, _bif)


def write_xmlbif(model: Model, path: PathLike) -> None:
    """Write a Bayesian network as XMLBIF 0.3."""
    _write(model, path, _xml_word, _xmlbif)


def write_genie(model: Model, path: PathLike) -> None:
    """Write a Bayesian network as ``.xdsl`` of GeNIe: parents before children, the first parent slowest."""
    _write(model, path, _genie_word, _genie)


class _Text:
    """The words of a model as they will be in the file."""

    def __init__(self, model: Model, path: PathLike, word: Callable[[str], str | None]) -> None:
        def spelled(text: str) -> str:
            found = word(text) if text and text.isprintable() else None
            if found is None:
                raise InputError(f"{shown(path)}: the format has no place for the word {text!r}: write .uai, or rename")
            return found

        self.factors = factor_of_each(model, f"{shown(path)}: ")
        names = model.names or [f"x{v}" for v in range(model.n_variables)]
        self.names = [spelled(name) for name in names]
        self.labels = [
            [spelled(str(model.label(v, state))) for state in range(int(model.cardinalities[v]))]
            for v in range(model.n_variables)
        ]
        self._model = model
        self._words, self._which = words_of(model, path)

    def parents(self, v: int) -> list[int]:
        """The parents of a variable, in the order of its table."""
        return [int(u) for u in self._model.scope(self.factors[v])[:-1]]

    def rows(self, v: int) -> Iterator[list[str]]:
        """The numbers of a variable, a list for each joint state of its parents."""
        start, stop = self._model.table_starts[self.factors[v] : self.factors[v] + 2].tolist()
        for row in self._which[start:stop].reshape(-1, int(self._model.cardinalities[v])).tolist():
            yield [self._words[k] for k in row]


def _write(
    model: Model, path: PathLike, word: Callable[[str], str | None], pieces: Callable[[_Text, int], Iterator[str]]
) -> None:
    text = _Text(model, path, word)
    with saving(path) as handle:
        for piece in pieces(text, model.n_variables):
            handle.write(piece.encode())


def _bif_word(word: str) -> str | None:
    if _BARE.fullmatch(word):
        return word
    return None if '"' in word else f'"{word}"'


def _bif(text: _Text, count: int) -> Iterator[str]:
    yield "network unknown {\n}\n"
    for v in range(count):
        states = ", ".join(text.labels[v])
        yield f"variable {text.names[v]} {{\n  type discrete [ {len(text.labels[v])} ] {{ {states} }};\n}}\n"
    for v in range(count):
        parents = text.parents(v)
        given = " | " + ", ".join(text.names[u] for u in parents) if parents else ""
        yield f"probability ( {text.names[v]}{given} ) {{\n"
        for labels, row in zip(product(*(text.labels[u] for u in parents)), text.rows(v), strict=True):
            yield f"  {'(' + ', '.join(labels) + ')' if parents else 'table'} {', '.join(row)};\n"
        yield "}\n"


def _xml_word(word: str) -> str | None:
    # Blanks at the ends, and one after another, are not kept by XML readers.
    return escape(word) if word == " ".join(word.split()) else None


def _genie_word(word: str) -> str | None:
    return word if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*|[A-Za-z0-9_]+", word) else None


def _genie(text: _Text, count: int) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<smile version="1.0" id="powersum" numsamples="1000">\n<nodes>\n'
    for v in TopologicalSorter({v: text.parents(v) for v in range(count)}).static_order():
        yield f'<cpt id="{text.names[v]}">\n' + "".join(f'  <state id="{label}"/>\n' for label in text.labels[v])
        if text.parents(v):
            yield f"  <parents>{' '.join(text.names[u] for u in text.parents(v))}</parents>\n"
        yield f"  <probabilities>{' '.join(word for row in text.rows(v) for word in row)}</probabilities>\n</cpt>\n"
    yield '</nodes>\n<extensions>\n<genie version="1.0" app="powersum" name="powersum" faultnameformat="nodestate">\n'
    for v in range(count):
        # GeNIe shows nodes in rows; without a place all of them lie in one.
        left, top = 20 + 130 * (v % 8), 20 + 90 * (v // 8)
        yield (
            f'<node id="{text.names[v]}"><name>{text.names[v]}</name>'
            f"<position>{left} {top} {left + 100} {top + 50}</position></node>\n"
        )
    yield "</genie>\n</extensions>\n</smile>\n"


def _xmlbif(text: _Text, count: int) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n<NAME>unknown</NAME>\n'
    yield f"<PROPERTY>{ORDER}</PROPERTY>\n"
    for v in range(count):
        states = "".join(f"  <OUTCOME>{label}</OUTCOME>\n" for label in text.labels[v])
        yield f'<VARIABLE TYPE="nature">\n  <NAME>{text.names[v]}</NAME>\n{states}</VARIABLE>\n'
    for v in range(count):
        given = "".join(f"  <GIVEN>{text.names[u]}</GIVEN>\n" for u in text.parents(v))
        yield f"<DEFINITION>\n  <FOR>{text.names[v]}</FOR>\n{given}  <TABLE>\n"
        for row in text.rows(v):
            yield f"    {' '.join(row)}\n"
        yield "  </TABLE>\n</DEFINITION>\n"
    yield "</NETWORK>\n</BIF>\n"
