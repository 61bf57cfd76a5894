"""irc's own operators, and ONNX Runtime's DynamicQuantizeLSTM, which has no function body."""

from __future__ import annotations

import math

from irc.ir.types import TensorType, Type
from irc.ops.inference import NodeTypes
from irc.ops.onnx.products import recurrent, recurrent_products
from irc.ops.onnx.reductions import along_axis, last_axis
from irc.ops.onnx.shaping import concat
from irc.ops.record import AllowedValues, Family, Operator
from irc.ops.shape_rules import for_each_element, same_as_first, sizes

FAMILY = Family(
    "irc",
    """
    # Concat into reserved capacity: the result begins with the memory of the first operand.
    irc::append_(Tensor(a!) self, Tensor other) -> Tensor(a)
    # A copy of self with a slice of it, given by attributes starts and steps (one entry a dimension), replaced by src.
    irc::slice_scatter(Tensor self, Tensor src) -> Tensor
    # The same, written into self itself.
    irc::slice_scatter_(Tensor(a!) self, Tensor src) -> Tensor(a!)
    # Softmax along the attribute axis, and 0 where that is not a number.
    irc::masked_softmax(Tensor self) -> Tensor
    # softmax(query key^T scale + bias) value: (..., H, L, E), (..., H, S, E), (..., H, S, V) to (..., H, L, V).
    # Attributes: scale, by default 1 / sqrt(E); softcap, below which scores stay; causal, "first" or "last": query i
    # sees keys up to i, or up to S - L + i; fill, by default -inf: the score where mask is false; zero_rows: results
    # are 0 where the softmax is not a number ("nan"), or is none because bias, mask and causal exclude all keys
    # ("masked"); grouped = 1: key and value may have fewer heads, each of which several neighbours share. Sink, (H,) or
    # (1,), has for each head the score of a key that is not there, whose value is 0.
    irc::attention(Tensor query, Tensor key, Tensor value, Tensor? bias=None, Tensor? mask=None, Tensor? sink=None) \
-> Tensor
    # The second half of the last axis, which has an even size, with the other sign, before the first; with the
    # attribute interleaved = 1, likewise of each two neighbours.
    irc::rotate_half(Tensor self) -> Tensor
    # A copy of self, with the strides of self, overwritten by src of the same shape, which torch's in-place operators
    # could write there: no float into integers. With the attribute same_type, both must have one element type.
    irc::overwrite(Tensor self, Tensor src) -> Tensor
    # The same, written into self itself.
    irc::overwrite_(Tensor(a!) self, Tensor src) -> Tensor(a!)
    """,
)

_BOX: dict[str, AllowedValues] = {"starts": "integers", "steps": "integers"}

FAMILY.each("append_", shape=concat, value_operands=(), attributes={"axis": "integer"})
FAMILY.each("slice_scatter slice_scatter_", shape=same_as_first, attributes=_BOX, kernel="index")
FAMILY.each("overwrite overwrite_", shape=same_as_first, kernel="aten")
FAMILY.each("overwrite_", overwrites=True)
FAMILY.each("overwrite slice_scatter", shaped_like_first=True, keeps_type="buifc", value_operands=())
FAMILY.each("slice_scatter", scatters=True, layout=frozenset({"contiguous"}))
FAMILY.each("overwrite", layout=frozenset({"like-first"}))
FAMILY.each("rotate_half", shape=same_as_first, value_operands=(), kernel="attention")
FAMILY.each("masked_softmax", flops=for_each_element(5))
FAMILY.each("masked_softmax", shape=along_axis, reduces=last_axis, value_operands=(), kernel="softmax")


@FAMILY.macs("attention")
def _attention_products(c: NodeTypes, elements: int) -> int:
    query, keys, width = sizes(c, 0), sizes(c, 1)[-2], sizes(c, 2)[-1]
    return math.prod(query[:-1]) * keys * (query[-1] + width)


FAMILY.each(
    "attention",
    value_operands=(),
    attributes={
        "scale": "number",
        "softcap": "number",
        "fill": "number",
        "causal": ("first", "last"),
        "zero_rows": ("nan", "masked"),
        "grouped": (0, 1),
    },
    kernel="attention",
)
FAMILY.add(
    Operator(
        "com.microsoft::DynamicQuantizeLSTM",
        # An LSTM with weights of 8 bits that quantizes the inputs, and in each step the states.
        "(Tensor X, Tensor W, Tensor R, Tensor? B, Tensor? sequence_lens, "
        "Tensor? initial_h, Tensor? initial_c, Tensor? P, Tensor W_scale, Tensor W_zero_point, Tensor R_scale, "
        "Tensor R_zero_point) -> (Tensor Y, Tensor Y_h, Tensor Y_c)",
        shape=recurrent,
        macs=recurrent_products,
        needed_outputs=1,
        kernel="recurrent",
    )
)


@FAMILY.shape("attention")
def attention(c: NodeTypes) -> Type:
    query, key, value = (c.shape(i) for i in range(3))
    dtype = c.dtype(0) or c.dtype(1) or c.dtype(2)
    if query is None or key is None or value is None:
        return TensorType(dtype)
    if min(map(len, (query, key, value))) < 2:
        c.fail("attention takes matrices, or batches of them")
    c.same_dim([query[-1], key[-1]], "the widths of queries and keys")
    lead = [shape[:-2] for shape in (query, key, value)]
    if c.attr("grouped", 0) and all(lead) and key[-3] != query[-3]:
        lead = [lead[0], *((*others[:-1], 1) for others in lead[1:])]  # whether they can be shared, the run tells
    scores = (*(c.broadcast(lead) or ()), query[-2], key[-2])
    whole = c.broadcast([scores, *(c.shape(i) for i in (3, 4) if c.has(i))])
    if whole is None:
        return TensorType(dtype)
    return TensorType(dtype, (*whole[:-1], value[-1]))


def records() -> dict[str, Operator]:
    """All records, by kind."""
    return FAMILY.records
