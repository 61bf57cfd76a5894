"""Losses and distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import (
    FLOAT64,
    INT64,
    as_float,
    check_kind,
    is_floating,
    is_integral,
    real_type,
    result_type,
    wide,
)
from irc.runtime.kernels.aten.registering import table, two
from irc.runtime.kernels.softmax import log_softmax
from irc.runtime.kernels.support import Array, broadcast_shape, check_size, filled

_NONE, MEAN, _SUM = range(3)
"""torch's numbers of reductions (aten/src/ATen/core/Reduction.h)."""


def reduced(loss: Array, reduction: int, dtype: Any, operands: Sequence[Array] = ()) -> Array:
    """A loss, its mean or sum, of ``dtype``; an unreduced loss lies as a pointwise result."""
    if reduction == _NONE:
        if not operands:
            return np.asarray(loss).astype(dtype, copy=False)
        out = layout.empty(np.shape(loss), dtype, operands)
        np.copyto(out, loss, casting="unsafe")
        return out
    if reduction not in (MEAN, _SUM):
        raise Error("IRC424", f"reduction {reduction} is none of 0 (none), 1 (mean) and 2 (sum)")
    if is_integral(dtype):
        if reduction == MEAN:
            raise Error("IRC423", f"a loss of {dtype.name} has no mean; convert what it is of")
        return np.asarray(np.sum(loss, dtype=INT64))
    total = np.sum(loss, dtype=np.complex128 if dtype.kind == "c" else np.float64)
    if reduction == MEAN:
        total = total / loss.size if loss.size else np.float64(np.nan)
    return np.asarray(total).astype(dtype)


def _elementwise(
    compute: Callable[..., Any], x: Array, target: Array, reduction: int = MEAN, *parameters: Any
) -> Array:
    """A loss on two tensors that broadcast."""
    dtype = result_type(x, target)
    within = wide(dtype)
    a, b = x.astype(within, copy=False), target.astype(within, copy=False)
    return reduced(np.asarray(compute(a, b, *parameters)), reduction, real_type(dtype), (x, target))


def _smooth_l1(a: Array, b: Array, beta: float = 1.0) -> Any:
    d = np.abs(a - b)
    return d if beta == 0 else np.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta)


def binary_cross_entropy(x: Array, target: Array, weight: Array | None = None, reduction: int = MEAN) -> Array:
    """Cross-entropy of probabilities; logarithms are cut off at -100, as in torch."""
    within = wide(x.dtype)
    p, t = x.astype(within, copy=False), target.astype(within, copy=False)
    if ((p < 0) | (p > 1)).any():
        raise Error("IRC424", "binary_cross_entropy takes probabilities between 0 and 1")
    loss = -(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log1p(-p), -100))
    return reduced(loss if weight is None else loss * weight, reduction, x.dtype)


def binary_cross_entropy_with_logits(x: Array, target: Array, *options: Any) -> Array:
    """``(1 - t) x + (1 + (w - 1) t) log(1 + exp(-x))``, without overflow."""
    weight, positive, reduction = filled(options, None, None, MEAN)
    within = wide(x.dtype)
    v, t = x.astype(within, copy=False), target.astype(within, copy=False)
    factor = 1 if positive is None else 1 + (positive - 1) * t
    loss = (1 - t) * v + factor * (np.log1p(np.exp(-np.abs(v))) + np.maximum(-v, 0))
    dtype = target.dtype if is_floating(target.dtype) else x.dtype
    return reduced(loss if weight is None else loss * weight, reduction, dtype)


def nll_loss(x: Array, target: Array, weight: Array | None = None, *options: Any) -> Array:
    """Loss of log-probabilities (N, C, ...) and classes (N, ...), or of one sample (C) and its class."""
    reduction, ignore_index = filled(options, MEAN, -100)
    if x.ndim == 1:
        found = nll_loss(x[None], target.reshape(1), weight, reduction, ignore_index)
        return found.reshape(())
    if target.shape != (x.shape[0], *x.shape[2:]):
        raise Error("IRC421", f"classes of shape {list(target.shape)} do not fit an input of {list(x.shape)}")
    counted = target != ignore_index
    safe = np.where(counted, target, 0)
    if safe.size and (safe.min() < 0 or safe.max() >= x.shape[1]):
        raise Error("IRC420", f"a class is not below {x.shape[1]}")
    factors = (np.ones(x.shape[1]) if weight is None else weight.astype(np.float64))[safe] * counted
    chosen = np.take_along_axis(x, np.expand_dims(safe, 1), 1)[:, 0].astype(np.float64)
    loss = np.where(counted, -chosen * factors, 0)
    if reduction == MEAN:
        return np.asarray(loss.sum() / factors.sum()).astype(x.dtype)
    return reduced(loss, reduction, x.dtype)


