"""What users name variables and states by: names and whole numbers, and nothing that only looks like one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from powersum.core.errors import InputError

_LONGEST = 60
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_WHOLE = re.compile(r"(-?[0-9]{1,18})(\.0+)?")
_PLACE = re.compile(r"#[0-9]{1,18}")
_LIKE_A_NUMBER = re.compile(r"[<>=≤≥(\[]*\s*[+-]?\.?[0-9]")


class Place(int):
    """A variable or a state by its place, counted from 0; as text ``#0``. It is never read as a name or a label."""

    __slots__ = ()


def as_text(value: object) -> str:
    """A value on one line, for a message: its printed form, shortened where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_whole(value: object) -> bool:
    """True for whole numbers of Python and NumPy; neither ``True`` nor ``1.0`` is one."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def place_of(key: object) -> int | None:
    """The place that a key names as a place and nothing else: ``Place(3)`` or ``"#3"``."""
    if isinstance(key, Place):
        return int(key)
    return int(key[1:]) if isinstance(key, str) and _PLACE.fullmatch(key) else None


def whole_value(text: str) -> int | None:
    """The whole number that a label stands for: 1 for ``"1"`` and ``"1.0"``."""
    found = _WHOLE.fullmatch(text)
    return None if found is None else int(found[1])


def numbered(words: Iterable[str]) -> bool:
    """True where a name or label begins like a number: then digits could be meant as one of them, or as a place."""
    return any(_LIKE_A_NUMBER.match(word) for word in words)


def label_text(key: object) -> str | None:
    """How a state's label is written that a key may stand for: ``True`` is ``"True"`` and ``1.0`` is ``"1.0"``.

    Whole numbers count states, and are no labels; neither is what stands for a missing value.
    """
    if isinstance(key, (bool, float, np.bool_, np.floating)) and key == key:
        return str(key.item() if isinstance(key, np.generic) else key)
    return key if isinstance(key, str) else None


def whole(value: Any, what: str) -> int:
    """A whole number, or a refusal that says what it should have been."""
    if not is_whole(value):
        raise InputError(f"{what} must be a whole number, not {as_text(value)}")
    return int(value)


def number_of(key: Any, argument: str, kind: str) -> int | None:
    """The number that a key stands for, given as a number or in digits; None for another string.

    Parameters
    ----------
    key
        What the user gave.
    argument
        In which argument.
    kind
        What it should name, such as ``"variable"``.

    Raises
    ------
    InputError
        Where it is neither a string nor a whole number.
    """
    if isinstance(key, str):
        return int(key) if _NUMBER.fullmatch(key) else None
    if not is_whole(key):
        raise InputError(f"{argument}: {as_text(key)} is no {kind}: give a string or a whole number")
    return int(key)


def listed(values: Any, argument: str, wanted: str = "a list of variables") -> list[Any]:
    """The values of a list or of anything like it; a string, a dictionary or a single value is refused."""
    # An array of no axes calls itself iterable.
    single = isinstance(values, (str, bytes, bytearray, Mapping)) or getattr(values, "ndim", 1) == 0
    if isinstance(values, Iterable) and not single:
        return list(values)
    raise InputError(f"{argument} is {as_text(values)}: give {wanted}")


def pairs_of(values: Any, argument: str, of: str = "variable and state") -> list[tuple[Any, Any]]:
    """Keys and what they stand for: from a dictionary, a list of pairs, or a row of a table.

    A row is a pandas Series or a named tuple, such as ``DataFrame.itertuples`` gives; what is missing in it (``None``,
    ``nan``) is left out. ``None`` is no pair at all.
    """
    if values is None:
        return []
    if isinstance(values, Mapping):
        return list(values.items())
    if hasattr(values, "_asdict"):
        return _present(values._asdict().items())
    if all(hasattr(values, name) for name in ("items", "index", "dtype")) and getattr(values, "ndim", 0) == 1:
        return _present(values.items())
    wanted = "a dictionary, a list of pairs, or a row of a table"
    # A set has no order, and neither has it pairs that people write on purpose.
    if isinstance(values, (set, frozenset)) or hasattr(values, "columns"):
        raise InputError(f"{argument} is {as_text(values)}: give {wanted}")
    pairs = []
    for pair in listed(values, argument, wanted):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise InputError(f"{argument} is {as_text(values)}: {as_text(pair)} is no pair of {of}")
        pairs.append((pair[0], pair[1]))
    return pairs


def _present(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Pairs whose value is there: a table leaves places empty by ``None`` or by what is not equal to itself."""
    return [(key, value) for key, value in pairs if not (value is None or _is_missing(value))]


def _is_missing(value: Any) -> bool:
    """True for ``nan``, and for pandas' ``NA`` and ``NaT``."""
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, (float, np.floating)) and value != value)
