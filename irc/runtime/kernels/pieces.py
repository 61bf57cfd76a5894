"""Cutting tensors up and putting them together: Slice, Split, Concat, Tile, Pad.

Slices and splits are views of their input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ops.shape_rules import bounds
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.registry import Kernel, computes, kernel, one_of
from irc.runtime.kernels.support import (
    WORTH_COPYING,
    Array,
    adding,
    axes_in,
    axis_in,
    blank,
    c_order,
    check_size,
    fresh,
    ints,
    scalar,
)

if TYPE_CHECKING:
    from irc.ir import Node


_Index = tuple[slice, ...]


def index_of(
    shape: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> _Index:
    """The index of what the slices ``starts[i]:ends[i]:steps[i]`` of ``axes[i]`` select of arrays of ``shape``."""
    if axes is None:
        axes = range(len(starts))
    if steps is None:
        steps = (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Error("IRC421", f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    index = [slice(None)] * len(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise Error("IRC424", "a slice has step 0")
        along = axis_in(axis, len(shape))
        index[along] = bounds(start, end, step, shape[along])
    return tuple(index)


@kernel("onnx::Slice", since=10)
def slice_by_inputs(node: Node) -> Kernel:
    """The bounds are kept from call to call: reading them takes longer than slicing, and mostly they stay the same."""
    last: tuple[Any, _Index] = (None, ())

    def run(x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
        nonlocal last
        first = (x.ndim, starts.dtype, starts.tobytes(), ends.tobytes())  # all are of one type
        told = (*first, axes is None or axes.tobytes(), steps is None or steps.tobytes())
        known, index = last  # both at once: threads that run one model share them
        if told != known:
            others = [None if numbers is None else ints(numbers) for numbers in (axes, steps)]
            index = index_of(x.shape, ints(starts), ints(ends), *others)
            if all(part.step is None or part.step > 0 for part in index):  # backwards, it depends on sizes
                last = told, index
        return x[index]

    return run


@computes("onnx::Slice", since=1)
def slice_by_attributes(x: Array, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> Array:
    return x[index_of(x.shape, starts, ends, axes, None)]


def split_of(x: Array, sizes: Sequence[int], axis: int) -> list[Array]:
    """Consecutive parts of ``x`` along ``axis``, as views; Error unless ``sizes`` add up to the whole."""
    along = axis_in(axis, x.ndim)
    if any(s < 0 for s in sizes) or sum(sizes) != x.shape[along]:
        raise Error("IRC421", f"axis {axis} of the shape {list(x.shape)} cannot be split into parts of {list(sizes)}")
    before = (slice(None),) * along
    parts: list[Array] = []
    start = 0
    for size in sizes:
        parts.append(x[(*before, slice(start, start + size))])
        start += size
    return parts


def _split(x: Array, sizes: Sequence[int] | None, axis: int, count: int, uneven: bool) -> Any:
    if sizes is None:
        total = x.shape[axis_in(axis, x.ndim)]
        if total % count and not uneven:
            raise Error("IRC421", f"{total} elements along axis {axis} do not divide into {count} equal parts")
        size = -(-total // count)
        sizes = [max(0, min(size, total - i * size)) for i in range(count)]
    if len(sizes) != count:
        raise Error("IRC421", f"{len(sizes)} sizes are given for {count} outputs")
    parts = split_of(x, sizes, axis)
    return parts[0] if count == 1 else tuple(parts)


def _count(node: Node) -> int | None:
    told: int | None = node.attributes.get("num_outputs")
    if told is not None and told != len(node.outputs):
        raise Error("IRC320", f"num_outputs is {told}, but the node has {len(node.outputs)} outputs")
    return told


@computes("onnx::Split", since=18, told=_count)
def split_unevenly(x: Array, sizes: Array | None = None, *, axis: int = 0, outputs: int, told: int | None) -> Any:
    """Equal parts if no sizes are given, of which the last may be smaller."""
    if told is not None and sizes is not None:
        raise Error("IRC421", "the sizes of the parts are given, so num_outputs must not be")
    return _split(x, None if sizes is None else ints(sizes), axis, outputs, uneven=True)


@computes("onnx::Split", since=13)
def split_by_input(x: Array, sizes: Array | None = None, *, axis: int = 0, outputs: int) -> Any:
    return _split(x, None if sizes is None else ints(sizes), axis, outputs, uneven=False)


@computes("onnx::Split", since=1)
def split_by_attribute(
    x: Array, sizes: Array | None = None, *, axis: int = 0, split: list[int] | None = None, outputs: int
) -> Any:
    """Version 1 also takes the sizes as an input, in the element type of the data."""
    return _split(x, split if sizes is None else [int(s) for s in ints(sizes)], axis, outputs, uneven=False)


@computes("onnx::Concat")
def concat(*inputs: Array, out: Array | None = None, axis: int = 1) -> Array:
    """``axis`` is required from version 4 on."""
    return concatenate(inputs, axis, out)


def concatenate(parts: Sequence[Array], axis: int, out: Array | None = None) -> Array:
    """The tensors one after the other along ``axis``, in a new array, or in ``out``, which shares with none of them."""
    axis = axis_in(axis, parts[0].ndim)
    try:
        return c_order(np.concatenate(parts, axis)) if out is None else np.concatenate(parts, axis, out)
    except ValueError:
        if len({p.ndim for p in parts}) == 1 and len(fewer := adding(parts, axis)) < len(parts):
            return concatenate(fewer, axis, out)
        shapes = ", ".join(str(list(p.shape)) for p in parts)
        raise Error("IRC421", f"the shapes {shapes} do not fit together along axis {axis}") from None


@computes("onnx::Tile", since=6)
def tile(x: Array, repeats: Array) -> Array:
    times = ints(repeats)
    if len(times) != x.ndim:
        raise Error("IRC421", f"{len(times)} repeats are given for a tensor of {x.ndim} dimensions")
    return _tile(x, times)


@computes("onnx::Tile", since=1)
def tile_along_axis(x: Array, tiles: Array, axis: Array) -> Array:
    times = [1] * x.ndim
    times[axis_in(int(scalar(axis, "axis")), x.ndim)] = int(scalar(tiles, "tiles"))
    return _tile(x, times)


def _tile(x: Array, times: Sequence[int]) -> Array:
    check_size([d * t if t >= 0 else t for d, t in zip(x.shape, times, strict=True)], x.dtype)
    return fresh(np.tile(x, tuple(times)), x)


_MODE = one_of("mode", "constant", ("constant", "reflect", "edge", "wrap"))


@computes("onnx::Pad", since=11, mode=_MODE)
def pad_by_inputs(x: Array, pads: Array, value: Array | None = None, axes: Array | None = None, *, mode: str) -> Array:
    fill = None if value is None else scalar(value, "constant_value")
    return pad(x, ints(pads), mode, fill, None if axes is None else ints(axes))


@computes("onnx::Pad", since=2, mode=_MODE)
def pad_by_attributes(x: Array, *, mode: str, pads: list[int], value: float = 0.0) -> Array:
    return pad(x, pads, mode, value)


@computes("onnx::Pad", since=1, mode=_MODE)
def pad_1(x: Array, *, mode: str, paddings: list[int], value: float = 0.0) -> Array:
    return pad(x, paddings, mode, value)


def pad(x: Array, pads: Sequence[int], mode: str, value: Any = None, axes: Sequence[int] | None = None) -> Array:
    """``x`` with elements added (negative: removed) at both ends of ``axes``, in a new array.

    Args:
        x: the tensor.
        pads: how many at the beginning of each axis, then how many at the end of each.
        mode: the new elements are ``value`` (``constant``), mirror images about the first and last element
            (``reflect``), copies of these (``edge``), or taken from the other end (``wrap``).
        value: a number or string; None: zero or the empty string.
        axes: the axes that ``pads`` are for; None: all of them.
    """
    along = tuple(range(x.ndim)) if axes is None else axes_in(axes, x.ndim)
    if len(pads) != 2 * len(along):
        raise Error("IRC421", f"{len(pads)} pads are given for {len(along)} axes; it must be two an axis")
    amounts = [(0, 0)] * x.ndim
    for i, axis in enumerate(along):
        amounts[axis] = (pads[i], pads[len(along) + i])
    sizes = [d + b + e for d, (b, e) in zip(x.shape, amounts, strict=True)]
    if min(sizes, default=0) < 0:
        raise Error("IRC421", f"pads {list(pads)} remove more than the shape {list(x.shape)} has")
    # One end may lose more than the axis has, and the other get it back: then nothing is kept.
    ends = [max(0, d + min(e, 0)) for d, (_, e) in zip(x.shape, amounts, strict=True)]
    kept = x[(*(slice(max(0, -b), end) for end, (b, _) in zip(ends, amounts, strict=True)), ...)]
    added = [
        (max(0, b), max(0, e)) if n else (min(max(0, b), d), d - min(max(0, b), d))
        for n, d, (b, e) in zip(kept.shape, sizes, amounts, strict=True)
    ]
    return padded(kept, added, mode, blank(x.dtype) if value is None else value)


def padded(kept: Array, added: Sequence[tuple[int, int]], mode: str, value: Any = None) -> Array:
    """``kept`` with so many elements added at the beginning and end of each axis, in a new array: see `pad`."""
    sizes = check_size([d + b + e for d, (b, e) in zip(kept.shape, added, strict=True)], kept.dtype)
    filled = mode == "constant"
    constant = np.full(1, value if filled else blank(kept.dtype), kept.dtype)
    out = np.empty(sizes, kept.dtype)
    if kept.size >= WORTH_COPYING and CURRENT.scope.loops.pad(kept, added, mode, constant, out):
        return out
    if filled:
        out[...] = constant
    inner = [slice(b, b + d) for d, (b, _) in zip(kept.shape, added, strict=True)]
    out[(*inner, ...)] = kept
    for axis, (begin, end) in enumerate(added):
        if not filled and (begin or end):
            part = out[(*(slice(None),) * (axis + 1), *inner[axis + 1 :])]
            _extend(np.moveaxis(part, axis, 0), begin, kept.shape[axis], mode)
    return out


def _extend(x: Array, begin: int, size: int, mode: str) -> None:
    """Write what is before and behind the ``size`` elements from ``begin`` on along the first axis, made of those."""
    inner, behind = x[begin : begin + size], x[begin + size :]
    x[:begin] = inner[_sources(np.arange(-begin, 0), size, mode)]
    behind[:] = inner[_sources(np.arange(size, size + len(behind)), size, mode)]


def sources_of(size: int, begin: int, end: int, mode: str) -> Array:
    """For each place along a padded axis, the index of the element that stands there; -1: the constant."""
    inside: Array = np.arange(-begin, size + end, dtype=np.int64)
    if mode == "constant":
        return np.where((inside < 0) | (inside >= size), -1, inside)
    return _sources(inside, size, mode)


def _sources(places: Array, size: int, mode: str) -> Array:
    """For ``places`` before and behind an axis, the index of the element that stands there."""
    if size == 0:
        raise Error("IRC421", f"an axis without elements cannot be padded by mode {mode!r}")
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    if mode == "wrap":
        return places % size
    period = max(1, 2 * (size - 1))
    folded = places % period
    return np.minimum(folded, period - folded) if size > 1 else folded
