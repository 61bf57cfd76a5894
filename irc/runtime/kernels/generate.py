"""Tensors made from little: constants, ranges, diagonals, one-hot codes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import (
    Array,
    axis_in,
    blank,
    check_size,
    counting,
    ints,
    is_half,
    numpy_dtype,
    scalar,
)

if TYPE_CHECKING:
    from irc.ir import Node

_CONSTANT_FORMS: dict[str, Any] = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_string": object,
    "value_strings": object,
}


@kernel("onnx::Constant")
def constant(node: Node) -> Kernel:
    forms = [a for a in node.attributes if a == "value" or a in _CONSTANT_FORMS]
    if len(forms) != 1:
        raise Error("IRC320", f"Constant needs exactly one of the attributes value, {', '.join(_CONSTANT_FORMS)}")
    form = forms[0]
    given = node.attributes[form]
    value: Array = given.numpy() if form == "value" else np.array(given, _CONSTANT_FORMS[form])
    return lambda: value.copy()


@kernel("onnx::ConstantOfShape")
def constant_of_shape(node: Node) -> Kernel:
    given = node.attributes.get("value")
    whole: Array = np.zeros((), np.float32) if given is None else given.numpy()
    if whole.size != 1:
        raise Error("IRC320", f"value must have one element, not {whole.size}")
    value = whole.reshape(())

    def run(shape: Array) -> Array:
        return np.full(check_size(ints(shape), value.dtype), value, value.dtype)

    return run


@kernel("onnx::Range")
def arange(node: Node) -> Kernel:
    """Elements ``start + i delta``, ``max(ceil((limit - start) / delta), 0)`` of them."""

    def run(start: Array, limit: Array, delta: Array) -> Array:
        first, last, step = (scalar(v, what) for v, what in ((start, "start"), (limit, "limit"), (delta, "delta")))
        if step == 0 or not all(map(math.isfinite, (first, last, step))):
            raise Error("IRC424", f"there is no range from {first} to {last} by {step}")
        if isinstance(first, int):
            count = max(0, -((first - last) // step))
        else:
            count = max(0, math.ceil((last - first) / step))
        check_size((count,), start.dtype)
        wide = np.dtype(np.float32) if is_half(start.dtype) else start.dtype
        steps = np.arange(count, dtype=np.int64).astype(wide)
        return (wide.type(first) + steps * wide.type(step)).astype(start.dtype, copy=False)

    return run


@kernel("onnx::EyeLike")
def eye_like(node: Node) -> Kernel:
    number: int | None = node.attributes.get("dtype")
    dtype = None if number is None else numpy_dtype(number)
    diagonal: int = node.attributes.get("k", 0)

    def run(x: Array) -> Array:
        if x.ndim != 2:
            raise Error("IRC421", f"EyeLike's input must have 2 dimensions; its shape is {list(x.shape)}")
        return np.eye(*x.shape, k=diagonal).astype(x.dtype if dtype is None else dtype)

    return run


@kernel("onnx::OneHot")
def one_hot(node: Node) -> Kernel:
    """From version 11 on indices in ``[-depth, depth)`` count, before in ``[0, depth)``; others give no "on"."""
    axis: int = node.attributes.get("axis", -1)
    negative = node.version is None or node.version >= 11

    def run(indices: Array, depth: Array, values: Array) -> Array:
        size = int(scalar(depth, "depth"))
        if values.shape != (2,):
            raise Error("IRC421", f"values must have shape [2], off and on; it has {list(values.shape)}")
        along = axis_in(axis, indices.ndim + 1)
        shape = check_size((*indices.shape[:along], size, *indices.shape[along:]), values.dtype)
        place = np.expand_dims(indices.astype(np.int64), along)
        if negative:
            place = np.where(place < 0, place + size, place)
        classes = counting(size).reshape((size,) + (1,) * (indices.ndim - along))
        out = np.full(shape, values[0], values.dtype)
        np.copyto(out, values[1], where=place == classes)
        return out

    return run


@kernel("onnx::Trilu")
def trilu(node: Node) -> Kernel:
    """The upper or lower triangle of the last two dimensions, up to diagonal k; zeros (empty strings) elsewhere."""
    upper = bool(node.attributes.get("upper", 1))

    def run(x: Array, k: Array | None = None) -> Array:
        if x.ndim < 2:
            raise Error("IRC421", f"Trilu's input must have at least 2 dimensions; its shape is {list(x.shape)}")
        rows, columns = x.shape[-2:]
        # Diagonals beyond the corners are all alike; so k, whatever its size, fits the arithmetic below.
        diagonal = 0 if k is None else max(-rows - 1, min(int(scalar(k, "k")), columns + 1))
        edge = diagonal if upper else diagonal + 1  # in each row, what is left of the column there goes, or stays
        out, nothing = np.empty(x.shape, x.dtype), np.full(columns, blank(x.dtype), x.dtype)
        step = max(_STRIP, -(-rows // _STRIPS))
        for start in range(0, rows, step):
            strip, end = (..., slice(start, start + step)), min(rows, start + step)
            low, high = (max(0, min(at + edge, columns)) for at in (start, end))
            kept, zero = slice(low, None), slice(None, low)
            if not upper:
                kept, zero = slice(None, high), slice(high, None)
            out[(*strip, kept)] = x[(*strip, kept)]
            out[(*strip, zero)] = nothing[zero]
            is_left = counting(columns)[low:high] < counting(rows)[start:end, None] + edge
            np.copyto(out[(*strip, slice(low, high))], nothing[low:high], where=is_left if upper else ~is_left)
        return out

    return run


_STRIP, _STRIPS = 64, 16
"""Rows of a triangle that are written together: at least this many, and no more strips than this."""
