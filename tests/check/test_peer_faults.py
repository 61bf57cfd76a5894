"""Where other runtimes are known to compute something else, they are not asked; for what is much like it, they are."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.tools.check import check_model

ML = "ai.onnx.ml"

LEAF = {
    "nodes_treeids": [0],
    "nodes_nodeids": [0],
    "nodes_featureids": [0],
    "nodes_values": [0.0],
    "nodes_modes": ["LEAF"],
    "nodes_truenodeids": [0],
    "nodes_falsenodeids": [0],
}
"""A tree that is a leaf."""


def classes(*votes: int) -> dict[str, Any]:
    """A classifier of two classes, each of these with a vote."""
    zeros = [0] * len(votes)
    return {
        **LEAF,
        "class_treeids": zeros,
        "class_nodeids": zeros,
        "class_ids": list(votes),
        "class_weights": [0.7, 0.3][: len(votes)],
        "classlabels_int64s": [0, 1],
    }


def targets(**more: Any) -> dict[str, Any]:
    """A regressor of two targets, one of which has a vote."""
    votes = {"target_treeids": [0], "target_nodeids": [0], "target_ids": [0], "target_weights": [0.5]}
    return {**LEAF, **votes, "n_targets": 2, **more}


def one(
    op_type: str,
    shapes: dict[str, list[Any]],
    constants: dict[str, Any] | None = None,
    opset: int = 19,
    results: int = 1,
    domain: str = "",
    producer: str = "",
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one operator, of inputs and constants by name, in that order; "-" stands for an absent one."""
    weights = {name: np.asarray(array) for name, array in (constants or {}).items()}
    order = [*shapes, *weights]
    outputs = [f"y{i}" for i in range(results)]
    node = helper.make_node(op_type, ["" if n == "-" else n for n in order], outputs, domain=domain, **attributes)
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items() if n != "-"]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items() if name != "-"]
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name=n) for n in outputs], initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name=producer)


IMAGE = {"x": [1, 1, 9]}
KERNEL = {"w": np.ones((1, 1, 1), np.float32)}
SCALES = {"-": 0, "s": np.array([1, 1, 1.3], np.float32)}
REGION = {"r": np.array([0, 0, 0.1, 1, 1, 0.8], np.float32), "s": np.ones(3, np.float32)}
UNPOOLED = {"i": np.array([[[[0, 3], [8, 15]]]])}
LARGER = {**UNPOOLED, "n": np.array([1, 1, 5, 5])}
KEYS = {"q": [1, 1, 1, 4], "k": [1, 1, 3, 4], "v": [1, 1, 3, 4]}
PAST = {"pk": [1, 1, 3, 4], "pv": [1, 1, 3, 4]}
CORNERS = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
CROPPED = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
WINDOWS = {"kernel_shape": [2, 2], "strides": [2, 2]}
FLOAT8_SCALE = {"s": np.float32(0.002)}
SAME: dict[str, Any] = {"auto_pad": "SAME_UPPER"}

UNKNOWN = {
    "floats that are cast to int4": one("Cast", {"x": [40]}, opset=21, to=TensorProto.INT4),
    "float8 without a sign": one("Cast", {"x": [40]}, opset=24, to=TensorProto.FLOAT8E8M0),
    "numbers too large for float8": one("Cast", {"x": [40]}, to=TensorProto.FLOAT8E5M2, saturate=0),
    "numbers too large when quantised": one(
        "QuantizeLinear", {"x": [40]}, FLOAT8_SCALE, opset=21, output_dtype=TensorProto.FLOAT8E4M3FN, saturate=0
    ),
    "a larger MaxUnpool": one("MaxUnpool", {"x": [1, 1, 2, 2]}, LARGER, **WINDOWS),
    "pooling with dilations": one("MaxPool", IMAGE, **SAME, kernel_shape=[3], strides=[2], dilations=[2]),
    "a transposed convolution": one("ConvTranspose", IMAGE, KERNEL, **SAME, strides=[3]),
    "a region": one("Resize", IMAGE, REGION, **CROPPED),
    "corners": one("Resize", IMAGE, SCALES, **CORNERS),
    "a causal past": one("Attention", {**KEYS, "-": [], **PAST}, opset=23, results=3, is_causal=1),
    "two classes": one("TreeEnsembleClassifier", {"x": [4, 1]}, domain=ML, results=2, **classes(0, 1)),
    "base values": one("TreeEnsembleRegressor", {"x": [4, 1]}, domain=ML, **targets(base_values=[1.0, 2.0])),
    "the largest of no votes": one(
        "TreeEnsembleRegressor", {"x": [4, 1]}, domain=ML, **targets(base_values=[1.0, 2.0], aggregate_function="MAX")
    ),
}

