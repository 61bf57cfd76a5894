"""Shapes that the body of a Loop or Scan declares: kept beside the node, as passes would trust them on its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx.types import from_proto, settle
from irc.ir import Graph
from irc.ir.clone import clone_node, clone_nodes
from irc.ir.kinds import CONSTANT
from irc.ir.loops import DECLARED_INPUTS, DECLARED_ROWS
from irc.ir.types import TensorType, Type, without_names

if TYPE_CHECKING:
    from onnx import TypeProto

    from irc.frontend.onnx.scan import RawGraph
    from irc.ir import Node

Declared = tuple[str, "TypeProto | None"]


def keep_rows(node: Node, params: Sequence[Declared], body: RawGraph, first: int) -> None:
    """Keep the types of the rows that ``body`` returns from output ``first`` on; ``params`` are its parameters.

    The types are those that the body declares, or those that follow from what it declares of its parameters.
    """
    outputs = body.outputs[first:]
    rows = [_tensor([output, (output[0], body.declared.get(output[0]))]) for output in outputs]
    if any(row.shape is None for row in rows):
        given = [_tensor([param]) for param in params]
        if any(type.shape is not None for type in given):
            found = _inferred(node, given)[first:]
            rows = [type if row.shape is None else row for row, type in zip(rows, found, strict=True)]
    _keep(node, DECLARED_ROWS, rows)


def keep_inputs(node: Node, params: Sequence[Declared], body: RawGraph, states: int) -> None:
    """Keep the ranks that ``body``, a Scan's with parameters ``params``, declares of its inputs.

    A state has the same rank in all trips, so what the body declares of the states that it returns counts too.
    """
    types = [_tensor([param, *body.outputs[i : min(i + 1, states)]]) for i, param in enumerate(params)]
    ranked = [type if type.shape is None else TensorType(type.dtype, (None,) * len(type.shape)) for type in types]
    _keep(node, DECLARED_INPUTS, ranked)


def _tensor(sources: Iterable[Declared]) -> TensorType:
    """The tensor type that several declarations of one value give together."""
    found = TensorType()
    for name, declared in sources:
        if declared is not None:
            found = _plain(settle(found, from_proto(declared, f"type of {name!r}")))
    return found


def _plain(type: Type) -> TensorType:
    return without_names(type) if isinstance(type, TensorType) else TensorType()


def _keep(node: Node, key: str, types: Sequence[TensorType]) -> None:
    if any(type.shape is not None for type in types):
        node.attributes[key] = [str(type) for type in types]


def _inferred(node: Node, given: Sequence[TensorType]) -> list[TensorType]:
    """The types that the body of ``node`` returns if its parameters are as declared; unknown if that contradicts it."""
    from irc.passes.shapes import Inference

    (body,) = node.blocks
    graph = Graph("body", node.graph.weights, node.graph.module)
    mapping = {param: graph.add_input(settle(param.type, type)) for param, type in zip(body.params, given, strict=True)}
    for value in node.captures():
        constant = value.made_by(CONSTANT)
        if constant is not None:
            graph.block.append(clone_node(constant, graph, mapping))
        else:
            mapping[value] = graph.add_input(value.type)
    clone_nodes(body, graph.block, mapping)
    try:
        Inference(graph).run()
    except Error:
        return [TensorType()] * len(body.returns)
    return [_plain(mapping[value].type) for value in body.returns]
