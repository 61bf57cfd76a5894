"""Products of unsigned bytes with signed ones: ONNX Runtime is asked where the processor adds them exactly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, numpy_helper

import irc
from irc.errors import Error
from irc.tools.check import check_model, peers

OF_BYTES = {
    "MatMulInteger": "MatMulInteger(a, b, az, bz)",
    "MatMulInteger without zero points": "MatMulInteger(a, b)",
    "MatMulInteger by column": "MatMulInteger(a, b, az, bzs)",
    "ConvInteger": "ConvInteger(x, w, az, bz)",
    "ConvInteger without zero points": "ConvInteger(x, w)",
    "ConvInteger of signed images": "ConvInteger<pads=[1, 1, 1, 1]>(w, x, bz, az)",
    "QLinearMatMul": "QLinearMatMul(a, s, az, b, s, bz, t, az)",
    "QLinearMatMul by column": "QLinearMatMul(a, s, az, b, ss, bzs, t, az)",
    "QLinearConv": "QLinearConv(x, s, az, w, s, bz, t, az)",
    "QLinearConv by channel": "QLinearConv<pads=[1, 0, 1, 2]>(x, s, az, w, ss, same, t, az)",
    "QLinearConv that is biased": "QLinearConv(x, s, az, w, s, bz, t, az, bias)",
    "QLinearConv of channels last": "com.microsoft.QLinearConv<channels_last=1>(last, s, az, w, s, bz, t, az)",
    "QGemm": "com.microsoft.QGemm(a, s, az, b, s, bz, bias, t, az)",
    "QGemm to floats": "com.microsoft.QGemm(a, s, az, b, s, bz)",
    "DynamicQuantizeMatMul": "com.microsoft.DynamicQuantizeMatMul(f, b, s, bz)",
    "DynamicQuantizeMatMul without zero point": "com.microsoft.DynamicQuantizeMatMul(f, b, s)",
    "DynamicQuantizeMatMul by column": "com.microsoft.DynamicQuantizeMatMul(f, b, ss, bzs)",
    "MatMulIntegerToFloat": "com.microsoft.MatMulIntegerToFloat(a, b, s, s, az, bz)",
    "MatMulIntegerToFloat without zero points": "com.microsoft.MatMulIntegerToFloat(a, b, s, s)",
    "QAttention": "com.microsoft.QAttention<num_heads=2>(r, wide, biases, tiny, tiny, , az, bz)",
    "QAttention without zero points": "com.microsoft.QAttention<num_heads=2>(r, wide, biases, tiny, tiny)",
}
"""Uses of operators that multiply unsigned bytes by signed ones."""

WRAPPED = {
    "at the top": "y = {use}",
    "in a branch": "y = If(yes) <then_branch = t () => (u) {{ u = {use} }}, else_branch = e () => (v) {{ v = {use} }}>",
    "of what was computed": "copy = Identity(b) y = MatMulInteger(a, copy)",
    "in a function": "y = own.F(a, b)",
}
"""Where such a product may be."""


def numbers(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    """Many large ones, sums of two of which, multiplied, are beyond 16 bits."""
    info = np.iinfo(dtype)
    return np.random.default_rng(len(shape)).choice([info.min, info.max, info.max - 1], shape).astype(dtype)


ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "a": numbers(np.uint8, 3, 40),
    "b": numbers(np.int8, 40, 4),
    "x": numbers(np.uint8, 4, 6, 5, 5),
    "last": numbers(np.uint8, 2, 5, 5, 6),
    "w": numbers(np.int8, 4, 6, 3, 3),
    "r": numbers(np.uint8, 2, 3, 8),
    "wide": numbers(np.int8, 8, 24),
    "f": np.linspace(-2, 9, 120, dtype=np.float32).reshape(3, 40),
}
SMALL: dict[str, np.ndarray[Any, Any]] = {
    "az": np.array(3, np.uint8),
    "bz": np.array(-5, np.int8),
    "bzs": np.array([-128, -1, 0, 127], np.int8),
    "same": np.full(4, 2, np.int8),
    "s": np.array(0.01, np.float32),
    "ss": np.array([0.01, 0.02, 0.03, 0.04], np.float32),
    "t": np.array(1.5, np.float32),
    "tiny": np.array(1 / 512, np.float32),
    "bias": np.array([-30, 0, 20, 1000], np.int32),
    "biases": np.linspace(-1, 1, 24, dtype=np.float32),
    "yes": np.array(True),
}
FUNCTION = '<domain: "own", opset_import: ["" : 21]> F (p, q) => (r) { r = MatMulInteger(p, q) }'


def model(body: str, constants: str = "", arrays: dict[str, np.ndarray[Any, Any]] = ARRAYS) -> onnx.ModelProto:
    """A model whose inputs are those of `ARRAYS` that ``body`` reads, but for ``constants``."""
    versions = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1, "own" : 1]>'
    functions = FUNCTION if "own.F" in body else ""
    proto = onnx.parser.parse_model(f"{versions} g () => (y) {{ {body} }} {functions}")
    read = {name for graph in _graphs(proto.graph) for node in graph.node for name in node.input}
    kept = SMALL | {name: arrays[name] for name in constants.split()}
    for name in sorted(read & arrays.keys() - kept.keys()):
        dtype = onnx.helper.np_dtype_to_tensor_dtype(arrays[name].dtype)
        proto.graph.input.append(onnx.helper.make_tensor_value_info(name, dtype, arrays[name].shape))
    proto.graph.initializer.extend(numpy_helper.from_array(kept[name], name) for name in sorted(read & kept.keys()))
    return proto


def given(proto: onnx.ModelProto) -> dict[str, np.ndarray[Any, Any]]:
    return {info.name: ARRAYS[info.name] for info in proto.graph.input}


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


@pytest.mark.parametrize("constants", ["", "b w wide"])
@pytest.mark.parametrize("use", OF_BYTES)
def test_operators_agree(use: str, constants: str) -> None:
    proto = model(f"y = {OF_BYTES[use]}", constants)
    result = check_model(irc.compile(proto), proto, given=given(proto))
    assert (result.oracle == "ONNX Runtime") is not peers.saturates(), result.unable


@pytest.mark.parametrize("where", WRAPPED)
def test_products_agree_wherever_they_are(where: str) -> None:
    proto = model(WRAPPED[where].format(use=OF_BYTES["MatMulInteger"]))
    assert check_model(irc.compile(proto), proto, given=given(proto)).error == 0


@pytest.mark.parametrize("body", WRAPPED.values())
def test_it_is_not_asked_where_products_saturate(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "saturates", lambda: True)
    proto = model(body.format(use=OF_BYTES["MatMulInteger"]))
    peers.exact_onnxruntime(model("y = Relu(f)"), "")
    with pytest.raises(peers.Unable, match="products of bytes may saturate"):
        peers.exact_onnxruntime(proto, "")


def test_weights_in_files(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    proto = model("shape = Shape(b) c = Reshape(b, shape) y = MatMulInteger(a, c, az, bz)", "b")
    onnx.save_model(proto, str(path), save_as_external_data=True, size_threshold=0, location="w.bin")
    check_model(irc.compile(path), path, given=given(proto))


def test_what_is_wrong_is_found() -> None:
    body = "p = MatMulInteger(a, b, az, bz) q = Cast<to=1>(p) y = Relu(q)"
    other = {**ARRAYS, "b": np.where(np.eye(40, 4, dtype=bool), np.int8(0), ARRAYS["b"])}
    with pytest.raises(Error, match="first value that differs is %p, of onnx::MatMulInteger"):
        check_model(irc.compile(model(body, "b", other)), model(body, "b"), given={"a": ARRAYS["a"]})
