"""Kernels of other packages: what they return is checked, so that a mistake is not blamed on the next operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from irc.errors import Error
from irc.ir.types import DictType, ListType, OptionalType, TensorType, Type
from irc.runtime.values import describe, is_array, is_mapping, is_sequence

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.kernels.registry import Binder, Kernel


def is_foreign(binder: Binder) -> bool:
    """Whether ``binder`` is none of irc's own."""
    return not getattr(binder, "__module__", "").startswith("irc.")


def checked(kernel: Kernel, node: Node, binder: Binder) -> Kernel:
    """``kernel``, which ``binder`` made for ``node``, with NumPy's scalars made arrays.

    It raises IRC401 where a result is not of the type that the node promises, or there are not as many.
    """
    types = [output.type for output in node.outputs]
    name = f"{getattr(binder, '__module__', '?')}.{getattr(binder, '__qualname__', '?')}"

    def one(value: Any, type: Type) -> Any:
        if _is_scalar(value):
            value = np.asarray(value) if isinstance(type, TensorType) else value.item()
        if not _is_of(value, type):
            raise Error("IRC401", f"its kernel, by {name}, returns {describe(value)} where {type} is promised")
        return value

    def run_one(*inputs: Any) -> Any:
        return one(kernel(*inputs), types[0])

    def run_many(*inputs: Any) -> Any:
        results = kernel(*inputs)
        if not _is_tuple(results) or len(results) != len(types):
            raise Error("IRC401", f"its kernel, by {name}, returns {describe(results)}, not a tuple of {len(types)}")
        return tuple(map(one, results, types))

    if not types:
        return kernel  # called for its effects
    return run_one if len(types) == 1 else run_many


def _is_scalar(value: Any) -> TypeGuard[np.generic[Any]]:
    return isinstance(value, np.generic)


def _is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def _is_of(value: Any, type: Type) -> bool:
    """Whether ``value`` is of ``type``, as far as the kind of value and element types go."""
    if isinstance(type, TensorType):
        return is_array(value) and (type.dtype is None or value.dtype == type.dtype.numpy)
    if isinstance(type, OptionalType):
        return value is None or _is_of(value, type.elem)
    if isinstance(type, ListType):
        return is_sequence(value) and all(_is_of(v, type.elem) for v in value)
    return is_mapping(value) if isinstance(type, DictType) else True
