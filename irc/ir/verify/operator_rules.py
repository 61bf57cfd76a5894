"""Rules of single operators: how many inputs, outputs and blocks they have, and of which types."""

from __future__ import annotations

from typing import Any, cast

from irc.errors import Error
from irc.ir import types
from irc.ir.block import Block
from irc.ir.functions import callee, inner_graph
from irc.ir.kinds import CALL, CONSTANT, DIFFERENTIABLE, IF, ONNX_LOOP, PRIM_LOOP, SCAN, SUBGRAPHS
from irc.ir.loops import DECLARED_INPUTS, DECLARED_ROWS, SCANNED_BY, STACKED_BY, carried
from irc.ir.node import Node
from irc.ir.text.type_parser import parse_type
from irc.ir.types import DType, TensorType, Type
from irc.ir.value import Value
from irc.ir.verify import container_rules
from irc.ir.verify.attribute_rules import check_constant
from irc.ir.verify.diagnostics import node_error
from irc.ir.verify.forms import Form, counts, flows, handing_on, has, require
from irc.ir.verify.type_relation import accepts
from irc.support.formatting import count


def check_form(node: Node) -> None:
    """Check the number of inputs, outputs and blocks of ``node``, for operators whose form is the IR's own (IRC213)."""
    rule = form_rule(node.kind)
    if rule is not None:
        rule(node)
    elif "::" not in node.kind:
        raise node_error("IRC217", f"the name of an operator is namespace::name, not {node.kind!r}", node)


def form_rule(kind: str) -> Form | None:
    """What checks the form of nodes of ``kind``; None if that is not the IR's own."""
    return _FORMS.get(kind)


def _block_has(node: Node, block: Block, params: int, returns: int) -> None:
    for what, wanted, found in (("parameter", params, len(block.params)), ("result", returns, len(block.returns))):
        if wanted != found:
            i = node.blocks.index(block)
            raise node_error("IRC213", f"block{i} must have {count(wanted, what)} here, not {found}", node)


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


def _has_numbers(node: Node, key: str, wanted: int) -> None:
    """Check that attribute ``key``, if there is one that is not empty, is a list of so many numbers (IRC215)."""
    found: Any = node.attributes.get(key, [])
    numbers = cast("list[Any]", found) if isinstance(found, list) else [None]
    if not all(type(number) is int for number in numbers):
        raise node_error("IRC215", f"{key} must be a list of {count(wanted, 'whole number')}", node)
    if numbers and len(numbers) != wanted:
        raise node_error("IRC215", f"{key} has {count(len(numbers), 'element')}; it needs {wanted}", node)


# -- the operators -----------------------------------------------------------


def _constant(node: Node) -> None:
    has(node, inputs=0, outputs=1)
    check_constant(node)


def _if(node: Node) -> None:
    has(node, inputs=1, blocks=2)
    if node.attributes:
        raise node_error("IRC215", f"{node.kind} has no attribute {next(iter(node.attributes))}", node)
    _is(node, node.inputs[0], types.BOOL, DType.BOOL, "the condition")
    for block in node.blocks:
        _block_has(node, block, 0, len(node.outputs))
        flows(node, block.returns, node.outputs, "output")


def _prim_loop(node: Node) -> None:
    require(node, len(node.inputs) >= 2, "prim::Loop takes the trip count, the condition and the values carried")
    has(node, outputs=carried(node).many, blocks=1)
    _loop(node, scans=0)


def _onnx_loop(node: Node) -> None:
    at = carried(node)
    has(node, blocks=1)
    scans = len(node.blocks[0].returns) - at.returned - at.many
    require(node, scans >= 0, f"the block must return the condition and {count(at.many, 'carried value')}")
    # Unused trailing outputs are left out, as everywhere in ONNX.
    require(node, len(node.outputs) <= at.many + scans, f"there are only {count(at.many + scans, 'result')}")
    _has_types(node, DECLARED_ROWS, scans)
    _loop(node, scans)


def _loop(node: Node, scans: int) -> None:
    """What both kinds of loops share: (trip, cond, carried...), block(trip, carried...) -> (cond, carried...)."""
    (block,) = node.blocks
    at = carried(node)
    _block_has(node, block, at.param + at.many, at.returned + at.many + scans)
    for value, wanted, dtype, what in (
        *zip(node.inputs[:2], (types.INT, types.BOOL), (DType.INT64, DType.BOOL), ("the trip count", "the condition")),
        (block.params[0], types.INT, DType.INT64, "the iteration number"),
        (block.returns[0], types.BOOL, DType.BOOL, "the condition"),
    ):
        if not (node.kind == ONNX_LOOP and value.type == types.NONE):
            _is(node, value, wanted, dtype, what)
    _carries(node)


