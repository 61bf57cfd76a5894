"""Operators that do not import as one node: those with graphs, Constant, and function bodies.

``If`` becomes ``prim::If``. ``Loop`` and ``Scan`` keep their kind, because
scan outputs do not fit ``prim::Loop``, and have one block; nested graphs see
the values around them. ``SequenceMap`` becomes the Loop that defines it. All
outputs that the nested graphs give exist, named in the model or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NoReturn

import numpy as np
from onnx import FunctionProto, NodeProto, TypeProto, helper, parser

from irc.errors import Error, comes_from_outside
from irc.frontend.onnx.blocks import GraphBuilder, Scope, Special, import_opaque, output_names
from irc.frontend.onnx.contrib import ROWS, Row
from irc.frontend.onnx.contrib.body import Body, TooOldError, opset_with
from irc.frontend.onnx.opsets import Operator, Output, bind, is_standard, of_schemas, opaque, read_imports
from irc.frontend.onnx.scan import RawFunction, RawGraph, RawNode, resolve, scan_function
from irc.frontend.onnx.tensors import renamed, substitute
from irc.frontend.onnx.types import keep_inputs, keep_rows, to_proto
from irc.ir import Block, Node, Tensor, Value
from irc.ir.kinds import ATTENTION, DOMAINS
from irc.ir.types import NONE, TENSOR, DType, ListType, TensorType, Type, join, without_shapes
from irc.ops import record, records, schemas
from irc.ops.onnx_signatures import find

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
    """A loop's output types: carried values from ``first`` on in the body's returns, then scan outputs."""
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
    iteration, condition = [inner.add_param(t) for t in (_ITERATION, _CONDITION)]
    sequences = [inner.add_param(v.type) for v in carried]
    bindings = scope.new_child()
    for number, (name, value) in enumerate(zip(body.inputs, inputs)):
        is_sequence = number == 0 or isinstance(value.type, ListType)
        elem = value.type.elem if isinstance(value.type, ListType) else TensorType()
        bindings[name] = (
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


_ELEMENTS: dict[str, Any] = {"int": np.int64, "float": np.float32, "string": object}
"""What the numbers and strings are in Constant's attributes ``value_int``, ``value_ints`` and so on."""


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
    kind = key.removeprefix("value_").removesuffix("s")
    if not isinstance(value, Tensor):
        value = Tensor.of(np.array(value, _ELEMENTS[kind]), dtype=DType.STRING if kind == "string" else None)
    name = [*raw.outputs, ""][0]
    return (builder.constant(builder.importer.weight(value, name), block, name, raw.name),)


def _fail(message: str, raw: RawNode) -> NoReturn:
    raise Error("IRC134", message, str(raw))


# Operators that are imported as their function bodies, so that passes can optimise inside them.
#
# The specification defines these operators by others, which irc has kernels for
# and can optimise and fuse. For some of them the body depends on the node: its types,
# attributes, inputs and outputs. Then onnx makes the body.


# Attention's function body, in which one operator, `irc::attention`, stands for the two products and what is between.
#
# The specification's body scales the keys as well as the queries, and repeats keys and values for all heads that share
# them: several copies of a cache in each step, and scores of full size. Where a node has scores as an output, there
# are two products still; but the queries of all heads that share keys are the rows of one.


_DOMAIN, _, _NAME = ATTENTION.partition("::")

_MASK, _PAST, _LENGTHS = 3, 4, 6
"""Inputs of ONNX's Attention."""

_OF_BODY = ("QReshaped", "PresentKey", "PresentValue", "AttnBiasT", "SoftmaxOutSafe", "YPreReshape")
"""What onnx's body computes and the operator uses, or computes instead."""


_SCORES = """
    QReady = Mul (QReshaped, ScaleFactorF)
    KTransposed = Transpose <perm = [0, 1, 3, 2]> (PresentKey)
    KReady = Mul (KTransposed, ScaleFactorF)
    QHeadsTogether = Div (QNumHeads, KVNumHeads)
    QRowsTogether = Mul (QHeadsTogether, QSeqLen)
    QTogetherShape = Concat <axis = 0> (BatchSize, KVNumHeads, QRowsTogether, QKHeadSize)
    QTogether = Reshape <allowzero = 1> (QReady, QTogetherShape)
    QKTogether = MatMul (QTogether, KReady)
    QKShape = Concat <axis = 0> (BatchSize, QNumHeads, QSeqLen, NewKVSeqLen)
    QKAttnWeight = Reshape <allowzero = 1> (QKTogether, QKShape)
"""

