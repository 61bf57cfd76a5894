"""Fourier transforms and windows. The last axis holds a number's components: one real, or two."""

from __future__ import annotations

import math

from irc.ir.types import Dim, TensorType, Type
from irc.ops import Family, checks
from irc.ops.inference import NodeTypes
from irc.ops.shape_rules import sizes

FAMILY = Family("onnx")


@FAMILY.macs("DFT", "STFT")
def _fast_transform(c: NodeTypes, elements: int) -> int:
    longest = max(elements, math.prod(sizes(c, 0)))
    return longest * longest.bit_length()


FAMILY.each(
    "DFT",
    value_operands=(1, 2),
    requires=(checks.flags("inverse", "onesided"), checks.rank("the axis", 2, 0)),
    kernel="signal",
)
FAMILY.each("STFT", value_operands=(1, 3), kernel="signal")
FAMILY.each("MelWeightMatrix", kernel="signal")
FAMILY.each(
    "BlackmanWindow HammingWindow HannWindow",
    expanded=True,
    requires=(checks.rank("size", 0, 0), checks.at_least("size", 0, 1)),
)


@FAMILY.shape("DFT")
def dft(c: NodeTypes) -> Type:
    x, half, to_real = c.shape(0), bool(c.attr("onesided", 0)), bool(c.attr("inverse", 0) and c.attr("onesided", 0))
    if not x:
        return TensorType(c.dtype(0))
    out: list[Dim] = [*x[:-1], 1 if to_real else 2]
    axis = c.attr("axis", 1) if c.version < 20 else _number(c, 2) if c.has(2) else -2
    if not isinstance(axis, int):
        return TensorType(c.dtype(0), (*[None] * (len(x) - 1), out[-1]))
    at = c.axis(axis, len(x))
    length: Dim = out[at]
    if c.has(1):
        length = _number(c, 1)
    elif to_real:
        length = 2 * (length - 1) if isinstance(length, int) else None
    out[at] = _frequencies(length, half and not to_real)
    return TensorType(c.dtype(0), tuple(out))


@FAMILY.requires("DFT")
def check_dft(c: NodeTypes) -> None:
    x = c.shape(0)
    given = [c.attr("axis")] if c.version < 20 else c.ints(2) if c.has(2) else None
    if x is None or not given or given[0] is None:
        return
    if c.axis(given[0], len(x)) == len(x) - 1:
        c.fail(f"axis {given[0]} is that of real and imaginary parts")


@FAMILY.shape("STFT")
def stft(c: NodeTypes) -> Type:
    x, window, step = c.shape(0), c.shape(2), _number(c, 1)
    length = None if x is None or len(x) not in (2, 3) else x[1]
    size = length
    if c.has(3):
        size = _number(c, 3)
    elif c.has(2):
        size = window[0] if window else None
    frames = None
    if isinstance(length, int) and isinstance(size, int) and isinstance(step, int) and step > 0:
        frames = (length - size) // step + 1
    return TensorType(c.dtype(0), (x[0] if x else None, frames, _frequencies(size, bool(c.attr("onesided", 1))), 2))


def _frequencies(length: Dim, half: bool) -> Dim:
    if not half:
        return length
    return length // 2 + 1 if isinstance(length, int) else None


def _number(c: NodeTypes, index: int) -> Dim:
    """The only element of an integer input."""
    found = c.dims(index)
    return found[0] if found else None
