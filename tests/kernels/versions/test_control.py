"""Versions of control flow: what blocks may carry grew from tensors to sequences (If 11, Loop 13) and optionals (16),
and Scan lost its batch axis (9)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from tests.kernels.helpers import assert_same
from tests.kernels.versions.rows import covers, floats, ints, type_of, versions_of

node = helper.make_node


def tensor(name: str, value: np.ndarray) -> onnx.NodeProto:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))


def block(nodes: Sequence[onnx.NodeProto], outputs: str, inputs: Mapping[str, Any] | None = None) -> onnx.GraphProto:
    """A block; ``inputs`` are name -> an example of the value, or None where nothing is said of its type."""
    given = [
        onnx.ValueInfoProto(name=n) if x is None else helper.make_value_info(n, type_of(x))
        for n, x in (inputs or {}).items()
    ]
    return helper.make_graph(list(nodes), "b", given, [onnx.ValueInfoProto(name=n) for n in outputs.split()])


def run(op: str, version: int, nodes: Sequence[onnx.NodeProto], feeds: Mapping[str, Any], *outputs: str) -> list[Any]:
    """The outputs by irc at the first and the last opset of the version, without passes and with the default ones."""
    opsets = versions_of(op)[version]
    graph = block(nodes, " ".join(outputs), feeds)
    found: list[list[Any]] = []
    for opset, passes in ((opsets[0], "none"), (opsets[-1], "default")):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        found.append(list(irc.compile(model, passes=passes).run(dict(feeds)).values()))
    assert_same(found[0], found[1])
    return found[0]


YES, NO = np.array(True), np.array(False)
X = floats(2, 3)


@covers("If")
def test_if(version: int) -> None:
    """A branch may give a shape that the other does not, and use what is outside."""
    nodes = [
        node(
            "If",
            ["c"],
            ["y", "z"],
            then_branch=block([node("Neg", ["x"], ["a"]), node("Identity", ["x"], ["b"])], "a b"),
            else_branch=block([node("ReduceMax", ["x"], ["a"], keepdims=0), node("Abs", ["x"], ["b"])], "a b"),
        )
    ]
    assert_same(run("If", version, nodes, {"c": YES, "x": X}, "y", "z"), [-X, X])
    assert_same(run("If", version, nodes, {"c": NO, "x": X}, "y", "z"), [X.max(), np.abs(X)])


@pytest.mark.parametrize("version", [v for v in versions_of("If") if v >= 11])
def test_if_with_sequences(version: int) -> None:
    nodes = [
        node(
            "If",
            ["c"],
            ["y"],
            then_branch=block([node("SequenceConstruct", ["x", "x"], ["s"])], "s"),
            else_branch=block([node("SequenceConstruct", ["x"], ["s"])], "s"),
        )
    ]
    for condition, length in ((YES, 2), (NO, 1)):
        assert_same(run("If", version, nodes, {"c": condition, "x": X}, "y"), [[X] * length])


def loop(body: onnx.GraphProto, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
    return node("Loop", inputs, outputs, body=body)


@covers("Loop")
def test_loop(version: int) -> None:
    """A carried value, what is scanned out, a trip count, and a condition that ends it earlier."""
    body = block(
        [
            tensor("five", np.array(5.0, np.float32)),
            node("Mul", ["v", "x"], ["w"]),
            node("Less", ["w", "five"], ["again"]),
            node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        ],
        "again w f",
        {"i": np.array(0), "more": YES, "v": np.array(0, np.float32)},
    )
    body.output[2].type.tensor_type.elem_type = TensorProto.FLOAT  # for loops that make no iteration
    nodes = [loop(body, ["n", "c", "start"], ["last", "steps"])]
    start, x = np.array(1, np.float32), np.array(2, np.float32)

    def given(n: int, c: np.ndarray) -> dict[str, Any]:
        return {"n": np.array(n), "c": c, "start": start, "x": x}

    cases = ((2, YES, 4, [0, 1]), (9, YES, 8, [0, 1, 2]), (0, YES, 1, []), (9, NO, 1, []))
    for n, c, last, steps in cases:
        expected = [np.array(last, np.float32), np.array(steps, np.float32)]
        assert_same(run("Loop", version, nodes, given(n, c), "last", "steps"), expected)


@covers("Loop")
def test_loop_without_bounds(version: int) -> None:
    """No trip count: the condition alone ends it. No condition: the trip count does."""
    body = block(
        [tensor("nine", np.array(9)), node("Add", ["v", "v"], ["w"]), node("Cast", ["w"], ["g"], to=TensorProto.FLOAT),
         node("Cast", ["nine"], ["h"], to=TensorProto.FLOAT), node("Less", ["g", "h"], ["again"])],
        "again w",
        {"i": np.array(0), "more": YES, "v": np.array(0)},
    )  # fmt: skip
    assert_same(
        run("Loop", version, [loop(body, ["", "c", "s"], ["y"])], {"c": YES, "s": np.array(1)}, "y"), [np.array(16)]
    )
    endless = block(
        [node("Identity", ["more"], ["again"]), node("Add", ["v", "v"], ["w"])],
        "again w",
        {"i": np.array(0), "more": YES, "v": np.array(0)},
    )
    given = {"n": np.array(3), "s": np.array(1)}
    assert_same(run("Loop", version, [loop(endless, ["n", "", "s"], ["y"])], given, "y"), [np.array(8)])


@pytest.mark.parametrize("version", [v for v in versions_of("Loop") if v >= 13])
def test_loop_over_sequences(version: int) -> None:
    body = block(
        [node("Identity", ["more"], ["again"]), node("SequenceInsert", ["s", "x"], ["t"])],
        "again t",
        {"i": np.array(0), "more": YES, "s": [X]},
    )
    nodes = [loop(body, ["n", "", "start"], ["y"])]
    assert_same(run("Loop", version, nodes, {"n": np.array(2), "start": [-X], "x": X}, "y"), [[-X, X, X]])


def summing(version: int, **attributes: Any) -> onnx.NodeProto:
    """The running sums of the rows that are scanned, and the last one."""
    body = block(
        [node("Add", ["sum", "row"], ["next"]), node("Identity", ["next"], ["out"])],
        "next out",
        {"sum": X[0], "row": X[0]},
    )
    inputs = ["", "s", "x"] if version == 8 else ["s", "x"]
    return node("Scan", inputs, ["last", "all"], body=body, num_scan_inputs=1, **attributes)


@covers("Scan")
def test_scan(version: int) -> None:
    start, rows = floats(3, seed=1), floats(4, 3, seed=2)
    sums = start + np.cumsum(rows, 0, dtype=np.float32)
    found = [sums[-1], sums]
    feeds = {"s": start, "x": rows}
    if version == 8:  # everything has a batch axis in front
        feeds, found = {k: v[None] for k, v in feeds.items()}, [v[None] for v in found]
    assert_same(run("Scan", version, [summing(version)], feeds, "last", "all"), found)


@pytest.mark.parametrize("version", [v for v in versions_of("Scan") if v >= 9])
def test_scan_axes_and_directions(version: int) -> None:
    start, columns = floats(3, seed=1), floats(3, 4, seed=2)
    sums = start[:, None] + np.cumsum(columns[:, ::-1], 1, dtype=np.float32)
    axis = 1 if version == 9 else -1
    attributes = {"scan_input_axes": [axis], "scan_output_axes": [1], "scan_input_directions": [1]}
    scan = summing(version, **attributes, scan_output_directions=[1])
    found = run("Scan", version, [scan], {"s": start, "x": columns}, "last", "all")
    assert_same(found, [sums[:, -1].copy(), sums[:, ::-1].copy()])


def test_scan_8_over_batches_of_several_lengths() -> None:
    start, rows, lengths = floats(2, 3, seed=1), floats(2, 4, 3, seed=2), ints(4, 2)
    scan = summing(8)
    scan.input[0] = "n"
    found = run("Scan", 8, [scan], {"n": lengths, "s": start, "x": rows}, "last", "all")
    sums = start[:, None] + np.cumsum(rows, 1, dtype=np.float32)
    sums[1, 2:] = 0
    assert_same(found, [np.stack([sums[0, 3], sums[1, 1]]), sums])


@pytest.mark.parametrize("version", versions_of("SequenceMap"))
def test_sequence_map(version: int) -> None:
    mapped = node("SequenceMap", ["s", "t"], ["y"], body=block([node("Add", ["a", "b"], ["c"])], "c", {"a": X, "b": X}))
    assert_same(run("SequenceMap", version, [mapped], {"s": [X, -X], "t": X}, "y"), [[X + X, X - X]])
