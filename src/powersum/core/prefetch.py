"""Ask memory for something that will be needed soon."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from powersum.core.lanes import array_data, lanes_intrinsic


@lanes_intrinsic
def prefetch(context: Any, array: Any, place: Any) -> Any:
    """Have the line of memory brought near that holds a place of a contiguous array, counted over all its axes.

    Nothing is read: a place outside the array does no harm.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = array_data(context, builder, sig.args[0], args[0])
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        # To read, as near as possible, data.
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(array, types.int64), generate
