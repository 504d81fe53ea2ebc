"""Measurements on disk: each is a file of its own, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from powersum.api.comparison import Point, Trace
from powersum.core.errors import InputError
from powersum.core.files import saving
from powersum.model.strict_json import strict_json


class FigureStore:
    """A folder of records, each stamped with the settings it was made with."""

    def __init__(self, folder: Path, fingerprint: dict[str, Any]) -> None:
        self._folder = folder
        # Through JSON and back, so that tuples compare equal to what is read.
        self._fingerprint = json.loads(json.dumps(fingerprint))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made ({error.strerror})") from None

    def load(self, figure: str, key: str) -> dict[str, Any] | None:
        """The record of a task; None where there is none, or one of other settings."""
        try:
            record = json.loads(self._path(figure, key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("settings") != self._fingerprint:
            return None
        return record

    def save(self, figure: str, key: str, record: dict[str, Any]) -> None:
        """Write a record, all or nothing."""
        text = strict_json({"settings": self._fingerprint, **record})
        with saving(self._path(figure, key)) as handle:
            handle.write(text.encode() + b"\n")

    def _path(self, figure: str, key: str) -> Path:
        return self._folder / f"{figure}-{key}.json"


def trace_of(record: dict[str, Any]) -> Trace:
    """A trace from its record; infinities are stored as words."""
    points = tuple(
        Point(int(p[0]), float(p[1]), float(p[2]), float(p[3]), None if p[4] is None else float(p[4]))
        for p in record["points"]
    )
    return Trace(record["label"], record["method"], bool(record["guaranteed"]), points, record["sizes"])
