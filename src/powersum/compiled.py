"""The two ways a function is compiled here: cached on disk, without the interpreter lock, without Python exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


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
