"""Rules of single operators: how many inputs, outputs and blocks they have, and of which types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from irc.errors import Error
from irc.ir import types
from irc.ir.block import Block
from irc.ir.functions import callee
from irc.ir.graph import Graph
from irc.ir.kinds import DIFFERENTIABLE, SUBGRAPHS
from irc.ir.node import Node
from irc.ir.ops.scan import DECLARED_INPUTS, DECLARED_ROWS, scan_states
from irc.ir.text.type_parser import parse_type
from irc.ir.types import DType, TensorType, Type
from irc.ir.value import Value
from irc.ir.verify.attribute_rules import check_constant
from irc.ir.verify.diagnostics import node_error
from irc.ir.verify.type_relation import accepts
from irc.wording import count


def check_form(node: Node) -> None:
    """Check the number of inputs, outputs and blocks of ``node``, for operators whose form is the IR's own (IRC213)."""
    rule = form_rule(node.kind)
    if rule is not None:
        rule(node)
    elif "::" not in node.kind:
        raise node_error("IRC217", f"the name of an operator is namespace::name, not {node.kind!r}", node)


def form_rule(kind: str) -> Callable[[Node], None] | None:
    """What checks the form of nodes of ``kind``; None if that is not the IR's own."""
    return _FORMS.get(kind)


def _require(node: Node, holds: bool, message: str) -> None:
    if not holds:
        raise node_error("IRC213", message, node)


def _has(node: Node, *, inputs: int | None = None, outputs: int | None = None, blocks: int = 0) -> None:
    """Require exact numbers (None: any)."""
    for what, wanted, found in (
        ("input", inputs, len(node.inputs)),
        ("output", outputs, len(node.outputs)),
        ("block", blocks, len(node.blocks)),
    ):
        if wanted is not None and wanted != found:
            raise node_error("IRC213", f"{node.kind} must have {count(wanted, what)} here, not {found}", node)


def _block_has(node: Node, block: Block, params: int, returns: int) -> None:
    for what, wanted, found in (("parameter", params, len(block.params)), ("result", returns, len(block.returns))):
        if wanted != found:
            i = node.blocks.index(block)
            raise node_error("IRC213", f"block{i} must have {count(wanted, what)} here, not {found}", node)


def _flows(node: Node, sources: Sequence[Value], targets: Sequence[Value], what: str) -> None:
    """Check that each value of ``sources`` may become the corresponding one of ``targets`` (IRC214)."""
    for source, target in zip(sources, targets, strict=False):
        if source.type != target.type and not accepts(target.type, source.type):
            message = f"%{source.name} : {source.type} cannot become {what} %{target.name} : {target.type}"
            raise node_error("IRC214", message, node)


def _is(node: Node, value: Value, wanted: Type, dtype: DType, what: str) -> None:
    """Check that ``value`` is a Python scalar of type ``wanted``, or a tensor of ``dtype`` with one element."""
    found = value.type
    if isinstance(found, TensorType):
        one = found.static_shape is None or all(size == 1 for size in found.static_shape)
        fits = found.dtype in (None, dtype) and one
    else:
        fits = accepts(wanted, found)
    if not fits:
        message = f"{what} %{value.name} must be {wanted} or a {dtype.label} tensor with one element, not {found}"
        raise node_error("IRC214", message, node)


def _has_types(node: Node, key: str, wanted: int) -> None:
    """Check that attribute ``key``, if there is one, is a list of so many types' texts (IRC215)."""
    found: Any = node.attributes.get(key)
    if found is None:
        return
    if not isinstance(found, list) or len(found := cast("list[Any]", found)) != wanted:
        raise node_error("IRC215", f"{key} must be a list of {count(wanted, 'type')}, as texts", node)
    for text in found:
        try:
            parse_type(text if isinstance(text, str) else repr(text))
        except Error as error:
            reason = error.message.partition("\n")[0]
            raise node_error("IRC215", f"{key} has {text!r}, which is no type: {reason}", node) from None


# -- the operators -----------------------------------------------------------


def _constant(node: Node) -> None:
    _has(node, inputs=0, outputs=1)
    check_constant(node)


