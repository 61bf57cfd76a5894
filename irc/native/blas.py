"""Products of matrices by the BLAS that NumPy brings, called as NumPy calls it.

A table (`irc.native.tables`) calls what `numpy.matmul` would call, with the same arguments, so that a product has the
same bits in a table and outside of it. What NumPy computes in another way is declined here: other element types,
matrices whose elements lie neither along rows nor along columns.

Source: NumPy's ``umath/matmul.c.src`` and ``common/cblasfuncs.c``.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.loops import INT, VOID, Space, finished, loop, loop_function, number, offset, space_of
from irc.native.target import Target, current, ir
from irc.ops.algebra import AnyDType
from irc.runtime.array_memory import c_strides
from irc.runtime.kernels.numerics import LARGE, has_few_rows, shape_of_rows
from irc.runtime.threads import functions_of_blas

_ROWS, _COLUMNS, _AS_IS, _TRANSPOSED, _UPPER = 101, 102, 111, 112, 121
"""CBLAS's numbers for the order of elements, for what is done with a matrix, and for the half that is made."""

_PICOSECONDS, _LEAST = 30.0, 200.0
"""For a multiplication, by estimate; and nanoseconds for the smallest product."""

_LANES = 4


class Matrices(NamedTuple):
    """An array of matrices, which are its last two axes.

    Attributes:
        shape: of the array.
        strides: in elements.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether the elements lie in C order."""
        return _lie_so(self.shape, self.strides)

    def with_shape(self, *shape: int) -> Matrices:
        """These, which lie in C order, with another shape."""
        return Matrices(shape, c_strides(shape, 1))


class BlasCall(NamedTuple):
    """A call of the BLAS.

    Attributes:
        call: of two operands and the result.
        is_swapped: whether the second operand comes first.
    """

    call: Call
    is_swapped: bool


def call_for_product(a: Matrices, b: Matrices, dtype: AnyDType) -> BlasCall | None:
    """What MatMul's kernel calls for ``a @ b`` with a result in C order; None if it is declined."""
    ranks = len(a.shape), len(b.shape)
    if dtype.char not in "fd" or min(ranks) < 2 or 0 in (*a.shape, *b.shape):
        return None
    depth, columns = b.shape[-2:]
    if a.shape[-1] != depth or math.prod(a.shape) * columns >= LARGE:
        return None
    if ranks[1] == 2 and math.prod(a.shape) == depth:
        order = _ROWS if b.is_ordered else _COLUMNS if _lie_so(b.shape[::-1], b.strides[::-1]) else None
        if order is None or not a.is_ordered or columns == 1:
            return None
        space, width = Space((1,), ((0,), (0,), (0,))), columns if order == _ROWS else depth
        return _gemv(dtype, (order, depth, columns, max(width, 1), 1), space, is_swapped=True)
    if a.is_ordered:
        a = a.with_shape(*shape_of_rows(a.shape, b.shape))
    if has_few_rows(a.shape, b.shape):
        a = Matrices((*a.shape[:-1], 1, depth), (*a.strides[:-1], 0, a.strides[-1]))
        if ranks[1] > 2:
            b = Matrices((*b.shape[:-2], 1, *b.shape[-2:]), (*b.strides[:-2], 0, *b.strides[-2:]))
    return _matmul(a, b, dtype)


def _matmul(a: Matrices, b: Matrices, dtype: AnyDType) -> BlasCall | None:
    """What `numpy.matmul` calls."""
    rows, depth, columns = a.shape[-2], *b.shape[-2:]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    steps = c_strides((*batch, rows, columns), dtype.itemsize)[:-2]
    given = [(x.shape[:-2], [stride * dtype.itemsize for stride in x.strides[:-2]]) for x in (a, b)]
    space = space_of(batch, [*given, (batch, steps)])
    (a_row, a_column), (b_row, b_column) = a.strides[-2:], b.strides[-2:]
    a_as_is, b_as_is = _is_dense(a_row, a_column, depth), _is_dense(b_row, b_column, columns)
    can_be_a = a_as_is or _is_dense(a_column, a_row, rows)
    can_be_b = b_as_is or _is_dense(b_column, b_row, depth)
    if len(space.sizes) > 2 or depth == 1 or rows == columns == 1:
        return None
    if rows == 1:
        if not can_be_b or a_column < 1:
            return None
        lies_along_depth = _is_dense(b_column, b_row, depth)
        how = (_COLUMNS, b_column) if lies_along_depth else (_ROWS, b_row)
        return _gemv(dtype, (how[0], depth, columns, how[1], a_column), space, is_swapped=True)
    if columns == 1:
        if not can_be_a or b_row < 1:
            return None
        how = (_COLUMNS, a_row) if a_as_is else (_ROWS, a_column)
        return _gemv(dtype, (how[0], depth, rows, how[1], b_row), space, is_swapped=False)
    if not (can_be_a and can_be_b):
        return None
    first = (_AS_IS, a_row) if a_as_is else (_TRANSPOSED, a_column)
    second = (_AS_IS, b_row) if b_as_is else (_TRANSPOSED, b_column)
    numbers = first[0], second[0], rows, columns, depth, first[1], second[1], columns
    is_turned = first[0] != second[0] and (a_row, a_column, rows) == (b_column, b_row, columns)
    return _call("gemm", dtype, (*numbers, is_turned), space, rows * depth * columns, is_swapped=False)


