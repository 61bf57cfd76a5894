"""Functions of one operand, and conversions of element types, quantisation included."""

from __future__ import annotations

from irc.ir.types import Dim, DType, TensorType, Type
from irc.ops import algebra
from irc.ops.inference import Contents, NodeTypes, elementwise
from irc.ops.record import Family

FAMILY = Family("onnx")
FAMILY.primitives("Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Exp Floor Log Round=rint Sin Sinh Sqrt Tan Tanh")
FAMILY.each("BitCast Cast CastLike", kernel="cast")
FAMILY.each("Cast CastLike", attributes={"round_mode": ("up", "down", "nearest")})
FAMILY.each("BitCast CastLike", value_operands=())


@FAMILY.semantics("onnx::Cast", result=None)
def to_type(x: algebra.Expression, *, to: algebra.AnyDType = algebra.SINGLE) -> algebra.Expression:
    """``to`` is given as a NumPy dtype."""
    return algebra.cast(x, to)


@FAMILY.shape("Cast")
def cast(c: NodeTypes) -> Type:
    to = c.attr("to")
    if isinstance(to, str):  # Cast 1 named the type
        return TensorType(DType.__members__.get(to), c.shape(0))
    try:
        return TensorType(DType.from_onnx(to), c.shape(0))
    except KeyError:
        c.fail(f"attribute to={to!r} is no element type")


@FAMILY.contents("Cast")
def cast_contents(c: NodeTypes) -> Contents | None:
    """To another integer type only: to bool and float changes what the numbers mean."""
    x = c.contents_of(0)
    return None if x is None or c.attr("to") not in (6, 7) else elementwise(_as_int, x)


def _as_int(d: Dim) -> Dim:
    return int(d) if isinstance(d, bool) else d


@FAMILY.shape("CastLike")
def cast_like(c: NodeTypes) -> Type:
    return TensorType(c.dtype(1), c.shape(0))


@FAMILY.shape("BitCast")
def bit_cast(c: NodeTypes) -> Type:
    return TensorType(DType.from_onnx(c.attr("to")), c.shape(0))


# -- quantisation ----------------------------------------------------------------

FAMILY.each("DequantizeLinear DynamicQuantizeLinear QuantizeLinear", value_operands=(), kernel="quantized")


@FAMILY.shape("QuantizeLinear")
def quantize(c: NodeTypes) -> Type:
    given = c.attr("output_dtype", 0)
    dtype = c.dtype(2) if c.has(2) else DType.from_onnx(given) if given else DType.UINT8
    return TensorType(dtype, c.shape(0))


@FAMILY.shape("DequantizeLinear")
def dequantize(c: NodeTypes) -> Type:
    given = c.attr("output_dtype", 0)
    dtype = DType.from_onnx(given) if given else c.dtype(1) if c.version >= 19 else DType.FLOAT
    return TensorType(dtype, c.shape(0))


@FAMILY.shape("DynamicQuantizeLinear")
def dynamic_quantize(c: NodeTypes) -> list[Type]:
    return [TensorType(DType.UINT8, c.shape(0)), TensorType(DType.FLOAT, ()), TensorType(DType.UINT8, ())]
