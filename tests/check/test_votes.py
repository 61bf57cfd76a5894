"""Who is blamed where ONNX Runtime and irc differ: whoever stands alone."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import irc
from irc.errors import Error
from irc.ir import Node
from irc.runtime.kernels import registry
from irc.runtime.kernels.registry import Kernel
from irc.tools.check import check_model
from tests.cli.helpers import model, node

Array = np.ndarray[Any, np.dtype[Any]]


def typed(proto: onnx.ModelProto, input: int | None = None, output: int | None = None) -> onnx.ModelProto:
    """``proto`` with other element types of its first input and output."""
    if input is not None:
        proto.graph.input[0].type.tensor_type.elem_type = input
    if output is not None:
        proto.graph.output[0].type.tensor_type.elem_type = output
    return proto


def with_function(nodes: list[onnx.NodeProto], function_opset: int, shape: list[int]) -> onnx.ModelProto:
    """A model of operator set 17 that calls a function of another one."""
    function = helper.make_function("own", "F", ["x"], ["r"], nodes, [helper.make_opsetid("", function_opset)])
    graph = helper.make_graph(
        [helper.make_node("F", ["x"], ["y"], domain="own")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=9)


def parsed(inputs: str, body: str, constants: str = "", opset: int = 17, function: str = "") -> onnx.ModelProto:
    """A model that makes ``y``; ``own.F`` is a function of x, r its result, its operator set before ``:``."""
    head = f'<ir_version: 8, opset_import: ["": {opset}, "own": 1]> g ({inputs}) => (y) <{constants}>'
    called, _, nodes = function.partition(": ")
    function = f'<domain: "own", opset_import: ["": {called}]> F (x) => (r) {{ {nodes} }}' if function else ""
    return onnx.parser.parse_model(f"{head} {{ {body} }} {function}")


NEAREST = 'mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"'
POWER = "b (int64 i, bool c, int64[2] v) => (bool d, int64[2] w) { d = Identity(c) w = Pow(v, e) }"
ROW = "b (int64[2] v) => (int64[2] w) { w = Pow(v, e) }"
BRANCHES = "then_branch = t () => (r) { s = Sigmoid(x) r = Log(s) }, else_branch = e () => (m) { m = Neg(x) }"
TWO = np.array([5_003, -7], np.int64)
OTHERS: dict[str, tuple[onnx.ModelProto, Array]] = {
    "scales that keep the size": (
        parsed("float[1,1,4] x", f"y = Resize<{NEAREST}>(x, , s)", "float[3] s = {1, 1, 1.2}", 13),
        np.arange(4, dtype=np.float32).reshape(1, 1, 4),
    ),
    "sigmoid far out": (
        parsed("float[3] x", "s = Sigmoid(x) y = Cast<to = 9>(s)"),
        np.array([-70, -50, 3], np.float32),
    ),
    "sigmoid far out alone": (parsed("float[3] x", "y = Sigmoid(x)"), np.array([-70, -50, -30], np.float32)),
    "half precision that overflows": (
        parsed("float16[2] x", "a = Add(x, x) y = Sub(a, x)"),
        np.array([40000, 1], np.float16),
    ),
    "LogSoftmax of operator set 11": (
        parsed("float[2,3,4] x", "y = own.F(x)", function="11: r = LogSoftmax<axis = 1>(x)"),
        np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7,
    ),
    "Hardmax of operator set 12 behind another operator": (
        parsed("float[2,3,4] x", "y = own.F(x)", function="12: n = Neg(x) r = Hardmax<axis = 1>(n)"),
        np.cos(np.arange(24, dtype=np.float32)).reshape(2, 3, 4),
    ),
    "integers to a power": (parsed("int64[2] x", "y = Pow(x, e)", "int64 e = {5}"), TWO),
    "integers to a power in a loop": (
        parsed("int64[2] x", f"y = Loop(m, , x) <body = {POWER}>", "int64 e = {5}, int64 m = {1}"),
        TWO,
    ),
    "integers to a power in a scan": (
        parsed("int64[1,2] x", f"y = Scan<num_scan_inputs = 1, body = {ROW}>(x)", "int64 e = {5}"),
        TWO.reshape(1, 2),
    ),
    "the logarithm of a sigmoid in a function": (
        parsed("float[2] x", "y = own.F(x)", function="17: s = Sigmoid(x) r = Log(s)"),
        np.array([-60, 1], np.float32),
    ),
    "the logarithm of a sigmoid in a branch": (
        parsed("float[2] x", f"y = If(c) <{BRANCHES}>", "bool c = {1}"),
        np.array([-60, 1], np.float32),
    ),
    "windows that hold no number": (
        parsed("float[1,1,4] x", "y = MaxPool<kernel_shape = [2]>(x)"),
        np.array([[[1, np.nan, 0, 3]]], np.float32),
    ),
    "negative indices of OneHot 9": (
        parsed("int64[3] x", "y = OneHot(x, d, v)", "int64[1] d = {3}, float[2] v = {0, 1}", 10),
        np.array([-1, 0, 2]),
    ),
}
"""What ONNX Runtime computes otherwise, and inputs that show it."""


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("name", OTHERS)
def test_irc_is_not_blamed_for_what_others_compute_wrong(name: str, passes: str) -> None:
    proto, x = OTHERS[name]
    result = check_model(irc.compile(proto, passes), proto, given={"x": x})
    assert result.oracle == "ONNX Runtime"


def test_the_result_says_who_stood_where() -> None:
    proto, x = OTHERS["integers to a power"]
    (note,) = check_model(irc.compile(proto), proto, given={"x": x}).notes
    assert note == "at %y, of onnx::Pow, ONNX Runtime stands alone: irc and onnx.reference agree"
    proto, x = OTHERS["LogSoftmax of operator set 11"]
    result = check_model(irc.compile(proto), proto, given={"x": x})
    assert "at %y, of own.F, ONNX Runtime stands alone: irc and ONNX Runtime, of its body alone, agree" in str(result)


def test_half_precision_that_is_kept_in_single_is_said_to_be_a_matter_of_rounding() -> None:
    proto, x = OTHERS["half precision that overflows"]
    (note,) = check_model(irc.compile(proto), proto, given={"x": x}).notes
    assert "each operator agrees on equal operands" in note


# -- wrong kernels -----------------------------------------------------------


def wrong(kind: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the kernels of ``kind`` give something else."""
    registry.find_binder(kind, None)  # now it is loaded
    sinces, binders = registry._BINDERS[kind]  # pyright: ignore[reportPrivateUsage]

    def bound(binder: registry.Binder, bound_node: Node) -> Kernel:
        right = binder(bound_node)
        return lambda *inputs: change(right(*inputs))

    changed = [lambda n, b=binder: bound(b, n) for binder in binders]
    monkeypatch.setitem(registry._BINDERS, kind, (sinces, changed))  # pyright: ignore[reportPrivateUsage]


