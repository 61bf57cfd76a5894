"""Compiled code against NumPy, once a process, before anything else is compiled.

It finds a processor, a version of llvmlite or of NumPy, or a floating-point state, on which what irc relies on does
not hold: mathematical functions, conversions, NaN, signed zeros, infinities, denormals, tails of loops, layouts, and
the builtin that reads array objects. With a warm cache it takes about 20 milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irc.ir.tensor import Array
from irc.native.calls import Expected, call_of
from irc.native.jit import process_jit
from irc.native.lanes import HALF, INT32, INT64
from irc.native.loops import space_of
from irc.native.nests import Access, Shape, Step, emit
from irc.native.primitives import COMPOUNDS
from irc.native.programs import Domain, Leaf, Program, Result, described, schedule
from irc.native.target import current
from irc.ops import algebra
from irc.ops.algebra import BOOL, DOUBLE, SINGLE, AnyDType, Apply, Expression, Operand, Primitive, cast, erf
from irc.runtime.kernels.expressions import value_of

_BYTE = np.dtype(np.uint8)
_SIZES = (0.0, 1e-45, 3e-39, 1.2e-38, 1e-6, 0.3, 0.5, 1.0, 1.7, 3.0, 7.5, 20.0, 50.0, 87.0, 89.0, 3e38, np.inf)
_NUMBERS = np.array([*_SIZES, *(-x for x in _SIZES), np.nan])
_SOME = 3
"""Rows of a matrix of them."""

_FUNCTIONS: dict[str, Callable[[Expression], Expression]] = {
    **{each.name: each for each in (algebra.exp, algebra.log, algebra.tanh, erf)},
    **{name: semantics for semantics, name in COMPOUNDS.items()},
    "gelu": lambda x: x * algebra.erfc(x * -math.sqrt(0.5)) * 0.5,  # its own semantics cancel below -4
}
"""Functions of the library that groups call most, or that are made like others, and what they compute."""

_ARITHMETIC: dict[str, tuple[AnyDType, Callable[[Expression, Expression, Expression], Expression]]] = {
    "a sum": (SINGLE, lambda x, y, two: x + y * two),
    "a product": (SINGLE, lambda x, y, _: x * y),
    "a quotient": (SINGLE, lambda x, y, _: x / y),
    "a square root": (SINGLE, lambda x, y, _: algebra.sqrt(x)),
    "the larger of two numbers": (SINGLE, lambda x, y, _: algebra.maximum(x, y)),
    "a comparison": (BOOL, lambda x, y, _: x < y),
    "a number converted to float16": (HALF, lambda x, y, _: x),
    "a number converted to int32": (INT32, lambda x, y, _: cast(x, INT32)),
    "a number converted to int64": (INT64, lambda x, y, _: cast(x, INT64)),
    "a quotient of integers": (INT32, lambda x, y, _: algebra.divide(cast(x, INT32), cast(y, INT32))),
    "a truth value as a byte": (_BYTE, lambda x, y, _: cast(algebra.select(algebra.is_nan(x), 0, y) < 1, _BYTE)),
}
"""What is exact: element types of results, and what they are of two numbers and 2."""


def failure() -> str:
    """What is wrong; empty if nothing is."""
    try:
        current()
    except ValueError as error:  # there is no such processor
        return str(error)
    with np.errstate(all="ignore"):
        for dtype, tolerance in ((SINGLE, 1e-4), (DOUBLE, 1e-10)):
            x = _NUMBERS.astype(dtype)
            applied = [Apply(Primitive(name, 1), (Operand(0, dtype),), dtype) for name in _FUNCTIONS]
            made = _computed([Result(each, dtype, ()) for each in applied], [x])
            for (name, semantics), found in zip(_FUNCTIONS.items(), made, strict=True):
                if not _is_near(found, value_of(semantics(Operand(0, DOUBLE)), [x.astype(DOUBLE)]), tolerance):
                    return f"in the self-test, {name} of {dtype.name} is not what NumPy computes"
        x = np.tile(_NUMBERS.astype(SINGLE), (_SOME, 1))[:, ::-1]  # backwards
        operands = x, np.roll(x, 5, 1).copy(), np.array([[2.0]], SINGLE)
        leaves = [Operand(i, SINGLE) for i in range(3)]
        made = _computed([Result(of(*leaves), dtype, ()) for dtype, of in _ARITHMETIC.values()], operands)
        for (what, (dtype, of)), found in zip(_ARITHMETIC.items(), made, strict=True):
            if not _is_equal(found, value_of(of(*leaves), operands).astype(dtype)):
                return f"in the self-test, {what} is not what NumPy computes"
    return ""


def _computed(results: Sequence[Result], operands: Sequence[Array]) -> list[Array]:
    """The results, of the shape of the first operand, in two ranges if it has two axes."""
    shape = operands[0].shape
    made = [np.empty(shape, result.dtype) for result in results]
    arrays, rank = (*operands, *made), len(shape)
    space = space_of(shape, [(x.shape, x.strides) for x in arrays])
    leaves = [
        Leaf(i, x.dtype, tuple((axis, axis - rank) for axis in range(rank) if x.shape[axis] > 1))
        for i, x in enumerate(operands)
    ]
    program = Program(Domain(rank, tuple(range(-rank, 0))), leaves, list(results), [])
    kinds = tuple(Access(x.dtype, _step(x)) for x in arrays)
    target, depth, name = current(), len(space.sizes), "irc.selftest"
    form = Shape(kinds, False, 0, depth, 0, target.lanes(max(x.itemsize for x in arrays)), False)
    plan = schedule(program, lambda _: False)
    code = process_jit().load(name, f"{described(program)}{form!r}", lambda: emit(name, program, plan, form, target))
    expected = [Expected(x.dtype, x.shape, x.strides) for x in arrays]
    layout = [*space.sizes, 0, 0, *(n for each in space.strides for n in each)]
    run = call_of(code.address, expected, layout, space.sizes[0], releases=depth == 1)
    in_order = call_of(0, [each._replace(strides=None) for each in expected], (), 0, releases=False)
    first = expected[0]
    wrong = [
        [first._replace(dtype=np.dtype(np.complex64))],
        [first._replace(shape=(*shape, 1), strides=(*arrays[0].strides, 4))],
        [first._replace(shape=(*shape[:-1], shape[-1] + 1))],
        [first._replace(strides=tuple([2 * stride for stride in arrays[0].strides]))],
        [None, None],
    ]
    takes_wrong = any(call_of(0, each, (), 0, releases=False)(arrays[0]) for each in wrong)
    is_refused = run(*arrays[1:], None) is run(*arrays[1:]) is False
    if takes_wrong or not is_refused or in_order(*arrays) is not all(x.flags.c_contiguous for x in arrays):
        raise RuntimeError("the call of native code takes wrong arguments, or refuses right ones")
    ranges = [(0, space.sizes[0])] if depth == 1 else [(1, space.sizes[0]), (0, 1)]
    if not all(run(*arrays, begin, end) is True for begin, end in ranges):
        raise RuntimeError("the call of native code does not take arrays")
    return made


def _step(x: Array) -> Step:
    step = x.strides[-1]
    return Step.NONE if x.shape[-1] == 1 else Step.DENSE if step == x.itemsize else Step.APART


def _is_near(found: Array, wanted: Array, tolerance: float) -> bool:
    """Whether all numbers of ``found`` are near, and NaN is where there was one."""
    limits = np.finfo(found.dtype)
    rounded = wanted.astype(found.dtype)
    is_open = np.isnan(wanted) & ~np.isnan(_NUMBERS)
    is_near = np.abs(found - wanted) <= tolerance * np.abs(wanted) + limits.smallest_normal
    is_same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    is_zero = (wanted != 0) | (np.signbit(found) == np.signbit(wanted))
    return bool(np.all(is_open | ((is_near | is_same) & is_zero)))


def _is_equal(found: Array, wanted: Array) -> bool:
    """Whether all are equal, zeros in their sign, too, but for which NaN it is."""
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    is_same = found.view(unsigned) == wanted.view(unsigned)
    if found.dtype.kind == "f":
        is_same |= np.isnan(found) & np.isnan(wanted)
    return found.dtype == wanted.dtype and bool(is_same.all())