def _carries(node: Node) -> None:
    """Check what goes from trip to trip, and that what ONNX stacks are tensors (IRC214)."""
    (block,) = node.blocks
    at = carried(node)
    before, params = node.inputs[at.input :], block.params[at.param :]
    after = block.returns[at.returned :][: at.many]
    is_onnx = node.kind != PRIM_LOOP
    for sources, targets, what in (
        (before, params, "parameter"),
        (after, params, "parameter"),
        (after, node.outputs, "output"),
    ):
        flows(node, sources, targets, what, of_any_shape=is_onnx)  # ONNX's may change their shapes
    for i, output in enumerate(node.outputs[at.many :], at.many):
        if not accepts(types.TENSOR, output.type):
            raise node_error("IRC214", f"what is stacked is a tensor, not {output.type}", node, output=i)


def _scan(node: Node) -> None:
    has(node, blocks=1)
    scanned = node.attributes.get("num_scan_inputs")
    if type(scanned) is not int or scanned < 1:
        raise node_error("IRC215", "num_scan_inputs must be a positive number", node)
    at = carried(node)
    require(node, at.input + scanned <= len(node.inputs), f"there are fewer inputs than the {scanned} to scan")
    (block,) = node.blocks
    _block_has(node, block, at.many + scanned, len(block.returns))
    require(node, len(block.returns) >= at.many, f"the block must return {count(at.many, 'state')}")
    require(node, len(node.outputs) <= len(block.returns), f"there are only {count(len(block.returns), 'result')}")
    rows = len(block.returns) - at.many
    for attributes, of in ((SCANNED_BY, scanned), (STACKED_BY, rows)):
        for key in attributes:
            _has_numbers(node, key, of)
    _has_types(node, DECLARED_ROWS, rows)
    _has_types(node, DECLARED_INPUTS, at.many + scanned)
    _carries(node)


def _group(node: Node) -> None:
    subgraph = inner_graph(node)
    if subgraph is None:
        raise node_error("IRC215", f"{node.kind} needs an attribute Subgraph that holds a graph", node)
    if node.kind == DIFFERENTIABLE:  # what is left for the backward pass comes after its outputs
        has(node, inputs=len(subgraph.inputs))
        require(node, len(node.outputs) <= len(subgraph.outputs), "the subgraph has fewer outputs")
    else:
        has(node, inputs=len(subgraph.inputs), outputs=len(subgraph.outputs))
    flows(node, node.inputs, subgraph.inputs, "input")
    flows(node, subgraph.outputs, node.outputs, "output")


def _call_function(node: Node) -> None:
    require(node, len(node.inputs) > 0, "prim::CallFunction takes a function and its arguments")
    has(node)
    function, *arguments = node.inputs
    if function.type != types.FUNCTION:
        raise node_error("IRC214", f"%{function.name} must be a Function, not {function.type}", node, input=0)
    name = callee(node)
    module = node.graph.module
    called = None if module is None or name is None else module.graphs.get(name)
    if called is None:  # TorchScript's dumps mention functions without giving them
        return
    has(node, inputs=1 + len(called.inputs), outputs=len(called.outputs))
    flows(node, arguments, called.inputs, f"input of {name}")
    flows(node, called.outputs, node.outputs, "output")


def _field(inputs: int, outputs: int) -> Form:
    """The rule of operators on the field of an object that their attribute ``name`` tells."""

    def rule(node: Node) -> None:
        has(node, inputs=inputs, outputs=outputs)
        if not isinstance(node.attributes.get("name"), str):
            raise node_error("IRC215", f"{node.kind} needs an attribute name, that of the object's field", node)
        owner = node.inputs[0]
        if not isinstance(owner.type, types.ClassType):
            raise node_error("IRC214", f"%{owner.name} must be an object, not {owner.type}", node, input=0)

    return rule


_HANDING_ON = ("prim::profile", "prim::profile_ivalue", "prim::RequiresGradCheck", "prim::TypeCheck")

_CASTS = ("prim::unchecked_cast", "prim::unchecked_unwrap_optional")
"""In branches that no run takes, torch casts anything to anything, once functions are inlined: runs check that."""

_FORMS: dict[str, Form] = {
    CONSTANT: _constant,
    IF: _if,
    PRIM_LOOP: _prim_loop,
    ONNX_LOOP: _onnx_loop,
    SCAN: _scan,
    CALL: _call_function,
    **container_rules.FORMS,
    "prim::Guard": handing_on(1, 1),
    **dict.fromkeys(_HANDING_ON, handing_on()),
    **dict.fromkeys(_CASTS, counts(1, 1)),
    "prim::Enter": counts(1, None),
    "prim::Exit": counts(1, None),
    "prim::Uninitialized": counts(0, 1),
    "prim::GetAttr": _field(1, 1),
    "prim::SetAttr": _field(2, 0),
    **dict.fromkeys(SUBGRAPHS, _group),
}
