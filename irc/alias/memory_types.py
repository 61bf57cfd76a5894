"""What types say about memory: which values have any, and which types may denote the same.

Shapes and element types of tensors say nothing here: ``view(dtype)`` and
reshapes keep the memory. An optional value is the value itself or None, a
union one of its members, so both dissolve: a type is a set of *parts*, and
those parts whose values have memory are its *atoms*: ``Tensor``, ``Any``,
and list, dictionary, tuple, future and class types.

Lists and dictionaries are of one type only: a list of tensors is not a list of optional tensors, though it may hold the
same. Runs hold to that, see `irc.runtime.values`. (A tuple of a tensor is one of an optional tensor.)
"""

from __future__ import annotations

from functools import lru_cache

from irc.ir import types
from irc.ir.types import (
    IMMUTABLE,
    REMEMBERED,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    ListType,
    PrimType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    is_definite,
    may_be_one_type,
    parts,
    union_of,
)


@lru_cache(maxsize=REMEMBERED)
def atoms(type: Type) -> tuple[Type, ...]:
    """The parts of ``type`` whose values have memory that could be written to."""
    return tuple(p for p in parts(type) if not _is_immutable(p))


def has_memory(type: Type) -> bool:
    """Whether values of this type have memory that could be written to: neither numbers nor strings, say."""
    return type.__class__ is TensorType or bool(atoms(type))


def overlap(a: Type, b: Type) -> bool:
    """Whether a value of type ``a`` and one of type ``b`` may be the same object, or the same memory."""
    return any(type_intersection(s, t) is not None for s in atoms(a) for t in atoms(b))


@lru_cache(maxsize=REMEMBERED)
def type_intersection(a: Type, b: Type) -> Type | None:
    """The part whose values are of both parts ``a`` and ``b``; None if there are none."""
    if a == b or b == types.ANY:
        return a
    if a == types.ANY:
        return b
    if isinstance(a, ClassType) and isinstance(b, ClassType) and (a.is_interface or b.is_interface):
        # Some class may have both interfaces: for its objects the type of either will do.
        return min(a, b, key=lambda t: (t.is_interface, t.name))
    if a.__class__ is not b.__class__ or not a.inner or len(a.inner) != len(b.inner):
        return None
    if isinstance(a, ListType | DictType):
        if not all(may_be_one_type(x, y) for x, y in zip(a.inner, b.inner)):
            return None
        for t in (a, b):
            if is_definite(t):
                return t
    common = [found for x, y in zip(a.inner, b.inner) if (found := _common(x, y)) is not None]
    return a.of(common) if len(common) == len(a.inner) else None


@lru_cache(maxsize=REMEMBERED)
def is_closed(part: Type) -> bool:
    """Whether a part says exactly what its values are: of other such parts, it overlaps only itself."""
    if isinstance(part, ListType | DictType):
        return is_definite(part)
    if isinstance(part, UnionType) or part.is_any or (isinstance(part, ClassType) and part.is_interface):
        return False
    return all(map(is_closed, part.inner))


@lru_cache(maxsize=REMEMBERED)
def content_types(type: Type) -> tuple[Type, ...]:
    """The types of what an object of atom ``type`` may hold; empty for tensors; by field for a tuple."""
    known = isinstance(type, ListType | FutureType | DictType | TupleType | TensorType)
    return type.inner if known else (types.ANY,)  # objects of classes and Any


@lru_cache(maxsize=REMEMBERED)
def may_hold(type: Type) -> bool:
    """Whether an object of ``type`` may hold something with memory. Tensors hold nothing."""
    return any(has_memory(held) for atom in atoms(type) for held in content_types(atom))


def _is_immutable(part: Type) -> bool:
    if isinstance(part, TupleType):
        return not any(has_memory(e) for e in part.elems)
    return isinstance(part, EnumType) or (isinstance(part, PrimType) and part.name in IMMUTABLE)


def _common(a: Type, b: Type) -> Type | None:
    """The type of the values that are of both types; None if there are none."""
    both = {m for s in parts(a) for t in parts(b) if (m := type_intersection(s, t)) is not None}
    return union_of(tuple(sorted(both, key=str))) if both else None
