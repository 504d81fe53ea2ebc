"""Large messages between processes travel as files: pipes only carry what is written in one piece.

A process that is killed, or ends at once because whoever started it has hung up, may be writing a result to the pipe
of its pool. Half a message is then in it, and whoever reads waits for the rest for ever: a pool of the standard library
never learns that its process is gone, and its thread keeps the interpreter from ending. What fits ``PIPE_BUF`` is
written all or not at all.
"""

from __future__ import annotations

import pickle
import select
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

POOL_BYTES = 200
"""What a pool puts around a message."""

MOST_BYTES = getattr(select, "PIPE_BUF", 512) - POOL_BYTES
"""Pickled bytes that go through the pipe itself."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """The name of a file that has the message."""

    name: str


Message = bytes | Parcel


def packed(value: Any, folder: Path | None) -> Message:
    """A message with a value; all of it is in the message where there is no folder, or nothing can be written there."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    if folder is None or len(data) <= MOST_BYTES:
        return data
    parcel = Parcel(token_hex(8))
    try:
        (folder / parcel.name).write_bytes(data)
    except OSError:
        (folder / parcel.name).unlink(missing_ok=True)
        return data
    return parcel


def opened(message: Message, folder: Path | None) -> Any:
    """The value of a message, whose file is removed."""
    if isinstance(message, Parcel):
        assert folder is not None
        file = folder / message.name
        message = file.read_bytes()
        file.unlink()
    return pickle.loads(message)


def run_packed(function: Callable[..., Any], message: Message, folder: Path | None) -> Message:
    """In a worker: call a function with the arguments of a message; what it returns is packed as well."""
    return packed(function(*opened(message, folder)), folder)
