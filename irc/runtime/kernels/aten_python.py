"""Torch operators on Python values (numbers, strings, lists, dictionaries), and those that serve tensors as well."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import ADD, DIV, MUL, SUB, register
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, axis_in
from irc.runtime.kernels.torch_types import result_type, tensor
from irc.runtime.values import is_array, is_sequence

# -- numbers, or tensors -------------------------------------------------------


def _either(on_tensors: Kernel, on_python: Callable[[Any, Any], Any]) -> Kernel:
    def run(x: Any, y: Any, *rest: Any) -> Any:
        if is_array(x) or is_array(y):
            return on_tensors(x, y, *rest)
        return on_python(x, y)

    return run


def _add(x: Any, y: Any) -> Any:
    """Numbers, strings, or lists (which may be constants, held as tuples)."""
    return list(x) + list(y) if is_sequence(x) else x + y


def _mul(x: Any, y: Any) -> Any:
    return list(x) * y if is_sequence(x) else x * y


def _comparison(ufunc: Callable[..., Any]) -> Kernel:
    def run(x: Any, y: Any) -> Array:
        dtype = result_type(x, y)
        return np.asarray(ufunc(tensor(x, dtype), tensor(y, dtype)))

    return run


def _equal(x: Any, y: Any) -> bool:
    return list(x) == list(y) if is_sequence(x) else x == y


_EITHER: tuple[tuple[str, Kernel, Callable[[Any, Any], Any]], ...] = (
    ("add", ADD[0], _add),
    ("sub", SUB[0], operator.sub),
    ("mul", MUL[0], _mul),
    ("div", DIV[0], lambda x, y: x / y),
    ("lt", _comparison(np.less), operator.lt),
    ("le", _comparison(np.less_equal), operator.le),
    ("gt", _comparison(np.greater), operator.gt),
    ("ge", _comparison(np.greater_equal), operator.ge),
    ("eq", _comparison(np.equal), _equal),
    ("ne", _comparison(np.not_equal), lambda x, y: not _equal(x, y)),
    ("__and__", _comparison(np.bitwise_and), lambda x, y: x & y),
    ("__or__", _comparison(np.bitwise_or), lambda x, y: x | y),
)
for _name, _tensors, _python in _EITHER:
    register(_name, _either(_tensors, _python))

# In place; on lists, mutation of the list (`xs += ys`).
register("sub_", SUB[1])
register("mul_", MUL[1])
register("div_", DIV[1])


def _add_(x: Any, y: Any, alpha: Any = 1) -> Any:
    if is_array(x):
        return ADD[1](x, y, alpha)
    _list(x).extend(y)
    return x


register("add_", _add_)


# -- conversions ---------------------------------------------------------------


def _item(x: Any) -> Any:
    if not is_array(x):
        return x
    if x.size != 1:
        raise Error("IRC421", f"only a tensor of one element is a number; the shape is {list(x.shape)}")
    return x.item()


_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "item": _item,
    "Int": lambda x: int(_item(x)),
    "Float": lambda x: float(_item(x)),
    "Bool": lambda x: bool(_item(x)),
    "IntImplicit": lambda x: int(_item(x)),
    "FloatImplicit": lambda x: float(_item(x)),
    "ScalarImplicit": _item,
    "floor": lambda x: np.asarray(np.floor(x)) if is_array(x) else math.floor(x),
    "ceil": lambda x: np.asarray(np.ceil(x)) if is_array(x) else math.ceil(x),
    "round": lambda x: np.asarray(np.rint(x)) if is_array(x) else round(x),  # to even, as torch
    "__not__": operator.not_,
    "list": list,
    "dim": lambda x: x.ndim,
    "numel": lambda x: x.size,
}
_OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda x, y: x // y,
    "remainder": operator.mod,
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
}
for _name, _run in (_OF_ONE | _OF_TWO).items():
    register(_name, _run)


# -- lists and dictionaries ----------------------------------------------------


def _list(x: Any) -> list[Any]:
    if not isinstance(x, list):
        raise Error("IRC431", "an in-place operator would change a list that is a constant")
    return x  # type: ignore[reportUnknownVariableType]


def _get(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except (IndexError, KeyError):
        size = f"; it has {len(container)} elements"
        raise Error("IRC420", f"there is no element {key!r} in the {type(container).__name__}{size}") from None


def _set(container: Any, key: Any, value: Any) -> Any:
    if not is_sequence(container):
        container[key] = value
    elif not -len(container) <= key < len(container):
        raise Error("IRC420", f"there is no element {key} to set in a list of {len(container)}")
    else:
        _list(container)[key] = value
    return container


def _append(x: Any, value: Any) -> Any:
    _list(x).append(value)
    return x


def _extend(x: Any, values: Any) -> Any:
    _list(x).extend(values)
    return x


def _insert(x: Any, index: int, value: Any) -> Any:
    _list(x).insert(index, value)
    return x


def _pop(x: Any, index: int = -1) -> Any:
    if not -len(x) <= index < len(x):
        raise Error("IRC420", f"there is no element {index} to pop in a list of {len(x)}")
    return _list(x).pop(index)


def _clear(x: Any) -> Any:
    _list(x).clear()
    return x


def _size(x: Array, dim: int | None = None) -> Any:
    return list(x.shape) if dim is None else x.shape[axis_in(dim, x.ndim)]


def _len(x: Any) -> int:
    if is_array(x) and not x.ndim:
        raise Error("IRC421", "a tensor without dimensions has no length")
    return len(x)


_CONTAINERS: dict[str, Kernel] = {
    "__getitem__": _get,
    "_set_item": _set,
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "clear": _clear,
    "len": _len,
    "size": _size,
}
for _name, _run in _CONTAINERS.items():
    register(_name, _run)
