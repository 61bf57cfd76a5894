"""Which TorchScript operators are pointwise: each element of the result depends on one element of each operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.types import TensorType

if TYPE_CHECKING:
    from irc.ir.node import Node

TORCH_POINTWISE = frozenset(
    f"aten::{name}"
    for name in (
        "abs acos acosh asin asinh atan atanh bitwise_not ceil celu clamp clamp_max clamp_min cos cosh elu erf "
        "erfc exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish hardtanh isfinite isinf isnan "
        "leaky_relu lgamma log log10 log1p log2 log_sigmoid logical_not logit mish nan_to_num neg reciprocal relu "
        "relu6 round rsqrt selu sgn sigmoid sign silu sin sinh softplus softshrink sqrt square tan tanh threshold "
        "trunc add addcdiv addcmul atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
        "copysign div eq floor_divide fmax fmin fmod ge gt hypot le lerp logical_and logical_or logical_xor lt "
        "masked_fill maximum minimum mul ne pow remainder rsub sub where xlogy"
    ).split()
)
"""Functional operators; their overloads for numbers and lists are not meant (see ``is_torch_pointwise``)."""


def is_torch_pointwise(node: Node) -> bool:
    """Whether ``node`` is pointwise on tensors, which broadcast as in NumPy."""
    return node.kind in TORCH_POINTWISE and len(node.outputs) == 1 and isinstance(node.outputs[0].type, TensorType)
