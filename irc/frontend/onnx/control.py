"""Operators with graphs (If, Loop, Scan, SequenceMap) and Constant.

``If`` becomes ``prim::If``. ``Loop`` and ``Scan`` keep their kind, because
scan outputs do not fit ``prim::Loop``, and have one block; nested graphs see
the values around them. ``SequenceMap`` becomes the Loop that defines it. All
outputs that the nested graphs give exist, named in the model or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from irc.errors import Error
from irc.frontend.onnx.attributes import renamed
from irc.frontend.onnx.blocks import GraphBuilder, Scope, Special
from irc.frontend.onnx.bodies import expand, expand_row, normalize
from irc.frontend.onnx.contrib import ROWS
from irc.frontend.onnx.opsets import Operator, bind
from irc.frontend.onnx.types import keep_inputs, keep_rows
from irc.ir.kinds import DOMAINS
from irc.ir.tensor import Tensor
from irc.ir.types import DType, ListType, TensorType, Type, join, without_shapes
from irc.ops import records

if TYPE_CHECKING:
    from onnx import TypeProto

    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Node, Value

_ITERATION = TensorType(DType.INT64, ())
_CONDITION = TensorType(DType.BOOL, ())


def _if(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    inputs = builder.inputs(raw, operator, scope)
    builder.attributes(raw, operator)
    node = builder.create(block, "prim::If", inputs, name=raw.name)
    branches = [raw.graphs[key] for key in ("then_branch", "else_branch")]
    first, second = [builder.body(graph, node.add_block(), scope, ()) for graph in branches]
    if len(first) != len(second):
        _fail(f"one branch gives {len(first)} values, the other {len(second)}", raw)
    types = [_joined(a.type, b.type, f"output {i} of the branches", raw) for i, (a, b) in enumerate(zip(first, second))]
    return _outputs(builder, node, types, raw)


def _loop(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    inputs = builder.inputs(raw, operator, scope, keep=2)
    attributes = builder.attributes(raw, operator)
    initial = [without_shapes(v.type) for v in inputs[2:]]
    node = builder.create(block, operator.kind, inputs, (), (), attributes, operator.version, raw.name)
    body = raw.graphs["body"]
    leading = [_of_one(t, declared) for t, declared in zip((_ITERATION, _CONDITION), body.inputs.values())]
    returns = builder.body(body, node.add_block(), scope, (*leading, *initial))
    keep_rows(node, builder.params(body), body, 1 + len(initial))
    return _outputs(builder, node, _iterated(initial, returns, 1, raw), raw)


def _of_one(type: TensorType, declared: TypeProto | None) -> TensorType:
    """``type``, that of a scalar, or with one axis if the body declares it so, as in ONNX Runtime."""
    has_axis = declared is not None and len(declared.tensor_type.shape.dim) == 1
    return TensorType(type.dtype, (1,)) if has_axis else type


def _scan(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    first = 1 if operator.version == 8 else 0  # Scan 8 begins with the lengths of the sequences
    inputs = builder.inputs(raw, operator, scope, keep=first)
    attributes = builder.attributes(raw, operator)
    scanned: int = attributes["num_scan_inputs"]
    states = len(inputs) - first - scanned
    if scanned < 1 or states < 0:
        _fail(f"attribute 'num_scan_inputs' is {scanned}, but the node has {len(inputs) - first} inputs", raw)
    types = [without_shapes(v.type) for v in inputs[first:]]
    node = builder.create(block, operator.kind, inputs, (), (), attributes, operator.version, raw.name)
    body = raw.graphs["body"]
    returns = builder.body(body, node.add_block(), scope, types)
    params = builder.params(body)
    keep_rows(node, params, body, states)
    keep_inputs(node, params, body, states)
    return _outputs(builder, node, _iterated(types[:states], returns, 0, raw), raw)


def _iterated(initial: Sequence[Type], returns: Sequence[Value], first: int, raw: RawNode) -> list[Type]:
    """Types of the outputs of a loop: carried values from ``first`` on in what the body returns, scan outputs after."""
    end = first + len(initial)
    if len(returns) < end:
        _fail(f"its body must give at least {end} values, but gives {len(returns)}", raw)
    carried = [
        _joined(before, without_shapes(after.type), f"carried value {i}", raw)
        for i, (before, after) in enumerate(zip(initial, returns[first:end]))
    ]
    scanned: list[Type] = []
    for value in returns[end:]:
        if not isinstance(value.type, TensorType):
            _fail(f"scan outputs must be tensors, but {value.name!r} is {value.type}", raw)
        scanned.append(without_shapes(value.type))
    return carried + scanned


def _joined(a: Type, b: Type, what: str, raw: RawNode) -> Type:
    found = join(a, b)
    if found is None:
        _fail(f"{what} is once {a} and once {b}", raw)
    return found


def _outputs(builder: GraphBuilder, node: Node, types: Sequence[Type], raw: RawNode) -> Sequence[Value]:
    names = raw.outputs
    if len(names) > len(types):
        _fail(f"it has {len(names)} outputs, but its graphs give {len(types)}", raw)
    return builder.add_outputs(node, types, names)


def _sequence_map(
    builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope
) -> Sequence[Value]:
    """The Loop by which the specification defines SequenceMap: element in, body, append what it gives."""
    builder.attributes(raw, operator)
    inputs = builder.inputs(raw, operator, scope)
    body = raw.graphs["body"]
    if len(body.inputs) != len(inputs):
        _fail(f"its body must have {len(inputs)} inputs, but has {len(body.inputs)}", raw)

    def emit(at: Block, op_type: str, values: Sequence[Value], type: Type, attributes: dict[str, Any]) -> Node:
        found = bind("", op_type, builder.imports)
        assert isinstance(found, Operator), "SequenceMap is younger than all of these"
        return builder.create(at, found.kind, values, (type,), (), attributes, found.version, raw.name)

    length = emit(block, "SequenceLength", inputs[:1], _ITERATION, {}).output
    always = builder.constant(Tensor.of(np.array(True)), block)
    accumulators = [emit(block, "SequenceEmpty", (), ListType(TensorType()), {}) for _ in body.outputs]
    loop = bind("", "Loop", builder.imports)
    assert isinstance(loop, Operator)
    carried = [node.output for node in accumulators]
    node = builder.create(block, loop.kind, [length, always, *carried], (), (), {}, loop.version, raw.name)
    inner = node.add_block()
    iteration, condition = [inner.add_param(t, builder.fresh()) for t in (_ITERATION, _CONDITION)]
    sequences = [inner.add_param(v.type, builder.fresh()) for v in carried]
    bindings = Scope(scope)
    for number, (name, value) in enumerate(zip(body.inputs, inputs)):
        is_sequence = number == 0 or isinstance(value.type, ListType)
        elem = value.type.elem if isinstance(value.type, ListType) else TensorType()
        bindings.values[name] = (
            emit(inner, "SequenceAt", (value, iteration), without_shapes(elem), {}).output if is_sequence else value
        )
    results = builder.fill(body, inner, bindings)
    grown: list[Value] = []
    for empty, sequence, result in zip(accumulators, sequences, results):
        if result.type.dtype is None:
            _fail(f"the element type of what its body gives as {result.name!r} is not known", raw)
        empty.attributes["dtype"] = result.type.dtype.onnx
        type = ListType(without_shapes(result.type))
        empty.output.type = sequence.type = type
        grown.append(emit(inner, "SequenceInsert", (sequence, result), type, {}).output)
    inner.set_returns([condition, *grown])
    return _outputs(builder, node, [v.type for v in grown], raw)


# Attribute of Constant -> the tensor it means.
_CONSTANTS: dict[str, Callable[[Any], Tensor]] = {
    "value": lambda value: value,
    "sparse_value": lambda value: value,
    "value_int": lambda value: Tensor.of(np.array(value, np.int64)),
    "value_ints": lambda value: Tensor.of(np.array(value, np.int64)),
    "value_float": lambda value: Tensor.of(np.array(value, np.float32)),
    "value_floats": lambda value: Tensor.of(np.array(value, np.float32)),
    "value_string": lambda value: Tensor.of(np.array(value, object), dtype=DType.STRING),
    "value_strings": lambda value: Tensor.of(np.array(value, object), dtype=DType.STRING),
}


def _constant(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    builder.inputs(raw, operator, scope)
    for proto in raw.attributes:
        if proto.name == "value" and proto.type == proto.SPARSE_TENSOR:  # ONNX Runtime takes it, too
            raw = replace(raw, attributes=[renamed(proto, "sparse_value")])
    attributes = builder.attributes(raw, operator, plain=True)
    if len(attributes) != 1:
        given = ", ".join(map(repr, sorted(attributes))) or "none"
        raise Error("IRC127", f"Constant has exactly one attribute with its value, but {given} here", str(raw))
    ((key, value),) = attributes.items()
    if key not in _CONSTANTS:
        raise Error("IRC127", f"Constant has no attribute {key!r}", str(raw))
    names = [*raw.outputs, ""][:1]
    tensor = builder.importer.weight(_CONSTANTS[key](value), names[0])
    return (builder.constant(tensor, block, names[0], raw.name),)


def _fail(message: str, raw: RawNode) -> NoReturn:
    raise Error("IRC134", message, str(raw))


SPECIAL: dict[str, Special] = {
    "onnx::Constant": _constant,
    "onnx::If": _if,
    "onnx::LayerNormalization": normalize,
    "onnx::Loop": _loop,
    "onnx::Scan": _scan,
    "onnx::SequenceMap": _sequence_map,
    **{each.kind: expand for each in records(*DOMAINS) if each.expanded},
    **dict.fromkeys([row.kind for row in ROWS.values()], expand_row),
}
"""Operators that do not import as one node with their inputs and outputs."""
