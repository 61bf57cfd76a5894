"""Steps with values of type Any: lists of anything, lists that hold themselves."""

from __future__ import annotations

from irc.ir import Value, types
from irc.ir.types import ListType
from tests.programs.kinds import Bag, Boxed, ir_type
from tests.programs.maker import Maker
from tests.programs.torch_steps import Step

NAME = "anything"


def bag(m: Maker) -> None:
    """A list of two values of whatever kinds."""
    first = m.choose(m.newest_first()) if m.scope else m.tensor()
    second = m.choose(m.newest_first()) if m.scope else m.tensor()
    kind = m.kind(first)
    held = kind.elem if isinstance(kind, Boxed) else kind
    m.emit("prim::ListConstruct", [first, second], Bag(held), ListType(types.ANY))


def _some_bag(m: Maker) -> Value:
    if m.find(lambda k: isinstance(k, Bag)) is None:
        bag(m)
    found = m.find(lambda k: isinstance(k, Bag))
    assert found is not None
    return found


def put(m: Maker) -> None:
    """Something more into a list: the list itself, maybe, or a list that holds it."""
    into = _some_bag(m)
    value = m.choose(m.newest_first())
    m.emit("aten::append", [into, value], m.kind(into), into.type)


def knot(m: Maker) -> None:
    """A list that holds one that holds it."""
    outer = _some_bag(m)
    more = m.choose(m.newest_first())
    inner = m.emit("prim::ListConstruct", [outer, more], Bag(m.kind(outer)), outer.type)
    m.emit("aten::append", [outer, inner], m.kind(outer), outer.type)


def take(m: Maker) -> None:
    out_of = _some_bag(m)
    m.emit("aten::__getitem__", [out_of, m.number(0)], Boxed(m.kind(out_of).first), types.ANY)


def cast(m: Maker) -> None:
    """What an Any is, as that."""
    x = m.find(lambda k: isinstance(k, Boxed))
    if x is not None:
        m.emit("prim::unchecked_cast", [x], m.kind(x).elem, ir_type(m.kind(x).elem, False))


STEPS: dict[str, tuple[Step, ...]] = {NAME: (bag, put, knot, knot, take, cast)}
"""``x: Any`` inputs come with these."""
