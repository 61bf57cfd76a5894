"""Attention's function body, with products that read keys and values without copying them.

The specification's body scales the keys as well as the queries, and
repeats keys and values for all heads that share them: several copies of a cache
in each step. Here only the queries are scaled, and the queries of all heads that
share keys are the rows of one product.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from irc.ir.types import DType, Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onnx import FunctionProto, NodeProto

_ON_QUERIES = """
    QFactor = CastLike (ScaleFactor, QReshaped)
    QReady = Mul (QReshaped, QFactor)
    KReady = Transpose <perm = [0, 1, 3, 2]> (PresentKey)
"""

_ON_BOTH = """
    QReady = Mul (QReshaped, ScaleFactorF)
    KTransposed = Transpose <perm = [0, 1, 3, 2]> (PresentKey)
    KReady = Mul (KTransposed, ScaleFactorF)
"""

_SCORES = """
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

_OF_BODY = frozenset(
    "QReshaped PresentKey PresentValue ScaleFactor ScaleFactorF BatchSize QNumHeads KVNumHeads QSeqLen NewKVSeqLen "
    "QKHeadSize VHeadSize QKAttnWeight SoftmaxOutSafe YPreReshape".split()
)
"""What onnx's body computes and these use, or compute instead."""


def read_in_place(proto: FunctionProto, of_queries: Type, scale: float) -> None:
    """Replace the two products of the body ``proto``.

    Both operands stay scaled in half precision, whose results depend on
    where they are rounded (and whose products read copies of another type
    anyway); also if the scale is more than 1, which might overflow on one side, or
    negative, as the body takes its root.
    """
    made = {name for node in proto.node for name in node.output}
    if not made >= _OF_BODY:
        return  # another version of onnx makes another body
    wide = of_queries.dtype in (DType.FLOAT, DType.DOUBLE)
    scores = (_ON_QUERIES if wide and 0 <= scale <= 1 else _ON_BOTH) + _SCORES
    instead = {"QKAttnWeight": _parsed(scores), "YPreReshape": _parsed(_RESULT)}
    nodes = [new for old in proto.node for new in instead.get(old.output[0], [old])]
    del proto.node[:]
    proto.node.extend(_needed(nodes, proto.output))


@cache
def _parsed(nodes: str) -> Sequence[NodeProto]:
    from onnx import parser

    return parser.parse_function(f'<opset_import: ["": 23]> f () => () {{{nodes}}}').node


def _needed(nodes: Sequence[NodeProto], outputs: Iterable[str]) -> list[NodeProto]:
    """Those of ``nodes``, in order, that ``outputs`` depend on."""
    read = set(outputs)
    found: list[NodeProto] = []
    for node in reversed(nodes):
        if not read.isdisjoint(node.output):
            read.update(node.input)
            found.append(node)
    return found[::-1]


def cast_values(proto: FunctionProto) -> None:
    """Give both operands of the last product, of weights and values, the element type of the weights."""
    from onnx import helper

    at, product = max((i, node) for i, node in enumerate(proto.node) if node.op_type == "MatMul")
    weights, values = product.input
    product.input[1] = f"{values}_cast"
    cast: NodeProto = helper.make_node("CastLike", [values, weights], [product.input[1]])
    proto.node.insert(at, cast)
