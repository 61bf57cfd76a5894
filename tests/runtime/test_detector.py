"""A detector's head: boxes are decoded, the best kept (NonMaxSuppression), each of them treated in a Loop."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.tools.check.peers import onnxruntime_session

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def head() -> onnx.ModelProto:
    """Inputs: offsets [images, n, 4] from anchors [n, 4], logits [images, n, classes].

    Outputs: for each box kept its corners, score and class; the sum of all areas; how many there are.
    """
    n = helper.make_node
    body = helper.make_graph(
        [
            n("Identity", ["go"], ["on"]),
            n("Gather", ["chosen", "i"], ["triple"], axis=0),
            n("Split", ["triple"], ["image", "class", "box"], axis=0, num_outputs=3),
            n("Concat", ["image", "box"], ["where_box"], axis=0),
            n("GatherND", ["corners", "where_box"], ["corner"]),
            n("GatherND", ["scores", "triple"], ["score"]),
            n("Slice", ["corner", "zero", "two", "zero"], ["low"]),
            n("Slice", ["corner", "two", "four", "zero"], ["high"]),
            n("Sub", ["high", "low"], ["sides"]),
            n("ReduceProd", ["sides"], ["area"], keepdims=0),
            n("Add", ["total", "area"], ["total_next"]),
            n("Unsqueeze", ["score", "zero"], ["score_row"]),
            n("Cast", ["class"], ["class_row"], to=FLOAT),
            n("Concat", ["corner", "score_row", "class_row"], ["row"], axis=0),
        ],
        "each",
        [
            helper.make_tensor_value_info("i", INT, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("total", FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("total_next", FLOAT, []),
            helper.make_tensor_value_info("row", FLOAT, [6]),
        ],
    )
    nodes = [
        n("Split", ["offsets"], ["shift", "stretch"], axis=2, num_outputs=2),
        n("Split", ["anchors"], ["centre", "size"], axis=1, num_outputs=2),
        n("Mul", ["shift", "size"], ["moved"]),
        n("Add", ["centre", "moved"], ["middle"]),
        n("Exp", ["stretch"], ["factor"]),
        n("Mul", ["size", "factor"], ["extent"]),
        n("Mul", ["extent", "half"], ["reach"]),
        n("Sub", ["middle", "reach"], ["lower"]),
        n("Add", ["middle", "reach"], ["upper"]),
        n("Concat", ["lower", "upper"], ["corners"], axis=2),
        n("Sigmoid", ["logits"], ["probabilities"]),
        n("Transpose", ["probabilities"], ["scores"], perm=[0, 2, 1]),
        n("NonMaxSuppression", ["corners", "scores", "most", "overlap", "least"], ["chosen"]),
        n("Shape", ["chosen"], ["chosen_shape"], end=1),
        n("Squeeze", ["chosen_shape", "zero"], ["count"]),
        n("Loop", ["count", "", "nothing"], ["area_sum", "found"], body=body),
    ]
    weights = {
        "half": np.float32(0.5),
        "most": np.array([4]),
        "overlap": np.float32([0.4]),
        "least": np.float32([0.55]),
        "nothing": np.float32(0),
        "zero": np.array([0]),
        "two": np.array([2]),
        "four": np.array([4]),
    }
    graph = helper.make_graph(
        nodes,
        "head",
        [
            helper.make_tensor_value_info("offsets", FLOAT, ["images", "boxes", 4]),
            helper.make_tensor_value_info("logits", FLOAT, ["images", "boxes", "classes"]),
            helper.make_tensor_value_info("anchors", FLOAT, ["boxes", 4]),
        ],
        [
            helper.make_tensor_value_info("found", FLOAT, ["m", 6]),
            helper.make_tensor_value_info("area_sum", FLOAT, []),
            helper.make_tensor_value_info("count", INT, []),
        ],
        [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def inputs(images: int, boxes: int, classes: int, seed: int, bias: float = 0.0) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    anchors = np.concatenate((rng.uniform(0, 10, (boxes, 2)), rng.uniform(1, 4, (boxes, 2))), 1)
    return {
        "offsets": rng.normal(size=(images, boxes, 4)).astype(np.float32) * np.float32(0.3),
        "logits": (rng.normal(size=(images, boxes, classes)) * 2 + bias).astype(np.float32),
        "anchors": anchors.astype(np.float32),
    }


@pytest.mark.parametrize("passes", ["default", "none"])
def test_a_detector_is_right_for_several_shapes(passes: str) -> None:
    model = head()
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime_session(model)
    compiled = irc.compile(model, passes)
    counts: list[int] = []
    for seed, (images, boxes, classes) in enumerate([(1, 20, 3), (2, 50, 4), (3, 7, 1), (1, 200, 10), (2, 1, 2)]):
        feeds = inputs(images, boxes, classes, seed)
        expected = dict(zip(("found", "area_sum", "count"), session.run(["found", "area_sum", "count"], feeds)))
        found = compiled.run(feeds, limits=irc.Limits(steps=100_000, bytes=1 << 24, seconds=600))
        assert found["count"] == expected["count"]
        np.testing.assert_allclose(found["found"], expected["found"], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found["area_sum"], expected["area_sum"], rtol=1e-4)
        counts.append(int(found["count"]))
    assert len(set(counts)) > 2
