"""A zip of plain arrays and one JSON text, read with suspicion: nothing is unpacked to disk, unpickled or trusted."""

from __future__ import annotations

import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from powersum_check.errors import BadFile
from powersum_check.limits import PER_ENTRY, Room, afford, spend
from powersum_check.numbers import FloatArray

_NAME = re.compile(r"([0-9]{1,6}/)?[a-z_]{1,40}\.(npy|json)")
_LENGTH = rb"[0-9]{1,15}"
_HEADER = re.compile(
    rb"\{'descr': '([<|][fiub][1248])', 'fortran_order': False, "
    rb"'shape': \((|" + _LENGTH + rb",|" + _LENGTH + rb"(?:, " + _LENGTH + rb"){1,2})\),? ?\}"
)
_TYPES = {"<f4", "<f8", "<i1", "|i1", "|u1", "|b1", "<i2", "<u2", "<i4", "<u4", "<i8"}
PIECE = 1 << 18
"""Bytes that are read or unpacked at once."""
_MEMBER = 1024
"""Bytes that are counted for what zipfile keeps of each member."""
_MOST_MEMBERS = 1_000_000
_DEEPEST_JSON = 32
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_DAMAGE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, struct.error, OverflowError)


def joined(name: str, pieces: Iterable[bytes], limit: int) -> bytes:
    """Bytes that come in pieces, at most ``limit``; a buffer that grows takes an eighth more than what is in it."""
    text = BytesIO()
    for piece in pieces:
        text.write(piece)
        if 9 * text.tell() > 8 * limit:
            raise BadFile(f"{name}: too large for what --memory allows")
    return text.getvalue()


def read_bytes(path: str | Path, limit: int) -> bytes:
    """The bytes of a file, which take at most ``limit``."""
    try:
        with open(path, "rb") as file:
            return joined(str(path), iter(lambda: file.read(PIECE), b""), limit)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path}: cannot be read ({type(error).__name__})") from None


class Archive:
    """The members of a zip file; together they may have ``limit`` bytes unpacked.

    Parameters
    ----------
    source
        The file, which is read once, or its bytes.
    limit
        Bytes to use at most.
    name
        For messages, where there is no file.
    longest
        How many rows the arrays that are named may have. Where it is given, each array that is read takes
        ``PER_ENTRY`` bytes for each entry of what is left in ``room``, before it is unpacked.
    """

    def __init__(
        self,
        source: str | Path | bytes,
        limit: int,
        *,
        name: str = "certificate",
        longest: Mapping[str, int] | None = None,
    ) -> None:
        self.name = name if isinstance(source, bytes) else str(source)
        self.room, self._longest = Room(limit), longest
        # The bytes are read once: a file that is replaced or changed meanwhile changes nothing.
        data = source if isinstance(source, bytes) else read_bytes(source, limit)
        afford(f"{self.name}: its members", _MEMBER * data.count(b"PK\x01\x02"), limit)
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
            members = self._zip.infolist()
        except _DAMAGE as error:
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
        self.room.take(f"{self.name}: its bytes", len(data))

    def __contains__(self, name: str) -> bool:
        return name + ".npy" in self._members

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """A member, and the length that it says it has."""
        member = self._members.get(name)
        if member is None:
            raise BadFile(f"{self.name}: {name} is missing")
        try:
            with self._zip.open(member) as file:
                yield file, member.file_size
        except _DAMAGE as error:
            raise BadFile(f"{self.name}: {name} is damaged ({type(error).__name__})") from None

    def _rest(self, file: IO[bytes], name: str, length: int) -> bytes:
        """What follows in a member, which must be so long."""
        # A member that is longer than it says is cut here, and found out by its checksum or length.
        data = file.read(length + 1)
        if len(data) != length:
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

        with self._opened(name + ".json") as (file, length):
            if self._longest is not None:
                self.room.take(f"{name}.json", PER_ENTRY * length)
            data = self._rest(file, name, length)
        try:
            if _depth(data) > _DEEPEST_JSON:
                raise ValueError("is too deep")
            head = json.loads(data, object_pairs_hook=pairs, parse_constant=constant)
        except (ValueError, RecursionError) as error:
            raise BadFile(f"{self.name}: {name}.json: {str(error).splitlines()[0][:80]}") from None
        if not isinstance(head, dict):
            raise BadFile(f"{self.name}: {name}.json is not an object")
        return head

    def names(self, prefix: str) -> list[str]:
        """The names of all arrays that begin so."""
        names = (name.removesuffix(".npy") for name in self._members if name.endswith(".npy"))
        return [name for name in names if name.startswith(prefix)]

    def array(self, name: str, dimensions: int | None = 1) -> np.ndarray[Any, Any]:
        """An array in the ``.npy`` format, of a plain type, as the header of exactly that form says; of any shape."""
        with self._opened(name + ".npy") as (file, size):
            start = file.read(10)
            header = file.read(int.from_bytes(start[8:10], "little"))
            found = _HEADER.fullmatch(header.rstrip(b"\n "))
            if start[:8] != b"\x93NUMPY\x01\x00" or found is None or found[1].decode() not in _TYPES:
                raise BadFile(f"{self.name}: {name} is not an array, or has a header that is not allowed")
            shape = tuple(int(word) for word in found[2].replace(b" ", b"").split(b",") if word)
            dtype, count = np.dtype(found[1].decode()), math.prod(shape)
            if dimensions not in (None, len(shape)) or 10 + len(header) + count * dtype.itemsize != size:
                raise BadFile(f"{self.name}: {name} has shape {shape}, which does not fit")
            if self._longest is not None:
                if shape[0] > (most := self._longest.get(name.rpartition("/")[2], shape[0])):
                    raise BadFile(f"{self.name}: {name} has {shape[0]} rows, and can have {most} at most")
                self.room.take(f"{self.name}: {name}", PER_ENTRY * count)
                spend(2000 + 20 * count)
            data = self._rest(file, name, size - 10 - len(header))
        return np.frombuffer(data, dtype, count).reshape(shape)

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


def _depth(text: bytes) -> int:
    """How deeply the lists and objects of a JSON text are nested."""
    codes = np.frombuffer(_TEXT.sub(b"", text), np.uint8)
    steps = np.zeros(len(codes), np.int8)
    steps[(codes == ord("[")) | (codes == ord("{"))] = 1
    steps[(codes == ord("]")) | (codes == ord("}"))] = -1
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))
