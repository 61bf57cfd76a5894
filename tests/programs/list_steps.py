"""Steps that make lists of views, and lists and dictionaries out of others."""

from irc.ir import Value
from tests.programs.container_steps import append, fitting, new_list, set_item
from tests.programs.kinds import KEYS, Map, Opt, Seq, Tens
from tests.programs.maker import Maker
from tests.programs.torch_steps import Step


def unbind(m: Maker) -> None:
    x = m.tensor(lambda k: k.rank >= 1 and all(k.shape))
    k = m.kind(x)
    dim = m.below(k.rank)
    part = Tens(k.dtype, (*k.shape[:dim], *k.shape[dim + 1 :]), k.frozen)
    m.emit("aten::unbind", [x, m.number(dim)], Seq(part, k.shape[dim]))


def split(m: Maker) -> None:
    """Into parts of one row."""
    x = m.tensor(lambda k: k.rank >= 1 and all(k.shape))
    k = m.kind(x)
    dim = m.below(k.rank)
    part = Tens(k.dtype, (*k.shape[:dim], 1, *k.shape[dim + 1 :]), k.frozen)
    if m.flip():
        m.emit("aten::split", [x, m.number(1), m.number(dim)], Seq(part, k.shape[dim]))
    else:
        m.emit("aten::chunk", [x, m.number(k.shape[dim]), m.number(dim)], Seq(part, k.shape[dim]))


def broadcast_tensors(m: Maker) -> None:
    """Views that repeat elements, so nothing may write into them."""
    xs = m.find(lambda k: isinstance(k, Seq) and isinstance(k.elem, Tens))
    if xs is None:
        x = m.tensor()
        xs = m.emit("prim::ListConstruct", [x], Seq(m.kind(x), 1))
    k = m.kind(xs)
    m.emit("aten::broadcast_tensors", [xs], Seq(Tens(k.elem.dtype, k.elem.shape, frozen=True), k.least))


# -- lists and dictionaries of the same elements ---------------------------------


def _find_list(m: Maker) -> Value | None:
    return m.find(lambda k: isinstance(k, Seq) and k.least > 0)


def copy(m: Maker) -> None:
    xs = _find_list(m)
    if xs is not None:
        m.emit(m.pick(["aten::list", "aten::copy"]), [xs], m.kind(xs))


def more(m: Maker) -> None:
    """A list and the elements of another one that is new."""
    xs = m.find(lambda k: isinstance(k, Seq) and isinstance(k.elem, Tens))
    if xs is None or m.depth > 1:  # in loops lists could double without end
        return
    k = m.kind(xs)
    ys = new_list(m, Seq(k.elem, 1))
    m.emit("aten::add", m.pick([[xs, ys], [ys, xs]]), Seq(k.elem, k.least + m.kind(ys).least))
    if m.flip():
        m.emit_many("aten::extend", [xs, ys], [])


def repeat(m: Maker) -> None:
    xs = _find_list(m)
    if xs is not None and not m.depth:  # in a loop it could double without end
        k = m.kind(xs)
        m.emit("aten::mul", [xs, m.number(2)], Seq(k.elem, 2 * k.least))


def part(m: Maker) -> None:
    xs = _find_list(m)
    if xs is not None:
        k = m.kind(xs)
        m.emit("aten::slice", [xs, m.number(0), m.number(k.least), m.number(1)], k)


def insert(m: Maker) -> None:
    xs = _find_list(m)
    if xs is not None:
        x = fitting(m, m.kind(xs).elem)
        if x is not None:
            m.emit_many("aten::insert", [xs, m.number(0), x], [])


def values(m: Maker) -> None:
    x = m.find(lambda k: isinstance(k, Map))
    if x is not None:
        m.emit("aten::values", [x], Seq(m.kind(x).elem, len(KEYS)))


def maybe(m: Maker) -> None:
    """``d.get(key)``, and what that is."""
    x = m.find(lambda k: isinstance(k, Opt))
    if x is not None and m.flip():
        m.emit("prim::unchecked_unwrap_optional", [x], m.kind(x).elem)
        return
    x = m.find(lambda k: isinstance(k, Map))
    if x is not None:
        m.emit("aten::get", [x, m.number(m.pick(KEYS))], Opt(m.kind(x).elem))


STORES = (append, set_item, insert)
"""What puts an element into a list."""

STEPS: dict[str, tuple[Step, ...]] = {
    "lists of views": (unbind, split, broadcast_tensors),
    "lists of lists": (more, more, set_item, set_item, copy, repeat, part, insert, values, maybe),
}