BODY = [node("Erf", "x", "e"), node("Mul", "e e", "r")]
THEN = helper.make_graph(BODY, "t", [], [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)])
ELSE = helper.make_graph(
    [node("Neg", "x", "m")], "e", [], [helper.make_tensor_value_info("m", TensorProto.FLOAT, None)]
)
PLACES: dict[str, onnx.ModelProto] = {
    "at the top": model([*BODY, node("Neg", "r", "y")], {"x": ["n", 3]}, ["y"]),
    "in a function": with_function(BODY, 17, [4, 3]),
    "in a function of an older operator set": with_function(BODY, 13, [4, 3]),
    "in a branch": model(
        [node("If", "c", "y", then_branch=THEN, else_branch=ELSE)], {"x": [4, 3]}, ["y"], {"c": np.array(True)}
    ),
}


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("change", [lambda y: y * np.float32(1.01), lambda y: -y + 1, lambda y: np.flip(y, -1).copy()])
def test_a_wrong_kernel_is_found(
    place: str, change: Callable[[Any], Any], passes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto = PLACES[place]
    check_model(irc.compile(proto, passes), proto)
    wrong("onnx::Erf", change, monkeypatch)
    with pytest.raises(
        Error, match=r"IRC330: .*differs is %e, of onnx::Erf: .*onnx.reference agrees with ONNX Runtime"
    ):
        check_model(irc.compile(proto, passes), proto)


def test_a_wrong_kernel_beside_what_onnx_runtime_computes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    powers = [node("Pow", "x e", "p"), node("Abs", "p", "y")]
    proto = typed(model(powers, {"x": [2]}, ["y"], {"e": np.array(5)}), TensorProto.INT64, TensorProto.INT64)
    x = np.array([5_003, -7], np.int64)
    assert check_model(irc.compile(proto), proto, given={"x": x}).notes
    wrong("onnx::Abs", lambda y: y + 1, monkeypatch)
    with pytest.raises(Error, match="differs is %y, of onnx::Abs"):
        check_model(irc.compile(proto, "none"), proto, given={"x": x})


def test_without_a_third_party_irc_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators of ONNX Runtime are what it computes."""
    text = '<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]> g (float[n, 4] x) => (float[n, 4] y)'
    proto = onnx.parser.parse_model(f"{text} {{ t = com.microsoft.QuickGelu<alpha=1.702>(x) y = Neg(t) }}")
    check_model(irc.compile(proto), proto)
    wrong("onnx::Sigmoid", lambda y: y * np.float32(1.5), monkeypatch)
    with pytest.raises(Error, match=r"IRC330.*com.microsoft.QuickGelu.*nobody else could decide"):
        check_model(irc.compile(proto, "none"), proto)


# -- operators that round inside ----------------------------------------------


def quantised_lstm(
    steps: int, samples: int = 1, hidden: int = 128, scale: float = 0.02
) -> tuple[onnx.ModelProto, Array]:
    """A recurrent layer that quantises its states: with large weights, its last digits decide where it goes."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.integers(0, 255, (1, 8, 4 * hidden)).astype(np.uint8),
        "r": rng.integers(0, 255, (1, hidden, 4 * hidden)).astype(np.uint8),
        "ws": np.full(1, 0.02, np.float32),
        "wz": np.full(1, 128, np.uint8),
        "rs": np.full(1, scale, np.float32),
        "rz": np.full(1, 128, np.uint8),
    }
    names = ["x", "w", "r", *[""] * 5, "ws", "wz", "rs", "rz"]
    layer = helper.make_node("DynamicQuantizeLSTM", names, ["y", "h", "c"], domain="com.microsoft", hidden_size=hidden)
    proto = model([layer], {"x": [steps, samples, 8]}, ["y", "h", "c"], weights)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto, rng.standard_normal((steps, samples, 8)).astype(np.float32)


