"""What users name variables and states by: names and whole numbers, and nothing that only looks like one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from powersum.core.errors import InputError

_LONGEST = 60
_NUMBER = re.compile(r"-?[0-9]{1,18}")


def as_text(value: object) -> str:
    """A value on one line, for a message: its printed form, shortened where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_whole(value: object) -> bool:
    """True for whole numbers of Python and NumPy; neither ``True`` nor ``1.0`` is one."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


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


def mapped(values: Mapping[Any, Any] | None, argument: str) -> Mapping[Any, Any]:
    """A dictionary; ``None`` is an empty one, and nothing else is one."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InputError(f"{argument} is {as_text(values)}: give a dictionary")
    return values