def _is_dense(far: int, near: int, size: int) -> bool:
    """Whether the BLAS takes a matrix with rows of ``size`` elements ``far`` apart, elements ``near``."""
    return near == 1 and size <= far


def _lie_so(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie in C order, whatever the strides of axes of one element are."""
    dense = c_strides(shape, 1)
    return all(size == 1 or own == wanted for size, own, wanted in zip(shape, strides, dense))


def _gemv(dtype: AnyDType, numbers: tuple[int, ...], space: Space, is_swapped: bool) -> BlasCall | None:
    _, depth, results, _, _ = numbers
    return _call("gemv", dtype, numbers, space, depth * results, is_swapped)


def _call(
    function: str, dtype: AnyDType, numbers: tuple[int, ...], space: Space, products: int, is_swapped: bool
) -> BlasCall | None:
    """A call of a function of the BLAS for each of the matrices along ``space``, of at most two axes."""
    letter = "s" if dtype.itemsize == 4 else "d"
    address, syrk = (_address(f"cblas_{letter}{each}") for each in (function, "syrk"))
    if address is None or syrk is None:
        return None
    count, inner = math.prod(space.sizes), space.sizes[-1]
    first, second, result = [strides if len(space.sizes) > 1 else (0, *strides) for strides in space.strides]
    steps = [*second, *first, *result] if is_swapped else [*first, *second, *result]
    name = f"irc.{function}{dtype.itemsize}"
    make = partial(_emit, name, function, len(numbers), dtype.itemsize, current())
    nanoseconds = count * (_LEAST + products * _PICOSECONDS / 1000)
    call = Call.of_loops(name, name, make, 3, [address, syrk, inner, *steps, *numbers], count, nanoseconds)
    return BlasCall(call._replace(pieces=1), is_swapped)


@cache
def _address(name: str) -> int | None:
    """Where a function of the BLAS is whose sizes are of 64 bits; None if there is none."""
    found = functions_of_blas(name, suffixes=("64_",))
    return None if found is None else ctypes.cast(found[0], ctypes.c_void_p).value


def _emit(name: str, function: str, count: int, size: int, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The loop function ``name``; its range is of matrices.

    It takes the first operand, the second and the result. Its layout has the addresses of the BLAS's function and of
    syrk, the size of the inner axis of matrices, for each array the bytes from one matrix to the next along the outer
    axis and along the inner one, and that function's ``count`` numbers. After those of gemm comes whether the second
    matrix would be the first one, transposed, if it were in the same place: `numpy.matmul` looks at that, and then
    calls syrk, which makes one half of the result.
    """
    emitter, arrays, numbers, begin, end = loop_function(name, target, _LANES, 3, 9 + count)
    builder, word, real = emitter.builder, ir.IntType(32), ir.FloatType() if size == 4 else ir.DoubleType()
    address, syrk, inner, *rest = numbers
    steps, given = [rest[:2], rest[2:4], rest[4:6]], rest[6:]
    one, zero = ir.Constant(real, 1), ir.Constant(real, 0)

    def call(address: Any, *arguments: Any) -> None:
        kind = ir.FunctionType(VOID, [x.type for x in arguments])
        builder.call(builder.inttoptr(address, kind.as_pointer()), arguments)

    def mirror(result: Any, columns: Any, width: Any) -> None:
        """Copy what is right of the diagonal to below it."""
        with loop(builder, number(0), columns) as i, loop(builder, number(0), i) as j:
            below, right = (
                offset(builder, result, builder.mul(builder.add(builder.mul(far, width), near), number(size)))
                for far, near in ((i, j), (j, i))
            )
            builder.store(builder.load(right, typ=real, align=size), below, align=size)

    with loop(builder, begin, end) as i:
        outer = builder.udiv(i, inner)
        along = builder.sub(i, builder.mul(outer, inner))
        places = [builder.add(builder.mul(outer, far), builder.mul(along, near)) for far, near in steps]
        first, second, result = map(partial(offset, builder), arrays, places)
        if function == "gemv":
            order, depth, columns, width, apart = given
            kinds = builder.trunc(order, word), ir.Constant(word, _TRANSPOSED)
            call(address, *kinds, depth, columns, one, first, width, second, apart, zero, result, number(1))
        else:
            how, how_second, rows, columns, depth, width, width_second, width_result, is_turned = given
            order, how, how_second = ir.Constant(word, _ROWS), builder.trunc(how, word), builder.trunc(how_second, word)
            is_one = builder.icmp_unsigned("==", builder.ptrtoint(first, INT), builder.ptrtoint(second, INT))
            is_turned = builder.icmp_signed("!=", is_turned, number(0))
            with builder.if_else(builder.and_(is_one, is_turned)) as (square, other):
                with square:
                    upper = ir.Constant(word, _UPPER)
                    call(syrk, order, upper, how, columns, depth, one, first, width, zero, result, width_result)
                    mirror(result, columns, width_result)
                with other:
                    hows, operands = (order, how, how_second), (first, width, second, width_second)
                    call(address, *hows, rows, columns, depth, one, *operands, zero, result, width_result)
    return finished(emitter)
