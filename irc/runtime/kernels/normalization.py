"""Normalisations in at least float32, and BatchNormalization's training mode (Ioffe, Szegedy 2015).

InstanceNormalization, LayerNormalization, GroupNormalization, RMSNormalization,
MeanVarianceNormalization, LpNormalization, LRN take their statistics from the input itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.kernels.numerics import add_reduce, narrowed, row_sums, widened
from irc.runtime.kernels.pool import reduce_along
from irc.runtime.kernels.registry import Kernel, always, at_least, computes, element_type, kernel, one_of
from irc.runtime.kernels.support import Array, axes_in, axis_in, c_order, is_half, shapes_of
from irc.runtime.kernels.windows import Axis


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


def scaled(x: Array, scale: Array | None, b: Array | None, dtype: np.dtype[Any]) -> Array:
    """``x * scale + b``, written over ``x``, as ``dtype``; Error if they do not broadcast to x."""
    try:
        if scale is not None:
            x *= scale.astype(x.dtype, copy=False)
        if b is not None:
            x += b.astype(x.dtype, copy=False)
    except ValueError:
        shapes = shapes_of(scale, b)
        raise Error("IRC421", f"scale and bias of shapes {shapes} do not broadcast to {list(x.shape)}") from None
    return narrowed(x, dtype)


def _by_channel(x: Array, parameters: tuple[Array, ...], count: int, repeat: int = 1) -> list[Array]:
    """Parameters of shape (count,) as (C, 1...): each for ``repeat`` channels of ``x``."""
    if any(p.shape != (count,) for p in parameters):
        raise Error("IRC421", f"scale and bias have shapes {shapes_of(*parameters)}, expected [{count}] each")
    return [np.repeat(p, repeat).reshape(-1, *(1,) * (x.ndim - 2)) for p in parameters]


def _check_channels(x: Array) -> None:
    if x.ndim < 2:
        raise Error("IRC421", f"the input has shape {list(x.shape)}: it must be (batch, channels, ...)")


@computes("onnx::InstanceNormalization")
def instance_normalization(x: Array, scale: Array, b: Array, *, epsilon: float = 1e-5) -> Array:
    _check_channels(x)
    factor, shift = _by_channel(x, (scale, b), x.shape[1])
    rows = _wide(x).reshape(x.shape[0] * x.shape[1], math.prod(x.shape[2:]))
    return scaled(standardize(rows, epsilon)[0].reshape(x.shape), factor, shift, x.dtype)


@computes("onnx::GroupNormalization", since=18, per_group=always(True))
@computes("onnx::GroupNormalization", since=21, per_group=always(False))
def group_normalization(
    x: Array, scale: Array, b: Array, *, per_group: bool, epsilon: float = 1e-5, num_groups: int = 0
) -> Array:
    """``per_group``: scale and bias have one element for each group, not for each channel."""
    _check_channels(x)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise Error("IRC421", f"num_groups is {num_groups}, which does not divide the {x.shape[1]} channels")
    each = x.shape[1] // num_groups
    count, repeat = (num_groups, each) if per_group else (x.shape[1], 1)
    factor, shift = _by_channel(x, (scale, b), count, repeat)
    rows = _wide(x).reshape(x.shape[0] * num_groups, each * math.prod(x.shape[2:]))
    return scaled(standardize(rows, epsilon)[0].reshape(x.shape), factor, shift, x.dtype)


@computes("onnx::LayerNormalization", since=17, stash=element_type("stash_type", 1))
def layer_normalization(
    x: Array, scale: Array, b: Array | None = None, *, epsilon: float = 1e-5, axis: int = -1, stash: Any, outputs: int
) -> Any:
    shape = x.shape
    row = (x.size,) if outputs == 1 and axis == -1 and x.size else None
    if b is not None and row == shape[-1:] == scale.shape == b.shape and _is_wide(x, scale, b):
        y, _, _ = _standardize_row(x.ravel(), epsilon)
        y *= scale
        y += b
        return y[None, None] if len(shape) == 3 else y.reshape(shape)
    first = axis_in(axis, len(shape))
    lead, inner = shape[:first], shape[first:]
    rows = _wide(x).reshape(math.prod(lead), math.prod(inner))
    normal, mean, inverse = standardize(rows, epsilon)
    y = scaled(normal.reshape(x.shape), scale, b, x.dtype)
    if outputs == 1:
        return y
    statistics = (*lead, *(1,) * (x.ndim - first))
    return (y, *(np.asarray(v, stash).reshape(statistics) for v in (mean, inverse)))[:outputs]


@computes("onnx::RMSNormalization", since=23)
def rms_normalization(x: Array, scale: Array, *, epsilon: float = 1e-5, axis: int = -1) -> Array:
    first = axis_in(axis, x.ndim)
    if (x.size,) == x.shape[first:] == scale.shape and _is_wide(x, scale, scale):
        row, number = x.reshape(-1), x.dtype.type  # a decoder's: in half the time, with the same result
        row = row / np.sqrt(row.dot(row) / number(row.size or 1) + number(epsilon))
        row *= scale
        return row.reshape(x.shape)
    rows = _wide(x).reshape(math.prod(x.shape[:first]), math.prod(x.shape[first:]))
    squares = np.vecdot(rows, rows)[:, None] / rows.dtype.type(max(1, rows.shape[1]))
    normal = rows / np.sqrt(squares + rows.dtype.type(epsilon))
    return scaled(normal.reshape(x.shape), scale, None, scale.dtype)


@computes("onnx::MeanVarianceNormalization", since=9)
def mean_variance_normalization(x: Array, *, axes: Sequence[int] = (0, 2, 3)) -> Array:
    over = axes_in(axes or (0, 2, 3), x.ndim)
    wide = _wide(x)
    count = wide.dtype.type(max(1, math.prod(x.shape[i] for i in over)))
    result = wide - add_reduce(wide, over, True) / count
    deviation = np.sqrt(add_reduce(np.square(result), over, True) / count)
    result /= deviation + wide.dtype.type(1e-9)  # as in the function body that defines the operator
    return narrowed(result, x.dtype)


@computes("onnx::LpNormalization", p=one_of("p", 2, (1, 2)))
def lp_normalization(x: Array, *, p: int, axis: int = -1) -> Array:
    along, wide = axis_in(axis, x.ndim), _wide(x)
    if p == 1:
        norm = add_reduce(np.abs(wide), (along,), True)
    else:
        norm = np.sqrt(add_reduce(np.square(wide), (along,), True))
    norm[norm == 0] = 1  # all elements are 0 then, and 0 is their result
    return narrowed(wide / norm, x.dtype)


@computes("onnx::LRN", size=at_least("size", 1, 0))
def lrn(
    x: Array, out: Array | None = None, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int
) -> Array:
    """Local response normalisation across channels (Krizhevsky, Sutskever and Hinton, 2012)."""
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


def _register(since: int, at_inference: Callable[[Node], bool]) -> None:
    """What says that the operator runs at inference has changed with its versions."""

    @kernel("onnx::BatchNormalization", since=since)
    def bind(node: Node) -> Kernel:  # pyright: ignore[reportUnusedFunction]  # registered
        return _infer(node, since) if at_inference(node) else _train(node)


# "Output case #2: Y (test mode)": with Y alone there is nothing to train.
_register(1, lambda node: bool(node.attributes.get("is_test", 0)) or len(node.outputs) == 1)
_register(7, lambda node: len(node.outputs) == 1)
_register(14, lambda node: not node.attributes.get("training_mode", 0))


def _infer(node: Node, since: int) -> Kernel:
    spatial = bool(node.attributes.get("spatial", 1))
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    outputs = len(node.outputs)

    def run(x: Array, scale: Array, b: Array, mean: Array, var: Array, out: Array | None = None) -> Any:
        # Versions before 7 contradict themselves on what has one dimension where nothing is spatial.
        _check(x, scale, b, mean, var, spatial=spatial or (since < 7 and scale.ndim == 1))
        y = affine(x, *_coefficients(scale, b, mean, var, epsilon), out)
        # Further outputs are for training; where they are declared all the same, the statistics are as they were.
        return (y, *(v.copy() for v in (mean, var, mean, var)[: outputs - 1])) if outputs > 1 else y

    return run


def _train(node: Node) -> Kernel:
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    momentum = float(node.attributes.get("momentum", 0.9))
    spatial = bool(node.attributes.get("spatial", 1))
    outputs = len(node.outputs)

    def run(x: Array, scale: Array, b: Array, mean: Array, var: Array) -> Any:
        _check(x, scale, b, mean, var, spatial=spatial)
        if not x.size:
            raise Error("IRC421", f"an input of shape {list(x.shape)} has no mean to train with")
        axes = tuple(i for i in range(x.ndim) if i != 1) if spatial else (0,)
        batch = np.asarray(np.mean(x, axis=axes, dtype=np.float64))
        spread = np.asarray(np.var(x, axis=axes, dtype=np.float64))  # of the population, not N - 1
        running = [
            (old * momentum + new * (1 - momentum)).astype(old.dtype) for old, new in ((mean, batch), (var, spread))
        ]
        saved = [batch.astype(mean.dtype), spread.astype(var.dtype)]
        y = affine(x, *_coefficients(scale, b, batch, spread, epsilon), None)
        return (y, *running, *saved)[:outputs] if outputs > 1 else y

    return run


def _check(x: Array, *parameters: Array, spatial: bool) -> None:
    channels = x.shape[1] if x.ndim > 1 else 1  # a single axis is the batch, of one channel
    expected = (channels,) if spatial else x.shape[1:]
    if not x.ndim or any(p.shape != expected for p in parameters):
        given = f"scale, bias, mean and variance have shapes {shapes_of(*parameters)}"
        raise Error("IRC421", f"{given}; an input of shape {list(x.shape)} needs {list(expected)} each")


def _coefficients(scale: Array, b: Array, mean: Array, var: Array, epsilon: float) -> tuple[Array, Array]:
    """What to multiply with and what to add: computed in float64, they are few."""
    factor = scale.astype(np.float64) / np.sqrt(var.astype(np.float64) + epsilon)
    return factor, b.astype(np.float64) - mean.astype(np.float64) * factor


def affine(x: Array, factor: Array, shift: Array, out: Array | None) -> Array:
    """``x * factor + shift`` for each channel, or for each position of an image, by the factor's rank."""
    result: Array = np.empty(x.shape, x.dtype) if out is None else out
    wide = np.dtype(np.float32) if is_half(x.dtype) else x.dtype
    if factor.ndim == 1 and x.ndim > 1:
        factor, shift = (v.reshape(-1, *(1,) * (x.ndim - 2)) for v in (factor, shift))
    scaled = np.multiply(x.astype(wide, copy=False), factor.astype(wide), out=result if wide == x.dtype else None)
    return np.add(scaled, shift.astype(wide), out=result, casting="same_kind")
