"""Linear quantization: by given scales, and back, and dynamically, by the range of an array.

Invariant: bits are those of `irc.runtime.kernels.quantized`; what NaN makes is 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import (
    INT32,
    Emitter,
    Lanes,
    load,
    load_one,
    only,
    select,
    store,
    to_float,
    to_integer,
    tree,
    whole,
)
from irc.native.loops import finished, least, loop_function, number, offset, paced_fold, paced_loop
from irc.native.primitives import PRIMITIVES
from irc.native.target import Target, current, ir
from irc.ops.algebra import SINGLE, AnyDType

_SIZE = 4
"""Bytes of an element."""

_NANOSECONDS = 0.15
"""For an element, by estimate."""


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of one piece.

    Attributes:
        size: elements of the array.
    """

    size: Any


class Steps(NamedTuple):
    """How arrays of one range are quantized.

    Attributes:
        scale: of one integer.
        zero: the zero point, a float.
    """

    scale: Lanes
    zero: Lanes

    @staticmethod
    def of(low: Lanes, high: Lanes) -> Steps:
        """For numbers from ``low``, at most 0, to ``high``, at least 0."""
        scale = (high - low) / 255.0
        scale = select(scale.equals(0), 1.0, scale)
        return Steps(scale, to_float(whole(_clipped(low.emitter.intrinsic("rint", -low / scale))), SINGLE))

    def codes(self, x: Lanes) -> Lanes:
        """Integers from 0 to 255, as int32."""
        return whole(_clipped(x.emitter.intrinsic("rint", x / self.scale) + self.zero))


def _clipped(x: Lanes, low: int = 0, high: int = 255) -> Lanes:
    return PRIMITIVES["minimum"](PRIMITIVES["maximum"](x, x.constant(low)), x.constant(high))


def _in_vectors(emitter: Emitter, size: Any, make: Callable[[Emitter, Any], None]) -> None:
    """Emit ``make`` for whole vectors of a row, or single elements of a small one, and the last start.

    A last vector overlaps the one before.
    """
    builder = emitter.builder
    with builder.if_else(builder.icmp_signed(">=", size, number(emitter.count))) as (large, small):
        with large:
            make(emitter, builder.sub(size, number(emitter.count)))
        with small:
            make(Emitter(builder, 1, emitter.has_fma, emitter.has_f16c), size)


def store_codes(codes: Lanes, to: Any, width: int) -> None:
    """Write integers of this many bytes side by side."""
    emitter = codes.emitter
    emitter.builder.store(emitter.builder.trunc(codes.value, emitter.vector(np.dtype(f"u{width}"))), to, align=width)


def widened_range(x: Lanes, range_: list[Lanes]) -> list[Lanes]:
    """The least and the greatest number met so far; NaN once that is met."""
    return [PRIMITIVES[name](each, x) for name, each in zip(_ENDS, range_)]


def range_of_lanes(range_: list[Lanes]) -> list[Any]:
    """The least and the greatest number of all lanes, as LLVM's values."""
    return [only(tree(each, PRIMITIVES[name])) for name, each in zip(_ENDS, range_)]


_ENDS = "minimum", "maximum"


