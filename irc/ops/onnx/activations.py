"""Activation functions."""

from __future__ import annotations

from irc.ops import functions
from irc.ops.algebra import Expression, at_least, at_most, exp, expm1, maximum, minimum, select
from irc.ops.record import Family
from irc.ops.scalar import Choice, ScalarSemantics, single

FAMILY = Family("onnx")
FAMILY.add(
    ScalarSemantics("onnx::Erf", functions.erf, floats=True),
    ScalarSemantics(
        "onnx::Gelu",
        Choice("approximate", {"none": functions.gelu, "tanh": functions.gelu_tanh}, "none"),
        floats=True,
        ulp=4.0,
        scale=0.25,
    ),
    ScalarSemantics("onnx::Mish", functions.mish, floats=True, ulp=8.0),
    ScalarSemantics("onnx::Sigmoid", functions.sigmoid, floats=True, ulp=4.0),
    ScalarSemantics("onnx::Softplus", functions.softplus, floats=True, ulp=4.0),
)
FAMILY.each("Gelu", attributes={"approximate": ("none", "tanh")})


@FAMILY.semantics("onnx::Relu")
def relu(x: Expression) -> Expression:
    return at_least(x, 0)


@FAMILY.semantics("onnx::Swish", floats=True, ulp=8.0, scale=1e-3)
def swish(x: Expression, *, alpha: float = 1.0) -> Expression:
    """X sigmoid(alpha x), as x / (1 + exp(-alpha x)), for which holds what `functions.sigmoid` says."""
    return x / (exp(x * -alpha) + 1)


@FAMILY.semantics("onnx::SwiGLU", floats=True, ulp=8.0, scale=1e-3)
def swiglu(gate: Expression, value: Expression, *, alpha: float = 1.0) -> Expression:
    return swish(gate, alpha=alpha) * value


@FAMILY.semantics("onnx::Softsign", floats=True, ulp=2.0)
def softsign(x: Expression) -> Expression:
    return x / (abs(x) + 1)


@FAMILY.semantics("onnx::LeakyRelu", floats=True)
def leaky_relu(x: Expression, *, alpha: float = 0.01) -> Expression:
    scaled = x * alpha
    if 0 < alpha < float("inf"):  # then one comparison of x with alpha x selects the right one
        return maximum(x, scaled) if alpha <= 1 else minimum(x, scaled)
    return select(x < 0, scaled, x)


@FAMILY.semantics("onnx::PRelu", since=7)
@FAMILY.semantics("onnx::PRelu", broadcasts=False)
def prelu(x: Expression, slope: Expression) -> Expression:
    """X where x >= 0, else slope x, which need not be a number where x >= 0."""
    return select(x < 0, x * slope, x)


def scaled_elu(x: Expression, alpha: float, gamma: float = 1.0, stretch: float = 1.0) -> Expression:
    """Gamma x where x >= 0, else gamma alpha (exp(x / stretch) - 1)."""
    below = at_most(x, 0)
    tail = expm1(below if stretch == 1 else below / stretch) * (gamma * alpha)
    above = at_least(x, 0)
    if gamma == stretch == 1:
        return above + tail
    return above * gamma + 0 + tail  # 0 of -0


@FAMILY.semantics("onnx::Elu", floats=True, ulp=4.0)
def elu(x: Expression, *, alpha: float = 1.0) -> Expression:
    return scaled_elu(x, alpha)


@FAMILY.semantics("onnx::Celu", since=12, floats=True, ulp=4.0)
def celu(x: Expression, *, alpha: float = 1.0) -> Expression:
    return scaled_elu(x, alpha, stretch=alpha)


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


@FAMILY.semantics("onnx::ThresholdedRelu", since=10, floats=True)
def thresholded_relu(x: Expression, *, alpha: float = 1.0) -> Expression:
    return select(x > alpha, x, 0)


@FAMILY.semantics("onnx::Shrink", since=9, floats=True)
def shrink(x: Expression, *, lambd: float = 0.5, bias: float = 0.0) -> Expression:
    return select(x < -lambd, x + bias, select(x > lambd, x - bias, 0))
