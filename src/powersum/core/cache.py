"""Where compiled code is kept between runs, and how it is known to be of these sources.

Numba stamps a compiled function with its own file only, although constants and callees of other files are compiled into
it: after an upgrade the old code would run. Here every file of compiled code lies in a folder whose name is a digest of
the function's module and of all modules of the package that it imports, directly or not. Another source is another
folder, so that old code is never looked at; folders that nobody used for long are removed.

Imports within functions count in modules that have compiled functions. In others they run after all constants are made.

Knows nothing of Numba, so that asking for the folder does not import it; :mod:`powersum.core.jit` reads and writes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

if sys.platform != "win32":
    import fcntl

PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = PACKAGE / "machine"
"""Where a platform wheel has machine code: in a folder for each level of processors, as in a cache folder."""

NAME = "powersum-kernels"
"""The one folder in a cache folder that is ours to write and to remove."""

CLAIMS = "claims"
"""The folder of empty files that processes lock which are about to write the file of that name."""

LIMIT = 512e6
"""Bytes that all kept code may take together before the least recently used goes; one full set is about 12 MB."""

TOUCHED = 3600.0
"""Seconds between two marks that a folder is in use: every start would be a write for nothing."""

NOT_KEPT = "compiling takes longer, and compiled code is not kept"
"""What is said where Numba is used by its public names alone."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\w+(?:\.\w+)*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]+))", re.M
)
_logger = logging.getLogger("powersum")


def cache_folder() -> Path | None:
    """The folder for what is kept between runs: ``POWERSUM_CACHE_DIR`` or the user's cache folder; None without any."""
    chosen = os.environ.get("POWERSUM_CACHE_DIR", "")
    if chosen:
        return Path(chosen).absolute()
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named and os.path.isabs(named):
        return Path(named) / "powersum"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return Path(local) / "powersum" if local else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "powersum"


def _temporary_folder(*, create: bool) -> Path | None:
    """A folder among the temporary ones that is surely ours: what lies in it is executed, and others write there."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    try:
        path = Path(tempfile.gettempdir()) / f"powersum-{owner}"
        if create:
            path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    safe = stat.S_ISDIR(found.st_mode) and (
        os.name == "nt" or (found.st_uid == owner and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    )
    return path if safe else None


def seal(content: bytes) -> bytes:
    """A file's bytes: a digest goes before the content, which shows damage."""
    return hashlib.sha256(content).digest() + content


def _unsealed(path: Path) -> bytes | None:
    """The content of a file; None where there is none, or not the one that was written."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content[32:] if content[:32] == hashlib.sha256(content[32:]).digest() else None


class CompilingClaim:
    """A file that this process is about to write, as others see it; it ends with the process at the latest."""

    def __init__(self, handle: int, path: Path, *, waited: bool) -> None:
        self._handle, self._path = handle, path
        self.waited = waited
        """Whether another process had it first."""

    def release(self) -> None:
        """Let others have it; who waits at the old file compiles once more what is there, at worst."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._handle)


