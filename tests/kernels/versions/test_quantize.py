"""Versions of quantisation: one scale a tensor (10), an axis (13), a block (21), and ever more types."""

from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from tests.kernels.versions.rows import Row, each, floats, integers, since


def spread(v: np.ndarray | None, x: np.ndarray, axis: int, block_size: int) -> Any:
    """A scale or zero point for each element of ``x``."""
    if v is None:
        return 0
    wide = v.astype(np.float64)
    if block_size:
        return np.take(np.repeat(wide, block_size, axis), np.arange(x.shape[axis]), axis)
    return wide.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]) if v.ndim else wide


def dequantized(
    x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None, axis: int = 1, block_size: int = 0, **_: Any
) -> np.ndarray:
    s, z = spread(scale, x, axis, block_size), spread(zero, x, axis, block_size)
    return ((x.astype(np.float64) - z) * s).astype(scale.dtype)


LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int4": (-8, 7), "uint4": (0, 15)}
LIMITS |= {"float8_e4m3fn": (-448, 448), "float8_e5m2": (-57344, 57344), "float4_e2m1fn": (-6, 6)}


def quantized(
    x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0, **_: Any,
) -> np.ndarray:  # fmt: skip
    dtype = zero.dtype if zero is not None else np.dtype({0: np.uint8, TensorProto.INT8: np.int8}[output_dtype])
    y = x.astype(np.float64) / spread(scale, x, axis, block_size)
    if "float" not in dtype.name:
        y = np.round(y) + spread(zero, x, axis, block_size)
    return np.clip(y, *LIMITS[dtype.name]).astype(np.float32).astype(dtype)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


SCALE = np.array(0.25, np.float32)
BYTES = integers(3, 4, low=-128, high=128, dtype=np.int8)
UNSIGNED = integers(3, 4, low=0, high=256, dtype=np.uint8)
NIBBLES = integers(3, 4, low=-8, high=8).astype(ml_dtypes.int4)
ZEROS = np.array([3, -2, 0], np.int8)
PER_ROW = f32(0.5, 0.25, 2)
BLOCKS = np.array([[0.5, 2], [1, 0.25], [3, 1]], np.float32)


@each(
    [
        Row("DequantizeLinear", [UNSIGNED, SCALE, np.array(128, np.uint8)], expected=dequantized),
        Row("DequantizeLinear", [BYTES, SCALE, np.array(-3, np.int8)], expected=dequantized),
        Row("DequantizeLinear", [BYTES, SCALE], expected=dequantized),
        Row("DequantizeLinear", [integers(3, 4, dtype=np.int32), SCALE], expected=dequantized),
        Row("DequantizeLinear", [BYTES, PER_ROW, ZEROS], {"axis": 0}, since("DequantizeLinear", 13), dequantized),
        Row("DequantizeLinear", [BYTES, PER_ROW, ZEROS], {"axis": -2}, since("DequantizeLinear", 13), dequantized),
        Row("DequantizeLinear", [floats(3, 4).astype(ml_dtypes.float8_e4m3fn), SCALE], {},
            since("DequantizeLinear", 19), dequantized),
        Row("DequantizeLinear", [BYTES, SCALE.astype(np.float16)], {}, since("DequantizeLinear", 19), dequantized),
        Row("DequantizeLinear", [NIBBLES, SCALE], {}, since("DequantizeLinear", 21), dequantized),
        Row("DequantizeLinear", [BYTES.astype(np.int16), SCALE], {}, since("DequantizeLinear", 21), dequantized),
        Row("DequantizeLinear", [BYTES, BLOCKS], {"axis": 1, "block_size": 2}, since("DequantizeLinear", 21),
            dequantized),
        Row("DequantizeLinear", [floats(3, 4).astype(ml_dtypes.float4_e2m1fn), SCALE], {},
            since("DequantizeLinear", 23), dequantized),
        Row("DequantizeLinear", [BYTES, SCALE], {"output_dtype": TensorProto.FLOAT16}, since("DequantizeLinear", 23),
            lambda x, s, output_dtype: dequantized(x, s).astype(np.float16)),
    ]
)  # fmt: skip
def test_dequantize(row: Row, version: int) -> None:
    row.check(version)


APART = [version for version in since("QuantizeLinear", 10) if version not in (19, 21)]
"""Versions in which scales need not be of the operand's type."""

