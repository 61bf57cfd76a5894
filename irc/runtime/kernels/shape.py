"""Shape operators, and those that cut and join tensors: Slice, Split, Concat, Tile, Pad.

Results with the same elements, or some of them, are views of their input wherever NumPy can make one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import MAX_RANK, Node
from irc.ops.shape_rules import bounds
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.registry import Kernel, Reader, always, at_least, attribute, computes, kernel, one_of
from irc.runtime.kernels.support import (
    WORTH_COPYING,
    Array,
    adding,
    axes_in,
    axis_in,
    blank,
    broadcast_shape,
    c_order,
    check_size,
    copied_to,
    fresh,
    ints,
    reshaped,
    scalar,
    shapes_of,
)


@computes("onnx::Identity")
def identity(x: Any) -> Any:
    return x


@computes("onnx::Shape", part=lambda node: slice(node.attributes.get("start", 0), node.attributes.get("end")))
def shape(x: Array, *, part: slice) -> Array:
    """The shape, or from version 15 on a part of it: ``start`` and ``end`` clamp as slices do."""
    return np.array(x.shape[part], np.int64)


@computes("onnx::Size")
def size(x: Array) -> Array:
    return np.array(x.size, np.int64)


def _sizes(shape: tuple[int, ...], target: list[int], allowzero: bool = False) -> list[int]:
    """The new shape for arrays of ``shape``: 0 copies a size (unless ``allowzero``), -1 is inferred.

    Where a copied dimension is 0, anything would do for the -1: it is what it is if that dimension has another size.
    Otherwise it is left to NumPy.
    """
    sizes = target
    if target and min(target) < -1:
        raise Error("IRC421", f"sizes must be at least -1, not {target}")
    if 0 in target and not allowzero:
        try:
            sizes = [size or shape[i] for i, size in enumerate(target)]
        except IndexError:
            text = f"0 in the shape {target} copies a dimension that {list(shape)} does not have"
            raise Error("IRC421", text) from None
        if 0 in sizes and sizes.count(-1) == 1:
            own = [d for i, d in enumerate(shape) if i >= len(target) or target[i]]
            rest, left = divmod(math.prod(own), math.prod(d for d in target if d > 0))
            sizes[sizes.index(-1)] = -1 if left else rest
    return sizes


def _unfit(x: Array, target: list[int]) -> Error:
    return Error("IRC421", f"a tensor of shape {list(x.shape)} cannot be reshaped to {target}")


@kernel("onnx::Reshape", since=5)
def reshape_to_input(node: Node) -> Kernel:
    """Reshape to an input; the resolved shape is cached, as it mostly repeats and takes the longest."""
    allowzero = bool(node.attributes.get("allowzero", 0))
    last: tuple[Any, list[int]] = (None, [])

    def run(x: Array, target: Array, out: Array | None = None) -> Array:
        nonlocal last
        told = (x.shape, target.dtype, target.tobytes())
        known, sizes = last  # both at once: threads that run one model share them
        if told != known:
            sizes = _sizes(x.shape, ints(target), allowzero)
            last = told, sizes
        try:
            if out is None:
                return reshaped(x, sizes)
            if out.flags.c_contiguous:
                copied_to(out.reshape(x.shape), x)
            else:
                np.copyto(out, x.reshape(sizes))
            return out
        except ValueError:
            raise _unfit(x, ints(target)) from None

    return run


@computes("onnx::Reshape", since=1)
def reshape_to_attribute(x: Array, *, shape: Sequence[int] = ()) -> Array:
    try:
        return reshaped(x, _sizes(x.shape, list(shape)))
    except ValueError:
        raise _unfit(x, list(shape)) from None


@computes("onnx::Flatten")
def flatten(x: Array, *, axis: int = 1) -> Array:
    """To two dimensions: those before ``axis`` and those from it on."""
    at = axis if axis == x.ndim else axis_in(axis, x.ndim)
    return reshaped(x, (math.prod(x.shape[:at]), math.prod(x.shape[at:])))


def squeeze(x: Array, axes: Iterable[int] | None) -> Array:
    """``x`` without the dimensions ``axes``, which must be 1; without all that are 1 if None."""
    if axes is None:
        return x.reshape([d for d in x.shape if d != 1])
    shape = x.shape
    dropped = axes_in(axes, x.ndim)
    if [a for a in dropped if shape[a] != 1]:
        raise Error("IRC421", f"axes {list(dropped)} of the shape {list(shape)} cannot be squeezed: not all are 1")
    return x.reshape([d for i, d in enumerate(shape) if i not in dropped])


def unsqueeze(x: Array, axes: list[int]) -> Array:
    """``x`` with dimensions of 1 that stand at ``axes`` in the result."""
    rank = x.ndim + len(axes)
    if rank > MAX_RANK:
        raise Error("IRC422", f"{rank} dimensions are more than the {MAX_RANK} that are possible")
    sizes = list(x.shape)
    for axis in sorted(axes_in(axes, rank)):
        sizes.insert(axis, 1)
    return x.reshape(sizes)


@computes("onnx::Squeeze")
def squeeze_as_told(x: Array, given: Array | None = None, *, axes: list[int] | None = None) -> Array:
    """The axes are an attribute before version 13, an input since."""
    return squeeze(x, axes if given is None else ints(given))


@computes("onnx::Unsqueeze", since=13, axes=always(None))
@computes("onnx::Unsqueeze")
def unsqueeze_as_told(x: Array, given: Array | None = None, *, axes: list[int]) -> Array:
    return unsqueeze(x, axes if given is None else ints(given))


def _permutation(node: Node) -> list[int] | None:
    perm: list[int] | None = node.attributes.get("perm")
    if perm is not None and sorted(perm) != list(range(len(perm))):
        raise Error("IRC320", f"perm {perm} is not a permutation: each number from 0 on must be there once")
    return perm


@computes("onnx::Transpose", perm=_permutation)
def transpose(x: Array, *, perm: list[int] | None) -> Array:
    if perm is None:
        return x.T
    try:
        return x.transpose(perm)
    except ValueError:
        raise Error("IRC420", f"{list(perm)} is not a permutation of the axes of the shape {list(x.shape)}") from None


@computes("onnx::Expand")
def expand(x: Array, target: Array) -> Array:
    """Broadcast both shapes against each other: a target size may be 1 where the input's is not."""
    asked = check_size(ints(target), x.dtype)
    try:
        sizes = broadcast_shape(x.shape, asked)
    except ValueError:
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} cannot be expanded to {list(asked)}") from None
    return np.broadcast_to(x, check_size(sizes, x.dtype))


