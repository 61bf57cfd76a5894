"""Steps that make lists, tuples, dictionaries and optionals, change them, and take them apart."""

import numpy as np

from irc.ir import Value
from irc.ir.types import TENSOR, ListType
from tests.programs import torch_steps
from tests.programs.any_steps import new_bag
from tests.programs.kinds import BOOL, FLOAT, KEYS, LONG, Bag, Kind, Map, Opt, Seq, Tens, Tup, fits
from tests.programs.maker import Maker, small
from tests.programs.torch_steps import Step


def fitting(m: Maker, kind: Kind) -> Value | None:
    """A visible value that may be where ``kind`` is expected; tensors and lists of them are made if there is none."""
    found = m.find(lambda k: fits(k, kind))
    if found is None and isinstance(kind, Tens):
        return m.fresh(kind)
    if found is None and isinstance(kind, Seq) and isinstance(kind.elem, Tens):
        return new_list(m, kind)
    if found is None and isinstance(kind, Bag) and isinstance(kind.first[0], Tens):
        return new_bag(m, kind.type, m.fresh(kind.first[0]))
    return found


def new_list(m: Maker, kind: Seq) -> Value:
    """A list of visible tensors, old ones rather than new ones, that may be where ``kind`` is expected."""
    elem = kind.elem
    assert isinstance(elem, Tens)
    known = list(reversed(m.candidates(lambda k: fits(k, elem)))) or [m.fresh(elem)]
    elements = [m.pick(known) for _ in range(max(kind.least, 1))]
    return m.emit("prim::ListConstruct", elements, Seq(elem, len(elements)))


def _elements(m: Maker, count: int) -> tuple[Kind, list[Value]]:
    """Some values of one kind, tensors mostly; the kind is what a container of them holds."""
    first = m.pick(m.candidates(lambda k: isinstance(k, Seq))[:2] or [m.tensor()]) if not m.below(4) else m.tensor()
    kind = m.kind(first)
    if isinstance(kind, Tens) and not kind.frozen and m.below(4) == 3:
        kind = Tens(kind.dtype, kind.shape, frozen=True)  # it may hold constants too
    return kind, [first, *(fitting(m, kind) for _ in range(count - 1))]


def make_list(m: Maker) -> None:
    kind, values = _elements(m, m.between(1, 3))
    m.emit("prim::ListConstruct", values, Seq(kind, len(values)))


def make_tuple(m: Maker) -> None:
    values = [m.choose(m.newest_first()) if m.scope else m.tensor() for _ in range(m.between(1, 2))]
    m.emit("prim::TupleConstruct", values, Tup(tuple(m.kind(v) for v in values)))


def make_dict(m: Maker) -> None:
    kind, values = _elements(m, len(KEYS))
    pairs = [v for key, value in zip(KEYS, values) for v in (m.number(key), value)]
    m.emit("prim::DictConstruct", pairs, Map(kind))


# -- lists ---------------------------------------------------------------------


def _list(m: Maker) -> Value:
    found = m.find(lambda k: isinstance(k, Seq))
    if found is None:
        make_list(m)
        found = m.scope[-1]
    return found


def get_item(m: Maker) -> None:
    xs = _list(m)
    k = m.kind(xs)
    m.emit("aten::__getitem__", [xs, m.number(m.between(-k.least, k.least - 1))], k.elem)


def append(m: Maker) -> None:
    xs = _list(m)
    k = m.kind(xs)
    x = fitting(m, k.elem)
    if x is not None:
        m.emit("aten::append", [xs, x], k)


def set_item(m: Maker) -> None:
    xs = _list(m)
    k = m.kind(xs)
    x = fitting(m, k.elem)
    if x is not None:
        m.emit("aten::_set_item", [xs, m.number(m.below(k.least)), x], k)


def extend(m: Maker) -> None:
    xs = _list(m)
    k = m.kind(xs)
    ys = m.choose(m.candidates(lambda o: isinstance(o, Seq) and o.elem == k.elem))
    if m.flip():
        m.emit("aten::add", [xs, ys], Seq(k.elem, k.least + m.kind(ys).least))
    elif ys is not xs and not m.depth:  # in a loop the lists could extend each other without end
        m.emit_many("aten::extend", [xs, ys], [])


def join(m: Maker) -> None:
    """All elements of a list, whose number is known only at run time, as one tensor; then some rows of that."""
    xs = m.find(lambda k: isinstance(k, Seq) and isinstance(k.elem, Tens) and k.elem.rank >= 1 and all(k.elem.shape))
    if xs is None:
        return
    k = m.kind(xs).elem
    kind = m.pick(["aten::cat", "aten::stack", "onnx::ConcatFromSequence"])
    inner = k.shape if kind == "aten::stack" else k.shape[1:]
    if kind == "onnx::ConcatFromSequence":
        joined = m.builder.op(kind, xs, attributes={"axis": 0})
    else:
        joined = m.builder.op(kind, xs, m.number(0))
    if kind == "aten::cat" and m.flip():
        m.emit("aten::slice", [joined, *map(m.number, (0, 0, k.shape[0]))], Tens(k.dtype, k.shape))
    else:
        m.emit("aten::select", [joined, m.number(0), m.number(m.between(-1, 0))], Tens(k.dtype, inner))