def _if(node: Node) -> None:
    _has(node, inputs=1, blocks=2)
    _is(node, node.inputs[0], types.BOOL, DType.BOOL, "the condition")
    for block in node.blocks:
        _block_has(node, block, 0, len(node.outputs))
        _flows(node, block.returns, node.outputs, "output")


def _prim_loop(node: Node) -> None:
    carried = len(node.inputs) - 2
    _require(node, carried >= 0, "prim::Loop takes the trip count, the condition and the values carried")
    _has(node, outputs=carried, blocks=1)
    _loop(node, carried, scans=0)


def _onnx_loop(node: Node) -> None:
    carried = max(0, len(node.inputs) - 2)
    _has(node, blocks=1)
    scans = len(node.blocks[0].returns) - 1 - carried
    _require(node, scans >= 0, f"the block must return the condition and {count(carried, 'carried value')}")
    # Trailing outputs that nobody wants are left out, as everywhere in ONNX.
    _require(node, len(node.outputs) <= carried + scans, f"there are only {count(carried + scans, 'result')}")
    _has_types(node, DECLARED_ROWS, len(node.outputs) - carried)
    _loop(node, carried, scans)


def _loop(node: Node, carried: int, scans: int) -> None:
    """What both kinds of loops share: (trip, cond, carried...), block(trip, carried...) -> (cond, carried...)."""
    (block,) = node.blocks
    is_onnx = node.kind == "onnx::Loop"
    own = 2 if is_onnx else 1  # ONNX gives the condition to the block too
    _block_has(node, block, own + carried, 1 + carried + scans)
    for value, wanted, dtype, what in (
        *zip(node.inputs[:2], (types.INT, types.BOOL), (DType.INT64, DType.BOOL), ("the trip count", "the condition")),
        (block.params[0], types.INT, DType.INT64, "the iteration number"),
        (block.returns[0], types.BOOL, DType.BOOL, "the condition"),
    ):
        if not (is_onnx and value.type == types.NONE):
            _is(node, value, wanted, dtype, what)
    if not is_onnx:  # shapes of what ONNX carries may change from trip to trip
        _flows(node, node.inputs[2:], block.params[1:], "parameter")
        _flows(node, block.returns[1:], block.params[1:], "parameter")
        _flows(node, block.returns[1:], node.outputs, "output")


def _scan(node: Node) -> None:
    _has(node, blocks=1)
    scanned = node.attributes.get("num_scan_inputs")
    if not isinstance(scanned, int) or scanned < 1:
        raise node_error("IRC215", "num_scan_inputs must be a positive number", node)
    states = scan_states(node)
    _require(node, states >= 0, f"there are fewer inputs than the {scanned} to scan")
    (block,) = node.blocks
    _block_has(node, block, states + scanned, len(block.returns))
    _require(node, len(block.returns) >= states, f"the block must return {count(states, 'state')}")
    _require(node, len(node.outputs) <= len(block.returns), f"there are only {count(len(block.returns), 'result')}")
    _has_types(node, DECLARED_ROWS, len(node.outputs) - states)
    _has_types(node, DECLARED_INPUTS, states + scanned)


def _group(node: Node) -> None:
    subgraph = node.attributes.get("Subgraph")
    if not isinstance(subgraph, Graph):
        raise node_error("IRC215", f"{node.kind} needs an attribute Subgraph that holds a graph", node)
    if node.kind == DIFFERENTIABLE:  # what is left for the backward pass comes after its outputs
        _has(node, inputs=len(subgraph.inputs))
        _require(node, len(node.outputs) <= len(subgraph.outputs), "the subgraph has fewer outputs")
    else:
        _has(node, inputs=len(subgraph.inputs), outputs=len(subgraph.outputs))
    _flows(node, node.inputs, subgraph.inputs, "input")
    _flows(node, subgraph.outputs, node.outputs, "output")