_RESULT = """
    WeightsShape = Concat <axis = 0> (BatchSize, KVNumHeads, QRowsTogether, NewKVSeqLen)
    Weights = Reshape <allowzero = 1> (SoftmaxOutSafe, WeightsShape)
    YTogether = MatMul (Weights, PresentValue)
    YShape = Concat <axis = 0> (BatchSize, QNumHeads, QSeqLen, VHeadSize)
    YPreReshape = Reshape <allowzero = 1> (YTogether, YShape)
"""

_OF_PRODUCTS = frozenset(
    "QReshaped PresentKey PresentValue ScaleFactorF BatchSize QNumHeads KVNumHeads QSeqLen NewKVSeqLen QKHeadSize "
    "VHeadSize QKAttnWeight SoftmaxOutSafe YPreReshape".split()
)
"""What onnx's body computes and these use, or compute instead."""


def bind_own(graph: RawGraph) -> None:
    """Bind the nodes of `irc::attention` in ``graph``, a function body of irc's. Models cannot name it."""
    own = replace(of_schemas(ATTENTION, schemas(ATTENTION)), outputs=(Output((0,), TENSOR),))
    for node in graph.walk():
        if (node.domain, node.op_type) == (_DOMAIN, _NAME):
            node.target = own


def use_operator(proto: FunctionProto, types: Sequence[Type], given: Mapping[str, Any], wanted: Iterable[str]) -> None:
    """Replace the products in the body ``proto`` by `irc::attention`; by other products if ``wanted``.

    Args:
        proto: onnx's body for one node.
        types: those of the node's inputs.
        given: its attributes.
        wanted: the outputs of ``proto`` that the node has.
    """
    made = {name for node in proto.node for name in node.output}
    if not made.issuperset(_OF_BODY):
        return  # another version of onnx makes another body
    if proto.output[-1] in wanted:
        if made >= _OF_PRODUCTS:
            instead = {"QKAttnWeight": _parsed(_SCORES), "YPreReshape": _parsed(_RESULT)}
            _replace_nodes(
                proto, [new for old in proto.node for new in instead.get(old.output[0], [old])], proto.output
            )
        return
    query, key, value, bias, _, result = _OF_BODY
    words: dict[str, Any] = {name: given[name] for name in ("scale", "softcap") if given.get(name)}
    inputs = [query, key, value]
    has_mask, has_past, has_lengths = (i < len(types) and types[i] is not NONE for i in (_MASK, _PAST, _LENGTHS))
    has_window = any(given.get(f"{side}_window_size", -1) >= 0 for side in ("left", "right"))
    if has_mask or has_lengths or has_window or (has_past and given.get("is_causal")):
        inputs.append(bias)  # with a past, rows count from its end, and there may be more new keys than queries
    elif given.get("is_causal"):
        words["causal"] = "first"
    nodes: list[NodeProto] = []
    for node in proto.node:
        if node.output[0] != result:
            nodes.append(node)
            continue
        if types[2] != types[0]:
            inputs[2] = f"{value}_cast"
            nodes.append(helper.make_node("CastLike", [value, query], [inputs[2]]))
        if len(inputs) > 3 or "causal" in words:
            words["zero_rows"] = "masked"
        words["grouped"] = 1
        nodes.append(helper.make_node(_NAME, inputs, [result], domain=_DOMAIN, **words))
    _replace_nodes(proto, nodes, wanted)


@cache
def _parsed(nodes: str) -> Sequence[NodeProto]:
    return parser.parse_function(f'<opset_import: ["": 23]> f () => () {{{nodes}}}').node