def join_new(m: Maker) -> None:
    """Some tensors, most of them new, as one: maybe one of them twice, or of several element types."""
    stacks, mixed = m.flip(), not m.below(4)
    x = m.tensor(lambda k: 1 <= k.rank <= 3)
    k = m.kind(x)
    axis = m.pick([0, 0, 0, m.below(k.rank + stacks)])
    rest = k.shape if stacks else (*k.shape[:axis], *k.shape[axis + 1 :])

    def match(o: Kind) -> bool:
        if not isinstance(o, Tens) or o.rank != k.rank or not (mixed or o.dtype is k.dtype):
            return False
        return (o.shape if stacks else (*o.shape[:axis], *o.shape[axis + 1 :])) == rest

    parts = [x, *(m.choose(m.candidates(match) or [x]) for _ in range(m.below(4)))]
    parts = [_computed(m, part) if m.below(3) else part for part in parts]
    sizes = [m.kind(part).shape[axis] if not stacks else 1 for part in parts]
    shape = (*rest[:axis], sum(sizes), *rest[axis:])
    if not small(shape):
        return
    of_types = {m.kind(part).dtype for part in parts}
    dtype = next(each for each in (FLOAT, LONG, BOOL) if each in of_types)
    if m.below(6) or len({m.kind(part) for part in parts}) > 1:
        made = m.builder.op("prim::ListConstruct", *parts, type=ListType(TENSOR))
    else:  # others may use the list
        made = m.emit("prim::ListConstruct", parts, Seq(Tens(dtype, k.shape, frozen=True), len(parts)))
    m.emit("aten::stack" if stacks else "aten::cat", [made, m.number(axis)], Tens(dtype, shape))


def _computed(m: Maker, x: Value) -> Value:
    """A tensor of the same kind that is made here, or a view of one."""
    k = m.kind(x)
    if k.dtype is BOOL:
        return m.emit("aten::logical_not", [x], Tens(BOOL, k.shape))
    made = m.emit(m.pick(["aten::relu", "aten::neg", "aten::clone"]), [x], Tens(k.dtype, k.shape))
    if m.below(4):
        return made
    flat = m.emit("aten::reshape", [made, m.ints([-1])], Tens(k.dtype, (int(np.prod(k.shape)),))) if k.shape else made
    return m.emit("aten::view", [flat, m.ints(k.shape)], Tens(k.dtype, k.shape)) if all(k.shape) else made


# -- tuples, dictionaries ------------------------------------------------------


def unpack(m: Maker) -> None:
    x = m.find(lambda k: isinstance(k, Tup))
    if x is not None:
        m.emit_many("prim::TupleUnpack", [x], m.kind(x).elems)


def look_up(m: Maker) -> None:
    x = m.find(lambda k: isinstance(k, Map))
    if x is not None:
        m.emit("aten::__getitem__", [x, m.number(m.pick(KEYS))], m.kind(x).elem)


def enter(m: Maker) -> None:
    x = m.find(lambda k: isinstance(k, Map))
    value = None if x is None else fitting(m, m.kind(x).elem)
    if x is not None and value is not None:
        m.emit_many("aten::_set_item", [x, m.number(m.pick(KEYS)), value], [])


# -- sequences and optionals of ONNX -------------------------------------------


def sequence(m: Maker) -> None:
    kind, values = _elements(m, m.between(1, 3))
    if isinstance(kind, Tens):
        m.emit("onnx::SequenceConstruct", values, Seq(kind, len(values)))


def sequence_at(m: Maker) -> None:
    xs = _list(m)
    k = m.kind(xs)
    if isinstance(k.elem, Tens):
        at = m.shape_constant(m.between(-k.least, k.least - 1))
        m.emit("onnx::SequenceAt", [xs, at], k.elem)


def sequence_insert(m: Maker) -> None:
    xs = _list(m)
    k = m.kind(xs)
    if isinstance(k.elem, Tens):
        x = fitting(m, k.elem)
        where = [m.shape_constant(0)] if m.flip() else []
        m.emit("onnx::SequenceInsert", [xs, x, *where], Seq(k.elem, k.least + 1))


def sequence_erase(m: Maker) -> None:
    xs = m.find(lambda k: isinstance(k, Seq) and k.least > 1 and isinstance(k.elem, Tens))
    if xs is not None:
        k = m.kind(xs)
        m.emit("onnx::SequenceErase", [xs, m.shape_constant(0)], Seq(k.elem, k.least - 1))


def sequence_length(m: Maker) -> None:
    xs = m.find(lambda k: isinstance(k, Seq) and isinstance(k.elem, Tens))
    if xs is not None:
        m.emit("onnx::SequenceLength", [xs], Tens(LONG, ()))


def split_to_sequence(m: Maker) -> None:
    x = m.tensor(lambda k: k.dtype is FLOAT and k.rank >= 1 and all(k.shape))
    k = m.kind(x)
    keep = m.below(2)
    part = Tens(k.dtype, (*[1] * keep, *k.shape[1:]), k.frozen)
    m.emit("onnx::SplitToSequence", [x], Seq(part, k.shape[0]), axis=0, keepdims=keep)


def optional(m: Maker) -> None:
    x = m.find(lambda k: isinstance(k, Opt))
    if x is None or m.flip():
        value = m.tensor() if m.below(3) else _list(m)
        m.emit("onnx::Optional", [value], Opt(m.kind(value)))
    else:
        m.emit("onnx::OptionalGetElement", [x], m.kind(x).elem)


STEPS: dict[str, tuple[Step, ...]] = {
    "lists": (make_list, get_item, get_item, append, set_item, extend, join),
    "joins": (join_new, join_new, join_new, torch_steps.unary, torch_steps.binary),
    "tuples": (make_tuple, unpack),
    "dictionaries": (make_dict, look_up, enter),
    "sequences": (sequence, sequence_at, sequence_insert, sequence_erase, sequence_length, split_to_sequence),
    "optionals": (optional,),
}
