"""Models that ONNX Runtime writes or accepts although ONNX's checker does not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import irc
from tests.frontend.helpers import refused

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(2, 3, 4)
IMAGE = np.linspace(-1, 1, 2 * 3 * 5 * 6, dtype=np.float32).reshape(2, 3, 5, 6)


def model(
    nodes: list[NodeProto],
    feeds: Mapping[str, np.ndarray],
    outputs: tuple[str, ...] = ("y",),
    opsets: tuple[tuple[str, int], ...] = (("", 13),),
    initializers: tuple[TensorProto, ...] = (),
) -> ModelProto:
    given = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(a.dtype), [f"{name}{i}" for i in range(a.ndim)]
        )
        for name, a in feeds.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "g", given, results, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=8)


def gives(proto: ModelProto, feeds: Mapping[str, np.ndarray], folder: Path, **expected: Any) -> ModelProto:
    """Check what a model gives: by any passes, loaded, and written as ONNX, which is returned."""
    compiled = irc.compile(proto)
    compiled.save(folder / "m.irc")
    irc.export(compiled, folder / "m.onnx")
    written = onnx.load(folder / "m.onnx")
    onnx.checker.check_model(written)
    for each in (irc.compile(proto, "none"), compiled, irc.load(folder / "m.irc"), irc.compile(written)):
        found = each.run(feeds)
        assert list(found) == list(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
            assert found[name].dtype == value.dtype
    return written


def normalized(x: np.ndarray, axis: int, epsilon: float = 1e-5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True)
    root = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)
    return (x - mean) * root, mean, root


# -- operators in other sets than ONNX's -----------------------------------------


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 14, 16])
def test_layer_normalization_before_its_time(opset: int, tmp_path: Path) -> None:
    scale, bias = np.linspace(0.5, 2, 4, dtype=np.float32), np.linspace(-1, 1, 4, dtype=np.float32)
    weights = (numpy_helper.from_array(scale, "s"), numpy_helper.from_array(bias, "b"))
    nodes = [helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], epsilon=1e-3)]
    feeds = {"x": X}
    y = normalized(X, -1, 1e-3)[0] * scale + bias
    written = gives(model(nodes, feeds, opsets=(("", opset),), initializers=weights), feeds, tmp_path, y=y)
    assert written.opset_import[0].version == opset


def test_layer_normalization_has_all_of_its_parts_before_its_time(tmp_path: Path) -> None:
    scale = np.linspace(0.5, 2, 12, dtype=np.float32).reshape(3, 4)
    nodes = [helper.make_node("LayerNormalization", ["x", "s"], ["y", "m", "r"], axis=1)]
    proto = model(nodes, {"x": X}, ("y", "m", "r"), (("", 12),), (numpy_helper.from_array(scale, "s"),))
    y, mean, root = normalized(X, 1)
    gives(proto, {"x": X}, tmp_path, y=y * scale, m=mean, r=root)


@pytest.mark.parametrize(("of_x", "of_scale"), [("float16", "float32"), ("float32", "float16")])
def test_normalizations_whose_scales_are_of_another_type(of_x: str, of_scale: str, tmp_path: Path) -> None:
    """The result has the type of the scale; all is computed in float32."""
    x, scale = X.astype(of_x), np.linspace(0.5, 2, 4).astype(of_scale)
    nodes = [helper.make_node("LayerNormalization", ["x", "s", "s"], ["y"])]
    y = normalized(x.astype(np.float32), -1)[0] * scale + scale
    feeds = {"x": x, "s": scale}
    if of_scale == "float32":
        gives(model(nodes, feeds), feeds, tmp_path, y=y.astype(np.float32))
    else:
        for passes in ("none", "default"):
            found = irc.compile(model(nodes, feeds), passes).run(feeds)["y"]
            assert found.dtype == np.float16
            np.testing.assert_allclose(found, y, rtol=2e-3, atol=2e-3)
    newest = model(nodes, feeds, opsets=(("", 17),))
    refused("IRC136", newest, "must be of the same type as X")


def test_thresholded_relu_before_its_time(tmp_path: Path) -> None:
    nodes = [helper.make_node("ThresholdedRelu", ["x"], ["y"], alpha=0.5)]
    gives(model(nodes, {"x": X}, opsets=(("", 9),)), {"x": X}, tmp_path, y=np.where(X > 0.5, X, 0).astype(np.float32))


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize(
    ("op_type", "attributes", "x", "y"),
    [
        ("Affine", {"alpha": 2.0, "beta": -1.0}, X, 2 * X - 1),
        ("Affine", {}, X, X),
        ("Crop", {"border": [1, 2, 0, 1]}, IMAGE, IMAGE[:, :, 2:4, 1:]),
        ("Crop", {"border": [1, 2, 3, 3], "scale": [2, 3]}, IMAGE, IMAGE[:, :, 2:4, 1:4]),
        ("ImageScaler", {"bias": [1.0, 2.0, -3.0]}, IMAGE, IMAGE + np.reshape([1, 2, -3], (3, 1, 1))),
        ("ImageScaler", {"bias": [0.0, 2.0, 1.0], "scale": 0.5}, IMAGE, IMAGE / 2 + np.reshape([0, 2, 1], (3, 1, 1))),
        ("ParametricSoftplus", {"alpha": 2.0, "beta": 0.5}, X, 2 * np.log1p(np.exp(X / 2))),
        ("ScaledTanh", {"alpha": 2.0, "beta": 0.5}, X, 2 * np.tanh(X / 2)),
    ],
)
def test_experimental_operators(
    opset: int, op_type: str, attributes: dict[str, Any], x: np.ndarray, y: np.ndarray, tmp_path: Path
) -> None:
    for dtype in (np.float32, np.float64):
        feeds = {"x": x.astype(dtype)}
        proto = model([helper.make_node(op_type, ["x"], ["y"], **attributes)], feeds, opsets=(("", opset),))
        gives(proto, feeds, tmp_path, y=y.astype(dtype))


def test_experimental_operators_that_lack_something() -> None:
    for op_type, attributes, words in (
        ("Crop", {}, "needs attribute 'border'"),
        ("Crop", {"border": [1, 2]}, "'border' are four sizes"),
        ("Crop", {"border": [1, 2, -1, 0]}, "'border' are four sizes"),
        ("ImageScaler", {}, "needs attribute 'bias'"),
        ("ScaledTanh", {"alpha": 1.0}, "needs attribute 'beta'"),
    ):
        node = helper.make_node(op_type, ["x"], ["y"], **attributes)
        refused("IRC127", model([node], {"x": IMAGE}, opsets=(("", 9),)), words)


# -- imports, names and constants --------------------------------------------------


def constant(name: str, value: float) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.float32(value)))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("initializers", "sparse", "constants", "value"),
    [
        ((1, 2), (), (), 2),
        ((1, 2, 3), (), (), 3),
        ((1,), (), (5,), 5),
        ((1,), (), (5, 6), 6),
        ((), (), (5, 6, 7), 7),
        ((1,), (4,), (), 4),
        ((), (4, 3), (), 3),
        ((1,), (4,), (5,), 5),
    ],
)
def test_constants_of_one_name(
    nested: bool,
    initializers: tuple[float, ...],
    sparse: tuple[float, ...],
    constants: tuple[float, ...],
    value: float,
    tmp_path: Path,
) -> None:
    """The last one counts; nodes come after initializers."""
    nodes = [helper.make_node("Add", ["x", "c"], ["y"]), *(constant("c", each) for each in constants)]
    proto = model(nodes, {"x": X})
    graph = proto.graph
    if nested:
        condition = numpy_helper.from_array(np.array(True))
        inner = helper.make_graph(nodes, "b", [], [helper.make_empty_tensor_value_info("y")])
        outer = [
            helper.make_node("Constant", [], ["t"], value=condition),
            helper.make_node("If", ["t"], ["z"], then_branch=inner, else_branch=inner),
        ]
        proto = model(outer, {"x": X}, ("z",))
        graphs = [attribute.g for attribute in proto.graph.node[1].attribute]
    else:
        graphs = [graph]
    for each in graphs:
        each.initializer.extend(numpy_helper.from_array(np.full(1, v, np.float32), "c") for v in initializers)
        for v in sparse:
            values = numpy_helper.from_array(np.full(1, v, np.float32), "c")
            each.sparse_initializer.append(
                helper.make_sparse_tensor(values, numpy_helper.from_array(np.zeros(1, int)), [1])
            )
    gives(proto, {"x": X}, tmp_path, **{"z" if nested else "y": X + np.float32(value)})


@pytest.mark.parametrize("name", ["value", "sparse_value"])
def test_constants_that_are_sparse(name: str, tmp_path: Path) -> None:
    """They are dense in irc, also as outputs, whatever their declared type is."""
    values = numpy_helper.from_array(np.array([2, 3], np.float32))
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 5])), [2, 3])
    node = NodeProto(op_type="Constant", output=["y"])
    node.attribute.append(AttributeProto(name=name, type=AttributeProto.SPARSE_TENSOR, sparse_tensor=sparse))
    proto = model([node], {})
    type = proto.graph.output[0].type.sparse_tensor_type
    type.elem_type = TensorProto.FLOAT
    type.shape.dim.add().dim_value = 2
    type.shape.dim.add().dim_value = 3
    gives(proto, {}, tmp_path, y=np.array([[0, 2, 0], [0, 0, 3]], np.float32))


def test_inputs_that_are_sparse_are_refused() -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": X})
    proto.graph.input[0].type.CopyFrom(helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2, 3]))
    refused("IRC131", proto, "input 'x'", "sparse")


@pytest.mark.parametrize("name", ["?", "None", "", "unk", "-1"])
def test_sizes_without_a_name_differ(name: str, tmp_path: Path) -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": X})
    for dim in proto.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = name
    gives(proto, {"x": X}, tmp_path, y=np.maximum(X, 0))
    refused_later = model([helper.make_node("Relu", ["x"], ["y"])], {"x": X})
    for dim in refused_later.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = "n"
    with pytest.raises(irc.Error, match="IRC414"):
        irc.compile(refused_later).run({"x": X})
