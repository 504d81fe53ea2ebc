"""The only file that uses names of Numba which are not public, each for one of four ways to wait less for code.

*Options* of a caller that do not matter to Numba's own functions (``np.empty`` of a number) are hidden from them, and
literal numbers from our functions, so that each is compiled once. *Passes* about what no kernel has are left out.
Functions that only compiled code calls are *linked* into their callers, which are optimised and made machine code with
them; alone they are neither. Compiled code is *kept* as bytes, and brought back without what only a compiler needs:
Numba's own way back imports all its implementations of Python and NumPy and parses the LLVM form of every function.

The public way back from all four is Numba's own pipeline, whose code is not kept. It is taken where
``POWERSUM_COMPILER`` is ``plain``, for versions of Numba that were never tested, and where the trial fails.
"""

# mypy: disallow-untyped-calls=False

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import llvmlite.binding
import numba
import numpy as np
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder, Flags
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from powersum.core.cache import NOT_KEPT

_logger = logging.getLogger("powersum")

NEEDLESS = frozenset({"WithLifting", "InlineClosureLikes", "InlineOverloads", "NopythonRewrites"})
"""Passes about ``with`` blocks, closures, functions of Numba that want to be inlined, and expressions of whole arrays.

Kernels have none of the first two, and would not compile with them. The others only make quicker what no kernel does in
a loop that matters.
"""

# Numba's own ways to take a compiled function apart and to put it together again, without their missing types.
_rebuild: Callable[..., Any] = CompileResult._rebuild
_start_runtime: Callable[[Any], None] = rtsys.initialize
dumps_closure: Callable[[Any], bytes] = dumps
"""Pickles the cells of a closure, which may hold compiled functions."""


class Shelf(Protocol):
    """Keeps the compiled forms of one function: what Numba asks its own cache for."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form for a signature, or None."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled form for a signature."""


def dispatcher(
    function: Callable[..., Any], shelf: Shelf | None, *, linked: bool, counting: bool, options: Mapping[str, Any]
) -> Any:
    """A function that Numba compiles in the four ways, for each kind of arguments when it is first called with them."""
    # Nothing takes the address of a function, so the entry for callers from C would only be time to compile.
    hidden: dict[str, Any] = {"no_cfunc_wrapper": True, "pipeline_class": LinkedCompiler if linked else ShortCompiler}
    if linked:
        hidden["no_cpython_wrapper"] = True
    if not counting:
        hidden["_nrt"] = False
    made: Any = numba.njit(**options, **hidden)(function)
    if shelf is not None:
        made._cache = shelf
    resolve = made.get_call_template

    def resolve_plain(args: Any, kws: Any) -> Any:
        plain = {name: numba.types.unliteral(kind) for name, kind in kws.items()}
        return resolve(tuple(numba.types.unliteral(kind) for kind in args), plain)

    made.get_call_template = resolve_plain
    return made


class _Options(Flags):
    """Options of a function that is compiled; a copy is what the functions that it calls are told of them."""

    __slots__ = ("_hash", "_kept", "_of")

    def __init__(self, copy_from: Any = None) -> None:
        super().__init__(copy_from)
        self._of: dict[str, Any] | None = None
        self._kept: dict[str, Any] = {}
        self._hash = 0

    def copy(self) -> Any:
        """The same as if Numba's own functions had called: how a caller is entered does not matter to them."""
        other: Any = _Options(self)
        other.no_cpython_wrapper = True
        other.discard("no_cfunc_wrapper")
        other.discard("release_gil")
        return other

    def values(self) -> dict[str, Any]:
        """All options; they are compared at every call that types are inferred of, and hardly ever change."""
        if self._of != self._values:
            self._of, self._kept = dict(self._values), super().values()
            self._hash = super().__hash__()
        return self._kept

    def __eq__(self, other: object) -> Any:
        return super().__eq__(other)

    def __hash__(self) -> int:
        self.values()
        return self._hash


class _NoEnvironments:
    """A code generator as far as Numba asks one for the objects that machine code reads: here is none."""

    def set_env(self, name: str, environment: Any) -> None:
        """Part of Numba's protocol."""


class ShortLibrary(JITCodeLibrary):
    """A function whose form is only tidied before it is linked: it is optimised with what it calls, once."""

    def _optimize_functions(self, module: Any) -> None:
        if not hasattr(self._codegen, "_pass_builder"):
            # An older Numba, with LLVM's older managers of passes.
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        tidying = llvmlite.binding.create_new_function_pass_manager()
        tidying.add_sroa_pass()
        tidying.add_simplify_cfg_pass()
        builder = self._codegen._pass_builder()
        for function in module.functions:
            if _defined(function):
                tidying.run(function, builder)


class LinkedLibrary(ShortLibrary):
    """LLVM's form of a function, to be linked into its callers."""

    codegen = _NoEnvironments()
    _finalized: bool

    def _optimize_final_module(self) -> None:
        """Nothing: callers optimise what they have linked."""

    def _finalize_final_module(self) -> None:
        if any(one.name.startswith(RuntimeLinker.PREFIX) for one in self._final_module.global_variables):
            # Of the two the one that is compiled first calls the other by the address of its machine code.
            raise TypeError(f"{self.name} and a function that it calls call each other: they have to be `compiled`")
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        """Without object code."""
        return (self.name, "object", (b"", self._get_module_for_linking().as_bitcode()))


