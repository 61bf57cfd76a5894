"""What values of a type may be, one by one, and which types may be one and the same.

An optional value is the value itself or None, a union one of its members, so both dissolve: a type is a set of *parts*.
"""

from __future__ import annotations

from functools import lru_cache

from irc.ir import types
from irc.ir.types import ClassType, OptionalType, PrimType, TensorType, Type, TypeVar, UnionType

IMMUTABLE = frozenset("int float bool str complex Device NoneType Function Enum AnyEnumType Stream Dimname".split())
"""Names of types whose values cannot be written to, so that sharing them cannot be observed."""

_SYNONYMS = {
    "Scalar": ("int", "float", "bool", "complex"),
    "number": ("int", "float", "bool", "complex"),
    **dict.fromkeys(("SymInt", "Layout", "ScalarType", "MemoryFormat", "QScheme"), ("int",)),
    "SymFloat": ("float",),
    "SymBool": ("bool",),
}

REMEMBERED = 1 << 14
"""How many types, the last ones asked about, have their answers kept: types include sizes, so there are ever more."""


@lru_cache(maxsize=REMEMBERED)
def parts(type: Type) -> tuple[Type, ...]:
    """What a value of ``type`` may be: never an optional or a union, tensors without shape."""
    found: dict[Type, None] = {}
    pending = [type]
    while pending:
        t = pending.pop()
        if isinstance(t, TensorType):
            found[types.TENSOR] = None
        elif isinstance(t, OptionalType):
            pending += (t.elem, types.NONE)
        elif isinstance(t, UnionType):
            pending += t.members
        elif isinstance(t, PrimType):
            if t.name in _SYNONYMS:
                found.update(dict.fromkeys(PrimType(name) for name in _SYNONYMS[t.name]))
            else:
                found[t if t.name in IMMUTABLE else types.ANY] = None  # Any, or a type that irc does not know
        elif isinstance(t, TypeVar):
            found[types.ANY] = None
        else:
            found[t.of([union_of(parts(inner)) for inner in t.inner])] = None
    return (types.ANY,) if types.ANY in found else tuple(sorted(found, key=str))


@lru_cache(maxsize=REMEMBERED)
def may_be_one_type(a: Type, b: Type) -> bool:
    """Whether ``a`` and ``b`` may be one type, if each ``Any`` and interface in them stands for some type."""
    s, t = parts(a), parts(b)
    if s == t or types.ANY in s or types.ANY in t:
        return True
    return all(any(_may_be_one_part(x, y) for y in t) for x in s) and all(
        any(_may_be_one_part(x, y) for x in s) for y in t
    )


def _may_be_one_part(a: Type, b: Type) -> bool:
    if isinstance(a, ClassType) and isinstance(b, ClassType):
        return a == b or a.is_interface or b.is_interface
    if a.__class__ is not b.__class__ or not a.inner or len(a.inner) != len(b.inner):
        return a == b
    return all(map(may_be_one_type, a.inner, b.inner))


@lru_cache(maxsize=REMEMBERED)
def is_definite(type: Type) -> bool:
    """Whether no part of ``type`` stands for types that it does not name, as ``Any`` and interfaces do."""
    pending, seen = [*parts(type)], set[Type]()
    while pending:
        t = pending.pop()
        if t.is_any or (isinstance(t, ClassType) and t.is_interface):
            return False
        if t not in seen:
            seen.add(t)
            pending += t.inner
    return True


def union_of(members: tuple[Type, ...]) -> Type:
    """The type of what is of one of ``members``."""
    return members[0] if len(members) == 1 else UnionType(members)
