"""The two ways a function is compiled here: cached on disk, without the interpreter lock, without Python exceptions."""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import event
from numba.core.serialize import dumps

from powersum.core.cache import module_stamp, store
from powersum.core.clock import compilation
from powersum.core.compiler import LinkedCompiler, ShortCompiler
from powersum.core.packing import packed, unpacked

LOCKED, COMPILED = "numba:compiler_lock", "numba:compile"
"""Numba's names of two events: the compiler's lock is held, and within that a function is compiled."""

Function = TypeVar("Function", bound=Callable[..., Any])


class _Requests(event.Listener):
    """Keeps the clock of compilation by the compiler's lock, which is held while cached code is read and written, too.

    Puts off the collection of cyclic garbage while something is compiled: Numba fills memory with small objects that
    stay, and looking through them again and again takes a seventh of the time.
    """

    def __init__(self) -> None:
        self._resume = False

    def on_start(self, event: Any) -> None:
        """A request for the compiler, or within one a compilation."""
        if event.kind == LOCKED:
            compilation.enter()
        elif compilation.compile():
            self._resume = gc.isenabled()
            gc.disable()

    def on_end(self, event: Any) -> None:
        """Take up collection again after a request for which something was compiled."""
        if event.kind != LOCKED:
            return
        if compilation.ending and self._resume:
            # What has come together is looked through now, or it would be in the time of the next piece of work.
            gc.enable()
            gc.collect(1)
        compilation.leave()


_requests = _Requests()
for kind in (LOCKED, COMPILED):
    event.register(kind, _requests)  # type: ignore[no-untyped-call]


BOUNDSCHECK = os.environ.get("POWERSUM_BOUNDSCHECK", "") not in ("", "0")
"""Whether every index of every kernel is checked, for the tests: an array that is too small is then an IndexError.

Numba wraps negative indices before it checks, so that only those beyond the length are seen.
"""

ENVIRONMENT = hashlib.sha256(
    repr((numba.__version__, llvmlite.__version__, np.__version__, sys.version, sys.platform, BOUNDSCHECK)).encode()
).hexdigest()[:8]
"""Stands for all but sources and processor that decides what is compiled: versions, and whether indices are checked."""


PROCESSOR = hashlib.sha256(
    f"{llvmlite.binding.get_host_cpu_name()} {llvmlite.binding.get_host_cpu_features().flatten()}".encode()
).hexdigest()[:8]
"""Stands for the processor that code is compiled for."""

# Numba's own way to pickle, without its missing types.
_dumps: Callable[[Any], bytes] = dumps


class _Kept:
    """The compiled forms of one function between runs, in the place of Numba's own cache.

    One file for each signature, named after all that tells it from others; so there is no list of them that two
    processes could spoil.
    """

    def __init__(self, function: Callable[..., Any], source: str, options: Mapping[str, Any]) -> None:
        self._function = function
        self._options = sorted(options.items())
        # Now and not at the first call: a file may be replaced while a process runs what it has read from it.
        # How code is kept is part of it, too: what is compiled may lie in a module that does not import this one.
        self._folder = f"{Path(source).stem}-{ENVIRONMENT}-{module_stamp(source)}-{module_stamp(__file__)[:8]}"

    @property
    def cache_path(self) -> str:
        """Where the files lie."""
        return str((store.folder or Path()) / self._folder)

    def enable(self) -> None:
        """Part of Numba's protocol."""

    def disable(self) -> None:
        """Part of Numba's protocol."""

    def flush(self) -> None:
        """Part of Numba's protocol."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form for a signature, or None."""
        content = store.read(self._folder, self._name(sig, target_context.codegen()))
        return None if content is None else unpacked(content, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled form for a signature, unless it holds addresses of this process."""
        if data.library.has_dynamic_globals or any(not lifted.can_cache for lifted in data.lifted):
            return
        store.write(self._folder, self._name(sig, data.codegen), packed(data))

    def _name(self, sig: Any, codegen: Any) -> str:
        closure = self._function.__closure__
        cells = b"" if closure is None else _dumps(tuple(cell.cell_contents for cell in closure))
        # The processor is part of it: a home folder may be shared by several machines.
        place = self._function.__code__.co_firstlineno
        key = (str(sig), _fields(sig), codegen.magic_tuple(), place, cells, self._options)
        return f"{self._function.__name__}-{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}"


def _fields(kind: Any) -> Any:
    """Names of the fields of all named tuples in a type: its text has only their types, in their order."""
    parts = kind if isinstance(kind, tuple) else getattr(kind, "types", ())
    return (getattr(kind, "fields", ()), [_fields(part) for part in parts])


@functools.cache
def _source_of(module: str) -> str | None:
    """The file of a module."""
    path = Path(getattr(sys.modules.get(module), "__file__", None) or "").resolve()
    return str(path) if path.suffix == ".py" and path.is_file() else None


def _compile(function: Function, *, compiler: type[ShortCompiler] = ShortCompiler, **options: Any) -> Function:
    kernel = numba.njit(nogil=True, error_model="numpy", boundscheck=BOUNDSCHECK, pipeline_class=compiler, **options)(
        function
    )
    # Without a source, in a notebook or an archive, nothing tells whether kept code is of the present function.
    source = _source_of(function.__module__)
    if source is not None:
        kernel._cache = _Kept(function, source, options)
    return cast(Function, kernel)


def compiled(function: Function) -> Function:
    """Compile with Numba on first call. Releases the interpreter lock, so that threads run kernels side by side."""
    # Nothing takes the address of a function, so the entry for callers from C would only be time to compile.
    return _compile(function, no_cfunc_wrapper=True)


def inner(function: Function) -> Function:
    """Compile a function that only other compiled functions call.

    It gets no entry from Python, whose unpacking of many arrays takes longer to compile than the function itself, and
    no machine code but that within its callers. Two of them must not call each other.
    """
    return _compile(function, compiler=LinkedCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def bare(function: Function) -> Function:
    """As :func:`inner`, for a function that makes no array, nor calls one that does: it counts no references.

    Counting takes an atomic operation for each array handed over, which is longer than a short row's work.
    """
    return _compile(function, compiler=LinkedCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


def without_counting(function: Function) -> Function:
    """As :func:`compiled`, for a function that makes no array, nor calls one that does: see :func:`bare`."""
    return _compile(function, no_cfunc_wrapper=True, _nrt=False)


def inlined(function: Function) -> Function:
    """Compile and copy it into every caller: for tiny functions inside hot loops."""
    return _compile(function, inline="always")
