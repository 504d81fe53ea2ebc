"""A model as flat arrays in a file that is mapped into memory and never read as a whole.

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
        line = file.readline()
    head = json.loads(line)
    if not isinstance(head, dict) or head.get("kind") != KIND or len(head["sizes"]) != len(ARRAYS):
        raise ValueError("another kind of file")
    at, arrays = len(line), list[Any]()
    for name, size in zip(ARRAYS, head["sizes"], strict=True):
        at += -at % PAGE
        kind = np.float64 if name == "log_values" else np.int64
        if size and at + 8 * size > os.path.getsize(path):
            raise ValueError("cut short")
        # An array without entries cannot be mapped.
        arrays.append(np.memmap(path, kind, "r", at, (size,)) if size else np.zeros(0, kind))
        at += 8 * size
    return head, MappedArrays(*arrays)


def mapped_file(model: Model) -> str | None:
    """The file that a model's arrays are mapped from, if all of them are."""
    found = set()
    for name in ARRAYS:
        array: Any = getattr(model, name)
        while array is not None and not isinstance(array, np.memmap):
            array = getattr(array, "base", None)
        found.add(None if array is None else str(array.filename))
    return found.pop() if len(found) == 1 else None
