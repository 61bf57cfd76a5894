"""Operators that dequantize their inputs, compute, and quantize the result: ``QLinear...``, ``QGemm``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irc.frontend.onnx.contrib.body import Body
from irc.frontend.onnx.contrib.table import Row, row

Compute = Callable[..., str]
"""From a body and the names of real operands to that of the result."""


def _by_numbers(compute: Compute, operands: str = "X", result: str = "Y") -> Callable[[Body], str]:
    """A body that computes with the real numbers that the operands stand for."""

    def body(b: Body) -> str:
        return _quantized(b, compute(b, *(_real(b, x, f"{x}_scale", f"{x}_zero_point") for x in operands)), result)

    return body


def _real(b: Body, x: str, scale: str, zero: str) -> str:
    return b("DequantizeLinear", x, scale, *([zero] if b.has(zero) else []))


def _quantized(b: Body, made: str, result: str) -> str:
    """``made`` quantized to the type of the zero point of ``result``, by default that of the first input."""
    zero = f"{result}_zero_point"
    if not b.has(zero):
        zero = b.cast(b.integers(0, np.uint8), next(iter(b.types)))
    return b("QuantizeLinear", made, f"{result}_scale", zero)


def _kept(b: Body, *words: str) -> dict[str, object]:
    """The attributes ``words``, which the standard operator has too, if they are given."""
    return {word: value for word in words if (value := b.attributes[word]) != ()}


def _same(op_type: str, *words: str) -> Compute:
    """The standard operator of this name, with these attributes of the node's."""

    def compute(b: Body, *operands: str) -> str:
        return b(op_type, *operands, **_kept(b, *words))

    return compute


def _in_order(b: Body, x: str, compute: Callable[[str], str]) -> str:
    """``compute`` applied to ``x``, the input X, with channels moved to where standard operators have them."""
    if not b.attributes["channels_last"]:
        return compute(x)
    rank = b.rank("X")
    if rank is None:
        b.refuse("channels come last (channels_last) in an input whose rank is not known")
    made = compute(b("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)]))
    return b("Transpose", made, perm=[0, *range(2, rank), 1])


def _average(b: Body, x: str) -> str:
    words = _kept(b, "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
    return _in_order(b, x, lambda x: b("AveragePool", x, **words))


def _global_average(b: Body, x: str) -> str:
    return _in_order(b, x, lambda x: b("GlobalAveragePool", x))


def _softmax(b: Body, x: str) -> str:
    axis = b.attributes["axis"]
    if b.attributes["opset"] >= 13:
        return b("Softmax", x, axis=axis)
    return b("Reshape", b("Softmax", b("Flatten", x, axis=axis), axis=1), b("Shape", x))


def _where(b: Body, x: str, y: str) -> str:
    return b("Where", "condition", x, y)


def _concat(b: Body) -> str:
    """A concatenation of inputs that each have a scale and a zero point."""
    names = [name for name in b.types if name.startswith("inputs")]
    if not names or len(names) % 3:
        b.wrong("inputs are numbers, a scale and a zero point each")
    real = [_real(b, *names[i : i + 3]) for i in range(0, len(names), 3)]
    made = b("Concat", *real, axis=b.attributes["axis"])
    return b("QuantizeLinear", made, "Y_scale", "Y_zero_point")


def _conv(b: Body) -> str:
    words = _kept(b, "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    rest: Sequence[str] = [name for name in b.types if name != "X"]
    return _in_order(b, "X", lambda x: b("QLinearConv", x, *rest, **words))


def _gemm(b: Body) -> str:
    """A product of integers; the bias has the scale of the product."""
    a, c = (b("Transpose", x, perm=[1, 0]) if b.attributes[f"trans{x}"] else x for x in "AB")
    product = b("MatMulInteger", a, c, "A_zero_point", "B_zero_point")
    if b.has("C"):
        product = b("Add", product, "C")
    scale = b("Mul", b("Mul", "A_scale", b.number(b.attributes["alpha"], "A_scale")), "B_scale")
    made = b("Mul", b.cast(product, "A_scale"), scale)
    return _quantized(b, made, "Y") if b.has("Y_scale") else made


def _alone(op_type: str) -> Callable[[Body], str]:
    """The standard operator itself, whose later versions take all types that this one does."""
    return lambda b: _same(op_type, "axis")(b, *b.types)


_PAIR = "A, A_scale, A_zero_point?, B, B_scale, B_zero_point?, C_scale, C_zero_point?"
_ONE = "X, X_scale, X_zero_point?, Y_scale, Y_zero_point?"
_WINDOWS = "string auto_pad = NOTSET, ints pads =, ints strides =, int channels_last = 0"

ROWS: list[Row] = [
    *(
        row(f"{name}(x, scale, zero_point?) -> y", _alone(name), "int axis =", since=21)
        for name in ("DequantizeLinear", "QuantizeLinear")
    ),
    row(
        "QGemm(A, A_scale, A_zero_point, B, B_scale, B_zero_point, C?, Y_scale?, Y_zero_point?) -> Y",
        _gemm,
        "float alpha = 1, int transA = 0, int transB = 0",
    ),
    row(f"QLinearAdd({_PAIR}) -> C", _by_numbers(_same("Add"), "AB", "C")),
    row(
        f"QLinearAveragePool({_ONE}) -> Y",
        _by_numbers(_average),
        f"ints kernel_shape, int ceil_mode = 0, int count_include_pad = 0, {_WINDOWS}",
        since=19,
    ),
    row("QLinearConcat(Y_scale, Y_zero_point, inputs...) -> Y", _concat, "int axis"),
    row(
        "QLinearConv(X, X_scale, X_zero_point, W, W_scale, W_zero_point, Y_scale, Y_zero_point, B?) -> Y",
        _conv,
        f"ints kernel_shape =, ints dilations =, int group = 1, {_WINDOWS}",
    ),
    row(f"QLinearGlobalAveragePool({_ONE}) -> Y", _by_numbers(_global_average), "int channels_last = 0"),
    row(
        f"QLinearLeakyRelu({_ONE}) -> Y",
        _by_numbers(_same("LeakyRelu", "alpha")),
        "float alpha = 0.01",
    ),
    row(f"QLinearMul({_PAIR}) -> C", _by_numbers(_same("Mul"), "AB", "C")),
    row(f"QLinearSigmoid({_ONE}) -> Y", _by_numbers(_same("Sigmoid"))),
    row(f"QLinearSoftmax({_ONE}) -> Y", _by_numbers(_softmax), "int opset, int axis = -1"),
    row(
        "QLinearWhere(condition, X, X_scale, X_zero_point, Y, Y_scale, Y_zero_point, Z_scale, Z_zero_point) -> Z",
        _by_numbers(_where, "XY", "Z"),
    ),
]