KNOWN = {
    "float8": one("Cast", {"x": [40]}, to=TensorProto.FLOAT8E5M2),
    "int8": one("Cast", {"x": [40]}, to=TensorProto.INT8),
    "MaxUnpool": one("MaxUnpool", {"x": [1, 1, 2, 2]}, UNPOOLED, **WINDOWS),
    "pooling": one("MaxPool", IMAGE, **SAME, kernel_shape=[3], strides=[2]),
    "dilations": one("MaxPool", IMAGE, kernel_shape=[3], strides=[2], dilations=[2]),
    "a transposed convolution": one("ConvTranspose", IMAGE, KERNEL, strides=[3]),
    "corners before": one("Resize", IMAGE, SCALES, opset=18, **CORNERS),
    "corners of PyTorch": one("Resize", IMAGE, SCALES, producer="pytorch", **CORNERS),
    "causal": one("Attention", KEYS, opset=23, is_causal=1),
    "one class": one("TreeEnsembleClassifier", {"x": [4, 1]}, domain=ML, results=2, **classes(1)),
    "no base values": one("TreeEnsembleRegressor", {"x": [4, 1]}, domain=ML, **targets()),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_onnx_runtime_is_not_asked(name: str) -> None:
    result = check_model(irc.compile(UNKNOWN[name]), UNKNOWN[name])
    assert result.oracle != "ONNX Runtime"
    assert result.unable["ONNX Runtime"].startswith("it is not known to be right for ")


@pytest.mark.parametrize("name", KNOWN)
def test_it_is_asked(name: str) -> None:
    assert check_model(irc.compile(KNOWN[name]), KNOWN[name]).oracle == "ONNX Runtime"


def test_onnx_reference_is_not_asked_for_masks_that_are_too_narrow() -> None:
    """Attention 23 broadcasts them; onnx.reference pads, as Attention 24 does."""
    shapes = {
        **{name: ["B", 4, "S", 8] for name in "qkv"},
        "m": ["B", 1, "S", "total"],
        **{name: ["B", 4, "P", 8] for name in ("pk", "pv")},
    }
    model = one("Attention", shapes, opset=23, results=3)
    result = check_model(irc.compile(model), model, sizes=dict.fromkeys(["B", "S", "P", "total"], 1))
    assert result.oracle == "irc without passes"
    assert result.unable["onnx.reference"] == "it is not known to be right for Attention with a mask"


def test_pytorch_aligns_corners_to_whole_sizes() -> None:
    """Three elements, 1.5 times as many: four, the last of which is the third; by the standard there would be 4.5."""
    x = np.arange(3, dtype=np.float32).reshape(1, 1, 3)
    scales = {"-": 0, "s": np.array([1, 1, 1.5], np.float32)}
    runs = {
        producer: irc.compile(one("Resize", {"x": ["b", "c", "n"]}, scales, producer=producer, **CORNERS)).run({"x": x})
        for producer in ("pytorch", "")
    }
    np.testing.assert_allclose(runs["pytorch"]["y0"].ravel(), np.arange(4) * 2 / 3, rtol=1e-6)
    np.testing.assert_allclose(runs[""]["y0"].ravel(), np.arange(4) * 2 / 3.5, rtol=1e-6)


def test_axes_that_keep_their_sizes_keep_their_names() -> None:
    scales = {"-": 0, "s": np.array([1, 1, 1.5], np.float32)}
    model = irc.compile(one("Resize", {"x": ["b", "c", "n"]}, scales, producer="pytorch", **CORNERS))
    (shape,) = (output.shape for output in model.outputs)
    assert shape is not None and shape[:2] == ("b", "c")
    still = {"-": 0, "s": np.ones(3, np.float32)}
    model = irc.compile(one("Resize", {"x": ["b", "c", 3]}, still, producer="pytorch", **CORNERS))
    x = np.arange(3, dtype=np.float32).reshape(1, 1, 3)
    np.testing.assert_array_equal(model.run({"x": x})["y0"], x)


def test_pytorch_aligns_corners_along_some_axes_and_before_version_19() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    some = {"-": 0, "s": np.array([0.7, 1.3], np.float32)}
    both = {"-": 0, "s": np.array([1, 0.7, 1.3], np.float32)}
    axes = one("Resize", {"x": ["b", 3, "n"]}, some, producer="pytorch", axes=[1, 2], **CORNERS)
    before = one("Resize", {"x": ["b", 3, "n"]}, both, opset=18, producer="pytorch", **CORNERS)
    found, expected = (irc.compile(model).run({"x": x})["y0"] for model in (axes, before))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("axes", [[1, 1], [1, -2]])
def test_pytorch_gives_no_axis_twice(axes: list[int]) -> None:
    scales = {"-": 0, "s": np.array([0.7, 1.3], np.float32)}
    proto = one("Resize", {"x": ["b", 3, "n"]}, scales, producer="pytorch", axes=axes, **CORNERS)
    with pytest.raises(irc.Error, match="axis 1 is given twice"):
        irc.compile(proto)
    model = irc.compile(proto, "none")
    with pytest.raises(irc.Error, match="an axis is given twice"):
        model.run({"x": np.ones((1, 3, 4), np.float32)})
