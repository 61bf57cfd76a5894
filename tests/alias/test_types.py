"""Which types overlap, on all pairs: against what their values are."""

import itertools

import pytest

from irc.alias.memory_types import atoms, overlap, type_intersection
from irc.ir import Type, types
from irc.ir.types import (
    ClassType,
    DictType,
    FutureType,
    ListType,
    OptionalType,
    PrimType,
    TupleType,
    TypeVar,
    UnionType,
)

T, INT, F, S, ANY = types.TENSOR, types.INT, types.FLOAT, types.STR, types.ANY

ALL: tuple[Type, ...] = (
    T,
    types.tensor(types.DType.FLOAT, (1, "n")),
    INT,
    F,
    S,
    types.NONE,
    types.SCALAR,
    ANY,
    TypeVar("t"),
    PrimType("SomethingUnheardOf"),
    OptionalType(T),
    OptionalType(INT),
    UnionType((INT, T)),
    UnionType((INT, S)),
    UnionType((ListType(INT), ListType(T))),
    ListType(T),
    ListType(INT),
    ListType(F),
    ListType(types.SCALAR),
    ListType(OptionalType(T)),
    ListType(OptionalType(INT)),
    ListType(ANY),
    ListType(ListType(T)),
    ListType(ListType(ANY)),
    ListType(ListType(OptionalType(T))),
    ListType(TupleType((OptionalType(T), INT))),
    ListType(TupleType((T, ANY))),
    ListType(OptionalType(ClassType("InterfaceType<I>"))),
    DictType(S, OptionalType(T)),
    DictType(S, UnionType((INT, T))),
    ListType(UnionType((INT, T))),
    ListType(UnionType((S, T))),
    TupleType((T, INT)),
    TupleType((T, ANY)),
    TupleType((ANY, INT)),
    TupleType((INT, INT)),
    TupleType((INT, S)),
    TupleType((T,)),
    TupleType((OptionalType(T), F)),
    DictType(S, T),
    DictType(INT, T),
    DictType(S, ANY),
    DictType(S, ListType(T)),
    FutureType(T),
    FutureType(INT),
    ClassType("a.M"),
    ClassType("a.N"),
    ClassType("InterfaceType<I>"),
    ClassType("InterfaceType<J>"),
    ListType(ClassType("a.M")),
    ListType(ClassType("InterfaceType<I>")),
)

_IMMUTABLE = {"int", "float", "bool", "complex", "str", "None"}


def kinds_of_values(type: Type, depth: int = 3) -> frozenset[object]:
    """Descriptions of values of ``type``, to a depth: two types overlap if some description is in both."""
    if depth == 0:
        return frozenset({"..."})
    sub = depth - 1
    match type:
        case types.TensorType():
            return frozenset({"tensor"})
        case OptionalType():
            return kinds_of_values(type.elem, depth) | {"None"}
        case UnionType():
            return frozenset().union(*(kinds_of_values(m, depth) for m in type.members))
        case ListType():
            return frozenset(("list", t) for t in exact_types(type.elem))
        case FutureType():
            return frozenset(("future", v) for v in kinds_of_values(type.elem, sub))
        case DictType():
            keys, values = exact_types(type.key), exact_types(type.value)
            return frozenset(("dict", k, v) for k in keys for v in values)
        case TupleType():
            return frozenset(("tuple", *vs) for vs in itertools.product(*(kinds_of_values(e, sub) for e in type.elems)))
        case ClassType(is_interface=True):
            return frozenset(("object", name) for name in ("a.M", "a.N", "of another class"))
        case ClassType():
            return frozenset({("object", type.name)})
        case PrimType(name="Scalar"):
            return frozenset({"int", "float", "bool", "complex"})
        case PrimType(name="NoneType"):
            return frozenset({"None"})
        case PrimType() if type.name in _IMMUTABLE:
            return frozenset({type.name})
        case _:  # anything at all
            some = [
                t for t in ALL if not isinstance(t, TypeVar | PrimType) or t in (INT, F, S, types.NONE, types.SCALAR)
            ]
            if depth == 1:
                return frozenset({"...", "tensor", *_IMMUTABLE})
            return frozenset().union(*(kinds_of_values(t, depth) for t in some if not _mentions_any(t))) | {
                v for t in some if not _mentions_any(t) for v in ({("list", x) for x in exact_types(t)})
            }


def exact_types(type: Type) -> frozenset[frozenset[object]]:
    """What the elements of a list may be, for each type that a list of ``type`` may be of: it is of one type only."""
    match type:
        case OptionalType():
            return frozenset(t | {"None"} for t in exact_types(type.elem))
        case UnionType():
            return frozenset(frozenset().union(*ts) for ts in itertools.product(*map(exact_types, type.members)))
        case TupleType() | ListType() | FutureType() | DictType():
            parts = itertools.product(*map(exact_types, type.inner))
            return frozenset(frozenset({(type.__class__.__name__, *ts)}) for ts in parts)
        case ClassType():
            return frozenset(frozenset({kind}) for kind in kinds_of_values(type))
        case PrimType() | types.TensorType() if str(type) != "Any" and "Unheard" not in str(type):
            return frozenset({kinds_of_values(type)})
        case _:  # anything at all
            found = frozenset().union(*(exact_types(t) for each in ALL for t in (each, *each.inner) if _is_exact(t)))
            objects = frozenset({frozenset({kind}) for kind in kinds_of_values(ClassType("InterfaceType<I>"))})
            return found | objects | frozenset(t | {"None"} for t in found | objects)


def _is_exact(type: Type) -> bool:
    is_open = str(type) in ("Any", "SomethingUnheardOf") or isinstance(type, TypeVar)
    return not is_open and "Interface" not in str(type) and all(map(_is_exact, type.inner))


def _mentions_any(type: Type) -> bool:
    return "Any" in str(type)


def has_mutable(kind: object) -> bool:
    if isinstance(kind, tuple):
        return kind[0] != "tuple" or any(map(has_mutable, kind[1:]))
    return kind not in _IMMUTABLE


@pytest.mark.parametrize("a", ALL, ids=str)
def test_overlap_is_what_values_say(a: Type) -> None:
    for b in ALL:
        common = {k for k in kinds_of_values(a, 3) & kinds_of_values(b, 3) if has_mutable(k)}
        assert overlap(a, b) == bool(common), f"{a} and {b}: {sorted(map(str, common))[:3]}"


def test_meet_is_commutative_and_idempotent() -> None:
    parts = list(dict.fromkeys(atom for t in ALL for atom in atoms(t)))
    for a, b in itertools.product(parts, parts):
        common = type_intersection(a, b)
        assert common == type_intersection(b, a)
        if common is not None:
            assert type_intersection(common, a) == common
            assert type_intersection(common, b) == common
