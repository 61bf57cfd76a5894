"""Torch operators that make or change tensors, with torch's view, copy and in-place behaviour.

Arguments come in schema order; trailing ones that have defaults may be left out.
A view operator returns a view, always: what is written through it must be seen
in its base. Every other operator returns memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, axes_in, axis_in, c_order, check_size
from irc.runtime.kernels.torch_types import as_float, check_writable, result_type, tensor, write
from irc.runtime.values import is_array

Operand = Any
"""A tensor or a Python number."""


def register(name: str, run: Kernel) -> None:
    """Make ``run`` the kernel of ``aten::name``."""
    kernel(f"aten::{name}")(lambda node: run)


# -- arithmetic ----------------------------------------------------------------


def _binary(ufunc: Callable[..., Any], scaled: bool, to_float: bool) -> tuple[Kernel, Kernel]:
    """The functional and the in-place form of ``ufunc(x, y)``, or ``ufunc(x, alpha * y)`` if ``scaled``."""

    def prepare(x: Operand, y: Operand, alpha: Any) -> tuple[Any, Any, Any]:
        dtype = result_type(x, y)
        dtype = as_float(dtype) if to_float else dtype
        a, b = tensor(x, dtype), tensor(y, dtype)
        return dtype, a, b * tensor(alpha, dtype) if scaled and alpha != 1 else b

    def functional(x: Operand, y: Operand, alpha: Any = 1) -> Array:
        _, a, b = prepare(x, y, alpha)
        return np.asarray(ufunc(a, b))

    def in_place(x: Array, y: Operand, alpha: Any = 1) -> Array:
        dtype, a, b = prepare(x, y, alpha)
        return write(x, lambda out: ufunc(a, b, out=out), dtype)

    return functional, in_place


def _divide(x: Operand, y: Operand, rounding_mode: str | None = None) -> Array:
    if rounding_mode is None:
        return _true_divide(x, y)
    dtype = result_type(x, y)
    return np.asarray(_rounded_division(tensor(x, dtype), tensor(y, dtype), rounding_mode))


def _divide_(x: Array, y: Operand, rounding_mode: str | None = None) -> Array:
    if rounding_mode is None:
        return _true_divide_(x, y)
    dtype = result_type(x, y)
    quotient = _rounded_division(tensor(x, dtype), tensor(y, dtype), rounding_mode)
    return write(x, lambda out: np.copyto(out, quotient), dtype)


def _rounded_division(x: Array, y: Array, mode: str) -> Any:
    if mode == "floor":
        return np.floor_divide(x, y)
    if mode == "trunc":
        if x.dtype.kind in "iu":
            return np.floor_divide(x - np.fmod(x, y), y)
        return np.trunc(np.divide(x, y))
    raise Error("IRC423", f"rounding_mode is {mode!r}; it must be 'floor' or 'trunc'")


_true_divide, _true_divide_ = _binary(np.divide, scaled=False, to_float=True)

ADD = _binary(np.add, scaled=True, to_float=False)
SUB = _binary(np.subtract, scaled=True, to_float=False)
MUL = _binary(np.multiply, scaled=False, to_float=False)
DIV = (_divide, _divide_)


def _unary(ufunc: Callable[..., Any], to_float: bool) -> tuple[Kernel, Kernel]:
    def functional(x: Array) -> Array:
        return np.asarray(ufunc(tensor(x, as_float(x.dtype) if to_float else None)))

    def in_place(x: Array) -> Array:
        dtype = as_float(x.dtype) if to_float else x.dtype
        return write(x, lambda out: ufunc(tensor(x, dtype), out=out), dtype)

    return functional, in_place


def _relu(x: Array, out: Array | None = None) -> Any:
    return np.maximum(x, x.dtype.type(0), out=out)


def _sigmoid(x: Array, out: Array | None = None) -> Any:
    return np.reciprocal(1 + np.exp(-x), out=out)


for _name, _ufunc, _to_float in (
    ("relu", _relu, False),
    ("neg", np.negative, False),
    ("abs", np.absolute, False),
    ("exp", np.exp, True),
    ("sqrt", np.sqrt, True),
    ("tanh", np.tanh, True),
    ("sigmoid", _sigmoid, True),
):
    _functional, _in_place = _unary(_ufunc, _to_float)
    register(_name, _functional)
    register(f"{_name}_", _in_place)


# -- views ---------------------------------------------------------------------


def _view(x: Array, sizes: Sequence[int]) -> Array:
    result = _reshape(x, sizes)
    if result.size and not np.may_share_memory(result, x):
        raise Error("IRC424", f"no view of shape {list(sizes)} exists for strides {list(x.strides)}; use reshape")
    return result


def _reshape(x: Array, sizes: Sequence[int]) -> Array:
    try:
        return x.reshape(tuple(sizes))
    except ValueError:
        raise Error("IRC422", f"a tensor of shape {list(x.shape)} cannot take the shape {list(sizes)}") from None


def _select(x: Array, dim: int, index: int) -> Array:
    dim = axis_in(dim, x.ndim)
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise Error("IRC420", f"index {index} is out of range for dimension {dim} of size {x.shape[dim]}")
    return x[(slice(None),) * dim + (index, ...)]


_SLICE_DEFAULTS: tuple[Any, ...] = (0, None, None, 1)


def _slice(x: Any, *arguments: Any) -> Any:
    """``slice.Tensor(x, dim=0, start=None, end=None, step=1)`` or ``slice.t(list, start=None, end=None, step=1)``."""
    if not is_array(x):
        start, end, step = (*arguments, *_SLICE_DEFAULTS[1 + len(arguments) :])
        return list(x[slice(start, end, step)])
    dim, start, end, step = (*arguments, *_SLICE_DEFAULTS[len(arguments) :])
    if step < 1:
        raise Error("IRC420", f"a slice's step must be positive; it is {step}")
    return x[(slice(None),) * axis_in(dim, x.ndim) + (slice(start, end, step),)]


def _transpose(x: Array, dim0: int, dim1: int) -> Array:
    if not x.ndim and {dim0, dim1} <= {0, -1}:
        return x.view()
    return np.swapaxes(x, axis_in(dim0, x.ndim), axis_in(dim1, x.ndim))


def _permute(x: Array, dims: Sequence[int]) -> Array:
    if len(dims) != x.ndim:
        raise Error("IRC420", f"{list(dims)} is no order of {x.ndim} dimensions")
    return np.transpose(x, axes_in(dims, x.ndim))


def _t(x: Array) -> Array:
    if x.ndim > 2:
        raise Error("IRC421", f"t needs at most 2 dimensions; the shape is {list(x.shape)}")
    return x.T


def _unsqueeze(x: Array, dim: int) -> Array:
    dim = axis_in(dim, x.ndim + 1)
    return x[(slice(None),) * dim + (None, ...)]


def _squeeze(x: Array, dim: int | Sequence[int] | None = None) -> Array:
    dims = range(x.ndim) if dim is None else axes_in([dim] if isinstance(dim, int) else dim, max(x.ndim, 1))
    return x.reshape([n for i, n in enumerate(x.shape) if n != 1 or i not in dims])


def _expand(x: Array, sizes: Sequence[int], implicit: bool = False) -> Array:
    extra = len(sizes) - x.ndim
    shape = [x.shape[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(sizes)]
    try:
        view = np.broadcast_to(x, check_size(shape, x.dtype))
    except ValueError:
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} cannot expand to {list(sizes)}") from None
    if x.flags.writeable:
        view.flags.writeable = True  # a view of it may be written, though not the expanded tensor itself
    return view


# -- copies --------------------------------------------------------------------


def _join(tensors: Sequence[Array]) -> list[Array]:
    if not tensors:
        raise Error("IRC421", "expected at least one tensor to join")
    dtype = result_type(*tensors)
    return [tensor(x, dtype) for x in tensors]


def _cat(tensors: Sequence[Array], dim: int = 0) -> Array:
    parts = [x for x in _join(tensors) if x.shape != (0,)] or [tensors[0]]  # torch skips empty vectors
    try:
        return c_order(np.concatenate(parts, axis_in(dim, parts[0].ndim)))
    except ValueError as error:
        raise Error("IRC421", f"cat: {error}") from None


def _stack(tensors: Sequence[Array], dim: int = 0) -> Array:
    parts = _join(tensors)
    try:
        return c_order(np.stack(parts, axis_in(dim, parts[0].ndim + 1)))
    except ValueError as error:
        raise Error("IRC421", f"stack: {error}") from None


def _clone(x: Array, memory_format: int | None = None) -> Array:
    return x.copy(order="K")  # torch keeps the order of dimensions in memory


def _copy_(x: Array, source: Array, non_blocking: bool = False) -> Array:
    check_writable(x)
    if source.ndim > x.ndim:
        raise Error("IRC421", f"a tensor of shape {list(source.shape)} does not fit into one of {list(x.shape)}")
    np.copyto(x, source, casting="unsafe")
    return x


def _fill_(x: Array, value: Operand) -> Array:
    check_writable(x, one_value=True)
    np.copyto(x, value, casting="unsafe")
    return x


def _zero_(x: Array) -> Array:
    return _fill_(x, 0)


for _name, _run in {
    "view": _view,
    "reshape": _reshape,
    "select": _select,
    "slice": _slice,
    "transpose": _transpose,
    "permute": _permute,
    "t": _t,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "cat": _cat,
    "stack": _stack,
    "clone": _clone,
    "copy_": _copy_,
    "fill_": _fill_,
    "zero_": _zero_,
}.items():
    register(_name, _run)
