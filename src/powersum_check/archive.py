"""A zip of plain arrays and one JSON text, read with suspicion: nothing is unpacked to disk, unpickled or trusted."""

from __future__ import annotations

import json
import math
import re
import struct
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from powersum_check.errors import BadFile
from powersum_check.numbers import FloatArray

_NAME = re.compile(r"([0-9]{1,6}/)?[a-z_]{1,40}\.(npy|json)")
_HEADER = re.compile(
    rb"\{'descr': '([<|][fiub][1248])', 'fortran_order': False, 'shape': \(((?:[0-9]{1,15},? ?){0,3})\),? ?\}"
)
_TYPES = {"<f4", "<f8", "<i1", "|i1", "|u1", "|b1", "<i2", "<u2", "<i4", "<u4", "<i8"}
MEMORY = 4_000_000_000
"""Bytes that files and steps may take unless the user says otherwise."""
_MOST_MEMBERS = 1_000_000
_MOST_JSON = 1 << 26


def read_bytes(path: str | Path, limit: int) -> bytes:
    """The bytes of a file, at most ``limit``."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path}: cannot be read ({type(error).__name__})") from None
    if len(data) > limit:
        raise BadFile(f"{path}: more than {limit} bytes, which is what --memory allows")
    return data


class Archive:
    """The members of a zip file; together they may have ``limit`` bytes unpacked."""

    def __init__(self, source: str | Path | bytes, limit: int, name: str = "certificate") -> None:
        self.name = name if isinstance(source, bytes) else str(source)
        # The bytes are read once: a file that is replaced or changed meanwhile changes nothing.
        data = source if isinstance(source, bytes) else read_bytes(source, limit)
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
            members = self._zip.infolist()
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OverflowError) as error:
            raise BadFile(f"{self.name}: cannot be read as a zip ({type(error).__name__})") from None
        self._members = {member.filename: member for member in members}
        if len(members) > _MOST_MEMBERS or len(self._members) < len(members):
            raise BadFile(f"{self.name}: members with the same name, or too many")
        for member in members:
            if not _NAME.fullmatch(member.filename):
                raise BadFile(f"{self.name}: a member has the name {member.filename[:60]!r}")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
                raise BadFile(f"{self.name}: {member.filename} is encrypted or packed in an unusual way")
        if sum(member.file_size for member in members) > limit:
            raise BadFile(f"{self.name}: unpacks to more than the {limit} bytes that --memory allows")

    def __contains__(self, name: str) -> bool:
        return name + ".npy" in self._members

    def _read(self, name: str) -> bytes:
        member = self._members.get(name)
        if member is None:
            raise BadFile(f"{self.name}: {name} is missing")
        try:
            with self._zip.open(member) as file:
                # A member that is longer than it says is cut here, and found out by its checksum or length.
                data = file.read(member.file_size + 1)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, struct.error) as error:
            raise BadFile(f"{self.name}: {name} is damaged ({type(error).__name__})") from None
        if len(data) != member.file_size:
            raise BadFile(f"{self.name}: {name} has not the length it should have")
        return data

    def json(self, name: str) -> dict[str, Any]:
        """A JSON object without repeated keys or numbers that are none."""

        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            if len(dict(items)) < len(items):
                raise ValueError("a key is repeated")
            return dict(items)

        def constant(word: str) -> Any:
            raise ValueError(f"{word} is not JSON")

        if name + ".json" in self._members and self._members[name + ".json"].file_size > _MOST_JSON:
            raise BadFile(f"{self.name}: {name}.json is too long")
        try:
            head = json.loads(self._read(name + ".json"), object_pairs_hook=pairs, parse_constant=constant)
        except (ValueError, RecursionError) as error:
            raise BadFile(f"{self.name}: {name}.json: {str(error).splitlines()[0][:80]}") from None
        if not isinstance(head, dict):
            raise BadFile(f"{self.name}: {name}.json is not an object")
        return head

    def array(self, name: str, dimensions: int = 1) -> np.ndarray[Any, Any]:
        """An array in the ``.npy`` format, of a plain type, as the header of exactly that form says."""
        data = self._read(name + ".npy")
        begin = 10 + int.from_bytes(data[8:10], "little")
        found = _HEADER.fullmatch(data[10:begin].rstrip(b"\n "))
        if data[:8] != b"\x93NUMPY\x01\x00" or found is None or found[1].decode() not in _TYPES:
            raise BadFile(f"{self.name}: {name} is not an array, or has a header that is not allowed")
        shape = tuple(int(word) for word in found[2].replace(b" ", b"").split(b",") if word)
        dtype, count = np.dtype(found[1].decode()), math.prod(shape)
        if len(shape) != dimensions or count * dtype.itemsize != len(data) - begin:
            raise BadFile(f"{self.name}: {name} has shape {shape}, which does not fit")
        return np.frombuffer(data, dtype, count, begin).reshape(shape)

    def integers(
        self, name: str, *, low: int = 0, high: int = 1 << 53, columns: int | None = None
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Whole numbers from ``low`` to below ``high``, in rows of so many columns if given."""
        values = self.array(name, 1 if columns is None else 2)
        if values.dtype.kind not in "iub" or (columns is not None and values.shape[1] != columns):
            raise BadFile(f"{self.name}: {name} does not hold whole numbers")
        values = values.astype(np.int64)
        if values.size and (values.min() < low or values.max() >= high):
            raise BadFile(f"{self.name}: {name} has a number outside {low} to {high - 1}")
        return values

    def starts(self, name: str, total: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Where consecutive pieces of ``total`` things start: from 0, never falling, the total at the end."""
        starts = self.integers(name, high=total + 1)
        if len(starts) == 0 or starts[0] != 0 or starts[-1] != total or (np.diff(starts) < 0).any():
            raise BadFile(f"{self.name}: {name} does not divide {total} things")
        return starts

    def floats(self, name: str, *, infinite: bool = False) -> FloatArray:
        """Numbers; finite ones, unless -inf is allowed."""
        values = self.array(name)
        if values.dtype.kind != "f":
            raise BadFile(f"{self.name}: {name} does not hold numbers")
        values = values.astype(np.float64)
        if np.isnan(values).any() or (values == np.inf).any() or (not infinite and (values == -np.inf).any()):
            raise BadFile(f"{self.name}: {name} has a number that is not finite")
        return values
