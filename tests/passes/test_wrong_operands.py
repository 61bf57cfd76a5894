"""Nodes whose operands or attributes make no sense are no identities: every pipeline refuses them."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.errors import Error

IMAGE = np.zeros((2, 3), np.float32)


def model(
    op: str, inputs: dict[str, Any], shape: list[int] | None = None, version: int = 13, **attributes: Any
) -> onnx.ModelProto:
    """A node on ``x`` (of any rank unless ``shape`` is given), of constants, and of inputs of any shape (None)."""
    declared = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)] if "x" in inputs else []
    declared += [
        helper.make_tensor_value_info(name, TensorProto.INT64, None)
        for name, value in inputs.items()
        if value is None and name != "x"
    ]
    constants = [numpy_helper.from_array(np.array(v), name) for name, v in inputs.items() if v is not None]
    node = helper.make_node(op, list(inputs), ["y"], **attributes)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", declared, [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def of_two(*values: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.float32))


X: dict[str, Any] = {"x": None}
WRONG: dict[str, tuple[onnx.ModelProto, dict[str, Any]]] = {
    "perm with a negative number": (model("Transpose", X, perm=[-1, 0]), {}),
    "perm with a gap": (model("Transpose", X, perm=[0, 2]), {}),
    "perm that repeats": (model("Transpose", X, perm=[0, 0]), {}),
    "two training modes": (model("Dropout", X | {"r": np.float32(0.5), "t": [False, True]}, [2, 3]), {}),
    "two training modes that say no": (model("Dropout", X | {"r": np.float32(0.5), "t": [False, False]}, [2, 3]), {}),
    "two values": (model("ConstantOfShape", {"s": [2, 3]}, value=of_two(1, 2)), {}),
    "two equal values": (model("ConstantOfShape", {"s": [2, 3]}, value=of_two(1, 1)), {}),
    "no value": (model("ConstantOfShape", {"s": [2, 3]}, value=of_two()), {}),
    "no pads": (model("Pad", X | {"p": np.zeros(0, np.int64)}), {}),
    "pads for other axes": (
        model("Pad", X | {"p": np.zeros(2, np.int64), "v": np.float32(0), "a": None}, [2, 3], 18),
        {"a": np.array([0, 1])},
    ),
    "a slice of a scalar": (
        model("Slice", X | {"s": None, "e": None}, []),
        {"x": np.float32(1), "s": np.array([0]), "e": np.array([1])},
    ),
}


@pytest.mark.parametrize("passes", ["none", "constant-fold", "canonicalize", "default"])
@pytest.mark.parametrize("what", WRONG)
def test_what_makes_no_sense_is_refused(what: str, passes: str) -> None:
    proto, feeds = WRONG[what]
    given = {"x": IMAGE} if any(v.name == "x" for v in proto.graph.input) else {}
    with pytest.raises(Error) as caught:
        irc.compile(proto, passes).run(given | feeds)
    assert caught.value.code in ("IRC310", "IRC320", "IRC420", "IRC421")
