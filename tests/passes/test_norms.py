"""Normalisations written as several operators become operators, and are decomposed again for older operator sets."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import irc
from tests.elsewhere import run_onnxruntime

WIDTH = 8
RNG = np.random.default_rng(0)
SCALE, BIAS = RNG.standard_normal((2, WIDTH)).astype(np.float32)


def decomposed(
    opset: int, *, centered: bool, square: str = "Pow", inverse: str = "", dtype: type = np.float32, **changes: Any
) -> onnx.ModelProto:
    """``(x - mean) / sqrt(mean((x - mean)²) + epsilon) * scale + bias``; without mean and bias unless ``centered``.

    Args:
        square: the operator that squares.
        inverse: the one by which 1 is divided by the root; by default x is divided by that.
        changes: other attributes of ReduceMean; other constants.
    """
    constants = {"scale": SCALE, "bias": BIAS, "epsilon": 1e-5, "two": 2, "one": [1]} | changes
    nodes: list[onnx.NodeProto] = []

    def op(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [name := f"{kind}_{len(nodes)}"], **attributes))
        return name

    def mean(x: str) -> str:
        if opset >= 18:
            constants.setdefault("axes", [-1])
            return op("ReduceMean", x, "axes", keepdims=1)
        return op("ReduceMean", x, axes=constants.get("axes", [2] if opset < 11 else [-1]), keepdims=1)

    x = op("Sub", "x", mean("x")) if centered else "x"
    root = op("Sqrt", op("Add", mean(op(square, x, x if square == "Mul" else "two")), "epsilon"))
    inverted = op(inverse, *["one"][: inverse == "Div"], root) if inverse else ""
    y = op("Mul", "scale", op("Mul", inverted, x) if inverse else op("Div", x, root))
    y = op("Add", y, "bias") if centered else y
    used = {name for node in nodes for name in node.input}
    integers = [
        numpy_helper.from_array(np.array(value, np.int64 if name == "axes" else dtype), name)
        for name, value in constants.items()
        if name in used
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, y = (helper.make_tensor_value_info(name, element, ["n", "t", WIDTH]) for name in ("x", y))
    graph = helper.make_graph(nodes, "normalisation", [x], [y], integers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def kinds(model: irc.CompiledModel) -> list[str]:
    return [node.kind for node in model.graph.nodes if node.kind != "prim::Constant"]


def only(found: Any) -> Any:
    (value,) = found
    return value


@pytest.mark.parametrize("opset", [7, 13, 17, 18, 23])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize(("square", "inverse"), [("Pow", ""), ("Mul", "Div"), ("Pow", "Reciprocal")])
def test_what_is_spelt_out_is_one_operator(
    opset: int, centered: bool, square: str, inverse: str, tmp_path: Path
) -> None:
    proto = decomposed(opset, centered=centered, square=square, inverse=inverse)
    model = irc.compile(proto)
    kind = "onnx::LayerNormalization" if centered else "onnx::RMSNormalization"
    assert kinds(model) == [kind]
    irc.export(model, path := tmp_path / "model.onnx")
    assert onnx.load(path).opset_import[0].version == opset
    assert kinds(irc.compile(path)) == [kind]
    for shape in ((2, 3, WIDTH), (1, 1, WIDTH), (0, 2, WIDTH)):
        x = (RNG.standard_normal(shape) * 3).astype(np.float32)
        expected = only(run_onnxruntime(proto, {"x": x}))
        for found in (only(model.run({"x": x}).values()), only(run_onnxruntime(path, {"x": x}))):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": np.float64},  # their statistics are float32 in LayerNormalization
        {"dtype": np.float16},
        {"two": 3},
        {"one": [2], "inverse": "Div"},
        {"axes": [1]},
        {"epsilon": np.full((1, 1, WIDTH), 1e-5)},
    ],
)
@pytest.mark.parametrize("centered", [False, True])
def test_what_is_something_else_stays(changes: dict[str, Any], centered: bool) -> None:
    proto = decomposed(18, centered=centered, **changes)
    model = irc.compile(proto)
    assert not any("Normalization" in kind for kind in kinds(model))
    x = RNG.standard_normal((2, WIDTH, WIDTH)).astype(changes.get("dtype", np.float32))
    found, expected = (only(m.run({"x": x}).values()) for m in (model, irc.compile(proto, "none")))
    np.testing.assert_allclose(found, expected, rtol=1e-3 if x.itemsize < 4 else 1e-5)


def test_scales_and_biases_of_other_shapes_stay_outside() -> None:
    model = irc.compile(decomposed(18, centered=True, scale=[3.0], bias=np.ones((2, 1))))
    assert kinds(model)[0] == "onnx::LayerNormalization"
    x = RNG.standard_normal((1, 2, WIDTH)).astype(np.float32)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(only(model.run({"x": x}).values()), normal * 3 + 1, rtol=1e-5, atol=1e-5)
