"""Softmax, LogSoftmax, Hardmax.

Up to opset 12 the input is taken for a matrix, whose columns are all axes from
``axis`` on; since 13 the operators work along the one axis. Each step rounds to
the element type, as the operators' function bodies have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, axis_in, is_half

if TYPE_CHECKING:
    from irc.ir import Node


def softmax(x: Array, axis: int) -> Array:
    """``exp(x) / sum(exp(x))`` along ``axis``, without overflow."""
    result = np.subtract(x, np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    np.exp(result, out=result)
    result /= _sum(result, axis)
    return result


def log_softmax(x: Array, axis: int) -> Array:
    """The logarithm of `softmax`, without underflow."""
    result = np.subtract(x, np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    result -= np.log(_sum(np.exp(result), axis))
    return result


def _sum(x: Array, axis: int) -> Array:
    """Sums of ``x``'s type that were added up in float32 at least."""
    if not is_half(x.dtype):
        return np.sum(x, axis=axis, keepdims=True)
    return np.sum(x, axis=axis, keepdims=True, dtype=np.float32).astype(x.dtype)


def hardmax(x: Array, axis: int) -> Array:
    """1 at the first maximum along ``axis``, 0 elsewhere."""
    result = np.zeros_like(x, order="C")
    if x.size:
        np.put_along_axis(result, np.argmax(x, axis=axis, keepdims=True), 1, axis)
    return result


def _bind(node: Node, compute: Callable[[Array, int], Array], *, as_matrix: bool) -> Kernel:
    axis = int(node.attributes.get("axis", 1 if as_matrix else -1))

    def run(x: Array) -> Array:
        along = axis_in(axis, x.ndim)
        wide = np.ascontiguousarray(x)
        if as_matrix:
            wide, along = wide.reshape(math.prod(x.shape[:along]), math.prod(x.shape[along:])), 1
        return compute(wide, along).reshape(x.shape)

    return run


def _register(op_type: str, compute: Callable[[Array, int], Array]) -> None:
    kernel(f"onnx::{op_type}")(lambda node: _bind(node, compute, as_matrix=True))
    kernel(f"onnx::{op_type}", since=13)(lambda node: _bind(node, compute, as_matrix=False))


for _op_type, _compute in (("Softmax", softmax), ("LogSoftmax", log_softmax), ("Hardmax", hardmax)):
    _register(_op_type, _compute)