class Store:
    """Files of compiled code: read where there are any, written whole and then renamed, where that is possible.

    Any number of processes may share a folder. A file's name says all about its content, so that it does not matter
    whose file stays when two write the same one.
    """

    def __init__(self) -> None:
        self._usual = cache_folder()
        self._writable = self._usual
        self._temporary = _temporary_folder(create=False)
        self._told = False
        self._marked: set[Path] = set()

    @property
    def folder(self) -> Path | None:
        """Where files are written to now; None where nothing can be kept."""
        return None if self._writable is None else self._writable / NAME

    def read(self, stamp: str, name: str) -> bytes | None:
        """The content of a file; None where there is none, or not the one that was written."""
        # A folder that cannot be written to, of a container's image perhaps, can still be read from; and what earlier
        # processes had to write elsewhere is there.
        for folder in (self._usual, self._temporary):
            if folder is None:
                continue
            content = _unsealed(folder / NAME / stamp / name)
            if content is not None:
                self._mark(folder / NAME / stamp)
                return content
        return None

    @staticmethod
    def ships(level: str) -> bool:
        """Whether the package brings code for a level of processors."""
        return (SHIPPED / level).is_dir()

    @staticmethod
    def shipped(level: str, stamp: str, name: str) -> bytes | None:
        """The content of a file that the package brings; None where there is none of these sources and versions."""
        return _unsealed(SHIPPED / level / stamp / name)

    def claim(self, stamp: str, name: str, seconds: float = 0.0) -> CompilingClaim | None:
        """Claim a file, after waiting so long for another process; None where that fails or nothing can be claimed."""
        # On Windows, processes may compile the same side by side.
        if sys.platform == "win32" or self.folder is None:
            return None
        path = self.folder / CLAIMS / f"{stamp}-{name}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError:
            return None
        waited, until = False, time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    os.close(handle)
                    return None
            except OSError:
                # A file system without locks.
                os.close(handle)
                return None
            else:
                return CompilingClaim(handle, path, waited=waited)
            waited = True
            time.sleep(0.01)

    def write(self, stamp: str, name: str, content: bytes) -> None:
        """Keep a file, if any folder takes it; the first that does not is told of, in one line."""
        sealed = seal(content)
        while self._writable is not None:
            try:
                self._write(self._writable / NAME / stamp / name, sealed)
                return
            except OSError as error:
                self._move_on(error)
        if not self._told:
            self._tell("there is no folder for compiled code: it is not kept")

    def _write(self, path: Path, content: bytes) -> None:
        fresh = not path.parent.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh and self.folder is not None:
            prune(self.folder, keep=path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _move_on(self, error: OSError) -> None:
        """Take a temporary folder after the usual one, and none after that."""
        refused = self._writable
        if refused == self._temporary:
            self._writable = None
        else:
            self._writable = self._temporary = _temporary_folder(create=True)
        instead = "it is not kept" if self._writable is None else f"{self._writable} is used instead"
        self._tell(f"compiled code cannot be kept in {refused} ({error.strerror or error}): {instead}")

    def _tell(self, text: str) -> None:
        self._told = True
        _logger.warning("powersum: note: %s", text)

    def _mark(self, folder: Path) -> None:
        """Remember on disk that a folder is in use."""
        if folder in self._marked:
            return
        self._marked.add(folder)
        try:
            if time.time() - folder.stat().st_mtime > TOUCHED:
                os.utime(folder)
        except OSError:
            pass


@functools.cache
def module_stamp(path: str) -> str:
    """A digest of a module's source and of all modules of the package that it imports, directly or not."""
    seen = {path}
    waiting = [path]
    while waiting:
        fresh = _module(waiting.pop()).imports - seen
        seen |= fresh
        waiting += fresh
    digest = hashlib.sha256()
    for source in sorted(_module(one).digest for one in seen):
        digest.update(source)
    return digest.hexdigest()[:24]


def package_stamp() -> str:
    """A digest of all sources of the package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(_module(str(path)).digest)
    return digest.hexdigest()[:24]


class _Module(NamedTuple):
    """What is known of a module's file: a digest of its name and source, and the files of the package it imports."""

    digest: bytes
    imports: frozenset[str]


# Paths are text here: comparing and joining ``Path`` objects took longer than reading and hashing the files.
_WITHIN = f"{PACKAGE}{os.sep}"


@functools.cache
def _module(path: str) -> _Module:
    """A module as its file was when first asked for; its imports are found by their lines, for parsing takes longer."""
    with open(path, "rb") as file:
        source = file.read()
    inside = path.startswith(_WITHIN)
    compiles = b"jit" in source
    name = path.removeprefix(_WITHIN).replace(os.sep, "/") if inside else os.path.basename(path)
    found: set[str] = set()
    for match in _IMPORT.finditer(source.decode("utf-8")):
        if match[0][0] in " \t" and not compiles:
            continue
        module, names, plain = match.groups()
        if plain is not None:
            wanted = [word.split(" as ")[0].strip() for word in plain.split(",")]
        else:
            # Names of other packages are not looked up one by one.
            own = module.split(".")[0] == PACKAGE.name
            wanted = [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))] if own else []
        for one in wanted:
            found |= _places(one)
    return _Module(hashlib.sha256(name.encode() + b"\0" + source).digest(), frozenset(found))


@functools.cache
def _places(module: str) -> frozenset[str]:
    """The file of a module of the package and those of the packages around it; none for any other name."""
    around, _, name = module.rpartition(".")
    first, *rest = around.split(".")
    if first != PACKAGE.name:
        # The package's own __init__, too: it imports everything and computes nothing.
        return frozenset()
    base = _WITHIN + os.sep.join((*rest, name))
    return _places(around).union(path for path in (f"{base}{os.sep}__init__.py", f"{base}.py") if os.path.isfile(path))


def folders() -> list[Path]:
    """Every folder in which compiled code of this user may lie."""
    candidates = (cache_folder(), _temporary_folder(create=False))
    return [folder / NAME for folder in candidates if folder is not None and (folder / NAME).is_dir()]


def size() -> tuple[int, int]:
    """Number of files that are kept, and their bytes."""
    sizes = [bytes_ for folder in folders() for stamp in folder.iterdir() for bytes_ in _sizes(stamp)]
    return len(sizes), sum(sizes)


def clear() -> None:
    """Remove all compiled code that is kept; what runs meanwhile compiles anew."""
    for folder in folders():
        shutil.rmtree(folder, ignore_errors=True)


def prune(folder: Path, keep: Path) -> None:
    """Remove the least recently used folders until the rest is small enough; one stays whatever it takes."""
    used: list[tuple[float, Path]] = []
    for stamp in folder.iterdir():
        try:
            used.append((stamp.stat().st_mtime, stamp))
        except OSError:
            continue
    total = 0
    for _, stamp in sorted(used, reverse=True):
        total += sum(_sizes(stamp))
        if total > LIMIT and stamp != keep:
            shutil.rmtree(stamp, ignore_errors=True)


def _sizes(folder: Path) -> Iterator[int]:
    """Bytes of each file; another process may remove them meanwhile."""
    try:
        # Closed at once, also where a file is gone before it is looked at: else Python warns, some time later.
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.stat().st_size
    except OSError:
        return


store = Store()
"""The files of this process."""
