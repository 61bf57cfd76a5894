"""Pointwise operators: arithmetic, functions, activations, conversions, comparisons, selection."""

from __future__ import annotations

import math
from functools import partial, reduce

from irc.ir.polynomials import is_positive, is_size, minus, plus, quotient, surely_differ, times
from irc.ir.types import Dim, DType, TensorType, Type
from irc.ops import Choice, Family, Movement, ScalarSemantics, algebra
from irc.ops.algebra import Expression, at_least, at_most, select, single
from irc.ops.inference import Contents, NodeTypes, dims_array, elementwise
from irc.ops.shape_rules import broadcast_as, compare, contents_by, for_each_element, same_as_first

FAMILY = Family("onnx")
_LARGEST = 3.4028234663852886e38  # of float32

FAMILY.primitives("Abs=absolute Neg=negative Reciprocal Sign")
FAMILY.primitives("Add Div=divide Mul=multiply Pow=power Sub=subtract", since=7)
FAMILY.primitives("Max=maximum Min=minimum Sum=add", variadic=True)
FAMILY.add(ScalarSemantics("onnx::Mod", Choice("fmod", {0: algebra.remainder, 1: algebra.truncated_remainder}, 0)))
FAMILY.each("Add Mul", commutative=True)
FAMILY.each("Div Sub", reads_first=True)
FAMILY.each("Clip", shape=same_as_first, shaped_like_first=True)


@FAMILY.shape("Pow")
def power_type(c: NodeTypes) -> Type:
    """The exponent may be of another type."""
    return broadcast_as(c, c.dtype(0))


@FAMILY.semantics("onnx::Mean", variadic=True, ulp=2.0)
def mean(*operands: Expression) -> Expression:
    total = operands[0]
    for x in operands[1:]:
        total = total + x
    return total / len(operands)


FAMILY.add(ScalarSemantics("onnx::Clip", algebra.clip, since=11))
FAMILY.unary("Clip", lambda x, *, min=-_LARGEST, max=_LARGEST: algebra.clip(x, min, max), since=6)
FAMILY.unary("Clip", lambda x, *, min=None, max=None: algebra.clip(x, min, max), since=1)


# -- contents --------------------------------------------------------------------


