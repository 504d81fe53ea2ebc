"""The shorter compiler: the same numbers, no machine code where nobody runs it, and a loud no where that cannot be."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.compiler import Flags

import powersum
from powersum.core.arrays import FloatArray
from powersum.core.backend import LinkedLibrary, _Options
from powersum.core.cache import store
from powersum.core.jit import PLAIN, bare, compiled, inner, without_counting


@inner
def added(values: FloatArray, much: float) -> FloatArray:
    """An array made by a callee, from an expression of whole arrays."""
    other = np.empty(len(values), np.float64)
    for i in range(len(values)):
        other[i] = values[i] + much
    return other + np.zeros(len(values), np.float64)


@bare
def last(values: FloatArray) -> float:
    """The last number."""
    return float(values[len(values) - 1])


@compiled
def shifted(values: FloatArray, much: float) -> tuple[FloatArray, float]:
    """Calls both."""
    moved = added(values, much)
    copy = np.empty(len(values), np.float64)
    copy[:] = moved
    return copy, last(copy)


@without_counting
def only_last(values: FloatArray) -> float:
    """Calls one that another caller has, too."""
    return last(values)


@inner
def countdown(number: int) -> int:
    """Calls itself."""
    if number == 0:
        return 0
    return countdown(number - 1) + 1


@inner
def even(number: int) -> bool:
    """Calls what calls it."""
    if number == 0:
        return True
    return odd(number - 1)


@inner
def odd(number: int) -> bool:
    """Calls what calls it."""
    if number == 0:
        return False
    return even(number - 1)


@compiled
def counted(number: int) -> int:
    """Calls what calls itself."""
    return countdown(number)


@compiled
def halved(number: int) -> bool:
    """Calls two that call each other."""
    return even(number)


def only_form(function: Any) -> Any:
    """What was compiled of a function that was called with one kind of arguments."""
    (kernel,) = function.overloads.values()
    return kernel


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read from what was kept, nor is anything kept."""
    monkeypatch.setattr(store, "read", lambda *_: None)
    monkeypatch.setattr(store, "write", lambda *_: None)


def test_callees_have_no_machine_code_and_callers_compute_the_same(anew: None) -> None:
    values = np.random.default_rng(1).normal(size=37)
    found = shifted(values, 0.25)
    np.testing.assert_array_equal(found[0], values + 0.25)
    assert found[1] == values[-1] + 0.25
    assert only_last(values) == values[-1]
    for callee in (added, last):
        kernel = only_form(callee)
        assert isinstance(kernel.library, LinkedLibrary)
        assert kernel.library.get_pointer_to_function(kernel.fndesc.llvm_func_name) == 0
    kernel = only_form(shifted)
    assert kernel.library.get_pointer_to_function(kernel.fndesc.llvm_func_name) != 0


def test_callees_may_call_themselves_but_not_each_other(anew: None) -> None:
    assert counted(30) == 30
    with pytest.raises((TypeError, numba.TypingError), match="call each other"):
        halved(3)


def test_functions_of_numba_are_compiled_once_for_all_ways_to_be_entered(anew: None) -> None:
    @inner
    def within(n: int) -> Any:
        return np.full(n, 2.5)

    @compiled
    def outside(n: int) -> Any:
        return np.full(n, 1.5), within(n)

    seen: list[str] = []

    class Names(event.Listener):
        def on_start(self, event: Any) -> None:
            seen.append(event.data["dispatcher"].py_func.__qualname__)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Names()):
        one, other = outside(3)
    assert (one.tolist(), other.tolist()) == ([1.5] * 3, [2.5] * 3)
    assert sum("full" in name for name in seen) <= 1, seen


def test_options_are_compared_as_numba_compares_them() -> None:
    plain: Any = Flags()  # type: ignore[no-untyped-call]
    plain.error_model = "numpy"
    ours: Any = _Options(plain)
    assert ours == plain
    assert plain == ours
    assert hash(ours) == hash(plain)
    assert ours.values() == plain.values()
    ours.nrt = True
    assert ours != plain
    assert ours.values()["nrt"] is True
    ours.release_gil = ours.no_cfunc_wrapper = True
    plain.nrt = plain.no_cpython_wrapper = True
    assert ours.copy() == plain
    assert ours.release_gil


@bare
def doubled(number: float, times: int) -> float:
    """Is called with a literal and with a variable."""
    for _ in range(times):
        number = 2.0 * number
    return number


@compiled
def doubled_variously(number: float, times: int) -> float:
    """Calls it in three ways."""
    return doubled(number, 1) + doubled(1.0, 2) + doubled(number, times)


@pytest.mark.skipif(PLAIN, reason="Numba's own way compiles a form for each literal")
def test_literals_do_not_make_forms_of_their_own() -> None:
    assert doubled_variously(3.0, 3) == 6.0 + 4.0 + 24.0
    # None where machine code was kept: then nothing is compiled.
    assert len(doubled.overloads) <= 1  # type: ignore[attr-defined]


WAYS = {"compiled", "inner", "bare", "without_counting", "inlined"}
ARRAYS = (ast.Attribute, ast.Subscript, ast.Call, ast.BinOp)
"""Expressions that may be arrays."""


def test_no_kernel_assigns_an_array_to_a_slice() -> None:
    """Numba compiles its error messages for that, which takes a second; ``core/growing.py`` has the loops."""
    found = []
    for path in sorted(Path(powersum.__file__).parent.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            if not any(isinstance(one, ast.Name) and one.id in WAYS for one in function.decorator_list):
                continue
            found += [
                f"{path.name}:{one.lineno}"
                for one in ast.walk(function)
                if isinstance(one, ast.Assign) and isinstance(one.value, ARRAYS)
                for target in one.targets
                if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)
            ]
    assert found == []
