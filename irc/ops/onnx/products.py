"""Products of matrices, determinants, attention, and recurrent networks."""

from __future__ import annotations

import math

from irc.ir.types import DType, TensorType, Type
from irc.ops import Family, checks
from irc.ops.inference import NodeTypes
from irc.ops.shape_rules import einsum_products, einsum_shape, matrix_product, same_as_first, sizes

FAMILY = Family("onnx")


@FAMILY.macs("MatMul", "MatMulInteger", "QLinearMatMul")
def _matrix_products(c: NodeTypes, elements: int) -> int:
    return elements * sizes(c, 0)[-1]


@FAMILY.macs("Gemm")
def _gemm_products(c: NodeTypes, elements: int) -> int:
    return elements * sizes(c, 0)[0 if c.attr("transA", 0) else 1]


@FAMILY.macs("Einsum")
def _einsum_products(c: NodeTypes, elements: int) -> int:
    operands = range(len(c.node.inputs))
    return einsum_products(c.attr("equation", ""), [sizes(c, i) for i in operands])


FAMILY.each("MatMul Gemm", epilogues=True, kernel="matmul")
FAMILY.each("MatMul", widened=(1,))
FAMILY.each("Gemm Einsum", widened=(1, 2))
FAMILY.each("Einsum", kernel="matmul")
FAMILY.each("MatMulInteger QLinearMatMul", kernel="quantized")
FAMILY.each("Det", kernel="matmul")


@FAMILY.shape("MatMul", "MatMulInteger", "QLinearMatMul")
def matmul(c: NodeTypes) -> Type:
    quantized = c.node.kind == "onnx::QLinearMatMul"
    dtype = {"onnx::MatMul": c.dtype(0) or c.dtype(1), "onnx::MatMulInteger": DType.INT32}.get(c.node.kind, c.dtype(7))
    a, b = c.shape(0), c.shape(3 if quantized else 1)
    if a is None or b is None:
        return TensorType(dtype)
    if not a or not b:
        c.fail("MatMul takes no scalars")
    c.same_dim([a[-1], b[0] if len(b) == 1 else b[-2]], "the inner dimensions of a matrix product")
    return TensorType(dtype, matrix_product(c, a, b))


@FAMILY.shape("Gemm")
def gemm(c: NodeTypes) -> Type:
    a, b = c.shape(0), c.shape(1)
    if a is None or b is None:
        return TensorType(c.dtype(0) or c.dtype(1), (None, None))
    if len(a) != 2 or len(b) != 2:
        c.fail("Gemm takes matrices")
    inner, rows = (a[0], a[1]) if c.attr("transA", 0) else (a[1], a[0])
    columns, inner_b = (b[0], b[1]) if c.attr("transB", 0) else (b[1], b[0])
    c.same_dim([inner, inner_b], "the inner dimensions of Gemm")
    return TensorType(c.dtype(0) or c.dtype(1), (rows, columns))


@FAMILY.shape("Einsum")
def einsum(c: NodeTypes) -> Type:
    equation = c.attr("equation", "").replace(" ", "")
    return TensorType(c.dtype(0), einsum_shape(c, equation, [c.shape(i) for i in range(len(c.node.inputs))]))


FAMILY.reshapes("Det")(lambda c, x: x[:-2])


# -- attention -------------------------------------------------------------------


def _shared_heads(c: NodeTypes) -> None:
    queries, keys = c.attr("q_num_heads"), c.attr("kv_num_heads")
    if queries is not None and keys and queries % keys:
        c.fail(f"q_num_heads {queries} must be a multiple of kv_num_heads {keys}")


_HEADS = (checks.positive("q_num_heads", "kv_num_heads"), _shared_heads)


def check_attention(c: NodeTypes) -> None:
    x, heads = c.shape(0), [name for name in ("q_num_heads", "kv_num_heads") if c.attr(name) is not None]
    if x is not None and len(x) == 4 and heads:
        c.fail(f"{heads[0]} is for operands of 3 dimensions: where these have 4, the second is the heads")


@FAMILY.macs("Attention")
def _attention_products(c: NodeTypes, elements: int) -> int:
    query, key, value = (sizes(c, i) for i in range(3))
    length = key[-2] + (sizes(c, 4)[-2] if c.has(4) else 0)
    shared = 1 if len(query) == 4 else c.attr("q_num_heads", 1) // c.attr("kv_num_heads", 1)  # else heads lie in rows
    return math.prod(query[:-1]) * length * (query[-1] + value[-1] * shared)


FAMILY.each(
    "Attention",
    value_operands=(),
    expanded=True,
    requires=(
        *_HEADS,
        check_attention,
        checks.attributes((0, 1, 2, 3).__contains__, "0 to 3", "qk_matmul_output_mode"),
        checks.attributes(lambda n: n >= -1, "-1 or more", "left_window_size", "right_window_size"),
    ),
)
FAMILY.each(
    "LinearAttention",
    expanded=True,
    attributes={"update_rule": ("linear", "gated", "delta", "gated_delta")},
    requires=_HEADS,
)
FAMILY.each("ai.onnx.preview::FlexAttention", expanded=True)
FAMILY.each(
    "RotaryEmbedding",
    shape=same_as_first,
    requires=(checks.not_negative("num_heads", "rotary_embedding_dim"),),
    kernel="attention",
)


# -- recurrent networks ----------------------------------------------------------


@FAMILY.macs("GRU", "LSTM", "RNN")
def recurrent_products(c: NodeTypes, elements: int) -> int:
    """Products with both matrices of weights in each step."""
    steps, batch, _ = sizes(c, 0)
    return steps * batch * (math.prod(sizes(c, 1)) + math.prod(sizes(c, 2)))


FAMILY.each(
    "GRU LSTM RNN",
    widened=(1, 2, 3),
    needed_outputs=1,
    attributes={"direction": ("forward", "reverse", "bidirectional")},
    requires=(checks.positive("hidden_size"), checks.flags("layout", "linear_before_reset", "input_forget")),
    kernel="recurrent",
)


@FAMILY.shape("LSTM", "GRU", "RNN")
def recurrent(c: NodeTypes) -> list[Type]:
    x, hidden = c.shape(0), c.attr("hidden_size")
    directions = 2 if c.attr("direction", "forward") == "bidirectional" else 1
    if x is None:
        return [TensorType(c.dtype(0))] * 3
    batch_first = c.attr("layout", 0)
    length, batch = (x[1], x[0]) if batch_first else (x[0], x[1])
    y = (batch, length, directions, hidden) if batch_first else (length, directions, batch, hidden)
    last = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    return [TensorType(c.dtype(0), y), TensorType(c.dtype(0), last), TensorType(c.dtype(0), last)]
