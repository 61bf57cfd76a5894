"""Members of enumerations, which TorchScript tells from numbers, strings and objects."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, cast

from irc.ir.types import DictType, EnumType, ListType, OptionalType, TupleType, Type


@dataclass(frozen=True)
class EnumMember:
    """A member of an enumeration. Two are equal if they have the same enumeration and name.

    Attributes:
        type: the enumeration.
        name: the member's name in it.
        value: an int, a float or a str. None if it is not known: TorchScript's text has the names of members, but not
            their values.
    """

    type: EnumType
    name: str
    value: int | float | str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.path

    @property
    def path(self) -> str:
        """The name of the member with that of its enumeration: ``__torch__.Color.RED``."""
        return f"{self.type.name}.{self.name}"

    @staticmethod
    def at(path: str, value: int | float | str | None = None) -> EnumMember:
        """The member that has this `path`."""
        type, _, name = path.rpartition(".")
        return EnumMember(EnumType(type), name, value)


def with_members(value: Any, type: Type) -> Any:
    """``value``, of ``type``, with irc's enumeration members in place of Python's (``enum.Enum``)."""
    return _with_members(value, type) if _has_members(type) else value


def _has_members(type: Type) -> bool:
    return isinstance(type, EnumType) or any(map(_has_members, type.inner))


def _with_members(value: Any, type: Type) -> Any:
    if isinstance(type, OptionalType):
        return None if value is None else _with_members(value, type.elem)
    if isinstance(type, ListType) and isinstance(value, list):
        return [_with_members(v, type.elem) for v in cast("list[Any]", value)]
    if isinstance(type, TupleType) and isinstance(value, tuple):
        return tuple(map(_with_members, cast("tuple[Any, ...]", value), type.elems))
    if isinstance(type, DictType) and isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_with_members(k, type.key): _with_members(v, type.value) for k, v in items}
    if not isinstance(type, EnumType) or not isinstance(value, enum.Enum):
        return value
    stands_for: Any = value.value
    return EnumMember(type, value.name, stands_for if isinstance(stands_for, int | float | str) else None)