def _quotient(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        # ONNX integer division truncates toward zero.
        return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient(a, b) if surely_differ(b, 0) else None


def _smallest(*sizes: Dim) -> Dim:
    return reduce(lambda a, b: a if is_size(minus(b, a)) else b if is_size(minus(a, b)) else None, sizes)


def _largest(*sizes: Dim) -> Dim:
    return reduce(lambda a, b: a if is_size(minus(a, b)) else b if is_size(minus(b, a)) else None, sizes)


FAMILY.each("Add", contents=contents_by(plus))
FAMILY.each("Sub", contents=contents_by(minus))
FAMILY.each("Mul", contents=contents_by(times))
FAMILY.each("Div", contents=contents_by(_quotient))
FAMILY.each("Neg", contents=contents_by(partial(times, -1)))
FAMILY.each("Min", contents=contents_by(_smallest, oldest=1))
FAMILY.each("Max", contents=contents_by(_largest, oldest=1))


# -- functions of one operand, conversions, quantisation -----------------------


FAMILY.primitives("Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Exp Floor Log Round=rint Sin Sinh Sqrt Tan Tanh")
FAMILY.each("BitCast Cast CastLike", flops=for_each_element(0), kernel="cast")
FAMILY.each("Cast CastLike", attributes={"round_mode": ("up", "down", "nearest")})


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
        c.fail(f"attribute to={to!r} is not an element type")


@FAMILY.contents("Cast")
def cast_contents(c: NodeTypes) -> Contents | None:
    """To another integer type only: to bool and float changes what the numbers mean."""
    x = c.contents_of(0)
    return None if x is None or c.attr("to") not in (6, 7) else elementwise(_as_int, x)


def _as_int(d: Dim) -> Dim:
    return int(d) if isinstance(d, bool) else d


FAMILY.shape("CastLike")(lambda c: TensorType(c.dtype(1), c.shape(0)))
FAMILY.shape("BitCast")(lambda c: TensorType(DType.from_onnx(c.attr("to")), c.shape(0)))


# -- quantisation ----------------------------------------------------------------

FAMILY.each("DequantizeLinear DynamicQuantizeLinear QuantizeLinear", flops=for_each_element(2), kernel="quantized")


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


# -- activation functions ------------------------------------------------------


FAMILY.add(
    ScalarSemantics("onnx::Erf", algebra.erf, floats=True),
    ScalarSemantics(
        "onnx::Gelu",
        Choice("approximate", {"none": algebra.gelu, "tanh": algebra.gelu_tanh}, "none"),
        floats=True,
        ulp=4.0,
        scale=0.25,
    ),
    ScalarSemantics("onnx::Mish", algebra.mish, floats=True, ulp=8.0),
    ScalarSemantics("onnx::Sigmoid", algebra.sigmoid, floats=True, ulp=4.0),
    ScalarSemantics("onnx::Softplus", algebra.softplus, floats=True, ulp=4.0),
)
FAMILY.each("Gelu", attributes={"approximate": ("none", "tanh")})
FAMILY.each("Gelu Swish", decomposed=True)
FAMILY.each("ThresholdedRelu", early="as-is")
FAMILY.each("PRelu", changes_meaning=(7,))  # slopes are broadcast otherwise


FAMILY.unary("Relu", lambda x: at_least(x, 0))


@FAMILY.semantics("onnx::Swish", floats=True, ulp=8.0, scale=1e-3)
def swish(x: Expression, *, alpha: float = 1.0) -> Expression:
    """X sigmoid(alpha x), as x / (1 + exp(-alpha x)), for which holds what `algebra.sigmoid` says."""
    return x / (algebra.exp(x * -alpha) + 1)


FAMILY.binary(
    "SwiGLU", lambda gate, value, *, alpha=1.0: swish(gate, alpha=alpha) * value, floats=True, ulp=8.0, scale=1e-3
)


FAMILY.unary("Softsign", lambda x: x / (abs(x) + 1), floats=True, ulp=2.0)


@FAMILY.semantics("onnx::LeakyRelu", floats=True)
def leaky_relu(x: Expression, *, alpha: float = 0.01) -> Expression:
    scaled = x * alpha
    if 0 < alpha < float("inf"):  # then one comparison of x with alpha x selects the right one
        return algebra.maximum(x, scaled) if alpha <= 1 else algebra.minimum(x, scaled)
    return select(x < 0, scaled, x)


@FAMILY.semantics("onnx::PRelu", since=7)
@FAMILY.semantics("onnx::PRelu", broadcasts=False)
def prelu(x: Expression, slope: Expression) -> Expression:
    """X where x >= 0, else slope x, which need not be a number where x >= 0."""
    return select(x < 0, x * slope, x)


def scaled_elu(x: Expression, alpha: float, gamma: float = 1.0, stretch: float = 1.0) -> Expression:
    """Gamma x where x >= 0, else gamma alpha (exp(x / stretch) - 1)."""
    below = at_most(x, 0)
    tail = algebra.expm1(below if stretch == 1 else below / stretch) * (gamma * alpha)
    above = at_least(x, 0)
    if gamma == stretch == 1:
        return above + tail
    return above * gamma + 0 + tail  # 0 of -0


FAMILY.unary("Elu", lambda x, *, alpha=1.0: scaled_elu(x, alpha), floats=True, ulp=4.0)
FAMILY.unary("Celu", lambda x, *, alpha=1.0: scaled_elu(x, alpha, stretch=alpha), since=12, floats=True, ulp=4.0)


@FAMILY.semantics("onnx::Selu", since=6, floats=True, ulp=4.0)
def selu(
    x: Expression, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Expression:
    return scaled_elu(x, alpha, gamma)


@FAMILY.semantics("onnx::Selu", since=1, floats=True, ulp=4.0)
def first_selu(x: Expression, *, alpha: float = 1.6732, gamma: float = 1.0507) -> Expression:
    return scaled_elu(x, alpha, gamma)


@FAMILY.semantics("onnx::HardSigmoid", floats=True, ulp=1.0, scale=0.25)
def hard_sigmoid(x: Expression, *, alpha: float = 0.2, beta: float = 0.5) -> Expression:
    return at_least(at_most(x * alpha + beta, 1), 0)


@FAMILY.semantics("onnx::HardSwish", floats=True, ulp=2.0, scale=0.25)
def hard_swish(x: Expression) -> Expression:
    return x * hard_sigmoid(x, alpha=single(1 / 6), beta=0.5)


FAMILY.unary("ThresholdedRelu", lambda x, *, alpha=1.0: select(x > alpha, x, 0), since=10, floats=True)


@FAMILY.semantics("onnx::Shrink", since=9, floats=True)
def shrink(x: Expression, *, lambd: float = 0.5, bias: float = 0.0) -> Expression:
    return select(x < -lambd, x + bias, select(x > lambd, x - bias, 0))


# -- comparisons, truth values, bits, and selection by them --------------------


FAMILY.add(
    ScalarSemantics("onnx::BitShift", Choice("direction", {"LEFT": algebra.shift_left, "RIGHT": algebra.shift_right}))
)
FAMILY.primitives("BitwiseAnd=bitwise_and BitwiseNot=bitwise_not BitwiseOr=bitwise_or BitwiseXor=bitwise_xor")
FAMILY.primitives("And=logical_and Or=logical_or Xor=logical_xor", since=7)
FAMILY.primitives("Equal Greater Less", since=7, result=None)
FAMILY.primitives("GreaterOrEqual=greater_equal IsNaN=is_nan LessOrEqual=less_equal", result=None)
FAMILY.primitives("Not=logical_not")
FAMILY.primitives("Where=select", result=1)
FAMILY.each("And Or Xor", shape=compare)
FAMILY.each("And BitwiseAnd BitwiseOr BitwiseXor Equal Or Xor", commutative=True)
FAMILY.each("BitShift", attributes={"direction": ("LEFT", "RIGHT")})
FAMILY.each("Where", movement=Movement.GATHERED)


FAMILY.shape("Where")(lambda c: TensorType(c.dtype(1) or c.dtype(2), c.broadcast([c.shape(0), c.shape(1), c.shape(2)])))


@FAMILY.contents("Where")
def where_contents(c: NodeTypes) -> Contents | None:
    parts = [c.contents_of(i) for i in range(3)]
    if all(part is None for part in parts[1:]):
        return None
    return elementwise(_choose, *[dims_array(None) if part is None else part for part in parts])


def _choose(condition: Dim, a: Dim, b: Dim) -> Dim:
    return a if a == b else None if condition is None else a if condition else b


@FAMILY.semantics("onnx::IsInf", result=None)
def is_inf(x: Expression, *, detect_positive: int = 1, detect_negative: int = 1) -> Expression:
    if detect_positive and detect_negative:
        return algebra.is_infinite(x)
    if not detect_positive and not detect_negative:
        return algebra.less(x, x)  # never
    return algebra.equal(x, math.inf if detect_positive else -math.inf)


# -- contents --------------------------------------------------------------------


def _equal(a: Dim, b: Dim) -> Dim:
    if a is None or b is None:
        return None
    # A size is never negative, so it is no -1 (the idiom Where(Equal(shape, -1), ...)).
    return True if a == b else False if surely_differ(a, b) else None


def _less(a: Dim, b: Dim) -> Dim:
    return True if is_positive(minus(b, a)) else False if is_size(minus(a, b)) else None


def _at_most(a: Dim, b: Dim) -> Dim:
    return True if is_size(minus(b, a)) else False if is_positive(minus(a, b)) else None


def _more(a: Dim, b: Dim) -> Dim:
    return _less(b, a)


def _at_least(a: Dim, b: Dim) -> Dim:
    return _at_most(b, a)


def _not(a: Dim) -> Dim:
    return None if a is None else not a


FAMILY.each("Equal", contents=contents_by(_equal))
FAMILY.each("Less", contents=contents_by(_less))
FAMILY.each("LessOrEqual", contents=contents_by(_at_most))
FAMILY.each("Greater", contents=contents_by(_more))
FAMILY.each("GreaterOrEqual", contents=contents_by(_at_least))
FAMILY.each("Not", contents=contents_by(_not, oldest=1))
