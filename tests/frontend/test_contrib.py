"""Operators of com.microsoft, which ONNX Runtime's optimisers put into models: layers."""

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import irc
from irc.frontend.onnx import import_model
from irc.frontend.onnx.contrib import ROWS
from tests.frontend.contrib import check, contrib, random
from tests.frontend.helpers import refused


def gelu(x: np.ndarray) -> np.ndarray:
    return (x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2).astype(x.dtype)


def fast_gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


X, BIAS = random(0, 2, 3, 8), random(1, 8)
A, B = random(2, 2, 3, 4), random(3, 2, 4, 5)


@pytest.mark.parametrize(
    ("op_type", "arrays", "attributes", "expected"),
    [
        ("Gelu", {"x": X}, {}, gelu(X)),
        ("BiasGelu", {"x": X, "b": BIAS}, {}, gelu(X + BIAS)),
        ("FastGelu", {"x": X}, {}, fast_gelu(X)),
        ("FastGelu", {"x": X, "b": BIAS}, {}, fast_gelu(X + BIAS)),
        ("QuickGelu", {"x": X}, {}, X / (1 + np.exp(np.float32(-1.702) * X))),
        ("QuickGelu", {"x": X}, {"alpha": 0.5}, X / (1 + np.exp(np.float32(-0.5) * X))),
        ("BiasAdd", {"x": X, "b": BIAS, "s": X}, {}, X + BIAS + X),
        ("FusedMatMul", {"a": A, "b": B}, {"alpha": 0.5}, A @ B / 2),
        ("FusedMatMul", {"a": A.swapaxes(1, 2).copy(), "b": B}, {"transA": 1}, A @ B),
        ("FusedMatMul", {"a": A, "b": B.swapaxes(1, 2).copy()}, {"transB": 1}, A @ B),
        ("FusedMatMul", {"a": A.swapaxes(0, 1).copy(), "b": B}, {"transBatchA": 1}, A @ B),
        ("FusedMatMul", {"a": A, "b": B.transpose(2, 0, 1).copy()}, {"transBatchB": 1, "transB": 1}, A @ B),
        ("FusedMatMul", {"a": A, "b": B[0, :, 0].copy()}, {"transB": 1, "transBatchB": 1}, A @ B[0, :, 0]),
        ("FusedMatMul", {"a": A[0, 0], "b": B[0].T.copy()}, {"transA": 1, "transB": 1}, A[0, 0] @ B[0]),
        ("TransposeMatMul", {"a": A, "b": B.swapaxes(1, 2).copy()}, {"transB": 1, "alpha": 2.0}, A @ B * 2),
        ("FusedGemm", {"a": A[0], "b": B[0]}, {"activation": "Relu", "alpha": 0.5}, np.maximum(A[0] @ B[0] / 2, 0)),
        (
            "FusedGemm",
            {"a": A[0], "b": B[0], "c": BIAS[:5]},
            {"activation": "LeakyRelu", "activation_alpha": 0.5, "beta": 2.0},
            np.where((y := A[0] @ B[0] + 2 * BIAS[:5]) > 0, y, y / 2),
        ),
        (
            "FusedConv",
            {"x": random(4, 1, 2, 4, 4), "w": np.ones((2, 1, 1, 1), np.float32), "_": None, "z": random(5, 1, 2, 4, 4)},
            {"group": 2, "activation": "Clip", "activation_params": [-0.5, 0.75]},
            np.clip(random(4, 1, 2, 4, 4) + random(5, 1, 2, 4, 4), -0.5, 0.75),
        ),
    ],
)
def test_activations_and_products(op_type, arrays, attributes, expected) -> None:
    check({"y": expected.astype(np.float32)}, op_type, arrays, **attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("has_beta", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_normalizations_of_sums(dtype, has_beta: bool, has_bias: bool) -> None:
    x, skip, gamma, beta, bias = (
        random(i, *s, dtype=dtype) for i, s in enumerate(((2, 3, 8), (1, 3, 8), (8,), (8,), (8,)))
    )
    given = {"bias": bias if has_bias else None}
    total = x.astype(float) + skip + (bias if has_bias else 0)
    variance = total.var(-1, keepdims=True)
    normal = (total - total.mean(-1, keepdims=True)) / np.sqrt(variance + 1e-3) * gamma + (beta if has_beta else 0)
    arrays = {"x": x, "skip": skip, "gamma": gamma, "beta": beta if has_beta else None, **given}
    tolerance = 1e-5 if dtype is np.float32 else 1e-2
    expected = {"y": normal.astype(dtype), "_": x, "__": x, "sum": total.astype(dtype)}
    words = {"tolerance": tolerance, "epsilon": 1e-3}
    check(expected, "SkipLayerNormalization", arrays, **words)
    scaled = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-3) * gamma
    del arrays["beta"]
    check(expected | {"y": scaled.astype(dtype)}, "SkipSimplifiedLayerNormalization", arrays, **words)
    both = total.astype(dtype)
    check({"y": scaled.astype(dtype)}, "SimplifiedLayerNormalization", {"x": both, "scale": gamma}, **words)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize("positions", [None, [[3, 1, 0]], [[3, 1, 0], [2, 2, 1]]])
@pytest.mark.parametrize("has_mask", [False, True])
def test_embeddings(dtype, has_segments: bool, positions: list[list[int]] | None, has_mask: bool) -> None:
    words, places, segments = (random(i, n, 8, dtype=dtype) for i, n in enumerate((9, 4, 2)))
    gamma, beta = random(3, 8, dtype=dtype), random(4, 8, dtype=dtype)
    ids, parts = np.array([[1, 8, 3], [4, 0, 2]], np.int32), np.array([[0, 0, 1], [0, 1, 1]], np.int32)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    total = words[ids].astype(float) + places[[0, 1, 2] if positions is None else positions]
    total = total + (segments[parts] if has_segments else 0)
    normal = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-3) * gamma + beta
    arrays = {
        "ids": ids,
        "parts": parts if has_segments else None,
        "words": words,
        "places": places,
        "segments": segments if has_segments else None,
        "gamma": gamma,
        "beta": beta,
        "mask": mask if has_mask else None,
        "at": None if positions is None else np.array(positions, np.int32),
    }
    ends = np.array([2, 3] if has_mask else [0, 0], np.int32)
    expected = {"y": normal.astype(dtype), "ends": ends, "sum": total.astype(dtype)}
    tolerance = 1e-5 if dtype is np.float32 else 2e-2
    check(expected, "EmbedLayerNormalization", arrays, tolerance=tolerance, epsilon=1e-3)


