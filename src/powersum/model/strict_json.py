"""Strict JSON and back: infinities as strings, and records that say which of their fields is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from powersum.core.errors import InputError
from powersum.model.keys import as_text, is_whole

NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def strict_json(value: Any) -> str:
    """Strict JSON of nested mappings, lists and dataclasses; infinities are the strings "inf" and "-inf"."""
    return json.dumps(strict(value), indent=2, allow_nan=False, ensure_ascii=False)


def strict(value: Any) -> Any:
    """``value`` with infinities as strings, enums and unknown objects as their words, for strict JSON."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: strict(getattr(value, item.name)) for item in fields(value)}
    if hasattr(value, "tolist"):
        return strict(value.tolist())
    return str(value)


def revived(value: Any) -> Any:
    """Values of :func:`strict` with infinities as numbers again, where no string can be meant by them."""
    if isinstance(value, str):
        return NOT_FINITE.get(value, value)
    if isinstance(value, Mapping):
        return {key: revived(item) for key, item in value.items()}
    return [revived(item) for item in value] if isinstance(value, list) else value


class Record:
    """A dictionary read from JSON whose fields are taken out by name and type."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise InputError(f"{where} is {as_text(data)}: it must be a dictionary")
        self._data, self._where = data, where

    def take(self, name: str, kind: Any, default: Any = ...) -> Any:
        """A field of this type."""
        if name not in self._data:
            if default is not ...:
                return default
            raise InputError(f"{self._where}: {name} is missing")
        value = self._data[name]
        # True is a whole number to Python, but not to anybody who writes one.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise self._wrong(name, value)
        return value

    def number(self, name: str) -> float:
        """A field that is a number or a word for one that is not finite."""
        return float(self._number(name, self.take(name, (float, int, str))))

    def inner_number(self, name: str, key: str) -> int | float:
        """A number in a dictionary; a whole one stays one."""
        return self._number(f"{name}, {key}", self.take(name, dict)[key])

    def numbers(self, name: str, key: str | None = None) -> list[float]:
        """A list of numbers, or one of a dictionary of lists."""
        values = self.take(name, list) if key is None else self.take(name, dict)[key]
        if not isinstance(values, list):
            raise self._wrong(f"{name}, {key}", values)
        return [float(self._number(name, value)) for value in values]

    def strings(self, name: str) -> list[str]:
        """A list of strings."""
        values: list[str] = self.take(name, list)
        for value in values:
            if not isinstance(value, str):
                raise self._wrong(name, value)
        return values

    def states(self, name: str) -> dict[str, int | str]:
        """A dictionary of states: labels or whole numbers."""
        states: dict[str, int | str] = dict(self.take(name, dict))
        for value in states.values():
            if not (isinstance(value, str) or is_whole(value)):
                raise self._wrong(name, value)
        return states

    def records(self, name: str) -> list[Record]:
        """A list of dictionaries."""
        return [Record(item, f"{self._where}: {name}") for item in self.take(name, list)]

    def inner(self, name: str) -> Record | None:
        """A dictionary, or nothing."""
        data = self.take(name, (dict, type(None)), None)
        return None if data is None else Record(data, f"{self._where}: {name}")

    def _number(self, name: str, value: Any) -> int | float:
        if isinstance(value, str) and value in NOT_FINITE:
            return NOT_FINITE[value]
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._wrong(name, value)
        return value

    def _wrong(self, name: str, value: Any) -> InputError:
        return InputError(f"{self._where}: {name} is {as_text(value)}, which it cannot be")
