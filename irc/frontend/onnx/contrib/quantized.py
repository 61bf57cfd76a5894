"""Products with quantized weights, and lookups of a few of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irc.frontend.onnx.contrib.attention import COMMON, of_one
from irc.frontend.onnx.contrib.body import Body, Row, row
from irc.ir.types import DType

# Operators that dequantize their inputs, compute, and quantize the result: ``QLinear...``, ``QGemm``.


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


# -- quantized -----------------------------------------------------------------


_BITS = 18
"""The first opset that has operators on bits."""


def _of_few_bits(b: Body) -> str:
    """A product with weights of few bits, in blocks that have a scale each: constant weights are unpacked only once."""
    bits, block, n, k = (b.attributes[name] for name in ("bits", "block_size", "N", "K"))
    _check_bits(b)
    if n < 1 or k < 1:
        b.wrong(f"N is {n} and K is {k}")
    if b.has("g_idx"):
        b.refuse("input g_idx")
    if b.attributes["weight_prepacked"]:
        b.refuse("weight_prepacked is not 0")
    blocks = -(-k // block)
    apart = [n, blocks, 1, 1]  # what is unpacked has one more axis than what is packed
    weights = b.cast(_unpacked(b, b("Reshape", "B", [n, blocks, block * bits // 8]), bits), "scales")
    if b.has("zero_points"):
        zeros = "zero_points"
        if b.dtype(zeros) is None:
            b.refuse("input zero_points is of a type that is not known")
        if b.dtype(zeros) is DType.UINT8:
            zeros = _first(b, b("Reshape", zeros, [n, _bytes(blocks, bits)]), bits, blocks)
        zeros = b("Reshape", b.cast(zeros, "scales"), apart)
    else:
        zeros = b.number(1 << (bits - 1), "scales")
    real = b("Mul", b("Sub", weights, zeros), b("Reshape", "scales", apart))
    rows = b("Reshape", real, [n, blocks * block])
    if k != blocks * block:
        rows = b("Slice", rows, [0], [k], [1])
    product = b("MatMul", "A", b("Transpose", rows, perm=[1, 0]))
    return b("Add", product, "bias") if b.has("bias") else product


def _rows_of_few_bits(b: Body) -> str:
    """Some rows of a table of few bits, in blocks that have a scale each: only these rows are unpacked."""
    bits, block = b.attributes["bits"], b.attributes["block_size"]
    _check_bits(b)
    width = b.size("data", 1)
    if b.dtype("data") is not DType.UINT8 or b.rank("data") != 2 or width is None:
        b.refuse("input data is no matrix of uint8 whose width is known")
    if b.attributes["gather_axis"] not in (0, -2) or b.attributes["quantize_axis"] not in (1, -1):
        b.refuse("an axis is not that of rows (gather_axis) or columns (quantize_axis)")
    width = width * 8 // bits
    if width % block:
        b.refuse(f"the last block of {width} columns has less than {block}")
    apart = [-1, width // block, 1]
    packed, scales = (b("Gather", name, "indices") for name in ("data", "scales"))
    codes = b.cast(b("Reshape", _unpacked(b, packed, bits), [-1, width // block, block]), "scales")
    if b.has("zero_points"):
        zeros = b("Gather", "zero_points", "indices")
        zeros = b("Reshape", zeros, [-1, _bytes(width // block, bits)])
        zeros = b("Reshape", b.cast(_first(b, zeros, bits, width // block), "scales"), apart)
    else:
        zeros = b.number(1 << (bits - 1), "scales")
    real = b("Mul", b("Sub", codes, zeros), b("Reshape", scales, apart))
    return b("Reshape", real, b("Concat", b("Shape", "indices"), [width], axis=0))


def _check_bits(b: Body) -> None:
    bits, block = b.attributes["bits"], b.attributes["block_size"]
    if bits not in (2, 4, 8):
        b.wrong(f"bits is {bits}, but must be 2, 4 or 8")
    if block < 16 or block & (block - 1):
        b.wrong(f"block_size is {block}, but must be a power of two, and 16 or more")


def _bytes(count: int, bits: int) -> int:
    return -(-count * bits // 8)


def _first(b: Body, x: str, bits: int, count: int) -> str:
    """The first ``count`` numbers of each row of bytes."""
    numbers = b("Reshape", _unpacked(b, x, bits), [-1, _bytes(count, bits) * 8 // bits])
    return b("Slice", numbers, [0], [count], [1])


def _unpacked(b: Body, x: str, bits: int) -> str:
    """The numbers of ``bits`` bits in bytes, the lowest ones first, along one more axis."""
    shifts = b.integers(range(0, 8, bits), np.uint8)
    apart = b("Unsqueeze", x, [-1])
    if bits == 8:
        return apart
    shifted = b("BitShift", apart, shifts, direction="RIGHT")
    if b.opset < _BITS:
        return b("Mod", shifted, b.integers(1 << bits, np.uint8))
    return b("BitwiseAnd", shifted, b.integers((1 << bits) - 1, np.uint8))


def _dynamic(b: Body) -> str:
    """A product with weights in 8 bits, for which the other operand is quantized as a whole."""
    a, scale, zero = b.several(3, "DynamicQuantizeLinear", "A")
    operands = [a, "B", zero, *(["b_zero_point"] if b.has("b_zero_point") else [])]
    return _scaled(b, b("MatMulInteger", *operands), b("Mul", scale, "b_scale"), "b_scale")


def _to_float(b: Body) -> str:
    return _scaled(b, _of_integers(b, "A", "B", "a", "b"), b("Mul", "a_scale", "b_scale"), "a_scale")


def _attention(b: Body) -> tuple[str, ...]:
    product = _of_integers(b, "input", "weight", "input", "weight")
    return of_one(b, _scaled(b, product, b("Mul", "input_scale", "weight_scale"), "input_scale"), "input_scale")


def _of_integers(b: Body, left: str, right: str, *names: str) -> str:
    """A product of integers, from which the zero points named after ``names`` are subtracted first."""
    operands = [left, right, *(b.optional(f"{name}_zero_point") for name in names)]
    while not operands[-1]:
        operands.pop()
    return b("MatMulInteger", *operands)


def _scaled(b: Body, product: str, scale: str, like: str) -> str:
    """``product`` in the type of the input ``like``, times ``scale``."""
    made = b("Mul", b.cast(product, like), scale)
    return b("Add", made, "bias") if b.has("bias") else made


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
    row("DynamicQuantizeMatMul(A, B, b_scale, b_zero_point?, bias?) -> Y", _dynamic),
    row(
        "GatherBlockQuantized(data, indices, scales, zero_points?) -> output",
        _rows_of_few_bits,
        "int bits = 4, int block_size = 128, int gather_axis = 0, int quantize_axis = 1",
    ),
    row("MatMulIntegerToFloat(A, B, a_scale, b_scale, a_zero_point?, b_zero_point?, bias?) -> Y", _to_float),
    row(
        "MatMulNBits(A, B, scales, zero_points?, g_idx?, bias?) -> Y",
        _of_few_bits,
        "int K, int N, int block_size, int bits = 4, int accuracy_level = 0, int weight_prepacked = 0",
    ),
    row(
        "QAttention(input, weight, bias, input_scale, weight_scale, mask_index?, input_zero_point?, weight_zero_point?,"
        "past?) -> output, present?",
        _attention,
        f"{COMMON}, int do_rotary = 0, int past_present_share_buffer = 0",
    ),
]
