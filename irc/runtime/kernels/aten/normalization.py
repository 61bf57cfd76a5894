"""Normalisations, softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import check_kind, check_writable, dtype_of, result_type, wide
from irc.runtime.kernels.aten.reductions import vector_norm
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.normalization import affine, scaled, standardize
from irc.runtime.kernels.numerics import add_reduce
from irc.runtime.kernels.softmax import log_softmax, softmax
from irc.runtime.kernels.support import Array, axis_in


def _by_channel(v: Array | None, x: Array, dtype: Any, neutral: float) -> Array:
    """A parameter of the channels, as (C, 1...); all ``neutral`` without one."""
    if v is None:
        return np.full((x.shape[1], *(1,) * (x.ndim - 2)), neutral, dtype)
    if v.shape != (x.shape[1],):
        raise Error("IRC421", f"{x.shape[1]} channels need as many parameters, not {list(v.shape)}")
    return v.astype(dtype, copy=False).reshape(-1, *(1,) * (x.ndim - 2))


def batch_norm(x: Array, weight: Array | None, bias: Array | None, *arguments: Any, out: Array | None = None) -> Array:
    """Channels (axis 1) less their mean, over their standard deviation (Ioffe and Szegedy, 2015).

    In training both are the batch's, and the running ones move towards them. Further arguments: running mean and
    variance, whether to train, the momentum of the running ones, epsilon.
    """
    running_mean, running_var, training, momentum, eps = arguments[:5]
    if x.ndim < 2:
        raise Error("IRC421", f"the input has shape {list(x.shape)}: it must be (batch, channels, ...)")
    double = np.dtype(np.float64)
    if training:
        mean, variance = _batch_statistics(x, running_mean, running_var, momentum)
    elif running_mean is None or running_var is None:
        raise Error("IRC423", "running statistics are missing, which batch_norm needs when it does not train")
    else:
        mean = _by_channel(running_mean, x, double, 0)
        variance = _by_channel(running_var, x, double, 1)
    spread = np.sqrt(variance + eps)
    if training and eps == 0:
        spread[spread == 0] = np.inf  # elements that are all the same are at their mean
    factor = _by_channel(weight, x, double, 1) / spread
    result = layout.empty_in_format(x.shape, x.dtype, layout.format_of(x)) if out is None else out
    if np.isfinite(factor).all():
        return affine(x, factor, _by_channel(bias, x, double, 0) - mean * factor, result)
    np.copyto(result, (x - mean) * factor + _by_channel(bias, x, double, 0), casting="unsafe")
    return result  # x * factor + shift would subtract infinities


def _batch_statistics(x: Array, mean: Array | None, variance: Array | None, momentum: float) -> tuple[Array, Array]:
    axes = (0, *range(2, x.ndim))
    count = x.size // max(x.shape[1], 1)
    if count < 1:
        raise Error("IRC421", f"an input of shape {list(x.shape)} has no statistics")
    found: Array = np.asarray(np.mean(x, axes, np.float64, keepdims=True))[0]
    spread: Array = np.asarray(np.var(x, axes, np.float64, keepdims=True))[0]
    unbiased: Array = spread * (count / (count - 1) if count > 1 else math.nan)
    for running, new in ((mean, found), (variance, unbiased)):
        if running is not None:
            check_writable(running)
            _by_channel(running, x, x.dtype, 0)  # which refuses what does not fit
            running[...] = (1 - momentum) * running + momentum * new.reshape(-1)
    return found, spread


def instance_norm(x: Array, weight: Array | None, bias: Array | None, *arguments: Any) -> Array:
    """As `batch_norm`, each channel of each sample by itself."""
    running_mean, running_var, use_input_stats, momentum, eps = arguments[:5]
    if not use_input_stats:
        return np.ascontiguousarray(batch_norm(x, weight, bias, running_mean, running_var, False, momentum, eps))
    n, c = x.shape[:2]
    if x.ndim < 3:
        raise Error("IRC421", f"the input has shape {list(x.shape)}: it must be (batch, channels, spatial...)")
    rows = np.ascontiguousarray(x).reshape(1, n * c, *x.shape[2:])
    repeated = [None if v is None else np.tile(v, n) for v in (running_mean, running_var)]
    found = batch_norm(rows, None, None, *repeated, True, momentum, eps).reshape(x.shape)
    for running, each in zip((running_mean, running_var), repeated, strict=True):
        if running is not None and each is not None:
            check_writable(running)
            running[...] = each.reshape(n, c).mean(0)
    within = wide(x.dtype)
    factor, shift = _by_channel(weight, x, within, 1), _by_channel(bias, x, within, 0)
    return (found * factor + shift).astype(x.dtype, copy=False)


def _standardized(x: Array, rows: tuple[int, int], eps: float) -> tuple[Array, Array, Array]:
    return standardize(np.ascontiguousarray(x, wide(x.dtype)).reshape(rows), eps)


def _scaled(x: Array, shape: Sequence[int], weight: Array | None, bias: Array | None, dtype: Any) -> Array:
    """By a weight and a bias that have the normalized shape."""
    for v in (weight, bias):
        if v is not None and v.shape != tuple(shape):
            raise Error("IRC421", f"weight and bias must have the normalized shape {list(shape)}, not {list(v.shape)}")
    return scaled(x, weight, bias, dtype)


def native_layer_norm(
    x: Array, shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, ...]:
    inner = tuple(shape)
    if x.shape[x.ndim - len(inner) :] != inner or not inner:
        raise Error("IRC421", f"normalized_shape {list(inner)} is not the end of {list(x.shape)}")
    lead = x.shape[: x.ndim - len(inner)]
    normal, mean, inverse = _standardized(x, (math.prod(lead), math.prod(inner)), eps)
    statistics = (*lead, *(1,) * len(inner))
    y = _scaled(normal.reshape(x.shape), inner, weight, bias, x.dtype)
    return y, *(v.reshape(statistics).astype(x.dtype, copy=False) for v in (mean, inverse))


def layer_norm(
    x: Array, shape: Sequence[int], weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5, *_: bool
) -> Array:
    return native_layer_norm(x, shape, weight, bias, eps)[0]


def group_norm(
    x: Array, groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5, *ignored: bool
) -> Array:
    return _groups(x, weight, bias, groups, eps)[0]


def native_group_norm(x: Array, weight: Array | None, bias: Array | None, *sizes_groups_eps: Any) -> tuple[Array, ...]:
    return _groups(x, weight, bias, *sizes_groups_eps[3:])


def _groups(x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float) -> tuple[Array, ...]:
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        raise Error("IRC421", f"{groups} groups do not divide the channels of the shape {list(x.shape)}")
    normal, mean, inverse = _standardized(x, (x.shape[0] * groups, math.prod(x.shape[1:]) // groups), eps)
    within = wide(x.dtype)
    factor, shift = _by_channel(weight, x, within, 1), _by_channel(bias, x, within, 0)
    y = (normal.reshape(x.shape) * factor + shift).astype(x.dtype, copy=False)
    statistics = [v.reshape(x.shape[0], groups).astype(x.dtype, copy=False) for v in (mean, inverse)]
    return layout.in_format(y, layout.format_of(x)), *statistics


def _weight_norm(v: Array, g: Array, dim: int = 0) -> Array:
    """``g`` times the direction of ``v``, of norm 1 along all axes but ``dim``; -1: along all.

    ``g`` has one length for each index along ``dim`` if that is the first or the last; else it broadcasts.
    """
    axis = None if dim == -1 else axis_in(dim, v.ndim)
    dtype = result_type(v, g)
    within = v.astype(wide(v.dtype), copy=False)
    norm = vector_norm(within, 2, [i for i in range(v.ndim) if i != axis], True)
    if axis in (0, v.ndim - 1) and g.size == norm.size:
        g = g.reshape(norm.shape)
    elif g.ndim > v.ndim or any(n not in (1, m) for n, m in zip(reversed(g.shape), reversed(v.shape))):
        raise Error("IRC421", f"lengths of shape {list(g.shape)} do not fit directions of {list(v.shape)}")
    lengths = g.astype(wide(dtype), copy=False) / norm.astype(wide(dtype), copy=False)
    return (within * lengths).astype(dtype, copy=False)


def rms_norm(x: Array, shape: Sequence[int], weight: Array | None = None, eps: float | None = None) -> Array:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    if x.shape[x.ndim - len(shape) :] != tuple(shape):
        raise Error("IRC421", f"normalized_shape {list(shape)} is not the end of {list(x.shape)}")
    within = x.astype(wide(x.dtype), copy=False)
    small = np.finfo(within.dtype).eps if eps is None else eps
    count = within.dtype.type(math.prod(shape))
    root = np.sqrt(add_reduce(np.square(within), axes, True) / count + within.dtype.type(small))
    return _scaled(within / root, shape, weight, None, x.dtype)


# -- softmax -------------------------------------------------------------------


def _along(compute: Callable[[Array, int], Array], x: Array, dim: int, dtype: Any = None) -> Array:
    """``dtype``: of the result; of ``_softmax`` it is a flag, which only half precision on GPUs may set."""
    element = x.dtype if isinstance(dtype, bool) else dtype_of(dtype, x.dtype)
    axis = axis_in(dim, max(x.ndim, 1))
    check_kind("_softmax", element)
    found = compute(np.ascontiguousarray(x, wide(element)), axis)  # which makes a vector of what has no dimensions
    return (found if x.ndim else found.reshape(())).astype(element, copy=False)


_softmax, _log_softmax = partial(_along, softmax), partial(_along, log_softmax)

table(
    _weight_norm=_weight_norm,
    **dict.fromkeys("softmax _softmax".split(), _softmax),
    **dict.fromkeys("log_softmax _log_softmax".split(), _log_softmax),
)