def _replace_nodes(proto: FunctionProto, nodes: Sequence[NodeProto], outputs: Iterable[str]) -> None:
    """Let ``proto`` have those of ``nodes``, in order, that ``outputs`` depend on."""
    read = set(outputs)
    found: list[NodeProto] = []
    for node in reversed(nodes):
        if not read.isdisjoint(node.output):
            read.update(node.input)
            found.append(node)
    del proto.node[:]
    proto.node.extend(reversed(found))


def cast_values(proto: FunctionProto) -> None:
    """Give both operands of the last product, of weights and values, the element type of the weights."""
    found = [(i, node) for i, node in enumerate(proto.node) if node.op_type == "MatMul"]
    if not found:
        return
    at, product = found[-1]
    weights, values = product.input
    product.input[1] = f"{values}_cast"
    cast: NodeProto = helper.make_node("CastLike", [values, weights], [product.input[1]])
    proto.node.insert(at, cast)


# -- bodies --------------------------------------------------------------------


_ATTENTION, _CROP_OR_PAD = "onnx::Attention", "onnx::CenterCropPad"


def expand(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """A call of the node's function body; the node itself if onnx has none, or types are unknown.

    Raises:
        Error: IRC131 if a type is unknown that the node, which has graphs, needs; IRC134 if its graphs do not fit.
    """
    builder.attributes(raw, operator)
    inputs = builder.inputs(raw, operator, scope)
    for name, graph in raw.graphs.items():
        for capture in graph.captures:
            raise Error("IRC134", f"{graph.where} must not use {capture!r} from outside", str(raw))
        if (len(graph.inputs), len(graph.outputs)) != (1, 1):
            raise Error("IRC134", f"{name} must have one input and one output", str(raw))
    function = _body(builder, raw, operator, inputs)
    if function is None:
        if not raw.graphs:
            return builder.operator(raw, operator, block, scope)
        for value in (v for v in inputs if _is_unknown(v.type)):
            raise Error("IRC131", f"the element type of its input %{value.name} is not known", str(raw))
        raise Error("IRC134", "onnx makes no function body for these attributes and types", str(raw))
    attributes = [a for a in raw.attributes if a.name not in raw.graphs]
    call = replace(raw, inputs=raw.inputs[: len(inputs)], outputs=output_names(raw, operator), attributes=attributes)
    return _called(builder, raw, call, function, block, scope, inputs)


def _called(
    builder: GraphBuilder,
    raw: RawNode,
    call: RawNode,
    function: RawFunction,
    block: Block,
    scope: Scope,
    inputs: Sequence[Value],
) -> Sequence[Value]:
    """The outputs of ``raw``, replaced by a call of ``function`` with ``inputs`` by the node ``call``."""
    call = replace(call, outputs=list(filter(None, call.outputs)), graphs={})
    types = [without_shapes(v.type) for v in inputs]
    made = dict(zip(call.outputs, builder.importer.functions.call(builder, call, function, block, scope, types)))
    return [made[name] if name else builder.absent() for name in raw.outputs]


def _is_unknown(type: Type) -> bool:
    return type is not NONE and type.dtype is None


def _body(builder: GraphBuilder, raw: RawNode, operator: Operator, inputs: Sequence[Value]) -> RawFunction | None:
    """The node's function body, with only the outputs that the node has; None if there is no body."""
    assert operator.version is not None, "operators of the onnx package have versions"
    domain = "" if operator.is_standard else raw.domain
    schema = find(operator.kind, operator.version)
    of_node = schema.has_context_dependent_function
    versions = schema.context_dependent_function_opset_versions if of_node else schema.function_opset_versions
    version = max((v for v in versions if v <= builder.imports.get(domain, v)), default=min(versions))
    types = [without_shapes(value.type) for value in inputs]
    taken = _taken(operator.kind, types)
    proto = _of_node(builder, raw, schema, version, taken) if of_node else _of_operator(schema, version)
    if not proto.node:
        return None
    _cast_inputs(proto, types, taken)
    wanted = [name for name, own in zip(proto.output, raw.outputs) if own]
    if operator.kind == _ATTENTION:
        use_operator(proto, types, builder.attributes(raw, operator, plain=True), wanted)
        if types[2] != types[0]:
            cast_values(proto)
    del proto.output[:]
    proto.output.extend(wanted)
    attributes = {name: a.default_value if a.default_value.name else None for name, a in schema.attributes.items()}
    function = RawFunction(proto, (domain, raw.op_type, ""), RawGraph(f"the body of {raw}"), {}, attributes)
    scan_function(proto, function.graph)
    function.imports = {**builder.imports, **read_imports(proto.opset_import, function.graph.where)}
    if operator.kind == _ATTENTION:  # others may have the node's graphs, in which the model's operators are meant
        bind_own(function.graph)
    resolve(function.graph, function.imports, {}, builder.importer.refuse_unknown)
    return function


def _taken(kind: str, types: Sequence[Type]) -> list[Type]:
    """The input types that the body is right for: the operator takes more types than onnx's body does.

    Attention's body masks by -inf in the type of the mask it is given, and integer types have no -inf;
    CenterCropPad's computes with the target sizes and with int64.
    """
    taken = list(types)
    if kind == _ATTENTION and len(types) > 3 and _is_integer(types[3]):
        taken[3] = types[0]
    elif kind == _CROP_OR_PAD and len(types) > 1 and _is_integer(types[1]):
        taken[1] = TensorType(DType.INT64)
    return taken


def _is_integer(type: Type) -> bool:
    return type.dtype is not None and type.dtype.is_integer


def _cast_inputs(proto: FunctionProto, given: Sequence[Type], taken: Sequence[Type]) -> None:
    """Make ``proto``, whose body takes inputs of the types ``taken``, accept the types ``given`` by casts."""
    for i, (have, want) in enumerate(zip(given, taken, strict=True)):
        if have != want and want.dtype is not None:
            name = proto.input[i]
            proto.input[i] = f"{name}_given"
            cast: NodeProto = helper.make_node("Cast", [proto.input[i]], [name], to=want.dtype.onnx)
            proto.node.insert(0, cast)


def _of_operator(schema: Any, version: int) -> FunctionProto:
    """The body that all nodes share."""
    return FunctionProto.FromString(schema.get_function_with_opset_version(version))


def _of_node(builder: GraphBuilder, raw: RawNode, schema: Any, version: int, types: Sequence[Type]) -> FunctionProto:
    """The body for this node: empty where onnx makes none."""
    if any(map(_is_unknown, types)):
        return FunctionProto()
    node = NodeProto(op_type=raw.op_type, domain=raw.proto.domain)
    node.input.extend("" if type is NONE else f"x{i}" for i, type in enumerate(types))
    node.output.extend(raw.outputs)
    node.attribute.extend(substitute(raw.attributes, builder.environment, raw))
    protos = [b"" if type is NONE else to_proto(type).SerializeToString() for type in types]
    try:
        made = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), protos)
    except Exception as error:  # whatever onnx's C++ raises for what it cannot make a body of
        if comes_from_outside(error):
            raise
        reason = str(error).partition("\n")[0]
        raise Error("IRC134", f"onnx cannot make its function body: {reason}", str(raw)) from None
    return FunctionProto.FromString(made)