def test_nodes_alike_share_a_body() -> None:
    model, _ = contrib("FastGelu", {"x": X}, "y")
    model.graph.node.append(helper.make_node("FastGelu", ["y"], ["z"], domain="com.microsoft"))
    model.graph.node.append(helper.make_node("FastGelu", ["z", "y"], ["w"], domain="com.microsoft"))
    assert sorted(import_model(model).graphs) == ["com.microsoft.FastGelu", "com.microsoft.FastGelu.1", "main"]


@pytest.mark.parametrize(
    ("code", "words", "op_type", "inputs", "outputs", "attributes"),
    [
        ("IRC123", "Nonsense", "Nonsense", "x", "y", {}),
        ("IRC127", "has no attribute 'alpha'; it has none", "Gelu", "x", "y", {"alpha": 1.0}),
        ("IRC127", "is INT, but must be FLOAT", "QuickGelu", "x", "y", {"alpha": 1}),
        ("IRC127", "is nan", "QuickGelu", "x", "y", {"alpha": math.nan}),
        ("IRC128", "takes 1 input, but has 2", "Gelu", "x x", "y", {}),
        ("IRC128", "input 1 of com.microsoft::BiasGelu must not be absent", "BiasGelu", "x _", "y", {}),
        ("IRC128", "gives 1 to 4 outputs", "SkipLayerNormalization", "x x x", "y a b c d", {}),
        ("IRC123", "output mean", "SkipLayerNormalization", "x x x", "y a", {}),
        ("IRC123", "output inv_std_var", "SimplifiedLayerNormalization", "x x", "y a", {}),
        ("IRC127", "one of Clip, HardSigmoid", "FusedGemm", "x x", "y", {"activation": "Softmax"}),
        ("IRC127", "LeakyRelu needs 1", "FusedGemm", "x x", "y", {"activation": "LeakyRelu"}),
        ("IRC127", "segment_ids and segment_embedding", "EmbedLayerNormalization", "x x x x _ x x", "y", {}),
        ("IRC127", "Clip needs 2", "FusedConv", "x x", "y", {"activation": "Clip", "activation_params": [1.0]}),
    ],
)
def test_bad_nodes(code: str, words: str, op_type: str, inputs: str, outputs: str, attributes: dict[str, Any]) -> None:
    model, _ = contrib(op_type, {"x": X}, outputs, **attributes)
    del model.graph.node[0].input[:]
    model.graph.node[0].input.extend("" if name == "_" else name for name in inputs.split())
    refused(code, model, words)


def test_scalars_have_nothing_to_transpose() -> None:
    model, feeds = contrib("FusedMatMul", {"a": np.array(1, np.float32), "b": X}, "y", transA=1)
    with pytest.raises(irc.Error, match="scalars"):
        irc.compile(model).run(feeds)


def test_the_domain_need_not_be_imported() -> None:
    model, feeds = contrib("Gelu", {"x": X}, "y")
    del model.opset_import[1]
    for passes in ("none", "default"):
        np.testing.assert_allclose(irc.compile(model, passes).run(feeds)["y"], gelu(X), rtol=1e-5, atol=1e-6)


def test_rows_are_of_operators_that_onnx_does_not_have() -> None:
    assert not any(onnx.defs.has(name, onnx.defs.onnx_opset_version(), domain) for domain, name in ROWS)


def test_absent_inputs_of_a_function_around() -> None:
    """A local function that has no bias passes on none."""
    model, feeds = contrib("FastGelu", {"x": X}, "y")
    inner = helper.make_node("FastGelu", ["a", "b"], ["c"], domain="com.microsoft")
    function = helper.make_function("local", "F", ["a", "b"], ["c"], [inner], model.opset_import)
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.graph.node[0].CopyFrom(helper.make_node("F", ["x"], ["y"], domain="local"))
    np.testing.assert_allclose(irc.compile(model).run(feeds)["y"], fast_gelu(X), rtol=1e-5, atol=1e-6)
