"""BIF, XMLBIF, NET, DSL and XDSL: read and written by pyAgrum, which keeps those parsers well."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from powersum.errors import InputError
from powersum.formats.files import PathLike, load, plain_name, reason, saving, shown
from powersum.interop.pyagrum import from_pyagrum, import_pyagrum, to_pyagrum
from powersum.model import Model

# Suffix of a file and the word for it in the names of pyAgrum's functions.
SUFFIXES = {".bif": "BIF", ".xmlbif": "BIFXML", ".bifxml": "BIFXML", ".net": "NET", ".dsl": "DSL", ".xdsl": "XDSL"}

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
# A word of a BIF file, or something around words that must stay as it is: comments and properties.
_WORD = re.compile(r"//[^\n]*|/\*.*?\*/|\bproperty\b[^;]*;|\"[^\"\n]*\"|[^\s,;{}()\[\]|\"]+", re.DOTALL)
_PLAIN = re.compile(rf"//.*|/\*.*|property\b.*|{_NAME}|{_NUMBER}", re.DOTALL)
_BARE_POINT = re.compile(r"\.\d+|\d+\.")


def read_agrum(path: PathLike) -> Model:
    """Read a Bayesian network with its names and labels, plain or compressed; see :func:`powersum.from_pyagrum`."""
    suffix, kind = _kind(path)
    gum = import_pyagrum(f"{shown(path)}: reading {suffix} files")
    data = load(path)
    stand_ins: dict[str, str] = {}
    if kind == "BIF":
        data, stand_ins = _with_plain_words(data)
    elif kind in ("BIFXML", "XDSL"):
        _check_numbers(data, path)
    network = gum.BayesNet()
    with TemporaryDirectory() as folder:
        plain = Path(folder, "model" + suffix)
        plain.write_bytes(data)
        try:
            getattr(network, f"load{kind}")(str(plain))
        except (gum.GumException, UnicodeError) as error:
            raise InputError(f"{shown(path)}: {_message(error, plain, path)}") from None
    if not network.size():
        raise InputError(f"{shown(path)}: holds no variables")
    model = from_pyagrum(network)
    if not stand_ins:
        return model
    return model.with_names(
        [stand_ins.get(name, name) for name in model.names or ()],
        [[stand_ins.get(label, label) for label in labels] for labels in model.states or ()],
    )


def write_agrum(model: Model, path: PathLike) -> None:
    """Write a Bayesian network with its names and labels; most of these formats keep seven digits of each number."""
    suffix, kind = _kind(path)
    gum = import_pyagrum(f"{shown(path)}: writing {suffix} files")
    _check_words(model, path)
    network = to_pyagrum(model)
    with TemporaryDirectory() as folder:
        plain = Path(folder, "model" + suffix)
        try:
            getattr(network, f"save{kind}")(str(plain))
        except gum.GumException as error:
            raise InputError(f"{shown(path)}: {_message(error, plain, path)}") from None
        with saving(path) as handle:
            handle.write(plain.read_bytes())


def _with_plain_words(data: bytes) -> tuple[bytes, dict[str, str]]:
    """A BIF file in which every word is one that pyAgrum takes, and the words behind the stand-ins.

    Networks that people share have states such as ``<5``, ``3-4`` or ``Asy/Patchy``, at which its parser stops.
    """
    words: dict[str, str] = {}

    def plain(match: re.Match[str]) -> str:
        word = match.group()
        if _BARE_POINT.fullmatch(word):
            return repr(float(word))
        return word if _PLAIN.fullmatch(word) else words.setdefault(word.strip('"'), f"powersum_word_{len(words)}")

    text = _WORD.sub(plain, data.decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape"), {stand_in: word for word, stand_in in words.items()}


def _check_numbers(data: bytes, path: PathLike) -> None:
    """Refuse XML that is damaged or has words in its tables: pyAgrum would read those for ever."""
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"{shown(path)}: {reason(error)}") from None
    for table in root.iter():
        if table.tag in ("TABLE", "PROBS", "probabilities"):
            for word in "".join(table.itertext()).split():
                if not re.fullmatch(_NUMBER, word):
                    raise InputError(f"{shown(path)}: {word!r} in a table is not a number")


def _check_words(model: Model, path: PathLike) -> None:
    """Refuse names and labels that would be written as they are and could not be read again."""
    labels = [label for own in model.states or () for label in own]
    for words, allowed in ((model.names or (), _NAME), (labels, rf"{_NAME}|[A-Za-z0-9_]+")):
        for word in words:
            if not re.fullmatch(allowed, word):
                raise InputError(f"{shown(path)}: the format has no place for the word {word!r}: write .uai, or rename")


def _kind(path: PathLike) -> tuple[str, str]:
    suffix = os.path.splitext(plain_name(path))[1].lower()
    return suffix, SUFFIXES[suffix]


def _message(error: Any, plain: Path, path: PathLike) -> str:
    """Its complaint on one line, without its copy of the file's lines and under the file's own name."""
    lines = str(error).replace(str(plain), shown(path)).splitlines() or [type(error).__name__]
    # Warnings may come before the error.
    first = next((line for line in lines if " error " in line), lines[0])
    described = next((line for line in lines if line.startswith("Description:")), "")
    words = f"{first} {described}"
    for from_, to in (("[pyAgrum]", ""), ("Fatal error:", ""), (f"{shown(path)}:", "line ")):
        words = words.replace(from_, to)
    return " ".join(words.split())