# Nodes of the operators in irc's table: each becomes a call of the function body that its row writes.


def expand_row(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """A call of the node's function body; the node itself if an operator of that name has been registered.

    If irc has no body for such a node, it is opaque.

    Raises:
        Error: IRC127 if attributes are wrong; IRC123 if irc has no body for such a node, and unknown ones are refused.
    """
    if operator.version is None:
        return builder.operator(raw, operator, block, scope)
    try:
        return _expanded(builder, raw, operator, block, scope)
    except Error as error:
        unknown = opaque(raw.domain, raw.op_type, builder.imports)
        if error.code != "IRC123" or unknown is None or builder.importer.refuse_unknown:
            raise
        return import_opaque(builder, raw, unknown, block, scope)


def _expanded(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    row = ROWS["" if is_standard(raw.domain) else raw.domain, raw.op_type]
    stated = builder.attributes(raw, operator, plain=True)
    attributes: dict[str, Any] = {name: stated.get(name, default) for name, (_, default) in row.attributes.items()}
    inputs = builder.inputs(raw, operator, scope)
    names = row.input_names(len(inputs))
    present = {name: i for i, (name, value) in enumerate(zip(names, inputs)) if value.type is not NONE}
    outputs = {name: own for name, own in zip(row.outputs, output_names(raw, operator)) if own}
    failure: Error | None = None
    for opset in row.opsets(builder.imports.get("", 0)):
        body = Body({name: inputs[i].type for name, i in present.items()}, outputs, attributes, raw, opset)
        for name, value in attributes.items():
            if isinstance(value, float) and not math.isfinite(value):
                body.wrong(f"attribute {name!r} is {value}")
        try:
            function = _function(builder, raw, row, body)
            given = [inputs[i] for i in present.values()]
            call = replace(
                raw, inputs=[raw.inputs[i] for i in present.values()], outputs=list(outputs.values()), attributes=[]
            )
            return _called(builder, raw, call, function, block, scope, given)
        except TooOldError:
            continue
        except Error as error:
            if error.code != "IRC136":
                raise
            failure = error  # the opset's operators do not take these types, perhaps
    raise failure or Error("IRC123", "no operator set has all that its body needs", str(raw))


def _function(builder: GraphBuilder, raw: RawNode, row: Row, body: Body) -> RawFunction:
    """The function of ``body``; equal nodes share one."""
    made = row.body(body)
    results = dict(zip(row.outputs, (made,) if isinstance(made, str) else made))
    outputs = [results[name] for name in body.outputs]
    imports = [helper.make_opsetid("", body.opset)]
    domain = row.domain or "ai.onnx"
    proto = helper.make_function(domain, row.name, list(body.types), outputs, body.nodes, imports)
    key = proto.SerializeToString(deterministic=True)
    known = builder.importer.bodies
    function = known.get(key)
    if function is None:
        function = RawFunction(proto, (domain, row.name, ""), RawGraph(f"the body of {raw}"), {"": body.opset}, {})
        scan_function(proto, function.graph)
        for node in function.graph.walk():
            if record(f"onnx::{node.op_type}").decomposed:
                found = bind("", node.op_type, {"": opset_with(node.op_type, body.opset)})
                node.target = None if isinstance(found, str) else found
        bind_own(function.graph)
        resolve(function.graph, function.imports, {})
        known[key] = function
    return function


# Normalisation as ONNX Runtime has it before ONNX does: of operands and scales of different types.


def normalize(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """The node, or float32 computation between casts if its scale has another type, the result's."""
    inputs = builder.inputs(raw, operator, scope)
    found = {value.type.dtype for value in inputs if value.type is not NONE}
    scale = inputs[1].type.dtype
    if not operator.is_lenient or None in found or len(found) == 1 or DType.DOUBLE in found or scale is None:
        return builder.operator(raw, operator, block, scope)
    cast = bind("", "Cast", builder.imports)
    assert isinstance(cast, Operator)

    def in_type(value: Value, dtype: DType, name: str = "") -> Value:
        attributes = {"to": dtype.onnx}
        names = (name,) if name else ()
        return builder.create(
            block, cast.kind, (value,), (TensorType(dtype),), names, attributes, cast.version, raw.name
        ).output

    wide = [value if value.type.dtype in (DType.FLOAT, None) else in_type(value, DType.FLOAT) for value in inputs]
    name, *others = output_names(raw, operator)
    is_wide = scale is DType.FLOAT
    names = [name if is_wide else "", *others]
    types = [TensorType(DType.FLOAT)] * len(names)
    attributes = builder.attributes(raw, operator)
    node = builder.create(block, operator.kind, wide, types, names, attributes, operator.version, raw.name)
    first, *rest = node.outputs
    return [first if is_wide else in_type(first, scale, name), *rest]


SPECIAL: dict[str, Special] = {
    "onnx::Constant": _constant,
    "onnx::If": _if,
    "onnx::Loop": _loop,
    "onnx::Scan": _scan,
    "onnx::SequenceMap": _sequence_map,
    **{each.kind: normalize for each in records("onnx") if each.early == "lenient"},
    **{each.kind: expand for each in records(*DOMAINS) if each.expanded},
    **dict.fromkeys([row.kind for row in ROWS.values()], expand_row),
}
"""Operators that do not import as one node with their inputs and outputs."""
