"""Eight numbers at a time, as a type that kernels can name.

LLVM vectorises a plain loop only where it can show that no two arrays overlap, or by testing that whenever the loop is
reached, and whatever does not fill a vector is done one by one: on a row of thirty numbers that takes most of the time.
``Lanes`` says what is meant. They are LLVM's own vectors, so that every processor has them, in registers of whatever
size it has.

Nothing here looks at the size of an array: who takes eight numbers must know that there is room for eight.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

LANES = 8
"""Numbers in one value."""

HALVES = (1, 2, 3, 4, 5, 6)
"""Ways to see eight entries as a table of three axes with two states each, of which another table has one or two: bit 2
stands for the first axis, bit 0 for the last."""


def roomy(size: int, dtype: Any) -> Any:
    """An array of zeros that has room for eight numbers from each of its places on."""
    return np.zeros(size + LANES, dtype)[:size]


class Lanes(types.Type):
    """Eight numbers of one type."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        vector = ir.VectorType(manager[kind.dtype].get_value_type(), LANES)
        super().__init__(manager, kind, vector)  # type: ignore[no-untyped-call]


def lanes_intrinsic(function: Callable[..., Any]) -> Any:
    """Numba's decorator without its types, which take an intrinsic for the function that describes it."""
    return intrinsic(function)


def spread(builder: Any, value: Any, kind: Any) -> Any:
    """The LLVM value of an operand as lanes: as it is, or a single number eight times."""
    if isinstance(kind, Lanes):
        return value
    vector = ir.VectorType(value.type, LANES)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    return _shuffled(builder, one, [0] * LANES)


def _shuffled(builder: Any, value: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
    return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), mask)


def _register(symbol: Any, of_floats: str, of_integers: str) -> None:
    """An operator for lanes with lanes, or with a number of their type."""

    def describe(context: Any) -> Callable[[Any, Any], Any]:
        del context

        def signature(one: Any, two: Any) -> Any:
            given = (one, two)
            kind = next((a for a in given if isinstance(a, Lanes)), None)
            if kind is None or not all(a == kind or isinstance(a, types.Number) for a in given):
                return None
            return kind(*(kind if isinstance(a, Lanes) else kind.dtype for a in given))

        return signature

    type_callable(symbol)(describe)

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        del context
        name = of_floats if isinstance(sig.return_type.dtype, types.Float) else of_integers
        return getattr(builder, name)(*(spread(builder, a, kind) for a, kind in zip(args, sig.args, strict=True)))

    for pair in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower: Any = lower_builtin(symbol, *pair)  # type: ignore[no-untyped-call]
        lower(lowered)


_register(operator.add, "fadd", "add")
_register(operator.sub, "fsub", "sub")
_register(operator.mul, "fmul", "mul")
_register(operator.truediv, "fdiv", "fdiv")
_register(operator.lshift, "shl", "shl")
_register(operator.rshift, "ashr", "ashr")


def array_data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """The LLVM pointer to the first entry of an array."""
    proxy: Any = cgutils.create_struct_proxy(kind)  # type: ignore[no-untyped-call]
    return proxy(context, builder, value=array).data


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any, count: int) -> Any:
    data = builder.gep(array_data(context, builder, kind, array), [place])
    return builder.bitcast(data, ir.VectorType(data.type.pointee, count).as_pointer())


def _loaded(context: Any, builder: Any, kind: Any, pointer: Any) -> Any:
    return builder.load(pointer, align=context.get_abi_sizeof(context.get_data_type(kind.dtype)))


def _stored(context: Any, builder: Any, kind: Any, value: Any, pointer: Any) -> None:
    builder.store(value, pointer, align=context.get_abi_sizeof(context.get_data_type(kind.dtype)))


@lanes_intrinsic
def lanes_at(context: Any, array: Any, place: Any) -> Any:
    """The eight numbers of an array from a place on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], args[0], args[1], LANES)
        return _loaded(context, builder, sig.args[0], pointer)

    return Lanes(array.dtype)(array, types.uint64), generate


@lanes_intrinsic
def put_lanes(context: Any, array: Any, place: Any, lanes: Any) -> Any:
    """Write eight numbers to an array from a place on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], args[0], args[1], LANES)
        _stored(context, builder, sig.args[0], args[2], pointer)
        return context.get_dummy_value()

    return types.none(array, types.uint64, Lanes(array.dtype)), generate


