"""NET and DSL: read and written by pyAgrum, and its precision watched."""

from __future__ import annotations

import os
import re
import textwrap
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from powersum.core.errors import InputError
from powersum.core.files import PathLike, load, plain_name, saving, shown
from powersum.formats.agrum_checks import look
from powersum.interop.pyagrum import from_pyagrum, import_pyagrum, to_pyagrum
from powersum.model.model import Model

# Suffix of a file and the word for it in the names of pyAgrum's functions.
SUFFIXES = {".net": "NET", ".dsl": "DSL"}

LONGEST_COMPLAINT = 300
"""Characters of pyAgrum's complaints that are shown: it repeats names of the file, which may be of any length."""

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"


def read_agrum(path: PathLike) -> Model:
    """Read a Bayesian network with its names and labels, plain or compressed; see :func:`powersum.from_pyagrum`.

    pyAgrum reads numbers in single precision. A number too small or too large for that would become another one, a zero
    perhaps that proves what is false: it is refused. So are tables with too few numbers, which pyAgrum fills up.
    """
    suffix, kind = _kind(path)
    gum = import_pyagrum(f"{shown(path)}: reading {suffix} files")
    data = load(path)
    looked = look(kind, data, path)
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
    looked.check(network, path)
    try:
        model = from_pyagrum(network)
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None
    return replace(model, notes=(*looked.notes, *(f"{shown(path)}: {note}" for note in model.notes)))


def write_agrum(model: Model, path: PathLike) -> None:
    """Write a Bayesian network with its names and labels; most of these formats keep seven digits of each number."""
    suffix, kind = _kind(path)
    gum = import_pyagrum(f"{shown(path)}: writing {suffix} files")
    _check_words(model, path)
    if (model.cardinalities == 1).any():
        name = model.name(int((model.cardinalities == 1).argmax()))
        raise InputError(
            f"{shown(path)}: {name!r} has one state, which {suffix} files cannot hold: write .xdsl or .bif"
        )
    try:
        network = to_pyagrum(model)
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None
    with TemporaryDirectory() as folder:
        plain = Path(folder, "model" + suffix)
        try:
            getattr(network, f"save{kind}")(str(plain))
        except gum.GumException as error:
            raise InputError(f"{shown(path)}: {_message(error, plain, path)}") from None
        with saving(path) as handle:
            handle.write(plain.read_bytes())


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
    words = "".join(sign if sign.isprintable() else " " for sign in words)
    return textwrap.shorten(words, LONGEST_COMPLAINT, placeholder=" …")
