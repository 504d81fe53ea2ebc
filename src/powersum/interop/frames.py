"""Data frames of pandas, polars and others, through narwhals: rows in, columns out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from powersum.core.errors import InputError


def is_frame(value: Any) -> bool:
    """True for a data frame of any library, without importing one."""
    kind = type(value)
    return hasattr(kind, "columns") and (hasattr(kind, "dtypes") or hasattr(kind, "schema"))


class Frame:
    """A data frame: its columns, its rows, and new frames of the same library.

    Parameters
    ----------
    native
        The frame of pandas, polars or another library that narwhals knows.
    argument
        The name of the argument, for messages.
    """

    def __init__(self, native: Any, argument: str) -> None:
        narwhals = _narwhals(argument)
        try:
            self._frame = narwhals.from_native(native, eager_only=True)
        except TypeError:
            raise InputError(
                f"{argument}: a {type(native).__name__} is no data frame with rows; of a lazy one give frame.collect()"
            ) from None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self._frame.columns]

    def __len__(self) -> int:
        return len(self._frame)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows; what is missing (None, NaN, NA) is None."""
        for row in self._frame.iter_rows():
            yield tuple([None if is_missing(cell) else cell for cell in row])

    def like(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """A new frame of the same library."""
        return frame_of(columns, self._frame.implementation)


def frame_of(columns: Mapping[str, Sequence[Any]], library: Any) -> Any:
    """A frame of a library, by its name or as narwhals knows it."""
    narwhals = _narwhals("library")
    try:
        return narwhals.from_dict(dict(columns), backend=library).to_native()
    except ModuleNotFoundError:
        raise InputError(f"library: {library} is not installed: pip install {library}") from None
    except ValueError:
        raise InputError(f"library: {library!r} is no library of data frames: give 'pandas' or 'polars'") from None


def is_missing(cell: Any) -> bool:
    """True for None, NaN and what pandas calls NA and NaT."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float) and cell != cell


def _narwhals(argument: str) -> Any:
    try:
        return import_module("narwhals")
    except ModuleNotFoundError:
        raise InputError(
            f"{argument}: data frames need narwhals, which is not installed: pip install narwhals"
        ) from None
