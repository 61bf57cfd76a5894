"""Masks that exporters write by the index of each element: where that is all of a mask, no indices are made."""

from functools import partial, reduce

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import irc
from irc.tools.check.peers import onnxruntime_session
from tests.models import Nodes, onnx_model


def masked(end: str) -> onnx.ModelProto:
    """``mask[:, :, :, :end] = where(seen, lowest, mask[:, :, :, :end])``, as tracers spell it out."""
    constants = {"zero": 0, "one": 1, "two": 2, "three": 3, "none": [0], "last": [-1], "at": [3], "ones": [1] * 4}
    constants |= {"minus": [-1] * 4, "middle": [1, 2], "one_1": [1]}
    constants |= {f"tall_{k}": [-1] + [1] * (3 - k) for k in range(3)}
    make = Nodes()
    sizes = make("Shape", "seen")
    batch = make("Unsqueeze", make("Gather", sizes, "zero"), "none")
    total = make("Unsqueeze", make("Gather", sizes, "one"), "none", output="total_1")
    mask = make("Expand", "causal", make("Concat", batch, "one_1", make("Shape", "rows"), total, axis=0))
    part = make("Slice", mask, "none", end, "at")
    seen = make("Slice", make("Unsqueeze", "seen", "middle"), "none", end, "at")
    updates = make("Expand", make("Where", seen, "lowest", part), make("Shape", part))
    sizes = make("Shape", mask)
    lines = [make("Range", "zero", make("Gather", sizes, axis), "one") for axis in ("zero", "one", "two", "three")]
    columns = [make("Reshape", line, f"tall_{k}") for k, line in enumerate(lines[:3])]
    columns.append(make("Slice", lines[3], "none", end, "none"))
    grid = make("Shape", reduce(partial(make, "Add"), columns))
    wide = make("Where", make("Equal", grid, "minus"), "ones", grid)
    apart = [make("Unsqueeze", make("Expand", column, wide), "last") for column in columns]
    make("ScatterND", mask, make("Concat", *apart, axis=-1), make("Reshape", updates, grid), output="y")
    inputs = {
        "seen": (TensorProto.BOOL, ["batch", "total"]),
        "rows": ["rows"],
        "causal": [1, 1, "rows", "total"],
        "some": (TensorProto.INT64, [1]),
    }
    weights = {name: np.array(value, np.int64) for name, value in constants.items()}
    return onnx_model(make, inputs, weights=weights | {"lowest": np.array(-1e30, np.float32)}, opset=18)


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
