"""Rules of single kinds: containers, objects, control flow, tensor operators beyond annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias import facts as f
from irc.alias.facts import NOTHING, Element
from irc.alias.memory_types import has_memory
from irc.alias.rules.entry import Entry, Steps, always
from irc.ir import Graph, Node, Tensor, Value, constant_value, types
from irc.ir.kinds import CALL, CONSTANT, IF, ONNX_LOOP, PRIM_LOOP, SCAN, SUBGRAPHS
from irc.ir.region_flow import callee, carried, inner_graph
from irc.ops.record import Change

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
    """The result is what the tuple holds at the position, or anywhere if that is not a constant."""
    index = _constant(node, 1)
    held = node.inputs[0].type
    if isinstance(index, int) and isinstance(held, types.TupleType):
        index %= max(len(held.elems), 1)
    else:
        index = None
    rec.bind(node.output, rec.load(rec.element(node.inputs[0]), node.output.type, index))


def _tuple_slice(rec: Recorder, node: Node) -> None:
    """The rule of slices of tuples: a new tuple of the elements from ``beg`` to ``end``."""
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
    """Whether ``node`` has other inputs or outputs than the rules here expect, so that nothing is known."""
    if node.kind in STATISTICS:
        return not TRAINING < len(node.inputs) <= STATISTICS[node.kind]  # further ones may be what results go to
    return not node.inputs or len(node.outputs) != 1


def _normalise(rec: Recorder, node: Node) -> Steps | None:
    """The rule of batch and instance norm: they write running statistics unless a constant forbids it."""
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


# -- control flow, calls and code that irc cannot see ----------------------
#
# A loop's parameter may denote what the loop is given and, from the second iteration on, what the body returned; its
# results may denote the same, as a loop may make no iteration at all. The solver finds the fixed point.


def _if(rec: Recorder, node: Node) -> Steps:
    """A result is what either block returns for it."""
    yield from node.blocks
    for i, output in enumerate(node.outputs):
        if has_memory(output.type):
            rec.bind(output, rec.join(rec.element(block.returns[i]) for block in node.blocks))


def _loop(rec: Recorder, node: Node) -> Steps:
    """A parameter is what the loop is given, or what the body returns for it; a result is the same.

    A slice of a Scan may share memory with what it is a slice of. What the loop makes itself is fresh: the number of
    the iteration, the condition, and what it stacks.
    """
    (block,) = node.blocks
    at = carried(node)
    inputs, params = node.inputs[at.input :], block.params[at.param :]
    for param in block.params[: at.param]:
        rec.fresh(param)
    elements = [_carry(rec, param, rec.element(value)) for param, value in zip(params[: at.many], inputs)]
    for param, value in zip(params[at.many :], inputs[at.many :]):
        rec.bind(param, rec.element(value))
    yield block
    returns = block.returns[at.returned :]
    for element, returned in zip(elements, returns):
        if element != NOTHING and not rec.loops_apart:
            rec.point(element, rec.element(returned))
    if node.kind == PRIM_LOOP:  # stacks nothing: a result that nothing is returned for stays undefined, which is told
        elements = elements[: len(returns)]
    else:
        for output in node.outputs[len(elements) :]:
            rec.fresh(output)
    for output, element in zip(node.outputs, elements):
        if rec.loops_apart:
            rec.fresh(output)
        else:
            rec.bind(output, element)


def _carry(rec: Recorder, param: Value, start: Element) -> Element:
    """Let ``param`` of a loop denote ``start``; later iterations' values are added once the body is known.

    The element belongs neither to the parameter nor to the result: either may be replaced without the other.
    """
    if not has_memory(param.type):
        return NOTHING
    if rec.loops_apart:
        return rec.fresh(param)
    element = rec.facts.new()
    rec.point(element, start)
    rec.bind(param, element)
    return element


def opaque(rec: Recorder, node: Node) -> Steps:
    """Code that irc cannot see.

    It may keep what it is given, write whatever any unknown code may hold,
    store anything unknown anywhere there, and return anything unknown.
    """
    rec.write(node, f.OUTSIDE, Change.MEMORY)
    rec.write(node, f.WORLD)
    yield _unseen(rec, node)


def passing_through(rec: Recorder, node: Node) -> Steps:
    """An operator of an ONNX model that irc does not know: it writes into none of its inputs.

    It may keep what it is given, draw random numbers, act on the world and return anything unknown, which its inputs
    are from then on: results may share memory with them, with each other and with those of other such nodes.
    """
    rec.write(node, f.RANDOM)
    yield _unseen(rec, node)


def _unseen(rec: Recorder, node: Node) -> Steps:
    """The rule of code that irc cannot see: it gets the inputs, returns outputs and may run the blocks."""
    for value in node.inputs:
        rec.escape(rec.element(value))
    for output in node.outputs:
        rec.bind(output, rec.unknown(output.type))
    for block in node.blocks:
        for param in block.params:
            rec.bind(param, rec.unknown(param.type))
        yield block
        for value in block.returns:
            rec.escape(rec.element(value))


def subgraph(rec: Recorder, node: Node) -> Steps:
    """A node that runs the graph in its attribute ``Subgraph``, such as ``prim::FusionGroup``."""
    graph = inner_graph(node)
    if graph is None:
        yield opaque(rec, node)
        return
    if _is_functional(rec, graph):
        for output in node.outputs:
            rec.fresh(output)
        return
    for param, value in zip(graph.inputs, node.inputs):
        rec.bind(param, rec.element(value))
    with rec.on_behalf_of(node):
        yield graph.block
    for output, inner in zip(node.outputs, graph.outputs):
        rec.hand_over(inner, output)
    # The subgraph's values are of another graph: the database answers for its own.
    for block in graph.blocks():
        values = (*block.params, *(v for inner_node in block.nodes for v in inner_node.outputs))
        for value in values:
            rec.facts.disown(value)


def _call_function(rec: Recorder, node: Node) -> Steps | None:
    """A call of a function by name: what its summary says."""
    name = callee(node)
    return None if name is not None and rec.call(node, name) else opaque(rec, node)


def _is_functional(rec: Recorder, graph: Graph) -> bool:
    """Whether nothing in ``graph`` shares, writes or stores, and each output is fresh memory of its own."""
    outputs = graph.outputs
    return (
        all(map(rec.is_functional, graph.nodes))
        and all(v.node is not None and v.node.kind != CONSTANT for v in outputs)
        and len(set(outputs)) == len(outputs)
    )


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
    IF: Entry(_if),
    PRIM_LOOP: Entry(_loop),
    ONNX_LOOP: Entry(_loop),
    SCAN: Entry(_loop),
    **dict.fromkeys(SUBGRAPHS, Entry(subgraph, runs_graph=True)),
    CALL: Entry(_call_function, runs_graph=True, choice=0),
}
