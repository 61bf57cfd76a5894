"""Which TorchScript operators are pointwise: each element of the result depends on one element of each operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.types import TensorType

if TYPE_CHECKING:
    from irc.ir.node import Node

TORCH_POINTWISE = frozenset(
    f"aten::{name}"
    for name in (
        "abs acos acosh angle asin asinh atan atanh bitwise_not ceil celu clamp clamp_max clamp_min cos cosh "
        "deg2rad digamma elu erf erfc erfinv exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish "
        "hardtanh i0 isfinite isinf isnan isneginf isposinf isreal leaky_relu lgamma log log10 log1p log2 "
        "log_sigmoid logical_not logit mish nan_to_num neg rad2deg reciprocal relu relu6 round rsqrt selu sgn "
        "sigmoid sign signbit silu sin sinc sinh softplus softshrink special_entr special_i0e special_i1 "
        "special_i1e sqrt square tan tanh threshold trunc __and__ __lshift__ __or__ __rshift__ __xor__ add "
        "addcdiv addcmul atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor complex "
        "copysign div eq float_power floor_divide fmax fmin fmod gcd ge gt heaviside hypot lcm ldexp le lerp "
        "logaddexp logaddexp2 logical_and logical_or logical_xor lt masked_fill maximum minimum mul ne nextafter "
        "polar pow remainder rsub sub where xlogy"
    ).split()
)
"""Functional operators; their overloads for numbers and lists are not meant (see ``is_torch_pointwise``)."""


def is_torch_pointwise(node: Node) -> bool:
    """Whether ``node`` is pointwise on tensors, which broadcast as in NumPy."""
    return node.kind in TORCH_POINTWISE and len(node.outputs) == 1 and isinstance(node.outputs[0].type, TensorType)
