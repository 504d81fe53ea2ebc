"""A model as flat arrays in a file that is mapped into memory and never read as a whole unless it is compressed.

A line of JSON tells what there is; then come the arrays of :data:`ARRAYS`, each at a multiple of 4096 bytes,
little-endian, eight bytes a number. A process that works on a part of the model touches only that part.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any, NamedTuple, cast

import numpy as np

from powersum.core.arrays import FloatArray, IntArray
from powersum.core.errors import InputError
from powersum.model.model import Model

ARRAYS = ("cardinalities", "scope_starts", "scope_variables", "table_starts", "log_values")
PAGE = 4096
KIND = "powersum mapped model 1"


class MappedArrays(NamedTuple):
    """The arrays of a model's file, mapped and not read: pages come in as they are looked at."""

    cardinalities: IntArray
    scope_starts: IntArray
    scope_variables: IntArray
    table_starts: IntArray
    log_values: FloatArray


def write_arrays(model: Model, file: IO[bytes]) -> None:
    """Write a model to a file that :func:`map_arrays` understands."""
    if sys.byteorder != "little":
        raise InputError("this machine's numbers begin with the largest byte: mapped models are not written here")
    head = {
        "kind": KIND,
        "sizes": [len(getattr(model, name)) for name in ARRAYS],
        "directed": model.directed,
        "names": model.names,
        "states": model.states,
    }
    at = file.write(json.dumps(head).encode() + b"\n")
    for name in ARRAYS:
        at += file.write(b"\0" * (-at % PAGE))
        at += file.write(cast(Any, memoryview(np.ascontiguousarray(getattr(model, name)).data)).cast("B"))


def map_arrays(path: str) -> tuple[dict[str, Any], MappedArrays]:
    """What the first line of such a file says, and its arrays, mapped and unchecked. ValueError if it is none."""
    with open(path, "rb") as file:
        head, places = _described(file.readline())
    arrays = list[Any]()
    for kind, at, size in places:
        if size and at + 8 * size > os.path.getsize(path):
            raise ValueError("cut short")
        # An array without entries cannot be mapped.
        arrays.append(np.memmap(path, kind, "r", at, (size,)) if size else np.zeros(0, kind))
    return head, MappedArrays(*arrays)


def held_arrays(content: bytes) -> tuple[dict[str, Any], MappedArrays]:
    """The same of a whole file in memory, as a compressed file is once it is unpacked."""
    head, places = _described(content[: content.find(b"\n") + 1])
    # Numpy raises ValueError where the content is cut short.
    arrays: list[Any] = [
        np.frombuffer(content, kind, size, at) if size else np.zeros(0, kind) for kind, at, size in places
    ]
    return head, MappedArrays(*arrays)


def _described(line: bytes) -> tuple[dict[str, Any], list[tuple[type, int, int]]]:
    """The head of a file, from its first line, and the kind, the place and the length of each array."""
    head = json.loads(line)
    if not isinstance(head, dict) or head.get("kind") != KIND or len(head["sizes"]) != len(ARRAYS):
        raise ValueError("another kind of file")
    at, places = len(line), list[tuple[type, int, int]]()
    for name, size in zip(ARRAYS, head["sizes"], strict=True):
        if size < 0:
            raise ValueError("no length of an array")
        at += -at % PAGE
        places.append((np.float64 if name == "log_values" else np.int64, at, size))
        at += 8 * size
    return head, places


def mapped_file(model: Model) -> str | None:
    """The file that a model's arrays are mapped from, if all of them are."""
    found = set()
    for name in ARRAYS:
        array: Any = getattr(model, name)
        while array is not None and not isinstance(array, np.memmap):
            array = getattr(array, "base", None)
        found.add(None if array is None else str(array.filename))
    return found.pop() if len(found) == 1 else None
