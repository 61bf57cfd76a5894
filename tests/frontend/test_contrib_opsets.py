"""Bodies of operators of com.microsoft are written for the operator set of the model, so that it can be exported."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.frontend.onnx_export import export_model
from tests.frontend.contrib import contrib, random
from tests.frontend.helpers import changed

X, ROW = random(0, 2, 3, 8), random(1, 8)
CODES, SIGNED = (np.arange(12, dtype=np.uint8) * 7).reshape(2, 6), (np.arange(18, dtype=np.int8) - 9).reshape(6, 3)


def real(value: float) -> np.ndarray:
    return np.array(value, np.float32)


ONE = {"x": CODES, "a": real(0.1), "p": np.uint8(3), "b": real(0.2), "q": np.uint8(5)}
TWO = {
    **dict(list(ONE.items())[:3]),
    "y": CODES[::-1].copy(),
    "b": real(0.2),
    "q": np.uint8(5),
    "c": real(0.3),
    "r": np.uint8(9),
}
IMAGE = {"x": random(2, 1, 2, 5, 5), "w": random(3, 3, 2, 3, 3), "b": random(4, 3)}

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Gelu": ("Gelu", {"x": X}, {}),
    "BiasGelu": ("BiasGelu", {"x": X, "b": ROW}, {}),
    "FastGelu": ("FastGelu", {"x": X, "b": ROW}, {}),
    "QuickGelu": ("QuickGelu", {"x": X}, {"alpha": 0.5}),
    "BiasAdd": ("BiasAdd", {"x": X, "b": ROW, "s": X}, {}),
    "FusedMatMul": ("FusedMatMul", {"a": random(5, 2, 3, 4), "b": random(6, 2, 5, 4)}, {"transB": 1, "alpha": 0.5}),
    "FusedGemm": (
        "FusedGemm",
        {"a": random(5, 3, 4), "b": random(6, 4, 5), "c": random(7, 5)},
        {"activation": "LeakyRelu", "activation_alpha": 0.1},
    ),
    "FusedGemm without C": ("FusedGemm", {"a": random(5, 3, 4), "b": random(6, 4, 5)}, {"activation": "Relu"}),
    "FusedConv": ("FusedConv", IMAGE, {"activation": "Relu"}),
    "FusedConv with Clip": ("FusedConv", IMAGE, {"activation": "Clip", "activation_params": [-0.5, 0.5]}),
    "FusedConv with HardSigmoid": ("FusedConv", IMAGE, {"activation": "HardSigmoid", "activation_params": [0.2, 0.5]}),
    "SkipLayerNormalization": ("SkipLayerNormalization", {"x": X, "s": X[::-1].copy(), "g": ROW, "b": ROW}, {}),
    "SkipSimplifiedLayerNormalization": ("SkipSimplifiedLayerNormalization", {"x": X, "s": X, "g": ROW}, {}),
    "SimplifiedLayerNormalization": ("SimplifiedLayerNormalization", {"x": X, "g": ROW}, {}),
    "Attention": ("Attention", {"x": X, "w": random(8, 8, 24), "b": random(9, 24)}, {"num_heads": 2}),
    "Attention with a mask": (
        "Attention",
        {"x": X, "w": random(8, 8, 24), "b": random(9, 24), "m": np.array([[1, 1, 0], [1, 1, 1]], np.int32)},
        {"num_heads": 2, "unidirectional": 1},
    ),
    "MultiHeadAttention": ("MultiHeadAttention", {"q": X, "k": X + 1, "v": X - 1}, {"num_heads": 2}),
    "MatMulIntegerToFloat": ("MatMulIntegerToFloat", {"a": CODES, "b": SIGNED, "s": real(0.1), "t": real(0.2)}, {}),
    "DynamicQuantizeMatMul": ("DynamicQuantizeMatMul", {"a": random(5, 2, 6), "b": SIGNED, "s": real([0.1])}, {}),
    "QLinearAdd": ("QLinearAdd", TWO, {}),
    "QLinearMul": ("QLinearMul", TWO, {}),
    "QLinearSigmoid": ("QLinearSigmoid", ONE, {}),
    "QLinearLeakyRelu": ("QLinearLeakyRelu", ONE, {"alpha": 0.1}),
    "QLinearConcat": (
        "QLinearConcat",
        {"b": ONE["b"], "q": ONE["q"], "x": CODES, "a": ONE["a"], "p": ONE["p"]},
        {"axis": 1},
    ),
    "QuantizeLinear": ("QuantizeLinear", {"x": X, "s": real(0.1), "z": np.uint8(3)}, {}),
    "DequantizeLinear": ("DequantizeLinear", {"x": CODES, "s": real(0.1), "z": np.uint8(3)}, {}),
    "MatMulNBits": (
        "MatMulNBits",
        {"a": random(5, 2, 32), "b": np.arange(64, dtype=np.uint8).reshape(4, 1, 16), "s": random(6, 4)},
        {"K": 32, "N": 4, "bits": 4, "block_size": 32},
    ),
}

FROM_7 = {"Gelu", "BiasGelu", "FastGelu", "QuickGelu", "BiasAdd", "FusedMatMul", "FusedGemm", "FusedConv"}
FROM_7 |= {"FusedConv with Clip", "FusedConv with HardSigmoid", "SkipLayerNormalization"}


def pinned(name: str, opset: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of the operator, and of one that means something else from opset 13 on."""
    op_type, arrays, attributes = CASES[name]
    arrays = {key: np.asarray(array) for key, array in arrays.items()}
    proto, feeds = contrib(op_type, arrays, "out", opset=opset, **attributes)
    kind = helper.np_dtype_to_tensor_dtype(
        irc.compile(contrib(op_type, arrays, "out", **attributes)[0]).run(feeds)["out"].dtype
    )

    def add(m: onnx.ModelProto) -> None:
        m.ir_version = 8
        m.graph.output[0].type.tensor_type.elem_type = kind
        m.graph.node.append(helper.make_node("Softmax", ["pin"], ["pinned"], axis=1))
        m.graph.input.append(helper.make_tensor_value_info("pin", TensorProto.FLOAT, [2, 3, 4]))
        m.graph.output.append(helper.make_tensor_value_info("pinned", TensorProto.FLOAT, [2, 3, 4]))

    return changed(proto, add), {**feeds, "pin": random(11, 2, 3, 4)}


