"""Whether nodes fit their signatures: what `irc.ir` asks of operators (`irc.ir.schema.SchemaLookup`).

Of operators with schema rows, the outputs must fit the overload that the inputs choose.
"""

from __future__ import annotations

from typing import Any, cast

from irc.ir import Node, Schema
from irc.ir.types import Bindings, accepts
from irc.ir.verify.operator_rules import node_error
from irc.ops import record, resolve, schemas
from irc.ops.onnx_signatures import check_onnx
from irc.support.formatting import count

_TORCHSCRIPT = ("aten::", "irc::", "prim::")


def check_schema(node: Node) -> None:
    """Check ``node`` against its schema, if there is one (IRC213, IRC214).

    The inputs choose the overload. That none fits is no fault: irc's rows do not cover all of
    PyTorch's overloads, and analyses assume the worst of an operator without a schema. Of irc's own
    operators they cover all. Blocks are what no row can say.
    """
    if node.blocks and (schemas(node.kind) or node.kind.startswith("aten::")):
        raise node_error("IRC213", f"{node.kind} has no blocks; here it has {len(node.blocks)}", node)
    schema = resolve(node)
    if node.kind.startswith("irc::"):
        _check_own(node, schema)
    if schema is None:
        return
    wanted, found = len(schema.returns), len(node.outputs)
    may_end_early = not node.kind.startswith(_TORCHSCRIPT) and 0 < found < wanted  # ONNX nodes leave later ones out
    if found != wanted and not may_end_early and not (schema.is_varret and found >= wanted - 1):
        raise node_error("IRC213", f"{schema} has {count(wanted, 'output')}, not {found}", node)
    wrong = _wrong_result(schema, node)
    if wrong is not None and all(_wrong_result(row, node) is not None for row in _alike(schema)):
        raise node_error("IRC214", f"the result of {schema} cannot be {node.outputs[wrong].type}", node, output=wrong)


def _wrong_result(schema: Schema, node: Node) -> int | None:
    """The first output of ``node`` whose type cannot be the result's in ``schema``, given its inputs."""
    bindings: Bindings = {}
    for i, value in enumerate(node.inputs):
        formal = schema.argument(i)
        if formal is not None:  # resolving has seen that it fits; this binds type variables
            accepts(formal.type, value.type, bindings)
    for i, value in enumerate(node.outputs):
        formal = schema.result(i)
        if formal is not None and not accepts(formal.type, value.type, bindings):
            return i
    return None


def _alike(schema: Schema) -> list[Schema]:
    """Other overloads that the same inputs fit: those of ``prim::EnumValue`` differ in their results only."""
    types = [argument.type for argument in schema.arguments]
    return [row for row in schemas(schema.name) if row is not schema and [a.type for a in row.arguments] == types]


def _check_own(node: Node, schema: Schema | None) -> None:
    """Check the inputs and attributes of an operator of irc's own, which passes rely on (IRC213, IRC215)."""
    rows = schemas(node.kind)
    if rows and schema is None:
        raise node_error("IRC213", f"the inputs do not fit {' or '.join(map(str, rows))}", node)
    for key, allowed in record(node.kind).attributes.items():
        value = node.attributes.get(key)
        if isinstance(allowed, tuple):
            is_right = value is None or (type(value) is type(allowed[0]) and value in allowed)
            what = f"one of {', '.join(map(repr, allowed))}"
        elif allowed == "number":
            is_right, what = value is None or type(value) in (int, float), "a number"
        else:
            _check_integers(node, key, value, is_list=allowed == "integers")
            continue
        if not is_right:
            raise node_error("IRC215", f"the attribute {key} of {node.kind} is {value!r}, but must be {what}", node)


def _check_integers(node: Node, key: str, value: Any, *, is_list: bool) -> None:
    numbers = cast("list[Any]", value) if is_list and isinstance(value, list) else [None] if is_list else [value]
    if not all(type(number) is int for number in numbers):
        what = "a list of integers" if is_list else "an integer"
        raise node_error("IRC215", f"{node.kind} needs an attribute {key}, {what}", node)


def check(node: Node) -> None:
    """Error IRC213, IRC214, IRC215 or IRC217 if ``node`` does not fit the signatures of its operator."""
    if not check_onnx(node):
        check_schema(node)
