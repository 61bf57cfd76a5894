"""Sliding windows: geometry shared by convolution, pooling and unpooling, and im2col.

Along each spatial axis, output ``o`` of a window operator looks, with tap ``t``
of its kernel, at input position ``o * stride + t * dilation - begin``; what
lies outside the input is padding.

Columns are what each window of a convolution sees, side by side for a matrix product.
The image is stored with its padding, so that all windows are one strided view of
it, and copied from there at once. Machine code needs no copy of the image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.array_memory import c_strides
from irc.runtime.bounds import CURRENT, pace
from irc.runtime.kernels.support import Array, scratch

Sizes = tuple[int, ...]

MAX_POSITIONS = 1 << 62
"""Along an axis, padding included: sums of a few such numbers are 64-bit integers."""

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def pairing(first: int, step: int, count: int, size: int) -> tuple[slice, slice]:
    """The indices ``i < count`` for which ``first + i * step`` lies in ``[0, size)``, and those positions.

    ``step`` is positive. Both are slices of equal length, possibly empty.
    """
    low = max(0, -(first // step))
    high = max(low, min(count, (size - 1 - first) // step + 1))
    if high == low:
        return slice(0, 0), slice(0, 0)
    return slice(low, high), slice(first + low * step, first + (high - 1) * step + 1, step)


class Axis(NamedTuple):
    """One spatial axis of a window operator, all sizes known."""

    size: int
    """input positions"""
    out: int
    """output positions"""
    kernel: int
    stride: int
    dilation: int
    begin: int
    """padding before the input"""
    end: int
    """padding after the input"""

    def reads(self, tap: int) -> tuple[slice, slice]:
        """The outputs for which ``tap`` falls inside the input, and the input positions it then reads."""
        return pairing(tap * self.dilation - self.begin, self.stride, self.out, self.size)

    def inside(self, out: int) -> range:
        """The taps that fall inside the input at output ``out``."""
        before = self.begin - out * self.stride
        first = min(self.kernel, max(0, -(-before // self.dilation)))
        return range(first, max(first, min(self.kernel, (self.size - 1 + before) // self.dilation + 1)))

    def seen(self, out: int) -> slice:
        """The input positions that output ``out`` looks at."""
        taps, before = self.inside(out), self.begin - out * self.stride
        return slice(taps.start * self.dilation - before, taps.stop * self.dilation - before, self.dilation)

    @property
    def taps(self) -> Sequence[int]:
        """The taps that read input, ascending: as one range unless that has many others between.

        The others fall into the padding at every output: in a large kernel with large strides, they are between the
        taps of the first outputs and those of the last.
        """
        hull = range(self.inside(self.out - 1).start, self.inside(0).stop)
        if len(hull) <= self.size * self.out:
            return hull
        return sorted({tap for out in range(self.out) for tap in self.inside(out)})

    @property
    def first_of_all(self) -> int | None:
        """The first tap that reads input at every output; None if there is none."""
        at_first = self.inside(0)
        return at_first.start if at_first and at_first.start in self.inside(self.out - 1) else None

    @property
    def reach(self) -> int:
        """How many positions a window covers, from its first tap to its last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def trivial(self) -> bool:
        """Whether output ``o`` reads input ``o`` and nothing else."""
        return self.kernel == 1 and self.out == self.size and self.begin == 0 and self.end == 0


Axes = tuple[Axis, ...]


