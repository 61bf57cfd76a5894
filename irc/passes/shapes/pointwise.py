"""Shape rules of elementwise operators and of others that keep their input's shape."""

from __future__ import annotations

from irc import ops
from irc.ir.types import DType, TensorType, Type
from irc.ops.inference import NodeTypes
from irc.ops.shape_rules import shape_rule

_SAME_AS_FIRST = (
    # along an axis, or with neighbours
    "CumProd CumSum InstanceNormalization LRN MeanVarianceNormalization GroupNormalization ReverseSequence Trilu "
    "Identity RotaryEmbedding irc::rotate_half "
    # updates of the first input
    "Scatter ScatterElements ScatterND TensorScatter irc::slice_scatter irc::overwrite"
).split()

_SCALARS = [scalar for record in ops.records("onnx") for scalar in record.scalar]
_UNARY = {scalar.name for scalar in _SCALARS if scalar.arity == 1 and not scalar.variadic}
_COMPARE = frozenset("And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual".split())
_BROADCAST = {scalar.name for scalar in _SCALARS} - _UNARY - _COMPARE - {"Clip", "Pow", "Where"}


@shape_rule("Clip", *_UNARY - {"Cast", "Clip", "IsInf", "IsNaN"}, *_SAME_AS_FIRST)
def same_as_first(c: NodeTypes) -> Type:
    return c.type(0)


@shape_rule("Hardmax", "LogSoftmax", "LpNormalization", "Softmax", "irc::masked_softmax")
def along_axis(c: NodeTypes) -> Type:
    rank = c.tensor(0).rank
    if rank:
        # Softmax 1 and 11 flatten the input at the axis, which may then be the end.
        c.axis(c.attr("axis", -1 if c.version >= 13 else 1), rank, end=c.version < 13)
    return c.type(0)


@shape_rule("RMSNormalization")
def rms_normalization(c: NodeTypes) -> Type:
    """The shape of the input, the element type of the scale."""
    rank = c.tensor(0).rank
    if rank:
        c.axis(c.attr("axis", -1), rank)
    return TensorType(c.dtype(1), c.shape(0))


@shape_rule("Pow")
def power(c: NodeTypes) -> Type:
    """The exponent may be of another type."""
    return _broadcast_all(c, c.dtype(0))


def _broadcast_all(c: NodeTypes, dtype: DType | None) -> Type:
    if c.version < 7 and len(c.node.inputs) == 2 and c.node.kind not in ("onnx::Max", "onnx::Min", "onnx::Sum"):
        return TensorType(dtype, c.shape(0))  # before 7 only the second input was broadcast
    return TensorType(dtype, c.broadcast([c.shape(i) for i in range(len(c.node.inputs))]))


@shape_rule(*_BROADCAST)
def broadcast(c: NodeTypes) -> Type:
    known = [d for d in (c.dtype(i) for i in range(len(c.node.inputs))) if d is not None]
    if len(set(known)) > 1 and c.node.kind != "onnx::BitShift":
        names = ", ".join(sorted({d.label for d in known}))
        c.fail(f"inputs must have one element type, but have {names}; insert a Cast")
    return _broadcast_all(c, known[0] if known else None)


@shape_rule(*_COMPARE)
def compare(c: NodeTypes) -> Type:
    return _broadcast_all(c, DType.BOOL)


@shape_rule("IsInf", "IsNaN")
def test(c: NodeTypes) -> Type:
    return TensorType(DType.BOOL, c.shape(0))


@shape_rule("Where")
def where(c: NodeTypes) -> Type:
    return TensorType(c.dtype(1) or c.dtype(2), c.broadcast([c.shape(0), c.shape(1), c.shape(2)]))


@shape_rule("Cast")
def cast(c: NodeTypes) -> Type:
    to = c.attr("to")
    if isinstance(to, str):  # Cast 1 named the type
        return TensorType(DType.__members__.get(to), c.shape(0))
    try:
        return TensorType(DType.from_onnx(to), c.shape(0))
    except KeyError:
        c.fail(f"attribute to={to!r} is no element type")


@shape_rule("CastLike")
def cast_like(c: NodeTypes) -> Type:
    return TensorType(c.dtype(1), c.shape(0))


@shape_rule("BitCast")
def bit_cast(c: NodeTypes) -> Type:
    return TensorType(DType.from_onnx(c.attr("to")), c.shape(0))


@shape_rule("Dropout")
def dropout(c: NodeTypes) -> list[Type]:
    mask = DType.BOOL if c.version >= 10 else c.dtype(0)
    return [c.type(0), TensorType(mask, c.shape(0))]


@shape_rule("QuantizeLinear")
def quantize(c: NodeTypes) -> Type:
    given = c.attr("output_dtype", 0)
    dtype = c.dtype(2) if c.has(2) else DType.from_onnx(given) if given else DType.UINT8
    return TensorType(dtype, c.shape(0))


@shape_rule("DequantizeLinear")
def dequantize(c: NodeTypes) -> Type:
    given = c.attr("output_dtype", 0)
    dtype = DType.from_onnx(given) if given else c.dtype(1) if c.version >= 19 else DType.FLOAT
    return TensorType(dtype, c.shape(0))


@shape_rule("DynamicQuantizeLinear")
def dynamic_quantize(c: NodeTypes) -> list[Type]:
    return [TensorType(DType.UINT8, c.shape(0)), TensorType(DType.FLOAT, ()), TensorType(DType.UINT8, ())]


@shape_rule("Bernoulli", "RandomNormalLike", "RandomUniformLike", "EyeLike")
def like(c: NodeTypes) -> Type:
    given = c.attr("dtype")
    return TensorType(DType.from_onnx(given) if given else c.dtype(0), c.shape(0))


@shape_rule("RandomNormal", "RandomUniform")
def random(c: NodeTypes) -> Type:
    return TensorType(DType.from_onnx(c.attr("dtype", 1)), tuple(c.attr("shape", ())))


@shape_rule("Multinomial")
def multinomial(c: NodeTypes) -> Type:
    rows = c.shape(0)
    return TensorType(DType.from_onnx(c.attr("dtype", 6)), (rows[0] if rows else None, c.attr("sample_size", 1)))
