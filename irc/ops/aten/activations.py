"""Activation functions."""

from __future__ import annotations

from irc.ops import functions
from irc.ops.algebra import (
    Expression,
    at_least,
    at_most,
    copysign,
    exp,
    expm1,
    log,
    log1p,
    maximum,
    minimum,
    select,
)
from irc.ops.record import Family
from irc.ops.scalar import Choice, ScalarSemantics

FAMILY = Family("aten")
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