class Window(NamedTuple):
    """The window attributes of a node, checked; None where the operator's default depends on the inputs."""

    kernel: Sizes | None
    strides: Sizes | None
    dilations: Sizes | None
    pads: Sizes | None
    auto_pad: str
    ceil: bool

    @staticmethod
    def of(node: Node) -> Window:
        """Read ``kernel_shape``, ``strides``, ``dilations``, ``pads``, ``auto_pad``, ``ceil_mode``."""

        def sizes(name: str, least: int) -> Sizes | None:
            values = node.attributes.get(name)
            if not values:
                return None
            if min(values) < least:
                raise Error("IRC320", f"{name} is {list(values)}: every entry must be at least {least}")
            return tuple(values)

        auto_pad = node.attributes.get("auto_pad") or "NOTSET"
        if auto_pad not in AUTO_PADS:
            raise Error("IRC320", f"auto_pad is {auto_pad!r}: it must be one of {', '.join(AUTO_PADS)}")
        ceil = bool(node.attributes.get("ceil_mode", 0))
        strides, dilations = sizes("strides", 1), sizes("dilations", 1)
        return Window(sizes("kernel_shape", 1), strides, dilations, sizes("pads", 0), auto_pad, ceil)

    def parameters(self, rank: int, kernel: Sizes | None = None) -> tuple[Sizes, Sizes, Sizes, Sizes]:
        """Kernel, strides, dilations, and pads (begins, then ends) for ``rank`` axes.

        ``kernel`` is the weights' spatial shape, where there are weights.
        """
        shape = kernel if kernel is not None else self.kernel
        if shape is None:
            raise Error("IRC320", "kernel_shape is missing")
        if 0 in shape:
            raise Error("IRC421", f"the weights' spatial shape is {list(shape)}: every size must be at least 1")
        if self.kernel is not None and self.kernel != shape:
            raise Error("IRC421", f"kernel_shape is {list(self.kernel)} but that of the weights is {list(shape)}")
        strides, dilations = self.strides or (1,) * rank, self.dilations or (1,) * rank
        pads = (self.pads if self.auto_pad == "NOTSET" else None) or (0,) * (2 * rank)
        named = {"kernel_shape": shape, "strides": strides, "dilations": dilations, "pads": pads}
        for name, values in named.items():
            wanted = 2 * rank if name == "pads" else rank
            if len(values) != wanted:
                raise Error("IRC421", f"{name} is {list(values)}: {rank} spatial axes need {wanted} entries")
        return shape, strides, dilations, pads

    def resolve(self, sizes: Sizes, kernel: Sizes | None = None) -> Axes:
        """The axes for an input of spatial shape ``sizes``; Error where the window does not fit."""
        rank = len(sizes)
        shape, strides, dilations, pads = self.parameters(rank, kernel)
        given = zip(sizes, shape, strides, dilations, pads[:rank], pads[rank:], strict=True)
        return tuple(self._axis(*axis) for axis in given)

    def _axis(self, size: int, kernel: int, stride: int, dilation: int, begin: int, end: int) -> Axis:
        reach = (kernel - 1) * dilation + 1
        if self.auto_pad.startswith("SAME"):
            begin, end = split_padding(max(0, (-(-size // stride) - 1) * stride + reach - size), self.auto_pad)
        if size + begin + end > MAX_POSITIONS:
            raise Error("IRC421", f"padding {begin} and {end} is too much")
        span = size + begin + end - reach
        out = (-(-span // stride) if self.ceil else span // stride) + 1
        if out < 1:
            raise Error("IRC421", f"a window of {reach} positions does not fit into {size} with padding {begin}, {end}")
        if self.ceil and (out - 1) * stride >= size + begin:  # none may start in the padding behind the input
            out -= 1
        if out == 1:  # any stride says the same then, and NumPy counts in 64-bit integers
            stride = min(stride, size + 1)
        return Axis(size, out, kernel, stride, dilation, begin, end)


def split_padding(total: int, auto_pad: str) -> tuple[int, int]:
    """``total`` padding shared out: the odd one goes to the end for SAME_UPPER, else to the beginning."""
    small = total // 2
    return (small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small)


def resolver(node: Node) -> Callable[[Sizes, Sizes | None], Axes]:
    """`Window.resolve` of the node's window, remembering the last few shapes: a model meets few."""
    return lru_cache(maxsize=16)(Window.of(node).resolve)


def outputs(axes: Iterable[Axis]) -> Sizes:
    """The spatial shape of the result."""
    return tuple(a.out for a in axes)


PACE_ELEMENTS = 1 << 23
"""Of more columns than this, those of each tap are copied by themselves: a run under limits looks at the clock between
them."""


Index = tuple[slice, ...]


class Storage(NamedTuple):
    """How an image (C, spatial...) is stored for some rows of outputs."""

    shape: Sizes | None
    """(C, positions...) of the image with its padding; None if the windows are those of the image as it is"""
    filled: Index
    """where in that the image is"""
    source: Index
    """which part of the image this is"""
    offset: int
    """where what the windows see begins, in bytes"""
    strides: Sizes
    """of what they see"""
    columns: Sizes
    """the shape of that: (C, kernel..., outputs...)"""


def columns(x: Array, axes: Axes, start: int, count: int) -> Array:
    """The columns of ``x`` (C, spatial...) for ``count`` rows of outputs from ``start`` on.

    Returns (C, kernel..., count, outputs...), in scratch memory.
    """
    how = storage(axes, start, count, x.shape[0], x.itemsize)
    made = scratch("columns", how.columns, x.dtype)
    if CURRENT.scope.loops.columns(x, axes, start, made):
        return made
    stored = x
    if how.shape is not None:
        stored = scratch("stored", how.shape, x.dtype)
        stored.fill(0)
        np.copyto(stored[how.filled], x[how.source])
    seen = np.ndarray(how.columns, x.dtype, stored, how.offset, how.strides)
    if made.size <= PACE_ELEMENTS:
        np.copyto(made, seen)
        return made
    for tap in np.ndindex(*seen.shape[1 : len(axes) + 1]):
        pace()
        np.copyto(made[(slice(None), *tap)], seen[(slice(None), *tap)])
    return made


@lru_cache(maxsize=1024)
def storage(axes: Axes, start: int, count: int, channels: int, itemsize: int) -> Storage:
    """How ``channels`` of an image are stored for ``count`` rows of outputs, from ``start`` on."""
    counts = (count, *outputs(axes[1:]))
    begins = [at * a.stride - a.begin for a, at in zip(axes, (start, *[0] * len(axes)))]  # of the first window
    sizes = [(n - 1) * a.stride + a.reach for a, n in zip(axes, counts)]  # that windows see
    parts = [pairing(begin, 1, size, a.size) for begin, size, a in zip(begins, sizes, axes)]
    is_padded = any(filled.stop - filled.start < size for (filled, _), size in zip(parts, sizes))
    shape = (channels, *(sizes if is_padded else [a.size for a in axes]))
    by_channel, *by_position = c_strides(shape, itemsize)
    return Storage(
        shape=shape if is_padded else None,
        filled=(slice(None), *[filled for filled, _ in parts]),
        source=(slice(None), *[source for _, source in parts]),
        offset=0 if is_padded else sum([begin * s for begin, s in zip(begins, by_position)]),
        strides=(
            by_channel,
            *[a.dilation * s for a, s in zip(axes, by_position)],
            *[a.stride * s for a, s in zip(axes, by_position)],
        ),
        columns=(channels, *[a.kernel for a in axes], *counts),
    )
