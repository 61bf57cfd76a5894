"""Properties of tensors: sizes, strides, element types, single elements; and conversions to Python's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.arithmetic import check_numeral, parsed, truncated, wrapped
from irc.runtime.kernels.aten.element_types import (
    FLOAT32,
    dtype_of,
    is_floating,
    number_of,
    promote,
    result_type,
)
from irc.runtime.kernels.aten.registering import one, table, two
from irc.runtime.kernels.support import Array, axis_in
from irc.runtime.values import is_array


def _size(x: Array, dim: int | None = None) -> Any:
    return list(x.shape) if dim is None else x.shape[axis_in(dim, x.ndim)]


def strides_of(x: Array) -> list[int]:
    """Strides in elements; of empty tensors, and where NumPy has none for a size of 1, as if the tensor were dense."""
    found: list[int] = []
    inner = 1
    for n, s in zip(reversed(x.shape), reversed(x.strides), strict=True):
        found.append(s // x.itemsize if x.size and (s or n > 1) else inner)
        inner = found[-1] * max(n, 1)
    return found[::-1]


def _stride(x: Array, dim: int | None = None) -> Any:
    return strides_of(x) if dim is None else strides_of(x)[axis_in(dim, x.ndim)]


def item(x: Any) -> Any:
    """The Python number that a tensor of one element, or a number, is."""
    if not is_array(x):
        return x
    if x.size != 1:
        raise Error("IRC421", f"only a tensor of one element is a number; the shape is {list(x.shape)}")
    value = x.item()
    return float(value) if is_floating(x.dtype) else value


def _int(x: Any) -> int:
    value = item(x)
    if isinstance(value, str):
        return parsed(value)
    value = _real(value)
    return truncated(value) if isinstance(value, float) else wrapped(int(value))


def _real(value: Any) -> Any:
    """A number that is not complex; Error if it has an imaginary part."""
    if not isinstance(value, complex):
        return value
    if value.imag:
        raise Error("IRC423", f"{value} has an imaginary part: it is no integer and no float")
    return value.real


def _float(x: Any) -> float:
    value = item(x)
    if isinstance(value, str):
        check_numeral(value)
    try:
        found = float(_real(value))
    except ValueError:
        raise Error("IRC423", f"{value!r} is no number") from None
    if isinstance(value, str) and math.isinf(found) and any(map(str.isdigit, value)):
        raise Error("IRC423", f"{value} is too large for a float")
    return found


def _complex(x: Any, imaginary: Any = 0) -> complex:
    return complex(item(x), item(imaginary))


def _implicit(x: Array) -> Any:
    """The number that a tensor given in place of one is: it must have no dimensions."""
    if x.ndim:
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} is given where a number is needed")
    return item(x)


def _implicit_int(x: Array) -> int:
    if x.dtype.kind not in "iu":
        raise Error("IRC423", f"a tensor of {x.dtype.name} is given where an integer is needed: int(...) converts it")
    return _implicit(x)


def _device(kind: str, index: int | None = None) -> str:
    return kind if index is None else f"{kind}:{index}"


def _result_type(x: Any, y: Any) -> int:
    return number_of(result_type(x, y))


_KIND = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}


def _can_cast(from_: int, to: int) -> bool:
    """Whether values keep their kind: bools to numbers, integers to floats, those to complex numbers."""
    a, b = (dtype_of(n, FLOAT32) for n in (from_, to))
    return _KIND[a.kind] <= _KIND[b.kind]


def _promoted(a: int, b: int) -> int:
    return number_of(promote(dtype_of(a, FLOAT32), dtype_of(b, FLOAT32)))


def _predicate(holds: Callable[[Array], bool]) -> Callable[[Array], bool]:
    return lambda x: bool(holds(x))


table(
    {
        "size": _size,
        "dim": one(lambda x: x.ndim),
        "numel": one(lambda x: x.size),
        "stride": _stride,
        "storage_offset": layout.offset_of,
        "element_size": one(lambda x: x.itemsize),
        "is_contiguous": layout.is_contiguous,
        "is_floating_point": _predicate(lambda x: is_floating(x.dtype)),
        "is_complex": _predicate(lambda x: x.dtype.kind == "c"),
        "is_nonzero": _predicate(item),
        "item": item,
        "Int": _int,
        "Float": _float,
        "Bool": one(lambda x: bool(item(x))),
        "Complex": _complex,
        "IntImplicit": _implicit_int,
        "FloatImplicit": one(lambda x: _float(_implicit(x))),
        "ScalarImplicit": _implicit,
        "result_type": _result_type,
        "promote_types": _promoted,
        "can_cast": _can_cast,
        "get_device": one(lambda x: -1),
        "device": _device,
        "is_grad_enabled": lambda: False,
        "is_autocast_enabled": lambda: False,
        "_size_if_not_equal": two(lambda a, b: None if list(a) == list(b) else list(a)),
    }
)
