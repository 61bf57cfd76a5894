"""Products with quantized weights, and lookups of a few of them."""

from __future__ import annotations

import numpy as np

from irc.frontend.onnx.contrib.attention import COMMON, of_one
from irc.frontend.onnx.contrib.body import Body
from irc.frontend.onnx.contrib.table import Row, row
from irc.ir.types import DType

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