@pytest.mark.covering(1)
@pytest.mark.parametrize("opset", [7, 9, 11, 12])
@pytest.mark.parametrize("name", CASES)
def test_models_can_be_written_in_their_operator_set(name: str, opset: int) -> None:
    if opset < 9 and "Gelu" in name and name not in ("QuickGelu", "FastGelu"):
        opset = 9  # Erf, of which Gelu consists
    proto, feeds = pinned(name, opset)
    op_type, arrays, attributes = CASES[name]
    newest, given = contrib(op_type, {k: np.asarray(v) for k, v in arrays.items()}, "out", **attributes)
    expected = irc.compile(newest, "none").run(given)["out"]
    for passes in ("none", "default"):
        compiled = irc.compile(proto, passes)
        written = export_model(compiled.module)
        versions = {entry.domain: entry.version for entry in written.opset_import}
        if opset >= 11 or name in FROM_7:
            assert versions[""] == opset
        else:
            assert versions[""] <= 11
        assert "com.microsoft" not in versions
        for each in (compiled, irc.compile(written)):
            found = each.run(feeds)["out"]
            assert found.dtype == expected.dtype
            if found.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
            else:
                assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


@pytest.mark.parametrize("opset", [11, 12, 16])
def test_normalizations_of_half_precision(opset: int) -> None:
    """Computed in float32, as the operator is, and rounded before the scale."""
    x, scale = random(0, 2, 8).astype(np.float16), np.linspace(0.5, 2, 8).astype(np.float16)
    node = helper.make_node("LayerNormalization", ["x", "s"], ["out"])
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, a.shape) for n, a in (("x", x), ("s", scale))]
    result = helper.make_tensor_value_info("out", TensorProto.FLOAT16, [2, 8])
    imports = [helper.make_opsetid("", opset)]
    proto = helper.make_model(helper.make_graph([node], "g", infos, [result]), opset_imports=imports, ir_version=8)
    if opset < 13:
        pin = helper.make_node("Softmax", ["p"], ["q"], axis=1)
        proto.graph.node.append(pin)
        proto.graph.input.append(helper.make_tensor_value_info("p", TensorProto.FLOAT, [2, 3, 4]))
        proto.graph.output.append(helper.make_tensor_value_info("q", TensorProto.FLOAT, [2, 3, 4]))
    feeds = {"x": x, "s": scale} | ({"p": random(1, 2, 3, 4)} if opset < 13 else {})
    for passes in ("none", "default"):
        compiled = irc.compile(proto, passes)
        written = export_model(compiled.module)
        assert written.opset_import[0].version == opset
        onnx.checker.check_model(written)
        first, second = compiled.run(feeds)["out"], irc.compile(written).run(feeds)["out"]
        np.testing.assert_allclose(first, second, rtol=2e-3, atol=1e-3)


def test_what_a_body_needs_decides_if_the_model_is_too_old() -> None:
    """Rotary positions are an operator of opset 23: without anything else in between, the model is written in that."""
    arrays = {"x": X, "p": np.zeros((2, 3), np.int64), "c": random(1, 9, 2), "s": random(2, 9, 2)}
    proto, feeds = contrib("RotaryEmbedding", arrays, "out", opset=12, num_heads=2)
    written = export_model(irc.compile(proto).module)
    assert written.opset_import[0].version >= 12
    np.testing.assert_allclose(irc.compile(written).run(feeds)["out"], irc.compile(proto).run(feeds)["out"], rtol=1e-5)
