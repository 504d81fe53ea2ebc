"""Whole files in and out: compression by suffix, writing that is all or nothing, and errors in one line."""

from __future__ import annotations

import io
import os
import select
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING, cast

from powersum.core.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PathLike = str | os.PathLike[str]

COMPRESSED_SUFFIXES = (".gz", ".xz")

# A few kilobytes can unpack to terabytes; more text than this does not make a model that fits in memory.
PIECE = 1 << 24
MAX_BYTES = 2 << 30

LOOK_MILLISECONDS = 200
"""How long a pipe is waited for between two looks at signals."""


def shown(path: PathLike) -> str:
    """A path as messages show it: on one line, whatever it is called."""
    text = os.fspath(path)
    return text if text.isprintable() else repr(text)


def plain_name(path: PathLike) -> str:
    """A path without its suffix of compression."""
    text = os.fspath(path)
    return text[: len(text) - len(_compression(path))]


def _compression(path: PathLike) -> str:
    """The suffix of compression of a file's name, in small letters, or nothing."""
    name = os.fspath(path).lower()
    return next((suffix for suffix in COMPRESSED_SUFFIXES if name.endswith(suffix)), "")


def load(path: PathLike) -> bytes:
    """Everything in a file, unpacked when its name ends in ``.gz`` or ``.xz``."""
    from lzma import LZMAError

    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            kind = "a directory" if stat.S_ISDIR(mode) else "not a file"
            raise InputError(f"{shown(path)}: cannot be read: it is {kind}")
        waiting = stat.S_ISFIFO(mode) and os.name == "posix"
        with io.BufferedReader(_Pipe(path) if waiting else io.FileIO(path)) as raw, _unpacked(path, raw) as handle:
            # In pieces: a read of at most n bytes sets n bytes aside, however small the file.
            pieces: list[bytes] = []
            held = 0
            while held <= MAX_BYTES and (piece := handle.read(PIECE)):
                pieces.append(piece)
                held += len(piece)
            data = b"".join(pieces)
    except (EOFError, LZMAError, zlib.error) as error:
        raise InputError(f"{shown(path)}: the compressed data are damaged ({reason(error)})") from None
    except (OSError, ValueError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{shown(path)}: cannot be read ({reason(error)})") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{shown(path)}: holds more than {MAX_BYTES >> 30} GiB of text, too much for one model")
    return data


@contextmanager
def saving(path: PathLike, check: Callable[[Path], None] | None = None) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when all of it has been written.

    A reader never sees half a file, and a failed run leaves what was there before. What is no regular file (a pipe,
    ``/dev/null``) is written to directly: renaming would put a file in its place. ``check`` reads a regular file back
    before it takes its name, and raises OSError where it is not what was written.
    """
    try:
        special = os.path.exists(path) and not os.path.isfile(path)
        # The file behind a link is the one to replace; its name is cut, for a longer one may be too long.
        place = Path(os.path.realpath(path))
        target = place if special else place.with_name(f".{place.name[:32]}.{token_hex(6)}.part")
        try:
            with open(target, "wb") as raw:
                if not _compression(path):
                    yield raw
                else:
                    with _packer(path, raw) as packed:
                        yield packed
            if not special:
                if check is not None:
                    check(target)
                os.replace(target, place)
        finally:
            if not special:
                with suppress(OSError):
                    os.unlink(target)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{shown(path)}: cannot be written ({reason(error)})") from None


class _Pipe(io.FileIO):
    """A pipe that is read as soon as it has something, with a look at what else happened in between.

    A signal that arrives after Python's last look and before a read begins would wait until somebody writes: Ctrl-C
    would be lost (seen once in some thousand runs that were interrupted as soon as they had opened their pipe).
    """

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        # Of descriptors beyond the first thousand `select` knows nothing.
        waiting = select.poll()
        waiting.register(self, select.POLLIN)
        while not waiting.poll(LOOK_MILLISECONDS):
            pass
        return super().readinto(buffer)


def _unpacked(path: PathLike, raw: IO[bytes]) -> IO[bytes]:
    """What is read from ``raw``, uncompressed as the file's name says."""
    suffix = _compression(path)
    if suffix == ".gz":
        import gzip

        return cast(IO[bytes], gzip.open(raw, "rb"))
    if suffix == ".xz":
        import lzma

        return lzma.open(raw, "rb")
    return raw


def _packer(path: PathLike, raw: IO[bytes]) -> IO[bytes]:
    """A compressing file on top of ``raw``."""
    if _compression(path) == ".gz":
        import gzip

        # No name and no time inside: equal models give equal files.
        return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
    import lzma

    return lzma.LZMAFile(raw, "wb")


def reason(error: BaseException) -> str:
    """Why something failed, in a few words on one line."""
    text = (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
    return " ".join(text.split())
