"""Tensors in the attributes of nodes and objects, also inside of lists, tuples and dictionaries of any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from irc.ir.objects import Object, Strided
from irc.ir.tensor import Tensor

if TYPE_CHECKING:
    from irc.ir.node import Node


_PLAIN = frozenset({bool, int, float, complex, str, bytes})
"""Of these there may be very many."""


def tensors_of(node: Node) -> Iterator[Tensor]:
    """All tensors in the attributes of ``node`` itself."""
    for value in node.attributes.values():
        for tensor in tensors_in(value):
            assert isinstance(tensor, Tensor), "views of storages are attributes of objects only"
            yield tensor


def tensors_in(value: Any) -> Iterator[Tensor | Strided]:
    """All tensors in the value of an attribute of a node or object."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Tensor | Strided):
            yield item
        elif isinstance(item, Object):
            pending.extend(item.attributes.values())
        elif isinstance(item, dict):
            pending.extend(cast("dict[Any, Any]", item).values())
        elif isinstance(item, list | tuple):
            pending.extend(v for v in cast("list[Any]", item) if v.__class__ not in _PLAIN)


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The value of an attribute with ``change`` applied to all tensors in it, in new lists and dictionaries."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        items = [v if v.__class__ in _PLAIN else map_tensors(v, change) for v in cast("list[Any]", value)]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in cast("dict[Any, Any]", value).items()}
    return value