X = np.concatenate([floats(3, 3, low=-40, high=40), f32(0.125, 0.375, -100).reshape(3, 1)], 1)
"""With ties, which round to even, and a value that saturates."""


@each(
    [
        Row("QuantizeLinear", [X, SCALE, np.array(128, np.uint8)], expected=quantized),
        Row("QuantizeLinear", [X, SCALE, np.array(-3, np.int8)], expected=quantized),
        Row("QuantizeLinear", [X, SCALE], expected=quantized),
        Row("QuantizeLinear", [X.astype(np.int32), SCALE], {}, APART, quantized),
        Row("QuantizeLinear", [X, PER_ROW, ZEROS], {"axis": 0}, since("QuantizeLinear", 13), quantized),
        Row("QuantizeLinear", [X, PER_ROW, ZEROS], {"axis": -2}, since("QuantizeLinear", 13), quantized),
        Row("QuantizeLinear", [X * 100, SCALE, np.zeros((), ml_dtypes.float8_e4m3fn)], {}, since("QuantizeLinear", 19),
            quantized),
        Row("QuantizeLinear", [X.astype(np.float16), SCALE.astype(np.float16)], {}, since("QuantizeLinear", 19),
            quantized),
        Row("QuantizeLinear", [X, SCALE, np.zeros((), ml_dtypes.int4)], {}, since("QuantizeLinear", 21), quantized),
        Row("QuantizeLinear", [X * 999, SCALE, np.zeros((), np.int16)], {}, since("QuantizeLinear", 21), quantized),
        Row("QuantizeLinear", [X, BLOCKS], {"axis": 1, "block_size": 2}, since("QuantizeLinear", 21), quantized),
        Row("QuantizeLinear", [X, SCALE], {"output_dtype": TensorProto.INT8}, since("QuantizeLinear", 21), quantized),
        Row("QuantizeLinear", [X, SCALE, np.zeros((), ml_dtypes.float4_e2m1fn)], {}, since("QuantizeLinear", 23),
            quantized),
    ]
)  # fmt: skip
def test_quantize(row: Row, version: int) -> None:
    row.check(version)


def zero(value: int) -> np.ndarray:
    return np.array(value, np.uint8)


A, B = UNSIGNED, integers(4, 2, low=0, high=256, dtype=np.uint8)


@each(
    [
        Row("QLinearMatMul", [A, SCALE, zero(120), B, np.array(0.5, np.float32), zero(130), np.array(16, np.float32),
            zero(100)]),
        Row("MatMulInteger", [A, B, zero(120), zero(130)]),
        Row("DynamicQuantizeLinear", [X], outputs=3),
        Row("ConvInteger", [integers(1, 2, 5, 5, low=0, high=256, dtype=np.uint8),
            integers(3, 2, 2, 2, low=0, high=256, dtype=np.uint8), zero(3)], {"pads": [1, 0, 0, 1]}),
    ]
)  # fmt: skip
def test_quantized_products(row: Row, version: int) -> None:
    row.check(version)


SCORES = floats(1, 2, 6, low=0, high=1)
CORNERS = np.sort(floats(1, 6, 2, 2, low=0, high=2), axis=2).reshape(1, 6, 4)
PICK = [CORNERS, SCORES, np.array([3]), f32(0.3), f32(0.1)]


@each(
    [
        Row("NonMaxSuppression", PICK),
        Row("NonMaxSuppression", PICK, {"center_point_box": 1}),
        Row("NonMaxSuppression", PICK[:3]),
        Row("NegativeLogLikelihoodLoss", [floats(3, 5), np.array([1, 0, 4])], {"reduction": "mean"}),
        Row("NegativeLogLikelihoodLoss", [floats(3, 5, 2), integers(3, 2, low=0, high=5), floats(5, low=0.1)],
            {"reduction": "none", "ignore_index": 2}),
        Row("SoftmaxCrossEntropyLoss", [floats(3, 5), np.array([1, 0, 4])], {"reduction": "sum"}, None, None, 2),
        Row("SoftmaxCrossEntropyLoss", [floats(3, 5, 2), integers(3, 2, low=0, high=5), floats(5, low=0.1)],
            {"reduction": "mean", "ignore_index": 2}, None, None, 2),
    ]
)  # fmt: skip
def test_detection_and_losses(row: Row, version: int) -> None:
    row.check(version)
