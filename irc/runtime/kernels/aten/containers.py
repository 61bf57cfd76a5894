"""Lists and dictionaries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.kernels.aten.registering import by_node, one, table, three, two
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, check_size
from irc.runtime.values import is_array, is_sequence

_POINTER = np.dtype(np.intp)


def changeable(x: Any) -> list[Any]:
    """``x`` if it is a list that may be changed; constants may not. Error IRC431 if not."""
    if not isinstance(x, list):
        raise Error("IRC431", "an in-place operator would change a list that is a constant")
    return x  # type: ignore[reportUnknownVariableType]


def join_lists(x: Any, y: Any) -> list[Any]:
    """The elements of both in a new list."""
    return [*x, *y]


def repeat_list(x: Any, n: int) -> list[Any]:
    """The elements ``n`` times in a new list."""
    check_size((len(x), max(n, 0)), _POINTER)
    return list(x) * n


def same(x: Any, y: Any) -> bool:
    """Whether two values are equal; tensors in lists are compared by value."""
    if is_array(x) or is_array(y):
        equal = np.asarray(np.equal(x, y))
        if equal.size != 1:
            raise Error("IRC430", f"a comparison of tensors of shape {list(equal.shape)} is not one truth value")
        return bool(equal.item())
    if is_sequence(x) and is_sequence(y):
        return len(x) == len(y) and all(map(same, x, y))
    return x == y


# -- reading -------------------------------------------------------------------


def _get(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except (IndexError, KeyError):
        size = f"; it has {len(container)} elements"
        raise Error("IRC420", f"there is no element {key!r} in the {_kind(container)}{size}") from None


def _kind(container: Any) -> str:
    return {str: "string", dict: "dictionary"}.get(container.__class__, "list")


def _length(x: Any) -> int:
    if is_array(x) and not x.ndim:
        raise Error("IRC421", "a tensor without dimensions has no length")
    return len(x)


def _contains(container: Any, item: Any) -> bool:
    return any(same(item, v) for v in container) if is_sequence(container) else item in container


def index_of(x: Any, item: Any) -> int:
    """Where ``item`` first is in a list. Error IRC420 if it is not."""
    for i, value in enumerate(x):
        if same(value, item):
            return i
    raise Error("IRC420", f"{item!r} is not in the list")


def count(x: Any, item: Any) -> int:
    """How often ``item`` is in a list."""
    return sum(1 for value in x if same(value, item))


def _ordered(x: Any, reverse: bool = False) -> list[Any]:
    if any(map(is_array, x)):

        def compare(a: Array, b: Array) -> int:
            return -1 if bool(np.less(a, b)) else int(bool(np.less(b, a)))

        return sorted(x, key=functools.cmp_to_key(compare), reverse=reverse)
    return sorted(x, reverse=reverse)


# -- changing ------------------------------------------------------------------


def _set(container: Any, key: Any, value: Any) -> None:
    if not is_sequence(container):
        container[key] = value
    elif not -len(container) <= key < len(container):
        raise Error("IRC420", f"there is no element {key} to set in a list of {len(container)}")
    else:
        changeable(container)[key] = value


def pop(x: Any, *arguments: Any) -> Any:
    """``pop(list, index=-1)``, ``pop(dict, key)`` or ``pop(dict, key, default)``."""
    if not is_sequence(x):
        key, *default = arguments
        if key not in x and not default:
            raise Error("IRC420", f"there is no entry {key!r} to pop in the dictionary")
        return x.pop(key, *default)
    (index,) = arguments or (-1,)
    if not -len(x) <= index < len(x):
        raise Error("IRC420", f"there is no element {index} to pop in a list of {len(x)}")
    return changeable(x).pop(index)


def _delete(x: Any, key: Any) -> None:
    _get(x, key)
    del (changeable(x) if is_sequence(x) else x)[key]


def _remove(x: Any, item: Any) -> None:
    del changeable(x)[index_of(x, item)]


def sort_list(x: Any, reverse: bool = False) -> None:
    """Sort a list in place."""
    changeable(x)[:] = _ordered(x, reverse)


def popitem(x: dict[Any, Any]) -> Any:
    if not x:
        raise Error("IRC420", "there is no entry to pop in an empty dictionary")
    key = next(iter(x))
    return key, x.pop(key)


def copy_container(x: Any) -> Any:
    """A new list or dictionary of the same elements."""
    return list(x) if is_sequence(x) else dict(x)


def changing(change: Callable[..., None]) -> Callable[[Node], Kernel]:
    """A binder for operators that change their first argument and return it or nothing."""

    def bind(node: Node) -> Kernel:
        gives = len(node.outputs)

        def run(*arguments: Any) -> Any:
            change(*arguments)
            return arguments[0] if gives else ()

        return run

    return bind


_CHANGING: dict[str, Callable[..., None]] = {
    "_set_item": _set,
    "append": two(lambda x, value: changeable(x).append(value)),
    "extend": two(lambda x, values: changeable(x).extend(list(values))),
    "insert": three(lambda x, index, value: changeable(x).insert(index, value)),
    "Delete": _delete,
    "remove": _remove,
    "reverse": one(lambda x: changeable(x).reverse()),
    "clear": one(lambda x: (changeable(x) if is_sequence(x) else x).clear()),
    "update": two(lambda x, other: x.update(other)),
}
for _name, _run in _CHANGING.items():
    by_node(_name)(changing(_run))

table(
    __getitem__=_get,
    len=_length,
    __contains__=_contains,
    sorted=_ordered,
    list=list,
    dict=one(lambda entries=(): dict(entries)),
    get=three(lambda x, key, default=None: x.get(key, default)),
    setdefault=three(lambda x, key, value: x.setdefault(key, value)),
    keys=one(lambda x: list(x.keys())),
    values=one(lambda x: list(x.values())),
    items=one(lambda x: list(x.items())),
)
"""``aten::values``, ``aten::index`` and ``aten::count`` serve tensors or strings, too, and are with those."""
