"""Which operators of ONNX and of other packages are pointwise: a result element depends on one element of each input.

Such operators fuse into one pass over memory, may run in tiles, and may write
their result over an input of the same shape and type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.ir.node import Node

UNARY = frozenset(
    [
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "BitwiseNot",
        "Cast",
        "Ceil",
        "Celu",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "IsInf",
        "IsNaN",
        "LeakyRelu",
        "Log",
        "Mish",
        "Neg",
        "Not",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Shrink",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Swish",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
    ]
)
"""One input; attributes do not change that."""

BINARY = frozenset(
    [
        "Add",
        "And",
        "BitShift",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "Div",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Mod",
        "Mul",
        "Or",
        "PRelu",
        "Pow",
        "Sub",
        "SwiGLU",
        "Xor",
    ]
)
"""Two inputs that broadcast as in NumPy. (The standard lets PRelu and SwiGLU broadcast less; kernels do not mind.)"""

VARIADIC = frozenset(["Max", "Mean", "Min", "Sum"])
"""Any number of inputs, at least one, that broadcast as in NumPy."""

OTHERS = frozenset(["Clip", "Where"])
"""Clip: one input and two bounds of one element, optional; Where: three inputs that broadcast."""

POINTWISE = {f"onnx::{name}" for name in UNARY | BINARY | VARIADIC | OTHERS}
"""The kinds of all pointwise operators, whose kernels take ``out=``. Operators of others are added when they are
registered; their kernels may do without."""

RESULT_LIKE: dict[str, int | None] = {
    "onnx::Where": 1,
    "onnx::Cast": None,
    "onnx::IsNaN": None,
    "onnx::IsInf": None,
    "onnx::Equal": None,
    "onnx::Greater": None,
    "onnx::GreaterOrEqual": None,
    "onnx::Less": None,
    "onnx::LessOrEqual": None,
}
"""Which input the result's element type equals, for operators where that is not input 0; None: no input."""

SHAPED_LIKE_FIRST = frozenset(["onnx::Clip"])
"""Operators whose result may only be written over input 0: it has that one's shape, others of one element may have more
axes."""

SCATTERING = frozenset(
    [
        "irc::slice_scatter",
        "onnx::Scatter",
        "onnx::ScatterElements",
        "onnx::ScatterND",
        "onnx::TensorScatter",
    ]
)
"""Operators whose result is input 0 but for some elements: written over it, those are all that is written."""

LEGACY_BROADCAST = frozenset(
    ["Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "PRelu", "Pow", "Sub", "Xor"]
)
"""Operators whose second input was aligned by attributes (PRelu: to the channels) before version 7."""


def overwritable(node: Node) -> int:
    """How many inputs, from the first on, ``node`` may write its result over, given equal types and shapes."""
    if node.kind in SCATTERING:
        return 1
    if node.kind not in POINTWISE or RESULT_LIKE.get(node.kind, 0) is None:
        return 0
    return 1 if node.kind in SHAPED_LIKE_FIRST else len(node.inputs)


def is_pointwise(node: Node) -> bool:
    """Whether ``node`` is pointwise and its inputs broadcast as in NumPy."""
    if node.kind not in POINTWISE:
        return False
    legacy = node.version is not None and node.version < 7
    return not (legacy and node.kind.removeprefix("onnx::") in LEGACY_BROADCAST)
