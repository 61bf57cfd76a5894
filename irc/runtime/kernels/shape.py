"""Operators on shapes: what reads a shape, and what gives the same elements another one.

Results of the second kind are views of their input wherever NumPy can make one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.limits import MAX_RANK
from irc.runtime.kernels.registry import Kernel, Reader, at_least, computes, kernel, one_of
from irc.runtime.kernels.support import Array, axes_in, axis_in, broadcast_shape, check_size, ints, reshaped

if TYPE_CHECKING:
    from irc.ir import Node


@computes("onnx::Identity")
def identity(x: Any) -> Any:
    return x


@computes("onnx::Shape")
def shape(x: Array, *, start: int = 0, end: int | None = None) -> Array:
    """The shape, or from version 15 on a part of it: ``start`` and ``end`` clamp as slices do."""
    return np.array(x.shape[start:end], np.int64)


@computes("onnx::Size")
def size(x: Array) -> Array:
    return np.array(x.size, np.int64)


def _sizes(shape: tuple[int, ...], target: list[int], allowzero: bool = False) -> list[int]:
    """What ``target`` means for arrays of ``shape``: 0 copies a dimension (unless ``allowzero``), -1 is inferred.

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


def _reshape(x: Array, sizes: list[int], target: Array | list[int]) -> Array:
    try:
        return reshaped(x, sizes)
    except ValueError:
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} cannot be reshaped to {list(target)}") from None


@kernel("onnx::Reshape", since=5)
def reshape_to_input(node: Node) -> Kernel:
    """To find out which shape is meant takes longer than the rest, and mostly it is what it was the last time."""
    allowzero = bool(node.attributes.get("allowzero", 0))
    last: tuple[Any, list[int]] = (None, [])

    def run(x: Array, target: Array) -> Array:
        nonlocal last
        told = (x.shape, target.dtype, target.tobytes())
        known, sizes = last  # both at once: threads that run one model share them
        if told != known:
            sizes = _sizes(x.shape, ints(target), allowzero)
            last = told, sizes
        return _reshape(x, sizes, target)

    return run


@computes("onnx::Reshape", since=1)
def reshape_to_attribute(x: Array, *, shape: Sequence[int] = ()) -> Array:
    return _reshape(x, _sizes(x.shape, list(shape)), list(shape))


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


@computes("onnx::Squeeze", since=13)
def squeeze_by_input(x: Array, axes: Array | None = None) -> Array:
    return squeeze(x, None if axes is None else ints(axes))


@computes("onnx::Squeeze", since=1)
def squeeze_by_attribute(x: Array, *, axes: list[int] | None = None) -> Array:
    return squeeze(x, axes)


@computes("onnx::Unsqueeze", since=13)
def unsqueeze_by_input(x: Array, axes: Array) -> Array:
    return unsqueeze(x, ints(axes))


@computes("onnx::Unsqueeze", since=1)
def unsqueeze_by_attribute(x: Array, *, axes: list[int]) -> Array:
    return unsqueeze(x, axes)


def _permutation(node: Node) -> list[int] | None:
    perm: list[int] | None = node.attributes.get("perm")
    if perm is not None and sorted(perm) != list(range(len(perm))):
        raise Error("IRC320", f"perm {perm} is no permutation: each number from 0 on must be there once")
    return perm


@computes("onnx::Transpose", perm=_permutation)
def transpose(x: Array, *, perm: list[int] | None) -> Array:
    if perm is None:
        return x.T
    try:
        return x.transpose(perm)
    except ValueError:
        raise Error("IRC420", f"{list(perm)} is no permutation of the axes of the shape {list(x.shape)}") from None


@computes("onnx::Expand")
def expand(x: Array, target: Array) -> Array:
    """Both shapes broadcast against each other, so that a target dimension may be 1 where the input's is not."""
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
