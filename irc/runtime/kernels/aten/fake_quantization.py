"""Floats rounded to what quantized integers can stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import FLOAT32, check_kind, wide
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.support import AnyDType, Array
from irc.runtime.values import is_array


def _rounded(x: Array, scale: Any, zero: Any, low: int, high: int, within: AnyDType = FLOAT32) -> Array:
    check_kind("hardswish", x.dtype)
    if low > high:
        raise Error("IRC424", f"integers from {low} to {high}: there are none")
    factor, offset = np.asarray(scale, FLOAT32), np.asarray(zero, FLOAT32)
    places = np.rint(x.astype(within, copy=False) * (1 / factor)) + offset
    whole = np.where(np.isnan(places), low, np.clip(places, low, high))
    return layout.like(np.asarray((whole - offset).astype(within, copy=False) * factor).astype(x.dtype, copy=False), x)


def _of_tensor(x: Array, scale: Any, zero_point: Any, low: int, high: int) -> Array:
    """With a single scale and zero point: numbers, or tensors of one element."""
    if is_array(scale):
        return _rounded(x, scale.reshape(()), zero_point.reshape(()), low, high)
    if not low <= zero_point <= high:
        raise Error("IRC424", f"the zero point {zero_point} is not between {low} and {high}")
    return _rounded(x, scale, zero_point, low, high)


def _of_channels(x: Array, scale: Array, zero_point: Array, axis: int, low: int, high: int) -> Array:
    """With a scale and a zero point for each index along ``axis``."""
    if not 0 <= axis < x.ndim:
        raise Error("IRC420", f"there is no dimension {axis} of {x.ndim}")
    if scale.ndim != 1 or zero_point.ndim != 1 or not scale.size == zero_point.size == x.shape[axis]:
        shapes = f"{list(scale.shape)} and {list(zero_point.shape)}"
        raise Error("IRC421", f"scales and zero points of shapes {shapes} do not fit {list(x.shape)} along {axis}")
    if zero_point.size and not low <= zero_point.min() <= zero_point.max() <= high:
        raise Error("IRC424", f"a zero point is not between {low} and {high}")
    column = [-1 if i == axis else 1 for i in range(x.ndim)]
    return _rounded(x, scale.reshape(column), zero_point.reshape(column), low, high, wide(x.dtype))


table(
    {
        "fake_quantize_per_tensor_affine": _of_tensor,
        "fake_quantize_per_channel_affine": _of_channels,
    }
)