def emit_quantization(name: str, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, and what it needs.

    It takes the array, one of as many bytes for the integers, one float32 for the scale, and one byte for the zero
    point.
    """
    emitter, (x, to, scale, zero), (size,), _, _ = loop_function(
        name, target, target.lanes(_SIZE), 4, len(Layout._fields)
    )
    builder = emitter.builder
    ends = [builder.alloca(ir.FloatType()) for _ in _ENDS]

    def seen(emitter: Emitter, i: Any) -> Lanes:
        return load(emitter, offset(builder, x, builder.mul(i, number(_SIZE))), SINGLE)

    def measure(emitter: Emitter, last: Any) -> None:
        def widen(i: Any, range_: list[Lanes]) -> list[Lanes]:
            return widened_range(seen(emitter, least(builder, i, last)), range_)

        begun = [emitter.constant(0, SINGLE)] * 2
        found = paced_fold(emitter, number(0), size, emitter.count, number(1), begun, widen)
        for end, value in zip(ends, range_of_lanes(found)):
            builder.store(value, end)

    _in_vectors(emitter, size, measure)
    one = Emitter(builder, 1, emitter.has_fma, emitter.has_f16c)
    steps = Steps.of(*[load_one(one, end, SINGLE) for end in ends])
    store(steps.scale, scale, SINGLE)
    store_codes(whole(steps.zero), zero, 1)

    def write(emitter: Emitter, last: Any) -> None:
        of_all = Steps(*[emitter.splat(only(each), SINGLE) for each in steps])
        with paced_loop(emitter, number(0), size, emitter.count, number(1)) as i:
            place = least(builder, i, last)
            codes = of_all.codes(seen(emitter, place))
            store_codes(codes, offset(builder, to, place), 1)

    _in_vectors(emitter, size, write)
    return finished(emitter)


def call_for_quantization(x: Array) -> Call:
    """A call for arrays of as many elements: see `emit_quantization`."""
    name = "irc.quantization"
    make = partial(emit_quantization, name, current())
    return Call.of_loops(name, name, make, 4, Layout(x.size), 1, x.size * _NANOSECONDS)


class LinearForm(NamedTuple):
    """What the code depends on.

    Attributes:
        source: the element type of the operand; float32, or integers of 8 or 16 bits.
        result: likewise of the result, the other way around.
    """

    source: AnyDType
    result: AnyDType


class LinearLayout(NamedTuple):
    """The numbers that a loop function reads; its range is of rows, each of which has one scale.

    Attributes:
        size: elements of a row.
        scales: of the rows, by turns.
    """

    size: Any
    scales: Any


def emit_linear(name: str, form: LinearForm, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, and what it needs.

    It takes the array, its scales and zero points, all of float32, and the result.
    """
    emitter, arrays, (size, scales), begin, end = loop_function(
        name, target, target.lanes(_SIZE), 4, len(LinearLayout._fields)
    )
    x, scale_of, zero_of, to = arrays
    builder = emitter.builder
    with paced_loop(emitter, begin, end, 1, size) as row:
        first, place = builder.mul(row, size), builder.mul(builder.srem(row, scales), number(_SIZE))

        def compute(emitter: Emitter, last: Any) -> None:
            scale, zero = (load_one(emitter, offset(builder, each, place), SINGLE) for each in (scale_of, zero_of))
            with paced_loop(emitter, number(0), size, emitter.count, number(1)) as i:
                index = builder.add(first, least(builder, i, last))
                values = load(emitter, _element(builder, x, index, form.source), form.source)
                at = _element(builder, to, index, form.result)
                if form.result == SINGLE:
                    store((to_float(to_integer(values, INT32), SINGLE) - zero) * scale, at, SINGLE)
                else:
                    limits = np.iinfo(form.result)
                    scaled = emitter.intrinsic("rint", values / scale) + zero
                    store_codes(whole(_clipped(scaled, limits.min, limits.max)), at, form.result.itemsize)

        _in_vectors(emitter, size, compute)
    return finished(emitter)


def _element(builder: Any, start: Any, index: Any, dtype: AnyDType) -> Any:
    return offset(builder, start, builder.mul(index, number(dtype.itemsize)))


LEAST_ROW = 1 << 12
"""Elements of one scale that are one piece of work."""


def call_for_linear(x: Array, scales: int, inner: int, out: Array) -> Call:
    """A call for arrays like these with ``scales`` scales, each of ``inner`` contiguous elements."""
    size = inner if scales > 1 else next((n for n in _trailing(x.shape) if n >= LEAST_ROW), x.size)
    form = LinearForm(x.dtype, out.dtype)
    name = "irc.linear"
    make = partial(emit_linear, name, form, current())
    layout = LinearLayout(size, scales)
    return Call.of_loops(name, f"{name} {form!r}", make, 4, layout, x.size // size, x.size * _NANOSECONDS)


def _trailing(shape: Sequence[int]) -> Iterable[int]:
    """The sizes of the last axes together, of more and more of them."""
    return accumulate(reversed(shape), operator.mul)
