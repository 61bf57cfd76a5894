"""Masks that exporters write by the index of each element: where that is all of a mask, no indices are made."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.tools.check.peers import onnxruntime_session


def masked(end: str) -> onnx.ModelProto:
    """``mask[:, :, :, :end] = where(seen, lowest, mask[:, :, :, :end])``, as tracers spell it out."""
    make = helper.make_node
    constants = {"zero": 0, "one": 1, "two": 2, "three": 3, "none": [0], "last": [-1], "at": [3], "ones": [1] * 4}
    constants |= {"minus": [-1] * 4, "middle": [1, 2]}
    constants |= {f"tall_{k}": [-1] + [1] * (3 - k) for k in range(3)}
    initializers = [numpy_helper.from_array(np.array(v, np.int64), name) for name, v in constants.items()]
    initializers.append(numpy_helper.from_array(np.float32(-1e30), "lowest"))
    nodes = [
        make("Shape", ["seen"], ["sizes"]),
        make("Gather", ["sizes", "zero"], ["batch"]),
        make("Gather", ["sizes", "one"], ["total"]),
        make("Unsqueeze", ["batch", "none"], ["batch_1"]),
        make("Unsqueeze", ["total", "none"], ["total_1"]),
        make("Shape", ["rows"], ["count_1"]),
        make("Concat", ["batch_1", "one_1", "count_1", "total_1"], ["shape"], axis=0),
        make("Expand", ["causal", "shape"], ["mask"]),
        make("Slice", ["mask", "none", end, "at"], ["part"]),
        make("Unsqueeze", ["seen", "middle"], ["seen_4"]),
        make("Slice", ["seen_4", "none", end, "at"], ["seen_part"]),
        make("Where", ["seen_part", "lowest", "part"], ["changed"]),
        make("Shape", ["part"], ["part_shape"]),
        make("Expand", ["changed", "part_shape"], ["updates"]),
        make("Shape", ["mask"], ["mask_shape"]),
    ]
    for k, axis in enumerate(["zero", "one", "two", "three"]):
        nodes.append(make("Gather", ["mask_shape", axis], [f"size_{k}"]))
        nodes.append(make("Range", ["zero", f"size_{k}", "one"], [f"line_{k}"]))
        if k < 3:
            nodes.append(make("Reshape", [f"line_{k}", f"tall_{k}"], [f"column_{k}"]))
    nodes += [
        make("Slice", ["line_3", "none", end, "none"], ["column_3"]),
        make("Add", ["column_0", "column_1"], ["sum_1"]),
        make("Add", ["sum_1", "column_2"], ["sum_2"]),
        make("Add", ["sum_2", "column_3"], ["sum_3"]),
        make("Shape", ["sum_3"], ["grid"]),
        make("Equal", ["grid", "minus"], ["open"]),
        make("Where", ["open", "ones", "grid"], ["wide"]),
    ]
    for k in range(4):
        nodes.append(make("Expand", [f"column_{k}", "wide"], [f"index_{k}"]))
        nodes.append(make("Unsqueeze", [f"index_{k}", "last"], [f"apart_{k}"]))
    nodes += [
        make("Concat", [f"apart_{k}" for k in range(4)], ["indices"], axis=-1),
        make("Reshape", ["updates", "grid"], ["shaped"]),
        make("ScatterND", ["mask", "indices", "shaped"], ["y"]),
    ]
    initializers.append(numpy_helper.from_array(np.array([1]), "one_1"))
    info = helper.make_tensor_value_info
    inputs = [
        info("seen", TensorProto.BOOL, ["batch", "total"]),
        info("rows", TensorProto.FLOAT, ["rows"]),
        info("causal", TensorProto.FLOAT, [1, 1, "rows", "total"]),
        info("some", TensorProto.INT64, [1]),
    ]
    graph = helper.make_graph(nodes, "mask", inputs, [helper.make_empty_tensor_value_info("y")], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize(("end", "goes"), [("total_1", True), ("some", False)])
def test_what_is_all_written_needs_no_indices(end: str, goes: bool) -> None:
    model = masked(end)
    compiled, other = irc.compile(model), onnxruntime_session(model)
    assert ("onnx::ScatterND" not in {node.kind for node in compiled.graph.walk()}) is goes
    random = np.random.default_rng(0)
    for batch, rows, total in [(2, 3, 5), (1, 1, 4), (3, 2, 2), (2, 0, 3), (0, 2, 3), (1, 1, 1), (2, 2, 0)]:
        given = {
            "seen": random.random((batch, total)) < 0.5,
            "rows": np.zeros(rows, np.float32),
            "causal": random.standard_normal((1, 1, rows, total)).astype(np.float32),
            "some": np.array([2]),
        }
        np.testing.assert_array_equal(compiled.run(given)["y"], other.run(None, given)[0])
