"""Rules of single kinds: containers and objects, and tensor operators whose effect no annotation can express."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias.facts import NOTHING
from irc.alias.memory_types import has_memory
from irc.alias.rules.control_flow import opaque
from irc.alias.rules.entry import Entry, Steps, always
from irc.ir import types
from irc.ir.constants import constant_value
from irc.ir.kinds import CONSTANT
from irc.ir.node import Node
from irc.ir.tensor import Tensor

if TYPE_CHECKING:
    from irc.alias.recorder import Recorder


def _uninitialized(rec: Recorder, node: Node) -> None:
    """A place holder for what no path uses: it denotes no memory at all."""
    for output in node.outputs:
        if has_memory(output.type):
            rec.own(output, rec.facts.new())
        else:
            rec.fresh(output)


def _list_construct(rec: Recorder, node: Node) -> None:
    """The result is a new container, and holds the inputs."""
    location = rec.container(node.output)
    held = rec.join([rec.element(value) for value in node.inputs if has_memory(value.type)])
    rec.store(location, held, types.ANY)  # at once: a list may be made of very many


def _tuple_construct(rec: Recorder, node: Node) -> None:
    """The result is a new tuple, and holds each input at its position."""
    if not has_memory(node.output.type):
        rec.fresh(node.output)
        return
    location = rec.container(node.output)
    for i, value in enumerate(node.inputs):
        if has_memory(value.type):
            rec.store(location, rec.element(value), value.type, i)


def _unpack(rec: Recorder, node: Node) -> None:
    """``prim::ListUnpack``: every output is some element."""
    base = rec.element(node.inputs[0])
    for output in node.outputs:
        rec.bind(output, rec.load(base, output.type))


def _tuple_unpack(rec: Recorder, node: Node) -> None:
    """Output i is what the tuple holds at position i."""
    base = rec.element(node.inputs[0])
    for i, output in enumerate(node.outputs):
        rec.bind(output, rec.load(base, output.type, i))


def _tuple_index(rec: Recorder, node: Node) -> None:
    """The result is what the tuple holds at the position, or anywhere if that is no constant."""
    index = _constant(node, 1)
    held = node.inputs[0].type
    if isinstance(index, int) and isinstance(held, types.TupleType):
        index %= max(len(held.elems), 1)
    else:
        index = None
    rec.bind(node.output, rec.load(rec.element(node.inputs[0]), node.output.type, index))


def _tuple_slice(rec: Recorder, node: Node) -> None:
    """The result is a new tuple, and holds what the first one does at the positions from ``beg`` to ``end``."""
    location = rec.container(node.output)
    base = rec.element(node.inputs[0])
    held = node.inputs[0].type
    elems = node.output.type.elems if isinstance(node.output.type, types.TupleType) else ()
    taken = slice(node.attributes.get("beg", 0), node.attributes.get("end"))
    indices = range(len(held.elems))[taken] if isinstance(held, types.TupleType) else ()
    for i, elem in enumerate(elems):
        index = indices[i] if i < len(indices) else None
        rec.store(location, rec.load(base, elem, index), elem, i)


def _get_attr(rec: Recorder, node: Node) -> None:
    """The result is what the object holds in the attribute."""
    name = str(node.attributes.get("name", ""))
    rec.bind(node.output, rec.load(rec.element(node.inputs[0]), node.output.type, name))


def _set_attr(rec: Recorder, node: Node) -> None:
    """The object is written, and holds the second input in the attribute."""
    name = str(node.attributes.get("name", ""))
    target, value = node.inputs[0], node.inputs[1]
    rec.write(node, rec.element(target))
    if has_memory(value.type):
        rec.store(rec.element(target), rec.element(value), value.type, name)


def _create_object(rec: Recorder, node: Node) -> None:
    """The result is a new object that holds nothing yet."""
    rec.container(node.output)


def _same(rec: Recorder, node: Node) -> None:
    """All outputs may be, or be views of, the first input."""
    element = rec.element(node.inputs[0])
    for output in node.outputs:
        rec.bind(output, element if has_memory(output.type) else NOTHING)


def _pass_through(rec: Recorder, node: Node) -> None:
    """Output i may be input i."""
    for output, value in zip(node.outputs, node.inputs):
        rec.bind(output, rec.element(value) if has_memory(output.type) else NOTHING)
    for output in node.outputs[len(node.inputs) :]:
        rec.fresh(output)


def _constant(node: Node, index: int) -> object:
    """The value of an input that is a ``prim::Constant``; None if it is not."""
    return constant_value(node.inputs[index]) if index < len(node.inputs) else None


# -- tensors -------------------------------------------------------------


def _is_odd(node: Node) -> bool:
    """Whether ``node`` has other inputs or outputs than the rules here expect: then nothing is known of it."""
    if node.kind in STATISTICS:
        return not TRAINING < len(node.inputs) <= STATISTICS[node.kind]  # further ones may be what results go to
    return not node.inputs or len(node.outputs) != 1


def _normalise(rec: Recorder, node: Node) -> Steps | None:
    """Batch and instance norm write the running statistics unless they are told, by a constant, not to train."""
    if _is_odd(node):
        return opaque(rec, node)
    training = node.inputs[TRAINING].made_by(CONSTANT)
    trains = True if training is None else training.attributes.get("value")
    if isinstance(trains, Tensor) or trains:
        for statistics in node.inputs[3:5]:
            rec.write(node, rec.element(statistics))
    for output in node.outputs:
        rec.fresh(output)
    return None


def _set_storage(rec: Recorder, node: Node) -> Steps | None:
    """``set_``: the tensor, and all its views, take over the storage of another.

    From then on neither memory is what it was made as: both are unknown.
    """
    if _is_odd(node):
        return opaque(rec, node)
    for value in node.inputs[:2]:
        rec.become_unknown(rec.element(value))
    rec.write(node, rec.element(node.inputs[0]))
    rec.bind(node.output, rec.element(node.inputs[0]))
    return None


STATISTICS = {"aten::batch_norm": 9, "aten::instance_norm": 9, "aten::native_batch_norm": 8}
"""Operators whose running statistics are written or not as an argument says, and how many arguments each takes."""

TRAINING = 5
"""The position of that argument."""

RULES: dict[str, Entry] = {
    CONSTANT: Entry(None),
    "prim::Uninitialized": Entry(_uninitialized),
    "prim::CreateObject": Entry(_create_object),
    "prim::ListConstruct": Entry(_list_construct),
    "prim::DictConstruct": Entry(_list_construct),
    "prim::TupleConstruct": Entry(_tuple_construct),
    "prim::ListUnpack": Entry(_unpack),
    "prim::TupleUnpack": Entry(_tuple_unpack),
    "prim::TupleIndex": Entry(_tuple_index, choice=1),
    "prim::TupleSlice": Entry(_tuple_slice),
    "prim::GetAttr": Entry(_get_attr),
    "prim::SetAttr": Entry(_set_attr, keeps=always),
    "prim::unchecked_cast": Entry(_same),
    "prim::unchecked_unwrap_optional": Entry(_same),
    "prim::Guard": Entry(_same),
    "prim::ConstantChunk": Entry(_same),
    "prim::profile": Entry(_pass_through),
    "prim::profile_ivalue": Entry(_pass_through),
    "prim::RequiresGradCheck": Entry(_pass_through),
    "prim::TypeCheck": Entry(_pass_through),
    **dict.fromkeys(STATISTICS, Entry(_normalise, keeps=_is_odd, switch=TRAINING)),
    "aten::set_": Entry(_set_storage, keeps=always),
}