def cross_entropy_loss(x: Array, target: Array, weight: Array | None = None, *options: Any) -> Array:
    """Cross-entropy of logits, with classes or their probabilities."""
    reduction, ignore_index, label_smoothing = filled(options, MEAN, -100, 0.0)
    check_kind("cross_entropy_loss", x.dtype, "_log_softmax")
    axis = 1 if x.ndim > 1 else 0
    logs = log_softmax(np.ascontiguousarray(x, wide(x.dtype)), axis)
    classes = x.shape[axis]
    factors = np.ones(classes) if weight is None else weight.astype(np.float64)
    column = factors.reshape(-1, *(1,) * (x.ndim - 1 - axis))
    if target.shape == x.shape and is_floating(target.dtype):
        smooth = target * (1 - label_smoothing) + label_smoothing / classes
        loss = -(logs * smooth * column).sum(axis)
        return reduced(loss, reduction, result_type(x, target, *(() if weight is None else (weight,))))
    plain = nll_loss(logs, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return plain.astype(x.dtype, copy=False)
    counted = target != ignore_index
    even = np.where(counted, -(logs * column).sum(axis), 0)
    if reduction == MEAN:
        safe = np.where(counted, target, 0)
        even = np.asarray(even.sum() / (factors[safe] * counted).sum())
    elif reduction == _SUM:
        even = np.asarray(even.sum())
    return np.asarray(plain * (1 - label_smoothing) + even * (label_smoothing / classes)).astype(x.dtype)


# -- distances -----------------------------------------------------------------


def cosine_similarity(x: Array, y: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    dtype = as_float(result_type(x, y))
    shape = broadcast_shape(x.shape, y.shape)
    a, b = (np.broadcast_to(v.astype(wide(dtype)), shape) for v in (x, y))
    if not eps >= 0:
        raise Error("IRC424", f"the least length is {eps}; it must not be negative")
    double = np.dtype(np.complex128) if dtype.kind == "c" else FLOAT64  # in which squares do not overflow
    sizes = [np.maximum(np.sqrt(np.sum(np.square(v.astype(double)), dim, keepdims=True)), eps) for v in (a, b)]
    return np.asarray(np.sum(a / sizes[0] * (b / sizes[1]), dim)).astype(dtype)


def _lengths(difference: Array, p: float, keepdim: bool = False) -> Array:
    size = np.abs(difference).astype(np.float64)
    if math.isinf(p):
        return np.max(size, -1, keepdims=keepdim, initial=0)
    if p == 0:
        return np.count_nonzero(size, -1, keepdims=keepdim).astype(np.float64)
    return np.sum(size**p, -1, keepdims=keepdim) ** (1 / p)


def pairwise_distance(x: Array, y: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Array:
    within = wide(result_type(x, y))
    dtype = as_float(result_type(x, y))
    if within.kind == "b":
        raise Error("IRC423", "bools have no difference; convert them first")
    difference = (x.astype(within) - y.astype(within)).astype(wide(dtype), copy=False) + wide(dtype).type(eps)
    return np.asarray(_lengths(difference, p, keepdim)).astype(real_type(dtype))


def cdist(x: Array, y: Array, p: float = 2.0, compute_mode: int | None = None) -> Array:
    """(..., P, M) and (..., R, M) to (..., P, R)."""
    if compute_mode not in (None, 0, 1, 2):
        raise Error("IRC424", f"cdist has no mode {compute_mode}, only 0, 1 and 2")
    if x.shape[-1] != y.shape[-1]:
        raise Error("IRC421", f"points of {x.shape[-1]} and {y.shape[-1]} coordinates have no distance")
    dtype = result_type(x, y)
    check_size((*broadcast_shape(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2], x.shape[-1]), FLOAT64)
    difference = x[..., :, None, :].astype(np.float64) - y[..., None, :, :]
    return _lengths(difference, p).astype(dtype, "C")


table(
    mse_loss=partial(_elementwise, two(lambda a, b: np.square(a - b))),
    l1_loss=partial(_elementwise, two(lambda a, b: np.abs(a - b))),
    smooth_l1_loss=partial(_elementwise, _smooth_l1),
    nll_loss_nd=nll_loss,
)
