"""Attention's function body, in which one operator, `irc::attention`, stands for the two products and what is between.

The specification's body scales the keys as well as the queries, and repeats keys and values for all heads that share
them: several copies of a cache in each step, and scores of full size. Where a node has scores as an output, there are
two products still; but only the queries are scaled, and the queries of all heads that share keys are the rows of one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from irc.frontend.onnx.opsets import Operator, Output
from irc.ir.kinds import ATTENTION
from irc.ir.types import NONE, TENSOR, DType, Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from onnx import FunctionProto, NodeProto

    from irc.frontend.onnx.scan import RawGraph

_FLOAT, _INT, _STRING = 1, 2, 3

OPERATOR = Operator(
    name=ATTENTION,
    is_standard=False,
    kind=ATTENTION,
    version=None,
    attributes={
        "scale": (_FLOAT, False),
        "softcap": (_FLOAT, False),
        "causal": (_STRING, False),
        "zero_rows": (_STRING, False),
        "grouped": (_INT, False),
    },
    inputs=(False, False, False, True, True, True),
    outputs=(Output((0,), TENSOR),),
    arity=(3, 6, 1, 1),
)
"""`irc::attention` in function bodies that irc writes. Models cannot name it."""

_DOMAIN, _, _NAME = ATTENTION.partition("::")

_MASK, _PAST, _LENGTHS = 3, 4, 6
"""Inputs of ONNX's Attention."""

_OF_BODY = ("QReshaped", "PresentKey", "PresentValue", "AttnBiasT", "SoftmaxOutSafe", "YPreReshape")
"""What onnx's body computes and the operator uses, or computes instead."""


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

_OF_PRODUCTS = frozenset(
    "QReshaped PresentKey PresentValue ScaleFactor ScaleFactorF BatchSize QNumHeads KVNumHeads QSeqLen NewKVSeqLen "
    "QKHeadSize VHeadSize QKAttnWeight SoftmaxOutSafe YPreReshape".split()
)
"""What onnx's body computes and these use, or compute instead."""


def bind_own(graph: RawGraph) -> None:
    """Bind the nodes of `irc::attention` in ``graph``, a function body that irc has written."""
    for node in graph.walk():
        if (node.domain, node.op_type) == (_DOMAIN, _NAME):
            node.target = OPERATOR


def use_operator(proto: FunctionProto, types: Sequence[Type], given: Mapping[str, Any], wanted: Iterable[str]) -> None:
    """Let `irc::attention` make what the products in the body ``proto`` do; if scores are ``wanted``, other products.

    Args:
        proto: onnx's body for one node.
        types: those of the node's inputs.
        given: its attributes.
        wanted: the outputs of ``proto`` that the node has.
    """
    from onnx import helper

    made = {name for node in proto.node for name in node.output}
    if not made.issuperset(_OF_BODY):
        return  # another version of onnx makes another body
    if proto.output[-1] in wanted:
        _read_in_place(proto, types[0], given.get("scale", 1.0))
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
    del proto.node[:]
    proto.node.extend(_needed(nodes, wanted))


def _read_in_place(proto: FunctionProto, of_queries: Type, scale: float) -> None:
    """Let the two products of the body ``proto`` read keys and values without copying them.

    Both operands stay scaled in half precision, whose results depend on
    where they are rounded (and whose products read copies of another type
    anyway); also if the scale is more than 1, which might overflow on one side, or
    negative, as the body takes its root.
    """
    made = {name for node in proto.node for name in node.output}
    if not made >= _OF_PRODUCTS:
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

    found = [(i, node) for i, node in enumerate(proto.node) if node.op_type == "MatMul"]
    if not found:
        return
    at, product = found[-1]
    weights, values = product.input
    product.input[1] = f"{values}_cast"
    cast: NodeProto = helper.make_node("CastLike", [values, weights], [product.input[1]])
    proto.node.insert(at, cast)
