"""What is imported means what ONNX Runtime takes the model for."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from irc.frontend.onnx import import_model
from irc.frontend.onnx_export import export_model
from irc.ir import parse_module
from irc.runtime.model import CompiledModel
from irc.tools.check.peers import onnxruntime_session
from tests.elsewhere import run_onnxruntime
from tests.frontend.helpers import CONTROL, from_nodes, infos, parse


def check(model: onnx.ModelProto, *runs: dict[str, Any]) -> None:
    session = onnxruntime_session(model)
    compiled = CompiledModel(import_model(model))
    for feeds in runs:
        expected = session.run(None, feeds)
        found = compiled.run(feeds)
        for output, want in zip(model.graph.output, expected, strict=True):
            got = found[output.name]
            for a, b in zip(got, want, strict=True) if isinstance(want, list) else [(got, want)]:
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [3, -4, 5]}, {"classlabels_strings": ["a", "b", "c"]}])
def test_maps(labels: dict[str, Any]) -> None:
    """ZipMap gives a sequence of maps: as ONNX Runtime, as text, and exported again."""
    key = TensorProto.INT64 if "classlabels_int64s" in labels else TensorProto.STRING
    scalar = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    output = helper.make_sequence_type_proto(helper.make_map_type_proto(key, scalar))
    nodes = [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels)]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(nodes, "g", [given], [helper.make_value_info("y", output)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    module = import_model(model)
    assert str(module.main.value("y").type) == f"Dict({'str' if key == TensorProto.STRING else 'int'}, Float)[]"
    module.verify()
    again = parse_module(str(module))
    again.verify()
    assert str(again) == str(module)
    written = export_model(module)
    onnx.checker.check_model(written, full_check=True)
    x = numbers(2, 3)
    expected = run_onnxruntime(model, {"x": x})
    assert run_onnxruntime(written, {"x": x}) == expected
    for source in (module, again, import_model(written)):
        assert CompiledModel(source).run({"x": x}) == {"y": expected[0]}


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_control_flow_and_functions(condition: bool, iterations: int) -> None:
    sequence = [numbers(4), numbers(4) * 2]
    check(CONTROL, {"x": numbers(2, 3), "c": np.array(condition), "m": np.array(iterations), "s": sequence})


def test_functions_with_attributes_and_defaults() -> None:
    model = parse(
        """<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x) => (float[2,3] y, float[2,3] z, float[2,3] w) {
            t = local.F <axis = 0> (x) y = local.F <axis = 1, alpha = 2.0> (t) z = local.F(y) w = local.G <a = 0> (z)
        }
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        F <axis: int = -1, alpha: float = 0.5> (a) => (b) {
            k = Constant <value_float: float = @alpha> () s = Softmax <axis: int = @axis> (a) b = Mul(s, k)
        }
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        G <a> (x) => (y) { y = local.F <axis: int = @a> (x) }
        """
    )
    check(model, {"x": numbers(2, 3)})


@pytest.mark.parametrize("opset", [8, 11])
def test_scan(opset: int) -> None:
    """Sums of what came before, and the terms negated; Scan 8 has a batch in front."""
    shape = [2, 4, 3] if opset == 8 else [4, 3]
    nodes = [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Neg", ["e"], ["n"])]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("s", "e", "t", "n")]
    body = helper.make_graph(nodes, "b", values[:2], values[2:])
    inputs = ["", "init", "x"] if opset == 8 else ["init", "x"]
    node = helper.make_node("Scan", inputs, ["last", "all"], num_scan_inputs=1, body=body)
    model = from_nodes([node], ["init", "x"], ["last", "all"], opset=opset, ir_version=7)
    for info, size in zip(model.graph.input, ([*shape[:-2], 3], shape)):
        info.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, size))
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in ("last", "all"))
    check(model, {"init": numbers(*shape[:-2], 3), "x": numbers(*shape)})


def test_initializers_that_callers_may_override() -> None:
    w = onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    model = from_nodes([helper.make_node("Mul", ["x", "w"], ["y"])], ["x", "w"], initializers=[w])
    x = numbers(2)
    check(model, {"x": x}, {"x": x, "w": numbers(2) + 1})


def test_nodes_that_were_sorted() -> None:
    then = helper.make_graph([helper.make_node("Neg", ["k"], ["r"])], "t", [], infos("r"))
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["q"])], "e", [], infos("q"))
    nodes = [
        helper.make_node("Mul", ["z", "k"], ["y"]),
        helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=other),
        helper.make_node("Exp", ["x"], ["k"]),
    ]
    model = from_nodes(nodes, ["x"])
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    check(model, {"x": numbers(2), "c": np.array(True)}, {"x": numbers(2), "c": np.array(False)})
