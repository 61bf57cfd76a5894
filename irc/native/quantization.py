"""DynamicQuantizeLinear: an array as integers of 8 bits, by its range.

Invariant: bits are those of `irc.runtime.kernels.quantized.dynamically_quantized`; what NaN makes is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import Emitter, Lanes, load, load_one, only, select, store, to_float, tree, whole
from irc.native.loops import finished, least, loop_function, number, offset, paced_fold, paced_loop
from irc.native.primitives import PRIMITIVES
from irc.native.target import Target, current, ir
from irc.ops.algebra import SINGLE

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
        """For numbers from ``low``, at the most 0, to ``high``, at the least 0."""
        scale = (high - low) / 255.0
        scale = select(scale.equals(0), 1.0, scale)
        return Steps(scale, to_float(whole(_clipped(low.emitter.intrinsic("rint", -low / scale))), SINGLE))

    def codes(self, x: Lanes) -> Lanes:
        """Integers from 0 to 255, as int32."""
        return whole(_clipped(x.emitter.intrinsic("rint", x / self.scale) + self.zero))


def _clipped(x: Lanes) -> Lanes:
    return PRIMITIVES["minimum"](PRIMITIVES["maximum"](x, x.constant(0)), x.constant(255))


def store_codes(codes: Lanes, to: Any, width: int) -> None:
    """Write integers of so many bytes, side by side."""
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

    def vectors(make: Callable[[Emitter, Any], None]) -> None:
        """Emit ``make`` for whole vectors, of which the last one overlaps, or for single elements of a small array."""
        with builder.if_else(builder.icmp_signed(">=", size, number(emitter.count))) as (large, small):
            with large:
                make(emitter, builder.sub(size, number(emitter.count)))
            with small:
                make(Emitter(builder, 1, emitter.has_fma, emitter.has_f16c), size)

    def seen(emitter: Emitter, i: Any) -> Lanes:
        return load(emitter, offset(builder, x, builder.mul(i, number(_SIZE))), SINGLE)

    def measure(emitter: Emitter, last: Any) -> None:
        def widen(i: Any, range_: list[Lanes]) -> list[Lanes]:
            return widened_range(seen(emitter, least(builder, i, last)), range_)

        begun = [emitter.constant(0, SINGLE)] * 2
        found = paced_fold(emitter, number(0), size, emitter.count, number(1), begun, widen)
        for end, value in zip(ends, range_of_lanes(found)):
            builder.store(value, end)

    vectors(measure)
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

    vectors(write)
    return finished(emitter)


def call_for_quantization(x: Array) -> Call:
    """A call for arrays of as many elements: see `emit_quantization`."""
    name = "irc.quantization"
    make = partial(emit_quantization, name, current())
    return Call.of_loops(name, name, make, 4, Layout(x.size), 1, x.size * _NANOSECONDS)
