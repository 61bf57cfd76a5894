"""``irc run --max-steps``, ``--max-bytes`` and ``--max-seconds``."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.helpers import Command, node


def endless() -> onnx.ModelProto:
    """As many iterations as are asked for, each doubling x."""
    body = helper.make_graph(
        [node("Identity", "go", "on"), node("Add", "x x", "y", name="double")],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["m", "", "x0"], ["z"], body=body)],
        "g",
        [
            helper.make_tensor_value_info("m", TensorProto.INT64, []),
            helper.make_tensor_value_info("x0", TensorProto.FLOAT, ["n"]),
        ],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [("--max-steps", "1000", "IRC441"), ("--max-bytes", "1K", "IRC442"), ("--max-seconds", "0.1", "IRC443")],
)
def test_a_limit_ends_the_run(irc: Command, option: str, value: str, code: str) -> None:
    irc.write("m.onnx", endless())
    irc.write("m.npy", np.array(2**62))
    irc.write("x.npy", np.ones(1000, np.float32))
    result = irc("run", "m.onnx", "-i", "m=m.npy", "-i", "x0=x.npy", option, value)
    assert result.status == 1
    assert result.out == ""
    assert result.err.startswith(f"irc: {code}")
    assert option in result.err


def test_a_run_within_its_limits(irc: Command) -> None:
    irc.write("m.onnx", endless())
    irc.write("m.npy", np.array(2))
    limits = ["--max-steps", "100", "--max-bytes", "1M", "--max-seconds", "60.5"]
    result = irc("run", "m.onnx", "-i", "m=m.npy", "--seed", "0", "--dim", "n=3", *limits)
    assert (result.status, result.out[:14]) == (0, "z: float32 [3]"), result


@pytest.mark.parametrize(
    "wrong", "steps=0 steps=x bytes=1X bytes= bytes=K bytes=-1 seconds=0 seconds=nan seconds=inf seconds=soon".split()
)
def test_limits_that_are_none(irc: Command, wrong: str) -> None:
    irc.write("m.onnx", endless())
    result = irc("run", "m.onnx", f"--max-{wrong}")
    assert result.status == 2
    assert "expected a" in result.err