def _call_function(node: Node) -> None:
    _require(node, len(node.inputs) > 0, "prim::CallFunction takes a function and its arguments")
    function, *arguments = node.inputs
    if function.type != types.FUNCTION:
        raise node_error("IRC214", f"%{function.name} must be a Function, not {function.type}", node, input=0)
    name = callee(node)
    module = node.graph.module
    called = None if module is None or name is None else module.graphs.get(name)
    if called is None:  # TorchScript's dumps mention functions without giving them
        return
    _has(node, inputs=1 + len(called.inputs), outputs=len(called.outputs))
    _flows(node, arguments, called.inputs, f"input of {name}")
    _flows(node, called.outputs, node.outputs, "output")


def _list_construct(node: Node) -> None:
    _has(node, outputs=1)
    of_type = node.outputs[0].type
    if not isinstance(of_type, types.ListType):
        raise node_error("IRC214", f"prim::ListConstruct makes a list, not {of_type}", node, output=0)
    for i, value in enumerate(node.inputs):
        if value.type != of_type.elem and not accepts(of_type.elem, value.type):
            message = f"%{value.name} : {value.type} cannot be an element of {of_type}"
            raise node_error("IRC214", message, node, input=i)


def _tuple_construct(node: Node) -> None:
    _has(node, outputs=1)
    of_type = node.outputs[0].type
    if not isinstance(of_type, types.TupleType):
        raise node_error("IRC214", f"prim::TupleConstruct makes a tuple, not {of_type}", node, output=0)
    _has(node, inputs=len(of_type.elems))
    for i, (value, elem) in enumerate(zip(node.inputs, of_type.elems, strict=True)):
        if not accepts(elem, value.type):
            raise node_error("IRC214", f"%{value.name} : {value.type} cannot be a {elem}", node, input=i)


def _tuple_unpack(node: Node) -> None:
    _has(node, inputs=1)
    of_type = node.inputs[0].type
    if isinstance(of_type, types.TupleType):
        _has(node, outputs=len(of_type.elems))


def _dict_construct(node: Node) -> None:
    _has(node, outputs=1)
    of_type = node.outputs[0].type
    if not isinstance(of_type, types.DictType):
        raise node_error("IRC214", f"prim::DictConstruct makes a dictionary, not {of_type}", node, output=0)
    _require(node, len(node.inputs) % 2 == 0, "prim::DictConstruct takes keys and values by turns")


def _counts(inputs: int | None, outputs: int | None) -> Callable[[Node], None]:
    """The rule of operators that have just so many inputs and outputs (None: any)."""
    return lambda node: _has(node, inputs=inputs, outputs=outputs)


def _field(inputs: int, outputs: int) -> Callable[[Node], None]:
    """The rule of operators on the field of an object that their attribute ``name`` tells."""

    def rule(node: Node) -> None:
        _has(node, inputs=inputs, outputs=outputs)
        if not isinstance(node.attributes.get("name"), str):
            raise node_error("IRC215", f"{node.kind} needs an attribute name, that of the object's field", node)
        owner = node.inputs[0]
        if not isinstance(owner.type, types.ClassType):
            raise node_error("IRC214", f"%{owner.name} must be an object, not {owner.type}", node, input=0)

    return rule


_FORMS: dict[str, Callable[[Node], None]] = {
    "prim::Constant": _constant,
    "prim::If": _if,
    "prim::Loop": _prim_loop,
    "onnx::Loop": _onnx_loop,
    "onnx::Scan": _scan,
    "prim::CallFunction": _call_function,
    "prim::ListConstruct": _list_construct,
    "prim::TupleConstruct": _tuple_construct,
    "prim::DictConstruct": _dict_construct,
    "prim::TupleUnpack": _tuple_unpack,
    "prim::ListUnpack": _counts(1, None),
    "prim::ConstantChunk": _counts(1, None),
    "prim::TupleIndex": _counts(2, 1),
    "prim::TupleSlice": _counts(1, 1),
    "prim::unchecked_cast": _counts(1, 1),
    "prim::unchecked_unwrap_optional": _counts(1, 1),
    "prim::Guard": _counts(1, 1),
    "prim::CreateObject": _counts(0, 1),
    "prim::Enter": _counts(1, None),
    "prim::Exit": _counts(1, None),
    "prim::GetAttr": _field(1, 1),
    "prim::SetAttr": _field(2, 0),
    **dict.fromkeys(SUBGRAPHS, _group),
}
