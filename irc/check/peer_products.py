"""Products of unsigned bytes with signed ones, as ONNX Runtime is asked for them: with both unsigned.

On x86 processors without VNNI it adds such products in pairs with 16 bits, which saturate; those of bytes that are both
unsigned, or both signed, it adds exactly. (Its own remedy, ``session.x64quantprecision``, is part of its
optimiser, passes over QLinearMatMul, ConvInteger and weights that are computed, and refuses what is signed alone.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from irc.check.peer_faults import nodes_of
from irc.ir.types import DType

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_QUANTIZED = ((0, 2), (3, 5))

PRODUCTS: dict[str, tuple[tuple[int, int], ...]] = {
    "ConvInteger": ((0, 2), (1, 3)),
    "DynamicQuantizeLSTM": ((1, 9), (2, 11)),
    "DynamicQuantizeMatMul": ((1, 3),),
    "MatMulInteger": ((0, 2), (1, 3)),
    "MatMulIntegerToFloat": ((0, 4), (1, 5)),
    "QAttention": ((0, 6), (1, 7)),
    "QGemm": _QUANTIZED,
    "QLinearConv": _QUANTIZED,
    "QLinearMatMul": _QUANTIZED,
}
"""Where the operands of bytes are among the inputs, and their zero points."""

_WEIGHTS = frozenset({"DynamicQuantizeLSTM", "DynamicQuantizeMatMul"})
"""Operators that multiply each of these operands with unsigned bytes of their own making, not with each other."""

_MIDDLE = 128
"""What is added to a signed byte, and to its zero point, so that both are unsigned and as far apart as before."""


def with_unsigned_products(proto: ModelProto) -> ModelProto:
    """``proto``, or if it multiplies unsigned bytes by signed ones, a copy that makes these unsigned before.

    Local functions are inlined there, as the types in them are those of each call. Raises whatever onnx does.
    """
    if not any(node.op_type in PRODUCTS for node in nodes_of(proto)):
        return proto
    from onnx.inliner import inline_local_functions
    from onnx.shape_inference import infer_shapes

    copy = infer_shapes(inline_local_functions(proto) if proto.functions else proto)
    _make_unsigned(copy.graph, {})
    return copy


def _make_unsigned(graph: GraphProto, outer: Mapping[str, int]) -> None:
    """Change the products in ``graph`` and in what is inside it; ``outer`` has the element types around it."""
    types = {**outer, **dict(_element_types(graph))}
    nodes: list[NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _make_unsigned(inner, types)
        signed = [operand for operand in PRODUCTS.get(node.op_type, ()) if _is_signed(node, operand, types)]
        if node.op_type in _WEIGHTS or len(signed) == 1:  # what they are multiplied with is unsigned
            nodes += chain.from_iterable(_unsigned(node, *operand) for operand in signed)
        nodes.append(node)
    if len(nodes) > len(graph.node):
        del graph.node[:]
        graph.node.extend(nodes)


def _element_types(graph: GraphProto) -> Iterator[tuple[str, int]]:
    for infos in (graph.input, graph.value_info, graph.output):
        yield from ((info.name, info.type.tensor_type.elem_type) for info in infos)
    yield from ((tensor.name, tensor.data_type) for tensor in graph.initializer)


def _is_signed(node: NodeProto, operand: tuple[int, int], types: Mapping[str, int]) -> bool:
    """Whether an operand, or its zero point, which has the same type, is known to be of int8."""
    return any(types.get(node.input[at]) == DType.INT8.onnx for at in operand if at < len(node.input))


def _unsigned(node: NodeProto, *operand: int) -> list[NodeProto]:
    """Nodes that make an operand and its zero point unsigned, which ``node`` then reads."""
    from onnx.helper import make_node, make_tensor

    node.input.extend([""] * (max(operand) + 1 - len(node.input)))
    # Names are those of values: no other value has these.
    own = f"{next(filter(None, node.output))}, unsigned {operand[0]}"
    nodes = [make_node("Constant", [], [own], value=make_tensor("", DType.INT32.onnx, (), [_MIDDLE]))]
    for at in operand:
        wide, moved, made = (f"{own} {at} {step}" for step in ("wide", "moved", "made"))
        if node.input[at]:
            nodes += [
                make_node("Cast", [node.input[at]], [wide], to=DType.INT32.onnx),
                make_node("Add", [wide, own], [moved]),
            ]
        nodes.append(make_node("Cast", [moved if node.input[at] else own], [made], to=DType.UINT8.onnx))
        node.input[at] = made
    return nodes
