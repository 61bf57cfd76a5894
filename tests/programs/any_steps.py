"""Steps with values of wide types: lists of anything, lists that hold themselves, casts."""

from irc.ir import Value, types
from irc.ir.types import ListType, Type, UnionType
from tests.programs.kinds import Bag, Boxed, Kind, admits, ir_type, opened
from tests.programs.maker import Maker
from tests.programs.torch_steps import Step

_MEMBERS = (types.INT, types.TENSOR, ListType(types.TENSOR))
WIDE: dict[str, tuple[Type, ...]] = {
    "anything": (types.ANY,),
    "unions": (UnionType(_MEMBERS[1:]), UnionType(_MEMBERS[:2]), UnionType(_MEMBERS)),
}
"""The families of steps that come with inputs of wide types, and these types."""


def new_bag(m: Maker, wide: Type, first: Value, *more: Value) -> Value:
    """A list of values of type ``wide``."""
    return m.emit("prim::ListConstruct", [first, *more], Bag(opened(m.kind(first)), wide))


def _some(m: Maker, wide: Type) -> Value:
    """A value that is one of type ``wide``."""
    return m.find(lambda k: admits(wide, k)) or m.tensor()


def bag(m: Maker) -> None:
    """A list of two values of whatever kinds."""
    wide = m.pick(m.wide)
    new_bag(m, wide, _some(m, wide), _some(m, wide))


def _some_bag(m: Maker) -> Value:
    if m.find(lambda k: isinstance(k, Bag)) is None:
        bag(m)
    found = m.find(lambda k: isinstance(k, Bag))
    assert found is not None
    return found


def put(m: Maker) -> None:
    """Something more into a list: if that is of type Any, the list itself, maybe, or a list that holds it."""
    into = _some_bag(m)
    value = _some(m, m.kind(into).type)
    m.emit("aten::append", [into, value], m.kind(into))


def put_and_take(m: Maker) -> None:
    """Something more into a list, and out of it again, of whatever type it was."""
    into = _some_bag(m)
    wide, value = m.kind(into).type, _some(m, m.kind(into).type)
    m.emit("aten::append", [into, value], m.kind(into))
    found = m.emit("aten::__getitem__", [into, m.number(-1)], Boxed(opened(m.kind(value)), wide))
    if len(m.kind(found).kinds) == 1:
        cast_to(m, found, *m.kind(found).kinds)


def knot(m: Maker) -> None:
    """A list that holds one that holds it."""
    outer = _some_bag(m)
    if m.kind(outer).type == types.ANY:
        inner = new_bag(m, types.ANY, outer, m.choose(m.newest_first()))
        m.emit("aten::append", [outer, inner], m.kind(outer))


def take(m: Maker) -> None:
    out_of = _some_bag(m)
    k = m.kind(out_of)
    m.emit("aten::__getitem__", [out_of, m.number(0)], Boxed(k.first, k.type))


def cast_to(m: Maker, x: Value, kind: Kind) -> None:
    m.emit("prim::unchecked_cast", [x], kind, ir_type(kind, False))


def cast(m: Maker) -> None:
    """What something of a wide type is, as that."""
    x = m.find(lambda k: isinstance(k, Boxed) and len(k.kinds) == 1)
    if x is not None:
        cast_to(m, x, *m.kind(x).kinds)


STEPS: dict[str, tuple[Step, ...]] = {"anything": (bag, put, knot, knot, take, cast)}
