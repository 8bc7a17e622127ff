"""Looks into flat arrays as bare machine instructions, for the loops where most time goes.

In: NumPy arrays that lie in one piece, seen as flat, and indices that the caller vouches for. Out: numba functions that
neither check an index nor let a negative one count from the end, and so need no shape or stride at hand: the loops that
use them keep everything in registers. This module imports numba: import it inside functions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["at", "both_if_greater", "prefetch", "put"]


def _address(target: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    return builder.gep(target.make_array(kind)(target, builder, array).data, [index])


@intrinsic
def at(context, array, index):  # type: ignore[no-untyped-def]
    """The element of a flat array."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(_address(target, builder, signature.args[0], *arguments))

    return array.dtype(array, types.int64), generate


@intrinsic
def put(context, array, index, value):  # type: ignore[no-untyped-def]
    """Set the element of a flat array."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[2], _address(target, builder, signature.args[0], *arguments[:2]))
        return target.get_dummy_value()

    return types.void(array, types.int64, array.dtype), generate


@intrinsic
def prefetch(context, array, index):  # type: ignore[no-untyped-def]
    """Ask for the cache line of a flat array's element; changes nothing but the time that a later look takes."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer_type, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(_address(target, builder, signature.args[0], *arguments), pointer_type)
        kind = ir.FunctionType(ir.VoidType(), [pointer_type, whole, whole, whole])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, whole(0), whole(3), whole(1)])
        return target.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def both_if_greater(context, left, right, first, second):  # type: ignore[no-untyped-def]
    """``(first, second)`` if ``left > right``, else ``(0, 0)``; without a branch, as no processor could foretell it.

    A selection of single numbers may be compiled to a branch. One of pairs is not.
    """
    number, whole = ir.DoubleType(), ir.IntType(32)
    pair = ir.VectorType(number, 2)

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        def together(one: Any, other: Any) -> Any:
            half = builder.insert_element(ir.Constant(pair, ir.Undefined), one, whole(0))
            return builder.insert_element(half, other, whole(1))

        a, b, x, y = arguments
        free = builder.fcmp_ordered(">", together(a, a), together(b, b))
        chosen = builder.select(free, together(x, y), ir.Constant(pair, [number(0.0), number(0.0)]))
        parts = [builder.extract_element(chosen, whole(k)) for k in (0, 1)]
        return target.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(types.float64, 2)(*[types.float64] * 4), generate
