"""Operators of com.microsoft from quantized numbers to quantized numbers, against ONNX Runtime."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import irc
from irc.tools.check.peers import exact_onnxruntime
from tests.frontend.contrib import Arrays, check, contrib
from tests.frontend.helpers import refused
from tests.frontend.test_contrib_quantized import numbers

TYPES = [np.uint8, np.int8]


def real(*values: float) -> np.ndarray:
    return np.array(values if len(values) > 1 else values[0], np.float32)


def one(dtype: Any, has_zeros: bool = True) -> dict[str, np.ndarray | None]:
    zeros = [np.array(zero, dtype) if has_zeros else None for zero in (3, 7)]
    return {"x": numbers(0, 2, 8, 6, 6, dtype=dtype), "a": real(0.05), "b": zeros[0], "c": real(0.0237), "d": zeros[1]}


def runs_as(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], dtype: Any) -> np.ndarray:
    """What ONNX Runtime gives, which needs to be told of which type that is."""
    model.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    (found,) = exact_onnxruntime(model, "")(dict(feeds), None)
    return found


def agrees(op_type: str, arrays: Arrays, dtype: Any, constants: str = "", **attributes: Any) -> None:
    """Assert that the node gives what it gives in ONNX Runtime, to the last place."""
    model, feeds = contrib(op_type, arrays, "y", constants=constants, **attributes)
    check({"y": runs_as(model, feeds, dtype)}, op_type, arrays, constants=constants, **attributes)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.2}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("QLinearAveragePool", {"kernel_shape": [3, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}),
    ],
)
def test_of_one_operand(op_type: str, attributes: dict[str, Any], dtype: Any) -> None:
    agrees(op_type, one(dtype), dtype, **attributes)
    if "Pool" not in op_type:  # whose zero points ONNX Runtime does not do without
        agrees(op_type, one(dtype, has_zeros=False), dtype, **attributes)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax_of_old_and_new(opset: int, axis: int, dtype: Any) -> None:
    zero = np.array(np.iinfo(dtype).min, dtype)
    arrays = {**one(dtype), "c": real(1 / 256), "d": zero}
    model, feeds = contrib("QLinearSoftmax", arrays, "y", constants="a b c d", axis=axis)
    model.graph.node[0].attribute.append(helper.make_attribute("opset", opset))
    expected = runs_as(model, feeds, dtype)
    assert len(np.unique(expected)) > 3
    for passes in ("none", "default"):
        assert np.abs(irc.compile(model, passes).run(feeds)["y"].astype(int) - expected).max() <= 1


def convolution(dtype: Any, *shape: int) -> dict[str, np.ndarray]:
    weights = {"w": numbers(1, 4, 4, 3, 3, dtype=dtype), "ws": real(0.01, 0.02, 0.03, 0.01), "wz": np.zeros(4, dtype)}
    rest = {"c": real(2.1), "d": np.array(7, dtype), "bias": np.arange(-200, 200, 100, dtype=np.int32)}
    return {"x": numbers(0, *shape, dtype=dtype), "a": real(0.05), "b": np.array(3, dtype), **weights, **rest}


@pytest.mark.parametrize("dtype", TYPES)
def test_channels_last(dtype: Any) -> None:
    pooled = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    convolved = {"group": 2, "pads": [1, 1, 1, 1]}
    cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("QLinearAveragePool", one(dtype), pooled),
        ("QLinearGlobalAveragePool", one(dtype), {}),
        ("QLinearConv", convolution(dtype, 2, 6, 5, 8), convolved),
    ]
    for op_type, arrays, attributes in cases:
        model, feeds = contrib(op_type, arrays, "y", channels_last=1, **attributes)
        expected = runs_as(model, feeds, dtype)
        for passes in ("none", "default"):
            np.testing.assert_array_equal(irc.compile(model, passes).run(feeds)["y"], expected)
        unknown, _ = contrib(op_type, arrays, "y", ranked=False, channels_last=1, **attributes)
        refused("IRC123", unknown, "rank is not known")
    agrees("QLinearConv", convolution(dtype, 2, 8, 6, 5), dtype, **convolved)


@pytest.mark.parametrize("dtype", TYPES)
def test_several_operands(dtype: Any) -> None:
    zeros = [np.array(zero, dtype) for zero in (3, 7, 1)]
    x, v = numbers(0, 2, 3, 6, dtype=dtype), numbers(1, 6, dtype=dtype)
    scales = {"a": real(0.1), "b": real(0.0513), "c": real(0.0837)}
    where = {"k": np.arange(12).reshape(2, 1, 6) % 5 > 2, "x": x, "a": scales["a"], "p": zeros[0], "v": v}
    agrees("QLinearWhere", {**where, "b": scales["b"], "q": zeros[1], "c": scales["c"], "r": zeros[2]}, dtype)
    joined = {"c": scales["c"], "r": zeros[2], "x": x, "a": scales["a"], "p": zeros[0]}
    agrees("QLinearConcat", joined, dtype, axis=1)
    joined |= {"z": numbers(2, 2, 1, 6, dtype=dtype), "b": scales["b"], "q": zeros[1]}
    agrees("QLinearConcat", joined, dtype, axis=1)
    model, _ = contrib("QLinearConcat", {**joined, "extra": scales["b"]}, "y", axis=1)
    refused("IRC127", model, "a scale and a zero point each")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("is_quantized", [False, True])
def test_products(is_quantized: bool, has_bias: bool, columns: bool, dtype: Any) -> None:
    for left, right in ((0, 0), (1, 1)):
        a, b = numbers(0, 3, 7, dtype=dtype), numbers(1, 7, 5, dtype=np.int8)
        arrays: dict[str, np.ndarray | None] = {
            "a": a.T.copy() if left else a,
            "p": real(0.1),
            "q": np.array(3, dtype),
            "b": b.T.copy() if right else b,
            "r": real(0.02, 0.03, 0.041, 0.05, 0.06) if columns else real(0.03),
            "s": np.zeros(5, np.int8) if columns else np.array(0, np.int8),
            "c": np.arange(-2000, 3000, 1000, dtype=np.int32) if has_bias else None,
        }
        if is_quantized:
            arrays |= {"t": real(0.917), "u": np.array(4, dtype)}
        agrees("QGemm", arrays, dtype if is_quantized else np.float32, transA=left, transB=right, alpha=0.5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
def test_quantizing_alone_before_it_was_standard(dtype: Any) -> None:
    x = np.linspace(-9, 9, 24, dtype=np.float32).reshape(2, 3, 4)
    for words in ({"s": real(0.0371), "z": np.array(90, dtype)}, {"s": real(0.1, 0.2, 0.3), "z": np.zeros(3, dtype)}):
        axis = {"axis": 1} if words["s"].ndim else {}
        agrees("QuantizeLinear", {"x": x, **words}, dtype, opset=17, **axis)
        agrees("DequantizeLinear", {"x": numbers(0, 2, 3, 4, dtype=dtype), **words}, np.float32, opset=17, **axis)
