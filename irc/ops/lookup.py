"""What `irc.ir` asks of operators: see `irc.ir.schema.SchemaLookup`, which this module implements."""

from __future__ import annotations

from irc.ir.node import Node
from irc.ops.onnx_rules import check_onnx
from irc.ops.schema_rules import check_schema


def check(node: Node) -> None:
    """Error IRC213, IRC214, IRC215 or IRC217 if ``node`` does not fit the signatures of its operator."""
    if not check_onnx(node):
        check_schema(node)
