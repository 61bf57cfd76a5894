"""Nodes of the operators in irc's table: each becomes a call of the function body that its row writes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.frontend.onnx.attention import bind_own
from irc.frontend.onnx.blocks import output_names
from irc.frontend.onnx.contrib import ROWS
from irc.frontend.onnx.contrib.body import SPELT_OUT, Body, TooOldError
from irc.frontend.onnx.opaque import import_opaque
from irc.frontend.onnx.opsets import bind, is_standard, opaque
from irc.frontend.onnx.resolve import resolve
from irc.frontend.onnx.scan import RawFunction, RawGraph, scan_function
from irc.ir.types import NONE, without_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.frontend.onnx.blocks import GraphBuilder, Scope
    from irc.frontend.onnx.contrib import Row
    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Value


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
    given = builder.attributes(raw, operator, plain=True)
    attributes: dict[str, Any] = {name: given.get(name, default) for name, (_, default) in row.attributes.items()}
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
            call = replace(
                raw,
                inputs=[raw.inputs[i] for i in present.values()],
                outputs=list(outputs.values()),
                attributes=[],
                graphs={},
            )
            types = [without_shapes(inputs[i].type) for i in present.values()]
            results = builder.importer.functions.call(builder, call, function, block, scope, types)
        except TooOldError:
            continue
        except Error as error:
            if error.code != "IRC136":
                raise
            failure = error  # the opset's operators do not take these types, perhaps
            continue
        made = dict(zip(call.outputs, results))
        return [made[name] if name else builder.absent() for name in raw.outputs]
    raise failure or Error("IRC123", "no operator set has all that its body needs", str(raw))


def _function(builder: GraphBuilder, raw: RawNode, row: Row, body: Body) -> RawFunction:
    """The function of ``body``; equal nodes share one."""
    from onnx import helper

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
            if node.op_type in SPELT_OUT:
                found = bind("", node.op_type, {"": max(body.opset, SPELT_OUT[node.op_type])})
                node.target = None if isinstance(found, str) else found
        bind_own(function.graph)
        resolve(function.graph, function.imports, {})
        known[key] = function
    return function
