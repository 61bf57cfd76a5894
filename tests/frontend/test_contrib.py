"""Operators of com.microsoft, which ONNX Runtime's optimisers put into models: layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import irc
from irc.frontend.onnx import import_model
from irc.frontend.onnx.contrib import ROWS
from irc.frontend.onnx_export import export_model
from tests.frontend.helpers import refused

Arrays = Mapping[str, np.ndarray | None]


def contrib(
    op_type: str,
    arrays: Arrays,
    outputs: str,
    opset: int = 21,
    constants: str = "",
    ranked: bool = True,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one node, whose inputs are called as in ``arrays`` (None: absent), and what to run it with.

    ``constants``: those inputs that are weights of the model; ``ranked``: whether the others' ranks are declared.
    """
    given = {name: array for name, array in arrays.items() if array is not None}
    kept = constants.split()
    feeds = {name: array for name, array in given.items() if name not in kept}
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(a.dtype), [f"{name}{i}" for i in range(a.ndim)] if ranked else None
        )
        for name, a in feeds.items()
    ]
    names = ["" if name.startswith("_") else name for name in outputs.split()]
    domain = "" if op_type == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(
        op_type, [n if a is not None else "" for n, a in arrays.items()], names, domain=domain, **attributes
    )
    weights = [onnx.numpy_helper.from_array(given[name], name) for name in kept]
    results = [helper.make_empty_tensor_value_info(name) for name in names if name]
    graph = helper.make_graph([node], "g", infos, results, weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def check(
    expected: Mapping[str, np.ndarray], op_type: str, arrays: Arrays, tolerance: float = 1e-5, **kwargs: Any
) -> None:
    """Assert that the node gives this, by any passes, with ranks known or not, and exported as well."""
    for ranked in (True, False):
        model, feeds = contrib(op_type, arrays, " ".join(expected), ranked=ranked, **kwargs)
        compiled = irc.compile(model)
        again = irc.compile(export_model(compiled.module))
        for found in (irc.compile(model, passes="none").run(feeds), compiled.run(feeds), again.run(feeds)):
            for name, value in expected.items():
                if not name.startswith("_"):
                    assert found[name].dtype == value.dtype
                    np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)


def random(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


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


def test_types_of_results_are_inferred() -> None:
    model, _ = contrib("SkipSimplifiedLayerNormalization", {"x": X, "skip": X, "gamma": BIAS}, "y _ _ s")
    model.graph.node[0].input[1] = "x"
    del model.graph.input[1]
    types = [str(value.type) for value in irc.compile(model).graph.outputs]
    assert types == ["Float(x0, x1, x2)", "Float(x0, x1, x2)"]


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
        ("IRC128", "takes 1 inputs, but has 2", "Gelu", "x x", "y", {}),
        ("IRC128", "input 1 of com.microsoft::BiasGelu must not be absent", "BiasGelu", "x _", "y", {}),
        ("IRC128", "gives 1 to 4 outputs", "SkipLayerNormalization", "x x x", "y a b c d", {}),
        ("IRC134", "output mean", "SkipLayerNormalization", "x x x", "y a", {}),
        ("IRC134", "output inv_std_var", "SimplifiedLayerNormalization", "x x", "y a", {}),
        ("IRC127", "one of Clip, HardSigmoid", "FusedGemm", "x x", "y", {"activation": "Softmax"}),
        ("IRC127", "LeakyRelu needs 1", "FusedGemm", "x x", "y", {"activation": "LeakyRelu"}),
        ("IRC127", "Clip needs 2", "FusedConv", "x x", "y", {"activation": "Clip", "activation_params": [1.0]}),
    ],
)
def test_bad_nodes(code: str, words: str, op_type: str, inputs: str, outputs: str, attributes: dict[str, Any]) -> None:
    model, _ = contrib(op_type, {"x": X}, outputs, **attributes)
    del model.graph.node[0].input[:]
    model.graph.node[0].input.extend("" if name == "_" else name for name in inputs.split())
    refused(code, model, words)


def test_the_domain_must_be_imported() -> None:
    model, _ = contrib("Gelu", {"x": X}, "y")
    del model.opset_import[1]
    refused("IRC123", model, "imports no operator set of domain 'com.microsoft'")


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
