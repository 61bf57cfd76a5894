"""Hashable keys of attributes: equal keys mean equal attributes, bit for bit."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, cast

from irc.ir import Opaque, Tensor
from irc.ir.objects import EnumMember

if TYPE_CHECKING:
    from irc.ir import Node

_UNHASHED = 1024
"""In-line tensors of more elements are told apart by identity: looking at their bytes would cost more than it gains."""


def attributes_key(node: Node) -> tuple[Any, ...]:
    """A hashable key of all attributes of ``node``."""
    attributes = node.attributes
    if not attributes:
        return ()
    return tuple((name, value_key(attributes[name])) for name in sorted(attributes))


def value_key(value: Any) -> Any:
    """A hashable key of one attribute's value; 1, 1.0 and True differ, and so do 0.0 and -0.0; a NaN equals itself."""
    if isinstance(value, Tensor):
        known = value.is_splat or value.name or (value.numel <= _UNHASHED and not value.is_absent)
        return value.key() if known else id(value)
    if isinstance(value, Opaque):
        return id(value)  # two that read alike may stand for different contents
    if isinstance(value, float):
        return (float, struct.pack("<d", value))
    if isinstance(value, complex):
        return (complex, struct.pack("<dd", value.real, value.imag))
    if isinstance(value, EnumMember):
        return (EnumMember, value.path, value_key(value.value))
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        kinds = set(map(type, items))
        # Tree ensembles have lists of a million numbers.
        if kinds == {float}:
            return (type(items), float, struct.pack(f"<{len(items)}d", *items))
        if kinds == {int}:
            return (type(items), int, tuple(items))
        return (type(items), tuple(map(value_key, items)))
    if isinstance(value, int | str) or value is None:
        return (type(value), value)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value  # types compare by value, graphs by identity