class ShortCompiler(CompilerBase):
    """Compiles without needless passes."""

    kind: Any = ShortLibrary

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        self.short = trial.passed()
        super().__init__(
            typingctx, targetctx, library, args, return_type, _Options(flags) if self.short else flags, locals
        )

    def define_pipelines(self) -> list[Any]:
        """Part of Numba's protocol; the library is made here, before Numba would make one of its own."""
        state = self.state
        passes: Any = DefaultPassBuilder.define_nopython_pipeline(state)
        if self.short:
            state.library = self.kind(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            passes.passes = [one for one in passes.passes if one[0].__name__ not in NEEDLESS]
            passes.finalize()
        return [passes]


class LinkedCompiler(ShortCompiler):
    """Compiles as far as a :class:`LinkedLibrary`."""

    kind = LinkedLibrary


class _ParsedLate:
    """A library whose LLVM form is parsed where a function that calls it is compiled."""

    bitcode: bytes
    _shared_module: Any

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            if not self.bitcode:
                raise RuntimeError(f"{self} comes with machine code only: functions of others cannot call it")
            self._shared_module = llvmlite.binding.parse_bitcode(self.bitcode)
        return self._shared_module


class _ReadyLibrary(_ParsedLate, JITCodeLibrary):
    """Machine code that is ready to run."""

    symbols: frozenset[str]

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function; the engine, which others share, is not told which there are."""
        return int(self._codegen._engine.get_function_address(name)) if name in self.symbols else 0


class _CalleeLibrary(_ParsedLate, LinkedLibrary):
    """A function that has no machine code."""


def _library(codegen: Any, name: str, object_code: bytes, bitcode: bytes, symbols: list[str]) -> Any:
    """A library made of what is kept of one."""
    made: Any = cast(Any, _ReadyLibrary if object_code else _CalleeLibrary)(codegen, name)
    made.bitcode = bitcode
    if not object_code:
        made._finalized = True
        return made
    made.symbols = frozenset(symbols)
    made.enable_object_caching()
    made._set_compiled_object(object_code)
    made._finalize_final_module()
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


def packed(result: Any) -> bytes | None:
    """All that is needed to run a compiled function in another process, and to compile others that call it.

    None where it cannot be kept: it holds addresses of this process, or Numba compiled it in its own way.
    """
    if not trial.passed() or result.library.has_dynamic_globals or result.lifted:
        return None
    # Numba keeps an annotated source, for people who inspect functions; to write it takes as long as the rest.
    (name, _, (object_code, bitcode)), *parts, environments = result._replace(type_annotation="")._reduce()
    module = result.library._get_module_for_linking()
    symbols = [one.name for group in (module.functions, module.global_variables) for one in group if _defined(one)]
    # An environment holds objects that a function hands to Python. Those of Numba's functions that hold none are read
    # by nobody, and to bring them back is to import the module of each.
    held = tuple(one for one in environments if one.consts or not one.globals["__name__"].startswith("numba."))
    return dumps_closure((name, object_code, bitcode, symbols, (*parts, held)))


def _defined(symbol: Any) -> bool:
    return not symbol.is_declaration


def without_form(content: bytes) -> bytes | None:
    """What :func:`packed` made, without what only callers need; None if that is all there is."""
    name, object_code, _, symbols, parts = pickle.loads(content)
    return dumps_closure((name, object_code, b"", symbols, parts)) if object_code else None


def unpacked(content: bytes, target_context: Any, *, linking: bool = False) -> Any:
    """The compiled function of :func:`packed`, ready to run or, if asked for, to be linked; None if it is not."""
    name, object_code, bitcode, symbols, parts = pickle.loads(content)
    if linking and not bitcode:
        return None
    # All of a target context that running needs; whoever compiles brings it up to date by itself.
    _start_runtime(target_context)
    library = _library(target_context.codegen(), name, object_code, bitcode, symbols)
    return _rebuild(_Shelf(target_context, library), None, *parts)._replace(target_context=target_context)


class _Trial:
    """Whether the four ways work with the Numba that is here, which is tried when the first function compiles.

    What is kept was made where they work: its folder is named after the versions. So loading needs no trial.
    """

    def __init__(self) -> None:
        self._passed: bool | None = None

    def passed(self) -> bool:
        """Try once; whoever compiles holds Numba's lock, so that no other thread asks meanwhile."""
        if self._passed is None:
            # What is tried below is compiled in the ways that are tried.
            self._passed = True
            try:
                self._passed = _works()
            except Exception:
                self._passed = False
            if not self._passed:
                _logger.warning("powersum: note: Numba %s is not as expected: %s", numba.__version__, NOT_KEPT)
        return self._passed


trial = _Trial()
"""The trial of this process."""


def _halves(values: Any) -> Any:
    made = np.empty(len(values), np.float64)
    for i in range(len(values)):
        made[i] = 0.5 * values[i]
    return made


def _works() -> bool:
    """Compile a function and one that it calls, bring the first back from bytes, and compare what both return."""
    options = {"nogil": True, "error_model": "numpy"}
    callee = dispatcher(_halves, None, linked=True, counting=True, options=options)

    def caller(values: Any, place: int) -> Any:
        if place < 0:
            raise ValueError("negative")
        return callee(values)[place]

    function = dispatcher(caller, None, linked=False, counting=True, options=options)
    values = np.arange(5.0)
    if function(values, 3) != 1.5:
        return False
    (result,) = function.overloads.values()
    (inner,) = callee.overloads.values()
    content = packed(result)
    if content is None or not isinstance(inner.library, LinkedLibrary):
        return False
    again = unpacked(content, result.target_context)
    # An entry at address 0 would end the process: it is asked for before anything is called.
    if not again.library.get_pointer_to_function(again.fndesc.llvm_cpython_wrapper_name):
        return False
    return bool(again.entry_point(values, 3) == 1.5)
