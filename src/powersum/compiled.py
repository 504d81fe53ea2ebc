"""The two ways a function is compiled here: cached on disk, without the interpreter lock, without Python exceptions."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])


class _WithoutCollection(event.Listener):
    """Puts off the collection of cyclic garbage while Numba compiles.

    Numba fills memory with small objects that stay; looking through them again and again takes a seventh of the time.
    Compilations nest, and the compiler's own lock keeps threads apart.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._resume = False

    def on_start(self, event: Any) -> None:
        """The outermost compilation remembers whether there was collection at all."""
        if self._depth == 0:
            self._resume = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Take up collection again after the outermost compilation."""
        self._depth -= 1
        if self._depth == 0 and self._resume:
            gc.enable()


event.register("numba:compile", _WithoutCollection())  # type: ignore[no-untyped-call]


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
