# ruff: noqa: E501 - a row is one line
"""Activation functions, softmax included."""

from __future__ import annotations

from irc.ir.types import TensorType, Type
from irc.ops import functions
from irc.ops.algebra import Expression, at_least, at_most, copysign, exp, expm1, log, log1p, maximum, minimum, select
from irc.ops.aten.call import Call, TorchFamily, resized
from irc.ops.aten.promotion import element_type, if_float, like_first_if_float
from irc.ops.record import Effects
from irc.ops.scalar import Choice, ScalarSemantics

ROWS = """
    aten::relu(Tensor self) -> Tensor | pointwise=first takes=uif in-place
    aten::relu6(Tensor self) -> Tensor | pointwise=first-if-float takes=uif in-place out=none
    aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor | pointwise=first-if-float takes=uif in-place
    aten::{hardsigmoid hardswish mish}(Tensor self) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::selu(Tensor self) -> Tensor | pointwise=first-if-float takes=f in-place out=none
    aten::celu(Tensor self, Scalar alpha=1.) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::gelu(Tensor self, *, str approximate="none") -> Tensor | pointwise=first-if-float takes=f in-place
    aten::silu(Tensor self) -> Tensor | pointwise=first-if-float takes=fc in-place
    aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor | pointwise=first-if-float takes=f
    aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::prelu(Tensor self, Tensor weight) -> Tensor | takes=f out=none
    aten::logit(Tensor self, float? eps=None) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor | pointwise=first-if-float takes=uif in-place out=any
    aten::log_sigmoid(Tensor self) -> Tensor | pointwise=first-if-float takes=f layout=varies
    aten::{hardshrink softshrink}(Tensor self, Scalar lambd=0.5) -> Tensor | pointwise=first-if-float takes=f
    aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor | takes=f in-place out=none
    aten::{softmax log_softmax}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
    aten::{_softmax _log_softmax}(Tensor self, int dim, bool half_to_float) -> Tensor | takes=f
    aten::glu(Tensor self, int dim=-1) -> Tensor | takes=f out=any
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each("rrelu rrelu_", effects=Effects.RANDOM, random_switch="training")
FAMILY.add(
    ScalarSemantics(
        "aten::gelu",
        Choice("approximate", {"none": functions.gelu, "tanh": functions.gelu_tanh}, "none"),
        ulp=4.0,
        scale=0.25,
    ),
    ScalarSemantics("aten::mish", functions.mish, ulp=8.0),
    ScalarSemantics("aten::silu", functions.silu, ulp=8.0, scale=1e-3),
)


@FAMILY.semantics("aten::relu")
def relu(x: Expression) -> Expression:
    return at_least(x, 0)


@FAMILY.semantics("aten::relu6")
def relu6(x: Expression) -> Expression:
    return hardtanh(x, min_val=0, max_val=6)


@FAMILY.semantics("aten::hardtanh")
def hardtanh(x: Expression, *, min_val: float = -1, max_val: float = 1) -> Expression:
    return at_most(at_least(x, min_val), max_val)


@FAMILY.semantics("aten::leaky_relu")
def leaky_relu(x: Expression, *, negative_slope: float = 0.01) -> Expression:
    scaled = x * negative_slope
    if 0 < negative_slope <= 1:  # then one comparison with slope x selects the right one
        return maximum(x, scaled)
    return select(x > 0, x, scaled)


@FAMILY.semantics("aten::prelu")
def prelu(x: Expression, weight: Expression) -> Expression:
    return select(x > 0, x, x * weight)


@FAMILY.semantics("aten::elu", ulp=4.0)
def elu(x: Expression, *, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expression:
    return select(x >= 0, x * scale, expm1(at_most(x, 0) * input_scale) * (alpha * scale))


@FAMILY.semantics("aten::celu", ulp=4.0)
def celu(x: Expression, *, alpha: float = 1.0) -> Expression:
    return elu(x, alpha=alpha, input_scale=1 / alpha)


@FAMILY.semantics("aten::selu", ulp=4.0)
def selu(x: Expression) -> Expression:
    return elu(x, alpha=1.6732632423543772848170429916717, scale=1.0507009873554804934193349852946)


@FAMILY.semantics("aten::softplus", ulp=8.0)
def softplus(x: Expression, *, beta: float = 1, threshold: float = 20) -> Expression:
    scaled = x * beta
    return select(scaled > threshold, x, log1p(exp(minimum(scaled, threshold))) / beta)


@FAMILY.semantics("aten::hardsigmoid", ulp=2.0, scale=0.25)
def hardsigmoid(x: Expression) -> Expression:
    return minimum(maximum(x + 3, 0), 6) / 6


@FAMILY.semantics("aten::hardswish", ulp=2.0, scale=0.25)
def hardswish(x: Expression) -> Expression:
    return x * minimum(maximum(x + 3, 0), 6) / 6


@FAMILY.semantics("aten::logit", ulp=8.0, scale=0.25)
def logit(x: Expression, *, eps: float | None = None) -> Expression:
    """log(x / (1 - x)), of x between eps and 1 - eps; by the lower bound first, where it is the larger one."""
    if eps is not None:
        x = select(x < eps, eps, select(x > 1 - eps, 1 - eps, x))
    return log(x / (1 - x))


@FAMILY.semantics("aten::log_sigmoid", ulp=4.0)
def log_sigmoid(x: Expression) -> Expression:
    return minimum(x, 0) - log1p(exp(-abs(x)))


@FAMILY.semantics("aten::hardshrink")
def hardshrink(x: Expression, lambd: Expression) -> Expression:
    return select(abs(x) <= lambd, 0, x)


@FAMILY.semantics("aten::softshrink")
def softshrink(x: Expression, *, lambd: float = 0.5) -> Expression:
    return copysign(maximum(abs(x) - lambd, 0), x)


@FAMILY.semantics("aten::threshold")
def threshold(x: Expression, *, threshold: float = 0.0, value: float = 0.0) -> Expression:
    return select(x <= threshold, value, x)


@FAMILY.semantics("aten::glu", ulp=8.0, scale=1e-3)
def glu(value: Expression, gate: Expression) -> Expression:
    """Of the halves of an operand along one axis."""
    return value / (exp(-gate) + 1)


# -- shapes -------------------------------------------------------------------

FAMILY.shape("prelu", "rrelu", "_softmax", "_log_softmax")(like_first_if_float)


@FAMILY.shape("softmax", "log_softmax")
def softmax(c: Call) -> Type:
    x, given = c.tensor(0), c.arg("dtype")
    return TensorType(if_float(x.dtype) if given is None else element_type(given), x.shape)


@FAMILY.shape("glu")
def halved(c: Call) -> Type:
    x = c.tensor(0)
    at = None if not x.shape else c.axis(c.arg("dim"), len(x.shape))
    if x.shape is None or at is None:
        return TensorType(x.dtype)
    size = x.shape[at]
    return TensorType(x.dtype, resized(x.shape, at, size // 2 if isinstance(size, int) else None))