@lanes_intrinsic
def lanes_of(context: Any, number: Any) -> Any:
    """A number, eight times."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return spread(builder, args[0], sig.args[0])

    return Lanes(number)(number), generate


def _chosen(comparison: str) -> Callable[..., Any]:
    """Describes a choice between two operands, in each lane: the second where the comparison holds."""

    def describe(context: Any, one: Any, two: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            a, b = (spread(builder, value, kind) for value, kind in zip(args, sig.args, strict=True))
            return builder.select(builder.fcmp_ordered(comparison, b, a), b, a)

        return one(one, two if isinstance(two, Lanes) else one.dtype), generate

    return describe


@lanes_intrinsic
def larger(context: Any, one: Any, two: Any) -> Any:
    """The larger of two, of which the second may be a number; what is no number stays so if it is the first."""
    return _chosen(">")(context, one, two)


@lanes_intrinsic
def smaller(context: Any, one: Any, two: Any) -> Any:
    """The smaller of two."""
    return _chosen("<")(context, one, two)


@lanes_intrinsic
def where_above(context: Any, one: Any, two: Any, then: Any, other: Any) -> Any:
    """``then`` where ``one > two``, else ``other``; all but the first may be numbers."""
    return _where(">", one, two, then, other)


@lanes_intrinsic
def where_least(context: Any, one: Any, two: Any, then: Any, other: Any) -> Any:
    """``then`` where ``one >= two``, else ``other``; all but the first may be numbers."""
    return _where(">=", one, two, then, other)


def _where(comparison: str, one: Any, *rest: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b, then, other = (spread(builder, value, kind) for value, kind in zip(args, sig.args, strict=True))
        return builder.select(builder.fcmp_ordered(comparison, a, b), then, other)

    return one(one, *(kind if isinstance(kind, Lanes) else one.dtype for kind in rest)), generate


def _reduced(builder: Any, lanes: Any, join: Callable[[Any, Any], Any]) -> Any:
    """All lanes made one, by halves."""
    width = LANES
    while width > 1:
        width //= 2
        low = _shuffled(builder, lanes, list(range(width)))
        high = _shuffled(builder, lanes, list(range(width, 2 * width)))
        lanes = join(low, high)
    return builder.extract_element(lanes, ir.IntType(32)(0))


@lanes_intrinsic
def sum_of(context: Any, lanes: Any) -> Any:
    """The sum of all lanes."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _reduced(builder, args[0], builder.fadd)

    return lanes.dtype(lanes), generate


@lanes_intrinsic
def largest_of(context: Any, lanes: Any) -> Any:
    """The largest of all lanes."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def join(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", b, a), b, a)

        return _reduced(builder, args[0], join)

    return lanes.dtype(lanes), generate


def half_places(kind: int) -> list[int]:
    """For each of eight entries its place in a table that has the axes of ``kind`` only."""
    places = []
    for entry in range(LANES):
        place = 0
        for bit in (2, 1, 0):
            if kind >> bit & 1:
                place = 2 * place + (entry >> bit & 1)
        places.append(place)
    return places


def _by_kind(builder: Any, kind: Any, then: Callable[[int], Any]) -> list[tuple[Any, Any]]:
    """Do what ``then`` makes for the kind that is met; returns its results with their blocks."""
    end = builder.append_basic_block("folded")
    none = builder.append_basic_block("unfolded")
    choice = builder.switch(kind, none)
    found = []
    for number in HALVES:
        block = builder.append_basic_block(f"fold{number}")
        choice.add_case(kind.type(number), block)
        builder.position_at_end(block)
        found.append((then(number), builder.block))
        builder.branch(end)
    builder.position_at_end(none)
    builder.unreachable()
    builder.position_at_end(end)
    return found


@lanes_intrinsic
def half_lanes_at(context: Any, array: Any, place: Any, kind: Any) -> Any:
    """The two or four numbers of an array from a place on, as eight entries of a table with more axes."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def then(number: int) -> Any:
            places = half_places(number)
            pointer = _pointer(context, builder, sig.args[0], args[0], args[1], max(places) + 1)
            return _shuffled(builder, _loaded(context, builder, sig.args[0], pointer), places)

        found = _by_kind(builder, args[2], then)
        result = builder.phi(found[0][0].type)
        for value, block in found:
            result.add_incoming(value, block)
        return result

    return Lanes(array.dtype)(array, types.uint64, types.int64), generate


@lanes_intrinsic
def add_half_lanes(context: Any, array: Any, place: Any, lanes: Any, kind: Any) -> Any:
    """Add eight entries, summed over the axes that another table lacks, to its two or four numbers from a place on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def then(number: int) -> Any:
            places = half_places(number)
            count = max(places) + 1
            sources = [[e for e in range(LANES) if places[e] == p] for p in range(count)]
            parts = [_shuffled(builder, args[2], [source[i] for source in sources]) for i in range(LANES // count)]
            while len(parts) > 1:
                parts = [builder.fadd(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
            pointer = _pointer(context, builder, sig.args[0], args[0], args[1], count)
            total = builder.fadd(_loaded(context, builder, sig.args[0], pointer), parts[0])
            _stored(context, builder, sig.args[0], total, pointer)

        _by_kind(builder, args[3], then)
        return context.get_dummy_value()

    return types.none(array, types.uint64, Lanes(array.dtype), types.int64), generate
