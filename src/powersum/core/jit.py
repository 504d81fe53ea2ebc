"""The two ways a function is compiled here: cached on disk, without the interpreter lock, without Python exceptions."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from powersum.core.clock import compilation

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
        if event.kind == LOCKED and compilation.leave() and self._resume:
            gc.enable()


_requests = _Requests()
for kind in (LOCKED, COMPILED):
    event.register(kind, _requests)  # type: ignore[no-untyped-call]


BOUNDSCHECK = os.environ.get("POWERSUM_BOUNDSCHECK", "") not in ("", "0")
"""Whether every index of every kernel is checked, for the tests: an array that is too small is then an IndexError.

Numba wraps negative indices before it checks, so that only those beyond the length are seen.
"""

if BOUNDSCHECK:
    # Numba does not tell by a cached function whether it checks: the two kinds must never meet in one folder.
    settings: Any = numba.config
    settings.CACHE_DIR = str(Path(__file__).parent / "__pycache__" / "boundscheck")


def _compile(function: Function, **options: Any) -> Function:
    kernel = numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=BOUNDSCHECK, **options)(function)
    return cast(Function, kernel)


def compiled(function: Function) -> Function:
    """Compile with Numba on first call. Releases the interpreter lock, so that threads run kernels side by side."""
    # Nothing takes the address of a function, so the entry for callers from C would only be time to compile.
    return _compile(function, no_cfunc_wrapper=True)


def inner(function: Function) -> Function:
    """Compile a function that only other compiled functions call.

    It gets no entry from Python, whose unpacking of many arrays takes longer to compile than the function itself.
    """
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: Function) -> Function:
    """Compile and copy it into every caller: for tiny functions inside hot loops."""
    return _compile(function, inline="always")
