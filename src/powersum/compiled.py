"""The two ways a function is compiled here: cached on disk, without the interpreter lock, without Python exceptions."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from powersum.compiling import compilation

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


def compiled(function: Function) -> Function:
    """Compile with Numba on first call. Releases the interpreter lock, so that threads run kernels side by side."""
    # Nothing takes the address of a function, so the entry for callers from C would only be time to compile.
    options: Any = {"no_cfunc_wrapper": True}
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))


def inner(function: Function) -> Function:
    """Compile a function that only other compiled functions call.

    It gets no entry from Python, whose unpacking of many arrays takes longer to compile than the function itself.
    """
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))


def inlined(function: Function) -> Function:
    """Compile and copy it into every caller: for tiny functions inside hot loops."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function))
