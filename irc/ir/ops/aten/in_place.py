"""In-place forms: ``X_`` writes what ``X`` computes into its first operand, and returns that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

IN_PLACE = (
    "abs acos acosh addbmm addcdiv addcmul addmm addmv addr asin asinh atan atan2 atanh baddbmm bitwise_and "
    "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max "
    "clamp_min copysign cos cosh cumprod cumsum deg2rad digamma div elu eq erf erfc erfinv exp exp2 expm1 fill "
    "floor fmod frac gcd ge gelu gt hardsigmoid hardswish hardtanh heaviside hypot i0 index_add index_copy "
    "index_fill index_put lcm le leaky_relu lerp lgamma log log10 log1p log2 logical_and logical_not logical_or "
    "logical_xor logit lt masked_fill masked_scatter mish nan_to_num ne neg nextafter put rad2deg reciprocal relu "
    "relu6 remainder renorm round rrelu rsqrt scatter scatter_add scatter_reduce selu sgn sigmoid sign silu sin "
    "sinc sinh sqrt square sub tan tanh threshold tril triu trunc xlogy"
).split()
"""Operators whose in-place forms take what they take, but for ``out_dtype``. Forms of others have rows of their own."""


def rows_in_place(rows: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The rows of the in-place forms of `IN_PLACE`, of which ``rows`` has those of the functional forms."""
    for name in IN_PLACE:
        for row in rows[f"aten::{name}"]:
            kind, of_tensor, rest = row.partition("(Tensor self")
            if of_tensor and rest.endswith(") -> Tensor") and "out_dtype" not in rest:
                overload = kind.removeprefix(f"aten::{name}")
                yield f"aten::{name}_{overload}(Tensor(a!) self{rest}(a!)"
