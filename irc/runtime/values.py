"""What values are at run time.

Tensors are NumPy arrays, sequences and lists are lists (constant ones
`ConstantList`, which nothing can change), optionals the value or None, maps
dicts, and TorchScript's numbers and strings Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import Any, TypeGuard

import numpy as np

Array = np.ndarray[Any, Any]


class ConstantList(tuple[Any, ...]):
    """A list that nothing can change, inside a run. Callers get it as a list."""

    __slots__ = ()


def integer(value: Any) -> int | None:
    """``value`` as Python's int if it is an integer, NumPy's too; truth values are none."""
    try:
        return None if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:
        return None


def is_array(value: Any) -> TypeGuard[Array]:
    """Whether ``value`` is a tensor."""
    return isinstance(value, np.ndarray)


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether ``value`` is a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Whether ``value`` is a tuple, and no list that cannot be changed."""
    return isinstance(value, tuple) and not isinstance(value, ConstantList)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether ``value`` is a map."""
    return isinstance(value, (dict, Mapping))  # dicts, which most are, are seen at once


def describe(value: Any, levels: int = 3) -> str:
    """Element type and shape, for messages: ``float32[1, 3, 224, 224]``; of lists, so many levels."""
    if is_array(value):
        dtype = "string" if value.dtype.hasobject else value.dtype.name
        return f"{dtype}{list(value.shape)}"
    if is_sequence(value):
        first = f" ({describe(value[0], levels - 1)}, ...)" if value and levels else ""
        return f"{'tuple' if is_tuple(value) else 'list'} of {len(value)}{first}"
    if isinstance(value, str):
        value = value[:40]  # of a long one, Python would write all
    return "absent" if value is None else f"{type(value).__name__} {value!r:.40}"


def map_arrays(value: Any, change: Callable[[Array], Array]) -> Any:
    """``value`` with ``change`` applied to every array in it; lists, tuples and dicts are new, constant lists lists."""
    if is_array(value):
        return change(value)
    if is_sequence(value):
        changed = [map_arrays(v, change) for v in value]
        return tuple(changed) if is_tuple(value) else changed
    if is_mapping(value):
        return {k: map_arrays(v, change) for k, v in value.items()}
    return value


def arrays_once(values: Iterable[Any]) -> Iterator[Array]:
    """All arrays in ``values``, each container looked at once: lists may hold each other many times, and themselves."""
    pending, seen = [values], set[int]()
    while pending:
        for value in pending.pop():
            if is_array(value):
                yield value
            elif is_sequence(value) and id(value) not in seen:
                seen.add(id(value))
                pending.append(value)
            elif is_mapping(value):
                pending.append(value.values())