@pytest.mark.parametrize(("samples", "scale"), [(8, 0.01), (8, 0.04), (16, 0.02)])
def test_what_last_digits_decide_is_nobody_s_fault(samples: int, scale: float) -> None:
    """Whether a state is rounded up or down depends on the processor; what follows may be anything."""
    proto, x = quantised_lstm(80, samples, 64, scale)
    for note in check_model(irc.compile(proto), proto, given={"x": x}).notes:
        told = "of com.microsoft.DynamicQuantizeLSTM, last digits of operands change results as much as irc and"
        assert told in note


def test_the_same_operator_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    proto, x = quantised_lstm(2)
    assert not check_model(irc.compile(proto), proto, given={"x": x}).notes

    def larger(made: Any) -> Any:
        return tuple(map(larger, made)) if isinstance(made, tuple) else made * np.float32(1.1)

    wrong("com.microsoft::DynamicQuantizeLSTM", larger, monkeypatch)
    with pytest.raises(Error, match=r"IRC330.*DynamicQuantizeLSTM.*nobody else could decide"):
        check_model(irc.compile(proto), proto, given={"x": x})


# -- without ONNX Runtime -----------------------------------------------------


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("place", ["at the top", "in a function", "in a branch"])
def test_a_wrong_kernel_is_found_by_onnx_reference_alone(
    place: str, passes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # an import of it fails
    proto = PLACES[place]
    assert check_model(irc.compile(proto, passes), proto).oracle == "onnx.reference"
    wrong("onnx::Erf", lambda y: y * np.float32(1.01), monkeypatch)
    told = r"IRC330.*compared with onnx.reference; .*differs is %e, of onnx::Erf: .*nobody else could decide"
    with pytest.raises(Error, match=told):
        check_model(irc.compile(proto, passes), proto)


def test_what_no_oracle_computes_alone_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = PLACES["at the top"]
    wrong("onnx::Erf", lambda y: y * np.float32(1.01), monkeypatch)
    monkeypatch.setattr("irc.tools.check.votes.nodes_apart", lambda *_, **__: None)
    with pytest.raises(Error, match=r"IRC330.*differs is %e, of onnx::Erf.*nobody else could decide"):
        check_model(irc.compile(proto), proto)


def test_branches_that_do_not_fit_and_are_not_taken_do_not_matter() -> None:
    """ONNX Runtime refuses the If alone if it knows the sizes; the power beside it must not be irc's fault then."""
    then = helper.make_graph([node("Squeeze", "x axes", "t")], "t", [], [onnx.ValueInfoProto(name="t")])
    other = helper.make_graph([node("Neg", "x", "u")], "e", [], [onnx.ValueInfoProto(name="u")])
    nodes = [node("If", "c", "z", then_branch=then, else_branch=other), node("Pow", "z e", "y")]
    weights = {"c": np.array(False), "e": np.array(5), "axes": np.array([0])}
    proto = typed(model(nodes, {"x": ["n"]}, ["y"], weights), TensorProto.INT64, TensorProto.INT64)
    (note,) = check_model(irc.compile(proto), proto, given={"x": np.array([5_003, -7], np.int64)}).notes
    assert "at %y, of onnx::Pow, ONNX Runtime stands alone" in note
