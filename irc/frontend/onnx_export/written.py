"""What a written model holds, for reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


@dataclass(frozen=True)
class Written:
    """A model in files.

    Attributes:
        bytes: of all its files together.
        nodes: operators in the main graph, without what is nested in them; constants are none.
        operators: how often each operator occurs, in nested graphs and bodies of functions, too.
    """

    bytes: int
    nodes: int
    operators: dict[str, int]


def written(proto: ModelProto, bytes: int) -> Written:
    """What ``proto`` holds, whose files take ``bytes``."""
    top = list(_operators(proto.graph.node))
    functions = [node for function in proto.functions for node in _operators(function.node)]
    counts = Counter(_kind(node) for node in _with_nested([*top, *functions]))
    return Written(bytes, len(top), dict(sorted(counts.items())))


def _operators(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    return (node for node in nodes if node.op_type != "Constant" or node.domain)


def _with_nested(nodes: list[NodeProto]) -> Iterator[NodeProto]:
    pending = nodes
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            if attribute.type == attribute.GRAPH:
                pending.extend(_operators(attribute.g.node))


def _kind(node: NodeProto) -> str:
    """What reports call the operator: as a node of the graph that irc imports is called."""
    if node.op_type == "If" and not node.domain:
        return "prim::If"
    return f"{node.domain or 'onnx'}::{node.op_type}"
