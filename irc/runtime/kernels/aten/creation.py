"""Tensors made from nothing, from Python values, or like another one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    COMPLEX64,
    FLOAT32,
    FLOAT64,
    INT64,
    dtype_of,
    element_of,
    is_integral,
    number_dtype,
    wide,
)
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.aten.views import sizes_of
from irc.runtime.kernels.support import AnyDType, Array, check_size, counting
from irc.runtime.values import is_array

COMPLEX128 = np.dtype(np.complex128)

# Arguments that say where and how: (dtype, layout, device, pin_memory), for `like` memory_format too. All but the
# first and the last are the same to irc.


def _filled(value: Any) -> Callable[..., Array]:
    def run(size: Any, dtype: int | None = None, *options: Any) -> Array:
        return _full(sizes_of(size), value, dtype_of(dtype, FLOAT32))

    return run


def _full(size: Sequence[int], value: Any, dtype: AnyDType) -> Array:
    return np.full(check_size(size, dtype), element_of(value, dtype), dtype)


def _full_of(size: Any, fill_value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full(sizes_of(size), fill_value, dtype_of(dtype, number_dtype(fill_value)))


def full_like(x: Array, value: Any, dtype: int | None = None, *options: Any) -> Array:
    """A tensor of the shape of ``x``, laid out alike if ``options`` do not say other, whose elements are ``value``."""
    memory_format = options[3] if len(options) > 3 else None
    out = layout.empty_like(x, dtype_of(dtype, x.dtype), memory_format)
    out[...] = element_of(value, out.dtype)
    return out


def _like_filled(value: Any) -> Callable[..., Array]:
    def run(x: Array, dtype: int | None = None, *options: Any) -> Array:
        return full_like(x, value, dtype, *options)

    return run


def _new(value: Any) -> Callable[..., Array]:
    def run(x: Array, size: Any, dtype: int | None = None, *options: Any) -> Array:
        return _new_full(x, size, value, dtype)

    return run


def _new_full(x: Array, size: Any, value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full(sizes_of(size), value, dtype_of(dtype, x.dtype))


def _of_number(value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full((), value, dtype_of(dtype, FLOAT32))


def _empty(size: Any, dtype: int | None = None, *options: Any) -> Array:
    """Zeros: what a program reads before it writes is at least always the same."""
    memory_format = options[3] if len(options) > 3 and options[3] is not None else layout.CONTIGUOUS
    out = layout.empty_in_format(sizes_of(size), dtype_of(dtype, FLOAT32), memory_format)
    out[...] = 0
    return out


def _empty_strided(size: Sequence[int], stride: Sequence[int], dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, FLOAT32)
    sizes = check_size(size, element)
    extent = 1 + sum((n - 1) * s for n, s in zip(sizes, stride, strict=True)) if math.prod(sizes) else 0
    return layout.strided(np.zeros(check_size((extent,), element), element), sizes, stride, 0)


# -- ranges --------------------------------------------------------------------


@aten("arange")
def arange(*arguments: Any) -> Array:
    """``arange(end)``, ``(start, end)``, ``(start, end, step)``, each with options (dtype, ...) or without."""
    count = len(arguments) - 4 if len(arguments) > 3 else len(arguments)
    numbers: list[Any] = list(arguments[:count])
    options = arguments[count:]
    start, end, step = [0, *numbers, 1] if count == 1 else [*numbers, 1][:3]
    whole = all(isinstance(v, int) for v in (start, end, step))
    dtype = dtype_of(options[0] if options else None, INT64 if whole else FLOAT32)
    if step == 0 or not all(map(math.isfinite, (start, end, step))) or (end - start) * step < 0:
        raise Error("IRC424", f"there is no range from {start} to {end} by {step}")
    if dtype == INT64 and not whole:  # torch converts first to this type, but to no other
        return arange(int(start), int(end), int(step))
    size = -((start - end) // step) if whole else math.ceil((end - start) / step)
    check_size((int(size),), INT64)
    steps: Array = counting(int(size))
    if is_integral(dtype):
        return (int(start) + steps * int(step)).astype(dtype)
    return (np.float64(start) + steps * np.float64(step)).astype(dtype)


def _type_between(start: Any, end: Any) -> AnyDType:
    """Element type of numbers between two, where none is asked for."""
    is_complex = any(v.dtype.kind == "c" if is_array(v) else isinstance(v, complex) for v in (start, end))
    return COMPLEX64 if is_complex else FLOAT32


def _linspace(start: Any, end: Any, steps: int, dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, _type_between(start, end))
    return _evenly(start, end, steps, element).astype(element)


def _logspace(start: Any, end: Any, steps: int, base: float = 10.0, dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, _type_between(start, end))
    exponents = _evenly(start, end, steps, FLOAT64 if element == FLOAT32 else element)
    if element.kind == "c":
        return np.power(complex(base), exponents).astype(element)
    return np.power(float(base), exponents.astype(np.float64)).astype(element)


def _evenly(start: Any, end: Any, steps: int, element: AnyDType) -> Array:
    """Numbers from ``start`` to ``end``, which are elements of type ``element``; between integers there are floats."""
    if np.ndim(start) or np.ndim(end):
        raise Error("IRC421", f"steps go from one number to another, not from {np.shape(start)} to {np.shape(end)}")
    check_size((steps,), FLOAT64)
    within = wide(element) if element.kind in "fV" else COMPLEX128 if element.kind == "c" else FLOAT64
    if not steps:
        return np.empty(0, within)
    low: Any = element_of(start, element).astype(within).item()
    if steps == 1:
        return np.full(1, low, within)
    if element == BOOL:
        raise Error("IRC423", "there are no steps between bools")
    high: Any = element_of(end, element).astype(within).item()
    step = within.type((high - low) / (steps - 1))
    places: Array = counting(steps)
    # From both ends, so that both are exact.
    left = within.type(low) + step * places.astype(within)
    right = within.type(high) - step * (steps - 1 - places).astype(within)
    return np.where(places < steps // 2, left, right)


def _eye(n: int, *arguments: Any) -> Array:
    """``eye(n, options...)`` or ``eye(n, m, options...)``."""
    m, dtype = (arguments[0], (*arguments, None)[1]) if len(arguments) in (1, 5) else (n, (*arguments, None)[0])
    element = dtype_of(dtype, FLOAT32)
    return np.eye(*check_size((n, m), element), dtype=element)


def _triangle_indices(upper: bool) -> Callable[..., Array]:
    def run(row: int, col: int, offset: int = 0, dtype: int | None = 4, *options: Any) -> Array:
        check_size((2, row, col), INT64)
        difference = counting(col) - counting(row)[:, None]
        kept = difference >= offset if upper else difference <= offset
        return np.stack(np.nonzero(kept)).astype(dtype_of(dtype, INT64))

    return run


# -- from Python values --------------------------------------------------------


_RANK = {bool: 0, int: 1, float: 2, complex: 3}


def from_python(data: Any, dtype: int | None = None, *options: Any) -> Array:
    """A tensor with the contents of a number, or of a list, which may be nested; always in new memory."""
    numbers: list[Any] = []
    shape = _shape(data, numbers)
    kinds: list[type] = [type(n) for n in numbers]  # type: ignore[reportUnknownVariableType]  # of what is not known
    for kind in kinds:
        if kind not in _RANK:
            raise Error("IRC423", f"a tensor cannot be made of {kind.__name__}")
    own = number_dtype(max(kinds, key=_RANK.__getitem__)()) if kinds else FLOAT32
    element = dtype_of(dtype, own)
    # Numbers become elements of the default type first: 0.1 as float64 has the digits of a float32, as in TorchScript.
    return np.array(numbers, None if numbers else element).astype(own).astype(element).reshape(shape)


def _shape(data: Any, numbers: list[Any]) -> tuple[int, ...]:
    """The shape of nested lists, whose numbers are appended to ``numbers``."""
    if is_array(data):
        numbers.extend(data.reshape(-1).tolist())
        return data.shape
    if not isinstance(data, (list, tuple)):
        numbers.append(data)
        return ()
    items: list[Any] = list(data)  # type: ignore[reportUnknownArgumentType]
    shapes = [_shape(item, numbers) for item in items]
    if any(shape != shapes[0] for shape in shapes):
        raise Error("IRC421", f"the lists are of different lengths: {shapes[:4]}")
    return (len(items), *(shapes[0] if shapes else ()))


def _as_tensor(data: Any, dtype: int | None = None, *options: Any) -> Array:
    """``data`` itself if it is a tensor of that element type."""
    if not is_array(data):
        return from_python(data, dtype)
    wanted = dtype_of(dtype, data.dtype)
    return data if wanted == data.dtype else data.astype(wanted)


table(
    {
        "zeros": _filled(0),
        "ones": _filled(1),
        "full": _full_of,
        "empty": _empty,
        "empty_strided": _empty_strided,
        "zeros_like": _like_filled(0),
        "ones_like": _like_filled(1),
        "empty_like": _like_filled(0),
        "full_like": full_like,
        "new_zeros": _new(0),
        "new_ones": _new(1),
        "new_empty": _new(0),
        "new_full": _new_full,
        "linspace": _linspace,
        "logspace": _logspace,
        "eye": _eye,
        "tril_indices": _triangle_indices(False),
        "triu_indices": _triangle_indices(True),
        "tensor": from_python,
        "as_tensor": _as_tensor,
        "scalar_tensor": _of_number,
    }
)
