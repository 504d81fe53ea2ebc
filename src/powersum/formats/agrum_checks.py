"""What pyAgrum would read from a NET or DSL file without a word, and wrongly: looked for in the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.core.files import PathLike, shown
from powersum.formats.decimals import NOT_NUMERIC, Decimals
from powersum.formats.tokens import readable
from powersum.interop.checks import INFLUENCE_DIAGRAM
from powersum.interop.pyagrum import as_in_the_file

_HIDDEN = re.compile(rb'"[^"]*"|%[^\r\n]*|//[^\r\n]*|/\*(?s:.*?)(?:\*/|\Z)')
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NUMBER = re.compile(rb"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])|[\w.+-]+")
# Where tables are: the variable, and the text with its numbers.
_TABLES = {
    "NET": re.compile(rb"\bpotential\s*\(\s*([^\s|)]+)[^{]*\{[^}]*?\bdata\s*=([^;}]*)"),
    "DSL": re.compile(rb"\bnode\s+([^\s{]+)\s*\{(?:(?!\bnode\s)(?s:.))*?\bPROBABILITIES\s*=([^;}]*)"),
}
_NET_DECISION = re.compile(rb"^\s*(?:decision|utility)\s+[\w.-]+\s*\{", re.MULTILINE)
_NO_CHANCE = ("DECISION", "UTILITY", "MAU")
_DSL_TYPE = re.compile(rb"\bTYPE\s*=\s*([^\s;]+)")


@dataclass(frozen=True, slots=True)
class Looked:
    """What the text of a file tells.

    Parameters
    ----------
    notes
        What to say about it.
    sizes
        Numbers in the table of each variable, and the place where they begin; ``None`` where pyAgrum counts by itself.
    line_of
        The line of a place.
    """

    notes: tuple[str, ...] = ()
    sizes: dict[str, tuple[int, int]] | None = None
    line_of: Callable[[int], int] = int

    def check(self, network: Any, path: PathLike) -> None:
        """Refuse a network with tables for which numbers are missing: they would be zeros, or what was in memory."""
        if self.sizes is None:
            return
        for name in sorted(network.names()):
            needed = network.cpt(name).domainSize()
            if name not in self.sizes:
                raise InputError(f"{shown(path)}: variable {name} has no table of numbers")
            count, place = self.sizes[name]
            if count != needed:
                what = f"variable {name}: {count} numbers where {needed} are needed"
                raise InputError(f"{shown(path)}: line {self.line_of(place)}: {what}")


def look(kind: str, data: bytes, path: PathLike) -> Looked:
    """Look through a file of the kind ``NET`` or ``DSL``; refuses what pyAgrum would get wrong.

    pyAgrum reads numbers in single precision, as many as there are.
    """
    # Its scanner ends the whole process where a file begins with the first byte of a mark that does not go on.
    if data[:1] == BYTE_ORDER_MARK[:1] and data[:3] != BYTE_ORDER_MARK:
        raise InputError(f"{shown(path)}: line 1: the file begins with a broken byte order mark")
    text = _HIDDEN.sub(lambda match: re.sub(rb"[^\r\n]", b" ", match.group()), data)
    found = [match for match in _NUMBER.finditer(text) if match.group(1)]

    def line_of(place: int) -> int:
        return data.count(b"\n", 0, place) + 1

    def complain(index: int, message: str) -> InputError:
        word = readable(found[index].group())
        return InputError(f"{shown(path)}: line {line_of(found[index].start())}: {message.replace('{}', word)}")

    decision = _NET_DECISION.search(text) if kind == "NET" else None
    if decision is not None:
        raise InputError(f"{shown(path)}: line {line_of(decision.end())}: {INFLUENCE_DIAGRAM}")
    for match in _DSL_TYPE.finditer(text) if kind == "DSL" else ():
        if match.group(1) != b"CPT":
            word = readable(match.group(1))
            what = INFLUENCE_DIAGRAM if _is_no_chance(word) else f"a node of type {word} is not read, only CPT"
            raise InputError(f"{shown(path)}: line {line_of(match.start())}: {what}")
    words = [match.group() for match in found]
    values = _watched(words, float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max), complain)
    sizes = {
        match.group(1).decode("utf-8", "replace"): (
            sum(1 for word in _NUMBER.finditer(match.group(2)) if word.group(1)),
            match.start(2),
        )
        for match in _TABLES[kind].finditer(text)
    }
    if np.array_equal(as_in_the_file([values.astype(np.float32).astype(np.float64)])[0], values):
        return Looked((), sizes, line_of)
    note = "pyAgrum reads this format in single precision: numbers are rounded to seven digits"
    return Looked((f"{shown(path)}: {note}",), sizes, line_of)


def _is_no_chance(kind: str) -> bool:
    """Whether a kind of node is one that only influence diagrams have, in DSL: LIST, UTILITY, TABLE_UTILITY."""
    return kind.upper().endswith(_NO_CHANCE) or kind.upper() == "LIST"


def _watched(
    words: list[bytes], smallest: float, largest: float, complain: Callable[[int, str], InputError]
) -> FloatArray:
    """Words as doubles; refuses those that are no numbers or, but for zero, not between these two."""
    numeric = NOT_NUMERIC.search(b" ".join(words)) is None
    values = Decimals(complain).doubles(words, range(len(words)), numeric)
    sizes = np.abs(values)
    bad = (sizes != 0.0) & ((sizes <= smallest) | (sizes > largest))
    if bad.any():
        size = "small" if sizes[bad][0] <= smallest else "large"
        raise complain(int(np.argmax(bad)), f"{{}} is too {size} for the precision in which pyAgrum reads this format")
    return values