_OF_BLOCKS: dict[str, Reader] = {
    "blocksize": at_least("blocksize", 1),
    "mode": one_of("mode", "DCR", ("DCR", "CRD")),
}
"""DCR: the block's place is the outer part of the channel."""


@computes("onnx::DepthToSpace", read=_OF_BLOCKS)
def depth_to_space(x: Array, *, blocksize: int, mode: str) -> Array:
    """Blocks of channels become squares of pixels."""
    n, c, h, w = _four(x)
    if c % (blocksize * blocksize):
        raise Error("IRC421", f"{c} channels do not divide into blocks of {blocksize} × {blocksize}")
    depth = c // (blocksize * blocksize)
    split = (n, blocksize, blocksize, depth, h, w) if mode == "DCR" else (n, depth, blocksize, blocksize, h, w)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    cells = x.reshape(check_size(split, x.dtype)).transpose(order)
    return np.array(cells, order="C").reshape(n, depth, h * blocksize, w * blocksize)


@computes("onnx::SpaceToDepth", read=_OF_BLOCKS)
def space_to_depth(x: Array, *, blocksize: int, mode: str) -> Array:
    """Squares of pixels become blocks of channels: the reverse of DepthToSpace."""
    n, c, h, w = _four(x)
    if h % blocksize or w % blocksize:
        raise Error("IRC421", f"{h} × {w} pixels do not divide into blocks of {blocksize} × {blocksize}")
    shape = (n, c, h // blocksize, blocksize, w // blocksize, blocksize)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    cells = np.array(x.reshape(check_size(shape, x.dtype)).transpose(order), order="C")
    return cells.reshape(n, c * blocksize * blocksize, h // blocksize, w // blocksize)


def _four(x: Array) -> tuple[int, int, int, int]:
    if x.ndim != 4:
        raise Error("IRC421", f"the input must have 4 dimensions; its shape is {list(x.shape)}")
    n, c, h, w = x.shape
    return n, c, h, w


_Index = tuple[slice, ...]
_Ints = Sequence[int]


def index_of(shape: _Ints, starts: _Ints, ends: _Ints, axes: _Ints | None, steps: _Ints | None) -> _Index:
    """The index that selects slices ``starts[i]:ends[i]:steps[i]`` of ``axes[i]`` in ``shape``."""
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
    """Slice by inputs; bounds are cached between calls, as they mostly repeat and are slow to read."""
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


@computes("onnx::Split")
def split_evenly(
    x: Array, sizes: Array | None = None, *, axis: int = 0, split: list[int] | None = None, outputs: int
) -> Any:
    """Split by sizes: an attribute before version 13, an input since; in version 1 either."""
    return _split(x, split if sizes is None else [int(s) for s in ints(sizes)], axis, outputs, uneven=False)


@computes("onnx::Concat")
def concat(*inputs: Array, out: Array | None = None, axis: int = 1) -> Array:
    """``axis`` is required from version 4 on."""
    return concatenate(inputs, axis, out)


def concatenate(parts: Sequence[Array], axis: int, out: Array | None = None) -> Array:
    """The tensors joined along ``axis`` in a new array, or in ``out``, which overlaps none of them."""
    axis = axis_in(axis, parts[0].ndim)
    try:
        return c_order(np.concatenate(parts, axis)) if out is None else np.concatenate(parts, axis, out)
    except ValueError:
        if len({p.ndim for p in parts}) == 1 and len(fewer := adding(parts, axis)) < len(parts):
            return concatenate(fewer, axis, out)
        raise Error("IRC421", f"the shapes {shapes_of(*parts)} do not fit together along axis {axis}") from None


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
@computes("onnx::Pad", since=1, mode=_MODE, pads=attribute("paddings"))
def pad_by_attributes(x: Array, *, mode: str, pads: list[int], value: float = 0.0) -> Array:
    return pad(x, pads, mode, value)


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
    kept, added = kept_and_added(x, pads, axes)
    return padded(kept, added, mode, blank(x.dtype) if value is None else value)


def kept_and_added(
    x: Array, pads: Sequence[int], axes: Sequence[int] | None = None
) -> tuple[Array, list[tuple[int, int]]]:
    """What `pad` keeps of ``x``, and how many elements it adds at the beginning and end of each axis."""
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
    return kept, added


def padded(kept: Array, added: Sequence[tuple[int, int]], mode: str, value: Any = None) -> Array:
    """``kept`` with elements added at the ends of each axis, in a new array: see `pad`."""
    sizes = check_size([d + b + e for d, (b, e) in zip(kept.shape, added, strict=True)], kept.dtype)
    filled = mode == "constant"
    constant = np.full(1, value if filled else blank(kept.dtype), kept.dtype)
    out = np.empty(sizes, kept.dtype)
    least = WORTH_COPYING if filled else 1  # NumPy takes several calls for elements that are copies of others
    if kept.size >= least and CURRENT.scope.loops.pad(kept, added, mode, constant, out):
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
    """Write the padding around the ``size`` elements from ``begin`` on along the first axis."""
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
