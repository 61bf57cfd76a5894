"""Compiled code against NumPy, once a process, before anything else is compiled.

It finds a processor, a version of llvmlite or of NumPy, or a floating-point state, on which what irc relies on does
not hold: mathematical functions, conversions, NaN, signed zeros, infinities, denormals, tails of loops, layouts, and
the builtin that reads array objects. With a warm cache it takes some milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irc.ir.tensor import Array
from irc.native.calls import Expected, call_of
from irc.native.groups import call, converted
from irc.native.jit import process_jit
from irc.native.lanes import INT32, INT64, Emitter, Lanes, select
from irc.native.loops import Body, emit, space_of
from irc.native.primitives import PRIMITIVES
from irc.native.target import current
from irc.ops.algebra import BOOL, DOUBLE, SINGLE, AnyDType
from irc.runtime.array_memory import c_strides

Compute = Callable[[Emitter, Sequence[Lanes]], list[Lanes]]

_HALF, _BYTE = np.dtype(np.float16), np.dtype(np.uint8)
_SIZES = (0.0, 1e-45, 3e-39, 1.2e-38, 1e-6, 0.3, 0.5, 1.0, 1.7, 3.0, 7.5, 20.0, 50.0, 87.0, 89.0, 3e38, np.inf)
_NUMBERS = np.array([*_SIZES, *(-x for x in _SIZES), np.nan])
_SOME = 3
"""Rows of a matrix of them."""


def failure() -> str:
    """What is wrong; empty if nothing is."""
    try:
        current()
    except ValueError as error:  # there is no such processor
        return str(error)
    for dtype, tolerance in ((SINGLE, 1e-4), (DOUBLE, 1e-10)):
        x = _NUMBERS.astype(dtype)
        made = _computed(f"functions of {dtype.name}", _functions, [x], [dtype] * len(_TESTED))
        for name, found in zip(_TESTED, made, strict=True):
            if not _is_near(found, _expected(name, x), tolerance):
                return f"in the self-test, {name} of {dtype.name} is not what NumPy computes"
    x = np.tile(_NUMBERS.astype(SINGLE), (_SOME, 1))[:, ::-1]  # backwards
    y, one = np.roll(x, 5, 1).copy(), np.array([[2.0]], SINGLE)
    for what, found, wanted in zip(
        _ARITHMETIC, _computed("arithmetic", _arithmetic, [x, y, one], _TYPES), _wanted(x, y, one), strict=True
    ):
        if not _is_equal(found, wanted):
            return f"in the self-test, {what} is not what NumPy computes"
    return ""


class _Body(Body):
    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    def compute(self, emitter: Emitter, operands: Sequence[Lanes]) -> list[Lanes]:
        return self._compute(emitter, operands)


def _computed(what: str, compute: Compute, operands: Sequence[Array], dtypes: Sequence[AnyDType]) -> list[Array]:
    """The results of ``compute``, of the shape of the first operand, in two ranges if it has two axes."""
    shape = operands[0].shape
    made = [np.empty(shape, dtype) for dtype in dtypes]
    layouts = [(x.shape, x.strides) for x in operands] + [(shape, c_strides(shape, dtype.itemsize)) for dtype in dtypes]
    space = space_of(shape, layouts)
    accesses = space.accesses([x.dtype for x in (*operands, *made)])
    depth, name = len(space.sizes), "irc.selftest"
    code = process_jit().load(
        name, f"{name} {what}", lambda: emit(name, _Body(compute), accesses, len(made), depth, current())
    )
    arrays, size = (*operands, *made), space.sizes[0]
    expected = [Expected(x.dtype, x.shape, x.strides) for x in arrays]
    run = call_of(code.address, expected, space.layout, size, releases=depth == 1)
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
    ranges = [(0, size)] if depth == 1 else [(1, size), (0, 1)]
    if not all(run(*arrays, begin, end) is True for begin, end in ranges):
        raise RuntimeError("the call of native code does not take arrays")
    return made


def _functions(emitter: Emitter, operands: Sequence[Lanes]) -> list[Lanes]:
    return [call(emitter, name, operands) for name in _TESTED]


def _expected(name: str, x: Array) -> Array:
    """What ``name`` is of ``x``, in double precision; NaN also where that may be open."""
    wide = x.astype(DOUBLE)
    with np.errstate(all="ignore"):
        if name in _OF_NUMPY:
            return _OF_NUMPY[name](wide)
        return np.array([_OF_MATH[name](float(v)) if math.isfinite(v) else np.nan for v in wide])


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


_OF_NUMPY: dict[str, Callable[[Array], Array]] = {"exp": np.exp, "log": np.log, "tanh": np.tanh}
_OF_MATH: dict[str, Callable[[float], float]] = {
    "erf": math.erf,
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "softplus": _softplus,
    "mish": lambda x: x * math.tanh(_softplus(x)),
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x * _sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * min(abs(x), 1e9) ** 2 * x)),
}

_TESTED = [*_OF_NUMPY, *_OF_MATH]
"""Functions of the library that groups call most, or that are made like others."""


def _is_near(found: Array, wanted: Array, tolerance: float) -> bool:
    """Whether all numbers of ``found`` are near, and NaN is where there was one."""
    limits = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(found.dtype)
        is_open = np.isnan(wanted) & ~np.isnan(_NUMBERS)
        is_near = np.abs(found - wanted) <= tolerance * np.abs(wanted) + limits.smallest_normal
        is_same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        is_zero = (wanted != 0) | (np.signbit(found) == np.signbit(wanted))
    return bool(np.all(is_open | ((is_near | is_same) & is_zero)))


_ARITHMETIC: dict[str, AnyDType] = {
    "a sum": SINGLE,
    "a product": SINGLE,
    "a quotient": SINGLE,
    "a square root": SINGLE,
    "the larger of two numbers": SINGLE,
    "a comparison": BOOL,
    "a number converted to float16": _HALF,
    "a number converted to int32": INT32,
    "a number converted to int64": INT64,
    "a quotient of integers": INT32,
    "a truth value as a byte": _BYTE,
}
_TYPES = list(_ARITHMETIC.values())


def _arithmetic(emitter: Emitter, operands: Sequence[Lanes]) -> list[Lanes]:
    x, y, two = operands
    whole, other = converted(x, INT32), converted(y, INT32)
    found: list[Lanes] = [
        x + y * two,
        x * y,
        x / y,
        PRIMITIVES["sqrt"](x),
        PRIMITIVES["maximum"](x, y),
        x < y,
        converted(x, _HALF),
        whole,
        converted(x, INT64),
        PRIMITIVES["divide"](whole, other),
        converted(select(x.is_nan(), x.constant(0), y).differs(0), _BYTE),
    ]
    return found


def _wanted(x: Array, y: Array, two: Array) -> list[Array]:
    with np.errstate(all="ignore"):
        whole, other = x.astype(INT32).astype(INT64), y.astype(INT32).astype(INT64)
        divisor = np.where(other == 0, 1, other)
        quotient = np.where(other == 0, 0, np.sign(whole) * np.sign(divisor) * (np.abs(whole) // np.abs(divisor)))
        return [
            x + y * two,
            x * y,
            x / y,
            np.sqrt(x),
            np.maximum(x, y),
            x < y,
            x.astype(_HALF),
            x.astype(INT32),
            x.astype(INT64),
            quotient.astype(INT32),
            (np.where(np.isnan(x), np.zeros_like(x), y) != 0).astype(_BYTE),
        ]


def _is_equal(found: Array, wanted: Array) -> bool:
    """Whether all are equal, zeros in their sign, too, but for which NaN it is."""
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    is_same = found.view(unsigned) == wanted.view(unsigned)
    if found.dtype.kind == "f":
        is_same |= np.isnan(found) & np.isnan(wanted)
    return found.dtype == wanted.dtype and bool(is_same.all())
