"""Compiled code as bytes, and back again without what only a compiler needs.

Numba's own way back imports all its implementations of Python and NumPy and reads the LLVM form of every function, in
case something is compiled that calls it: most of the time that loading takes. Here that waits until it is so.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from powersum.core.compiler import LinkedLibrary

# Numba's own ways to take a compiled function apart and to put it together again, without their missing types.
_rebuild: Callable[..., Any] = CompileResult._rebuild
_dumps: Callable[[Any], bytes] = dumps
_start_runtime: Callable[[Any], None] = rtsys.initialize


class _ParsedLate:
    """A library whose LLVM form is parsed where a function that calls it is compiled."""

    bitcode: bytes
    _shared_module: Any

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvmlite.binding.parse_bitcode(self.bitcode)
        return self._shared_module


class _ReadyLibrary(_ParsedLate, JITCodeLibrary):
    """Machine code that is ready to run."""


class _CalleeLibrary(_ParsedLate, LinkedLibrary):
    """A function that has no machine code."""


def _library(codegen: Any, name: str, object_code: bytes, bitcode: bytes, symbols: list[str]) -> Any:
    """A library made of what is kept of one."""
    made: Any = cast(Any, _ReadyLibrary if object_code else _CalleeLibrary)(codegen, name)
    made.bitcode = bitcode
    if not object_code:
        made._finalized = True
        return made
    made.enable_object_caching()
    made._set_compiled_object(object_code)
    made._finalize_final_module()
    codegen._engine._defined_symbols.update(symbols)
    return made


class _Shelf:
    """A target context as Numba's rebuilding sees it: asked for a library, it has the one that is there already."""

    def __init__(self, context: Any, library: Any) -> None:
        self._context, self._library = context, library

    def codegen(self) -> _Shelf:
        """Part of Numba's protocol."""
        return self

    def unserialize_library(self, data: Any) -> Any:
        """Part of Numba's protocol."""
        return self._library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def packed(result: Any) -> bytes:
    """All that is needed to run a compiled function in another process, and to compile others that call it."""
    (name, _, (object_code, bitcode)), *parts, environments = result._reduce()
    module = result.library._get_module_for_linking()
    symbols = [one.name for group in (module.functions, module.global_variables) for one in group if _defined(one)]
    # An environment holds objects that a function hands to Python. Those of Numba's functions that hold none are read
    # by nobody, and to bring them back is to import the module of each.
    held = tuple(one for one in environments if one.consts or not one.globals["__name__"].startswith("numba."))
    return _dumps((name, object_code, bitcode, symbols, (*parts, held)))


def _defined(symbol: Any) -> bool:
    return not symbol.is_declaration


def unpacked(content: bytes, target_context: Any) -> Any:
    """The compiled function of :func:`packed`, ready to run or to be linked; None where it has to be compiled again."""
    name, object_code, bitcode, symbols, parts = pickle.loads(content)
    try:
        # All of a target context that running needs; whoever compiles brings it up to date by itself.
        _start_runtime(target_context)
        library = _library(target_context.codegen(), name, object_code, bitcode, symbols)
        return _rebuild(_Shelf(target_context, library), None, *parts)._replace(target_context=target_context)
    except (AttributeError, TypeError):
        # A version of Numba whose insides are not those known here has its own way, which needs machine code.
        if not object_code:
            return None
        target_context.refresh()
        return _rebuild(target_context, (name, "object", (object_code, bitcode)), *parts)
