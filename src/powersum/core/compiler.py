"""Numba's compiler with less to do, for the functions of this package alone: a cold start waits for it.

Three things of it take time and change nothing here. What Numba has compiled of its own (``np.empty`` of a number) is
looked for by all options of the caller, also those that do not matter to it, and is compiled once more for each set
of them. Some passes are about things that no kernel has. And every function is optimised and made machine code as
soon as it is compiled, although one that Python cannot call is never run like that: callers have its LLVM form linked
into them, and are optimised and made machine code with it.
"""

# mypy: disallow-untyped-calls=False

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags

NEEDLESS = frozenset({"WithLifting", "InlineClosureLikes", "InlineOverloads", "NopythonRewrites"})
"""Passes about ``with`` blocks, closures, functions of Numba that want to be inlined, and expressions of whole arrays.

Kernels have none of the first two, and would not compile with them. The others only make quicker what no kernel does in
a loop that matters.
"""


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


class ShortCompiler(CompilerBase):
    """Compiles without needless passes."""

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        super().__init__(typingctx, targetctx, library, args, return_type, _Options(flags), locals)

    def define_pipelines(self) -> list[Any]:
        """Part of Numba's protocol."""
        passes: Any = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [one for one in passes.passes if one[0].__name__ not in NEEDLESS]
        passes.finalize()
        return [passes]


class _NoEnvironments:
    """A code generator as far as Numba asks one for the objects that machine code reads: here is none."""

    def set_env(self, name: str, environment: Any) -> None:
        """Part of Numba's protocol."""


class LinkedLibrary(JITCodeLibrary):
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


class LinkedCompiler(ShortCompiler):
    """Compiles as far as a :class:`LinkedLibrary`."""

    def define_pipelines(self) -> list[Any]:
        """Part of Numba's protocol; the library is made here, before Numba would make one of its own."""
        state = self.state
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
