"""NET, DSL and XDSL: read and written by pyAgrum, and its precision watched."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.formats.decimals import MIN_NORMAL, NOT_NUMERIC, Decimals
from powersum.formats.files import PathLike, load, plain_name, saving, shown
from powersum.formats.tokens import readable
from powersum.formats.xml import walk
from powersum.interop.pyagrum import as_in_the_file, from_pyagrum, import_pyagrum, to_pyagrum
from powersum.model.model import Model

# Suffix of a file and the word for it in the names of pyAgrum's functions.
SUFFIXES = {".net": "NET", ".dsl": "DSL", ".xdsl": "XDSL"}

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
# Numbers of NET and DSL, among what is none: strings, comments, words with digits in them.
_NUMBER = re.compile(
    rb"\"[^\"]*\"|%[^\r\n]*|//[^\r\n]*|/\*(?s:.*?)\*/|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])|[\w.+-]+"
)


def read_agrum(path: PathLike) -> Model:
    """Read a Bayesian network with its names and labels, plain or compressed; see :func:`powersum.from_pyagrum`.

    pyAgrum reads numbers of NET and DSL in single precision, those of XDSL in double precision. A number too small or
    too large for that would become another one, a zero perhaps that proves what is false: it is refused.
    """
    suffix, kind = _kind(path)
    gum = import_pyagrum(f"{shown(path)}: reading {suffix} files")
    data = load(path)
    notes = _check_xdsl(data, path) if kind == "XDSL" else _check_single(data, path)
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
    try:
        model = from_pyagrum(network)
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None
    return replace(model, notes=(*notes, *(f"{shown(path)}: {note}" for note in model.notes)))


def write_agrum(model: Model, path: PathLike) -> None:
    """Write a Bayesian network with its names and labels; most of these formats keep seven digits of each number."""
    suffix, kind = _kind(path)
    gum = import_pyagrum(f"{shown(path)}: writing {suffix} files")
    _check_words(model, path)
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


def _check_single(data: bytes, path: PathLike) -> tuple[str, ...]:
    """Refuse numbers that single precision has no place for; a note if it rounds others."""
    found = [match for match in _NUMBER.finditer(data) if match.group(1)]

    def complain(index: int, message: str) -> InputError:
        line = data.count(b"\n", 0, found[index].start()) + 1
        return InputError(f"{shown(path)}: line {line}: {message.replace('{}', readable(found[index].group()))}")

    words = [match.group() for match in found]
    values = _watched(words, float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max), complain)
    if np.array_equal(as_in_the_file([values.astype(np.float32).astype(np.float64)])[0], values):
        return ()
    return (f"{shown(path)}: pyAgrum reads this format in single precision: numbers are rounded to seven digits",)


def _check_xdsl(data: bytes, path: PathLike) -> tuple[str, ...]:
    """Refuse XML that is damaged, and tables of which pyAgrum would read something else, or for ever."""

    def check(tag: str, text: str, line: int) -> None:
        if tag != "probabilities":
            return
        words = text.encode("ascii", "replace").split()

        def complain(index: int, message: str) -> InputError:
            return InputError(f"{shown(path)}: line {line}: {message.replace('{}', readable(words[index]))}")

        _watched(words, MIN_NORMAL, float(np.finfo(np.float64).max), complain)

    walk(path, data, lambda *_: None, check)
    return ()


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
