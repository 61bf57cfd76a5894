"""Where records are found by kind and version."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from irc.ops.operator import Operator

FAMILIES: dict[str, dict[str, str]] = {
    "onnx": {
        "activations": (
            "Celu Elu Erf Gelu HardSigmoid HardSwish LeakyRelu Mish PRelu Relu Selu Shrink Sigmoid Softplus Softsign "
            "SwiGLU Swish ThresholdedRelu"
        ),
        "arithmetic": "Abs Add Clip Div Max Mean Min Mod Mul Neg Pow Reciprocal Sign Sub Sum",
        "logic": (
            "And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Equal Greater GreaterOrEqual IsInf IsNaN Less "
            "LessOrEqual Not Or Where Xor"
        ),
        "unary": ("Acos Acosh Asin Asinh Atan Atanh Cast Ceil Cos Cosh Exp Floor Log Round Sin Sinh Sqrt Tan Tanh"),
    },
    "aten": {
        "activations": (
            "celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid logit mish prelu relu "
            "relu6 selu silu softplus softshrink threshold"
        ),
        "arithmetic": (
            "add addcdiv addcmul atan2 copysign div float_power floor_divide fmax fmin fmod gcd heaviside hypot lcm "
            "lerp logaddexp logaddexp2 maximum minimum mul nextafter pow remainder rsub sub xlogy"
        ),
        "logic": (
            "__and__ __lshift__ __or__ __rshift__ __xor__ bitwise_and bitwise_left_shift bitwise_or "
            "bitwise_right_shift bitwise_xor eq ge gt le logical_and logical_or logical_xor lt masked_fill ne where"
        ),
        "unary": (
            "abs acos acosh angle asin asinh atan atanh bitwise_not ceil clamp clamp_max clamp_min cos cosh deg2rad "
            "digamma erf erfc erfinv exp exp2 expm1 floor frac i0 isfinite isinf isnan isneginf isposinf lgamma log "
            "log10 log1p log2 logical_not nan_to_num neg rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin "
            "sinc sinh special_entr special_i0e special_i1 special_i1e sqrt square tan tanh trunc"
        ),
    },
}
"""Namespace -> module that holds records -> the operators that it has them for. Names alone are known without reading
the modules."""

_MODULES = {
    f"{namespace}::{name}": f"{__package__}.{namespace}.{module}"
    for namespace, modules in FAMILIES.items()
    for module, listed in modules.items()
    for name in listed.split()
}


def names(namespace: str) -> frozenset[str]:
    """The operators of ``namespace`` that have records, without it."""
    return frozenset(name for listed in FAMILIES[namespace].values() for name in listed.split())


@cache
def _family(module: str) -> dict[str, list[Operator]]:
    found: dict[str, list[Operator]] = {}
    for record in import_module(module).FAMILY.operators:
        found.setdefault(record.kind, []).append(record)
    for versions in found.values():
        versions.sort(key=lambda record: record.since)
    return found


def versions(kind: str) -> list[Operator]:
    """The records of ``kind``, oldest version first; empty if there is none."""
    module = _MODULES.get(kind)
    return [] if module is None else _family(module)[kind]


def find(kind: str, version: int | None = None) -> Operator | None:
    """The record of ``kind`` at ``version`` (None: the newest); None if there is none."""
    found = versions(kind)
    at = len(found) if version is None else bisect_right(found, version, key=lambda record: record.since)
    return found[at - 1] if at else None


def records(namespace: str) -> Iterator[Operator]:
    """All records of ``namespace``."""
    for module in FAMILIES[namespace]:
        for versions in _family(f"{__package__}.{namespace}.{module}").values():
            yield from versions
