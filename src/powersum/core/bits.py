"""Bits of floating-point numbers and fused operations, for numbers of either precision, one or eight at a time."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from powersum.core.lanes import LANES, Lanes, lanes_intrinsic, spread

_INTEGERS = {types.float32: types.int32, types.float64: types.int64}


def _with(kind: Any, dtype: Any) -> Any:
    """A type with other numbers: lanes stay lanes."""
    return Lanes(dtype) if isinstance(kind, Lanes) else dtype


def _dtype(kind: Any) -> Any:
    return kind.dtype if isinstance(kind, Lanes) else kind


@lanes_intrinsic
def bits_of(context: Any, number: Any) -> Any:
    """The bits of a number as an integer of its size."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(sig.return_type))

    return _with(number, _INTEGERS[_dtype(number)])(number), generate


@lanes_intrinsic
def number_of(context: Any, bits: Any, like: Any) -> Any:
    """The number that these bits stand for, of the type of ``like``."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(sig.return_type))

    return like(_with(like, _INTEGERS[_dtype(like)]), like), generate


@lanes_intrinsic
def float_of(context: Any, integer: Any, like: Any) -> Any:
    """An integer as a number of the type of ``like``."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.sitofp(args[0], context.get_value_type(sig.return_type))

    return like(_with(like, _INTEGERS[_dtype(like)]), like), generate


@lanes_intrinsic
def fused(context: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, in one instruction where the processor has it."""
    given = (a, b, c)
    kind = next((k for k in given if isinstance(k, Lanes)), next((k for k in given if k == types.float32), a))
    dtype = _dtype(kind)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = context.get_value_type(sig.return_type)
        if isinstance(sig.return_type, Lanes):
            args = [spread(builder, value, of) for value, of in zip(args, sig.args, strict=True)]
            suffix = f"v{LANES}f{32 if dtype == types.float32 else 64}"
        else:
            suffix = "f32" if dtype == types.float32 else "f64"
        kind = ir.FunctionType(vector, [vector] * 3)
        function = builder.module.globals.get(f"llvm.fmuladd.{suffix}")
        if function is None:
            function = ir.Function(builder.module, kind, name=f"llvm.fmuladd.{suffix}")
        return builder.call(function, args)

    return kind(*(k if isinstance(k, Lanes) else dtype for k in given)), generate
