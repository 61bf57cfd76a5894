"""Softmax of what may all be masked, as PyTorch's exporters write it, is one operator, and is decomposed in ONNX."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from ml_dtypes import bfloat16
from onnx import helper, numpy_helper

import irc
from tests.elsewhere import run_onnxruntime

RNG = np.random.default_rng(0)
KIND = "irc::masked_softmax"


def attention(opset: int = 18, dtype: type = np.float32, *, axis: int | None = -1, **changes: Any) -> onnx.ModelProto:
    """``where(isnan(s), 0, s)``, s the softmax of x.

    Args:
        axis: of Softmax; None: the default.
        changes: another ``zero``, ``tested`` value, ``order`` of what is chosen from, or ``output`` besides.
    """
    told = {"zero": np.zeros((), dtype), "tested": "s", "order": ("zero", "s"), "output": "y"} | changes
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], **({} if axis is None else {"axis": axis})),
        helper.make_node("IsNaN", [told["tested"]], ["t"]),
        helper.make_node("Where", ["t", *told["order"]], ["y"]),
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("x", element, ["n", "t", 5])
    results = [helper.make_tensor_value_info(name, element, None) for name in dict.fromkeys(("y", told["output"]))]
    zero = numpy_helper.from_array(told["zero"], "zero")
    graph = helper.make_graph(nodes, "attention", [x], results, [zero])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def kinds(model: irc.CompiledModel) -> list[str]:
    return [node.kind for node in model.graph.walk() if node.kind != "prim::Constant"]


def scores(dtype: type = np.float32) -> np.ndarray:
    """Rows along both axes with some, all or nothing masked, and with what is not a number or not finite."""
    x = (RNG.standard_normal((3, 4, 5)) * 4).astype(dtype)
    x[0, 1] = x[1, :, 2] = x[2, 0, 1:3] = -np.inf
    x[1, 1, 0], x[1, 2, 1], x[2, 3, 4] = np.nan, np.inf, 1e4
    return x


def run(model: irc.CompiledModel, x: np.ndarray) -> np.ndarray:
    return model.run({"x": x})["y"]


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("axis", [-1, 2, 1, 0, None])
def test_what_is_spelt_out_is_one_operator(opset: int, axis: int | None, tmp_path: Path) -> None:
    proto = attention(opset, axis=axis, zero=np.zeros(1 if opset == 18 else (), np.float32))
    model = irc.compile(proto)
    assert kinds(model) == [KIND]
    irc.export(model, path := tmp_path / "model.onnx")
    after = onnx.load(path)
    onnx.checker.check_model(after, full_check=True)
    assert after.opset_import[0].version == opset
    assert kinds(irc.compile(path)) == [KIND]
    for x in (scores(), scores()[:, :1], scores()[:0], np.full((1, 1, 5), -np.inf, np.float32)):
        expected = run(irc.compile(proto, "none"), x)
        assert not np.isnan(expected).any()
        np.testing.assert_array_equal(run(model, x), expected)
        for source in (proto, path):
            (found,) = run_onnxruntime(source, {"x": x})
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float64])
@pytest.mark.parametrize("axis", [-1, 0])
def test_of_all_element_types(dtype: type, axis: int, tmp_path: Path) -> None:
    proto = attention(18, dtype, axis=axis)
    model = irc.compile(proto)
    assert kinds(model) == [KIND]
    x = scores(dtype)
    expected = run(irc.compile(proto, "none"), x)
    np.testing.assert_array_equal(run(model, x), expected)
    irc.export(model, path := tmp_path / "model.onnx")
    np.testing.assert_array_equal(run(irc.compile(path, "none"), x), expected)


@pytest.mark.parametrize(
    ("opset", "changes"),
    [
        (18, {"zero": np.array(-0.0, np.float32)}),
        (18, {"zero": np.array(1, np.float32)}),
        (18, {"zero": np.zeros((1, 1, 1, 1), np.float32)}),
        (18, {"tested": "x"}),
        (18, {"order": ("s", "zero")}),
        (18, {"output": "s"}),  # which may hold what is not a number
        (11, {"axis": 1}),  # along several axes
    ],
)
def test_what_is_something_else_stays(opset: int, changes: dict[str, Any]) -> None:
    proto = attention(opset, **changes)
    model = irc.compile(proto)
    assert KIND not in kinds(model)
    for x in (scores(), scores()[:1, :1]):
        np.testing.assert_array_equal(run(model, x), run(irc.compile(proto, "none"), x))


@pytest.mark.parametrize("axis", [-1, 1])
def test_large_ones_are_the_same_on_several_threads(axis: int) -> None:
    model = irc.compile(attention(axis=axis))
    assert kinds(model) == [KIND]
    x = np.tile(scores(), (400, 30, 1))
    x[: len(x) // 2] = 0
    np.testing.assert_array_equal(model.run({"x": x}, threads=3)["y"], model.run({"x": x}, threads=1)["y"])
