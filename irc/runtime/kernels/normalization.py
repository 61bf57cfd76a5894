"""Normalisations whose statistics come from the input itself.

InstanceNormalization, LayerNormalization, GroupNormalization, RMSNormalization,
MeanVarianceNormalization, LpNormalization, LRN. All compute in at least float32.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.float16 import narrowed, widened
from irc.runtime.kernels.last_axes import add_reduce, row_sums
from irc.runtime.kernels.pool import reduce_along
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, axes_in, axis_in, c_order, is_half, numpy_dtype
from irc.runtime.kernels.windows import Axis

if TYPE_CHECKING:
    from irc.ir import Node


def _wide(x: Array) -> Array:
    """``x`` in at least float32, in C order."""
    return c_order(widened(x))


def _is_wide(x: Array, scale: Array, b: Array) -> bool:
    """Whether all have one element type, and computing in that type is wide enough."""
    return x.dtype is scale.dtype is b.dtype and x.dtype.char in "fd"


def standardize(rows: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """Each row of ``rows`` (R, C) less its mean, over its standard deviation.

    Returns the result (R, C), the means (R, 1) and the inverse standard deviations (R, 1); numbers for one row.
    """
    if len(rows) == 1:
        row, mean, inverse = _standardize_row(rows[0], epsilon)
        return row[None], mean, inverse
    count = max(1, rows.shape[1])
    mean = row_sums(rows, np.vecdot)[:, None] / count
    result = rows - mean
    inverse = 1 / np.sqrt(np.vecdot(result, result)[:, None] / count + epsilon)
    result *= inverse
    return result, mean, inverse


def _standardize_row(row: Array, epsilon: float) -> tuple[Array, Any, Any]:
    """As `standardize` for one row (C,), as decoders have: in half the time."""
    count = row.size or 1
    mean = row_sums(row) / count
    result = row - mean
    inverse = 1 / np.sqrt(result.dot(result) / count + epsilon)  # np.dot takes twice as long to get there
    result *= inverse
    return result, mean, inverse


def _scaled(x: Array, scale: Array, b: Array | None, dtype: np.dtype[Any]) -> Array:
    """``x * scale + b``, written over ``x``, as ``dtype``; Error if they do not broadcast to x."""
    try:
        x *= scale.astype(x.dtype, copy=False)
        if b is not None:
            x += b.astype(x.dtype, copy=False)
    except ValueError:
        shapes = [list(v.shape) for v in (scale, b) if v is not None]
        raise Error("IRC421", f"scale and bias of shapes {shapes} do not broadcast to {list(x.shape)}") from None
    return narrowed(x, dtype)


def _by_channel(x: Array, parameters: tuple[Array, ...], count: int, repeat: int = 1) -> list[Array]:
    """Parameters of shape (count,) as (C, 1...): each for ``repeat`` channels of ``x``."""
    if any(p.shape != (count,) for p in parameters):
        shapes = ", ".join(str(list(p.shape)) for p in parameters)
        raise Error("IRC421", f"scale and bias have shapes {shapes}, expected [{count}] each")
    return [np.repeat(p, repeat).reshape(-1, *(1,) * (x.ndim - 2)) for p in parameters]


def _check_channels(x: Array) -> None:
    if x.ndim < 2:
        raise Error("IRC421", f"the input has shape {list(x.shape)}: it must be (batch, channels, ...)")


@kernel("onnx::InstanceNormalization")
def instance_normalization(node: Node) -> Kernel:
    epsilon = float(node.attributes.get("epsilon", 1e-5))

    def run(x: Array, scale: Array, b: Array) -> Array:
        _check_channels(x)
        factor, shift = _by_channel(x, (scale, b), x.shape[1])
        rows = _wide(x).reshape(x.shape[0] * x.shape[1], math.prod(x.shape[2:]))
        return _scaled(standardize(rows, epsilon)[0].reshape(x.shape), factor, shift, x.dtype)

    return run


def _group_normalization(node: Node, *, per_group: bool) -> Kernel:
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    groups = int(node.attributes.get("num_groups", 0))

    def run(x: Array, scale: Array, b: Array) -> Array:
        _check_channels(x)
        if groups < 1 or x.shape[1] % groups:
            raise Error("IRC421", f"num_groups is {groups}, which does not divide the {x.shape[1]} channels")
        each = x.shape[1] // groups
        count, repeat = (groups, each) if per_group else (x.shape[1], 1)
        factor, shift = _by_channel(x, (scale, b), count, repeat)
        rows = _wide(x).reshape(x.shape[0] * groups, each * math.prod(x.shape[2:]))
        return _scaled(standardize(rows, epsilon)[0].reshape(x.shape), factor, shift, x.dtype)

    return run


@kernel("onnx::GroupNormalization", since=18)
def group_normalization_18(node: Node) -> Kernel:
    return _group_normalization(node, per_group=True)


@kernel("onnx::GroupNormalization", since=21)
def group_normalization(node: Node) -> Kernel:
    return _group_normalization(node, per_group=False)


@kernel("onnx::LayerNormalization", since=17)
def layer_normalization(node: Node) -> Kernel:
    epsilon, axis = float(node.attributes.get("epsilon", 1e-5)), int(node.attributes.get("axis", -1))
    stash = numpy_dtype(int(node.attributes.get("stash_type", 1)))
    outputs = len(node.outputs)
    alone = outputs == 1 and axis == -1

    def run(x: Array, scale: Array, b: Array | None = None) -> Any:
        shape = x.shape
        row = (x.size,) if alone and x.size else None
        if b is not None and row == shape[-1:] == scale.shape == b.shape and _is_wide(x, scale, b):
            y, _, _ = _standardize_row(x.ravel(), epsilon)
            y *= scale
            y += b
            return y[None, None] if len(shape) == 3 else y.reshape(shape)
        first = axis_in(axis, len(shape))
        lead, inner = shape[:first], shape[first:]
        rows = _wide(x).reshape(math.prod(lead), math.prod(inner))
        normal, mean, inverse = standardize(rows, epsilon)
        y = _scaled(normal.reshape(x.shape), scale, b, x.dtype)
        if outputs == 1:
            return y
        statistics = (*lead, *(1,) * (x.ndim - first))
        return (y, *(np.asarray(v, stash).reshape(statistics) for v in (mean, inverse)))[:outputs]

    return run


@kernel("onnx::RMSNormalization", since=23)
def rms_normalization(node: Node) -> Kernel:
    epsilon, axis = float(node.attributes.get("epsilon", 1e-5)), int(node.attributes.get("axis", -1))

    def run(x: Array, scale: Array) -> Array:
        first = axis_in(axis, x.ndim)
        if (x.size,) == x.shape[first:] == scale.shape and _is_wide(x, scale, scale):
            row, number = x.reshape(-1), x.dtype.type  # a decoder's: in half the time, with the same result
            row = row / np.sqrt(row.dot(row) / number(row.size or 1) + number(epsilon))
            row *= scale
            return row.reshape(x.shape)
        rows = _wide(x).reshape(math.prod(x.shape[:first]), math.prod(x.shape[first:]))
        squares = np.vecdot(rows, rows)[:, None] / rows.dtype.type(max(1, rows.shape[1]))
        normal = rows / np.sqrt(squares + rows.dtype.type(epsilon))
        return _scaled(normal.reshape(x.shape), scale, None, scale.dtype)

    return run


@kernel("onnx::MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: Node) -> Kernel:
    axes: list[int] = list(node.attributes.get("axes") or (0, 2, 3))

    def run(x: Array) -> Array:
        over = axes_in(axes, x.ndim)
        wide = _wide(x)
        count = wide.dtype.type(max(1, math.prod(x.shape[i] for i in over)))
        result = wide - add_reduce(wide, over, True) / count
        deviation = np.sqrt(add_reduce(np.square(result), over, True) / count)
        result /= deviation + wide.dtype.type(1e-9)  # as in the function body that defines the operator
        return narrowed(result, x.dtype)

    return run


@kernel("onnx::LpNormalization")
def lp_normalization(node: Node) -> Kernel:
    p, axis = int(node.attributes.get("p", 2)), int(node.attributes.get("axis", -1))
    if p not in (1, 2):
        raise Error("IRC320", f"p is {p}: only 1 and 2 are defined")

    def run(x: Array) -> Array:
        along, wide = axis_in(axis, x.ndim), _wide(x)
        if p == 1:
            norm = add_reduce(np.abs(wide), (along,), True)
        else:
            norm = np.sqrt(add_reduce(np.square(wide), (along,), True))
        norm[norm == 0] = 1  # all elements are 0 then, and 0 is their result
        return narrowed(wide / norm, x.dtype)

    return run


@kernel("onnx::LRN")
def lrn(node: Node) -> Kernel:
    """Local response normalisation across channels (Krizhevsky, Sutskever and Hinton, 2012)."""
    alpha, beta = float(node.attributes.get("alpha", 1e-4)), float(node.attributes.get("beta", 0.75))
    bias, size = float(node.attributes.get("bias", 1.0)), int(node.attributes.get("size", 0))
    if size < 1:
        raise Error("IRC320", f"size is {size}: it must be at least 1")

    def run(x: Array, out: Array | None = None) -> Array:
        _check_channels(x)
        wide = _wide(x)
        before = (size - 1) // 2
        window = Axis(x.shape[1], x.shape[1], size, 1, 1, before, size - 1 - before)
        sums = reduce_along(np.square(wide), 1, window, np.add, 0)
        sums *= wide.dtype.type(alpha / size)
        sums += wide.dtype.type(bias)
        if beta == 0.75:  # AlexNet's; two square roots cost much less than a power
            root = np.sqrt(sums)
            divisor = np.multiply(root, np.sqrt(root), out=sums)
        else:
            divisor = np.power(sums, wide.dtype.type(beta), out=sums)
        quotient = np.divide(wide, divisor, out=divisor if out is None or is_half(x.dtype) else out)
        return narrowed(quotient, x.dtype, out)

    return run
