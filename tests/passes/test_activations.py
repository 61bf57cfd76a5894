"""Activations written as several operators become operators, and are decomposed again for older operator sets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import irc
from tests.elsewhere import run_onnxruntime
from tests.graphs import typed_ir

RNG = np.random.default_rng(0)

GELU_TANH = {
    "GPT-2": "0.5 * x * (1 + tanh(SLOPE * (x + CUBE * x ** 3)))",
    "Bloom": "(x * 0.5) * (tanh((x * SLOPE) * (((x * CUBE) * x) + 1)) + 1)",
    "GPT BigCode": "0.5 * (x * (1 + tanh(SLOPE * (x + CUBE * (x * (x * x))))))",
    "expanded": "(x + tanh((SLOPE * CUBE) * x ** 3 + SLOPE * x) * x) * 0.5",
    "squared": "x * (0.5 + 0.5 * tanh(x * (SLOPE + (SLOPE * CUBE) * x ** 2)))",
}
GELU = {
    "PyTorch": "x * (erf(x / ROOT) + 1) * 0.5",
    "TensorFlow": "(0.5 * x) * (1 + erf(x * INVERSE))",
    "halved": "x * ((1 + erf(x / ROOT)) / 2)",
}
SWISH = {"plain": "x * sigmoid(x)", "turned": "sigmoid(x) * x", "quick": "x * sigmoid(ALPHA * x)"}
CONSTANTS = {
    "SLOPE": math.sqrt(2 / math.pi),
    "CUBE": 0.044715,
    "ROOT": math.sqrt(2),
    "INVERSE": math.sqrt(0.5),
    "ALPHA": 1.702,
}


def operator(kind: str, turned: bool = False) -> Any:
    """A method for one of Python's operators."""

    def method(self: Spelling, other: Any) -> Spelling:
        pair = [self.name, self.operand(other)]
        return self.op(kind, *(pair[::-1] if turned else pair))

    return method


class Spelling:
    """An operand of Python's arithmetic, which notes the ONNX operators for it."""

    def __init__(self, name: str, nodes: list[onnx.NodeProto], constants: list[float]) -> None:
        self.name, self.nodes, self.constants = name, nodes, constants

    def op(self, kind: str, *inputs: str) -> Spelling:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name]))
        return Spelling(name, self.nodes, self.constants)

    def operand(self, value: Any) -> str:
        if isinstance(value, Spelling):
            return value.name
        self.constants.append(value)
        return f"c{len(self.constants) - 1}"

    __add__, __sub__, __mul__ = operator("Add"), operator("Sub"), operator("Mul")
    __truediv__, __pow__ = operator("Div"), operator("Pow")
    __radd__, __rmul__, __rtruediv__ = (operator(kind, turned=True) for kind in ("Add", "Mul", "Div"))


def decomposed(
    text: str,
    opset: int = 18,
    dtype: type = np.float32,
    *,
    axes: tuple[str, ...] = ("n", "m"),
    numbers: tuple[int, ...] = (),
    **changes: float,
) -> onnx.ModelProto:
    """A model that computes ``text``, a term of x and another input in Python.

    Args:
        axes: of the inputs.
        numbers: the shape of constants.
        changes: other values of ``CONSTANTS``.
    """
    nodes: list[onnx.NodeProto] = []
    constants: list[float] = []
    inputs = {name: Spelling(name, nodes, constants) for name in ("x", "other")}
    functions = {kind.lower(): lambda y, kind=kind: y.op(kind, y.name) for kind in ("Tanh", "Erf", "Sigmoid")}
    y = eval(text, functions | CONSTANTS | changes | inputs)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    given = [helper.make_tensor_value_info(name, element, axes) for name in inputs]
    result = helper.make_tensor_value_info(y.name, element, axes if len(numbers) <= len(axes) else None)
    initializers = [
        numpy_helper.from_array(np.full(numbers, value, dtype), f"c{i}") for i, value in enumerate(constants)
    ]
    graph = helper.make_graph(nodes, "activation", given, [result], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def kinds(model: irc.CompiledModel) -> list[str]:
    return [node.kind for node in model.graph.nodes if node.kind != "prim::Constant"]


def run(model: irc.CompiledModel, x: np.ndarray) -> np.ndarray:
    (found,) = model.run({"x": x, "other": x / 2}).values()
    return found


def run_elsewhere(model: onnx.ModelProto | Path, x: np.ndarray) -> np.ndarray:
    (found,) = run_onnxruntime(model, {"x": x, "other": x / 2})
    return found


FORMS = [
    *[("onnx::Gelu", text, "tanh") for text in GELU_TANH.values()],
    *[("onnx::Gelu", text, "none") for text in GELU.values()],
    *[("onnx::Swish", text, None) for text in SWISH.values()],
]


@pytest.mark.covering(1)
@pytest.mark.parametrize("opset", [9, 13, 18, 20, 24])
@pytest.mark.parametrize(("kind", "text", "approximate"), FORMS)
def test_what_is_spelt_out_is_one_operator(
    kind: str, text: str, approximate: str | None, opset: int, tmp_path: Path
) -> None:
    proto = decomposed(text, opset)
    model = irc.compile(proto)
    assert kinds(model) == [kind]
    (node,) = (node for node in model.graph.nodes if node.kind == kind)
    assert node.attributes.get("approximate") == approximate
    irc.export(model, path := tmp_path / "model.onnx")
    after = onnx.load(path)
    onnx.checker.check_model(after, full_check=True)
    assert after.opset_import[0].version == opset
    assert kinds(irc.compile(path)) == [kind]
    for x in (np.linspace(-20, 20, 120), RNG.standard_normal(6), np.array([0, -0.0, 1e-30, 1e10, -1e10, np.nan])):
        x = x.astype(np.float32).reshape(2, -1)
        expected = run(irc.compile(proto, "none"), x)
        np.testing.assert_allclose(run(model, x), expected, rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(run_elsewhere(proto, x), expected, rtol=1e-5, atol=1e-5)
        if opset < 24:  # which ONNX Runtime may not have
            np.testing.assert_allclose(run_elsewhere(path, x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kind", "text", "approximate"), FORMS)
def test_in_double_precision_numbers_must_be_doubles(kind: str, text: str, approximate: str | None) -> None:
    rounded = {name: float(np.float32(value)) for name, value in CONSTANTS.items()}
    quick = "ALPHA" in text
    exact = decomposed(text, dtype=np.float64, **({"ALPHA": rounded["ALPHA"]} if quick else {}))
    model = irc.compile(exact)
    assert kinds(model) == [kind]
    x = np.linspace(-9, 9, 30).reshape(5, 6)
    np.testing.assert_allclose(run(model, x), run(irc.compile(exact, "none"), x), rtol=1e-13, atol=1e-14)
    if quick:  # ONNX's attributes are float32
        assert kinds(irc.compile(decomposed(text, dtype=np.float64))) != [kind]
    elif kind == "onnx::Gelu":
        assert kinds(irc.compile(decomposed(text, dtype=np.float64, **rounded))) != [kind]


@pytest.mark.parametrize(
    "text",
    [
        "0.5 * x * (1 + tanh(SLOPE * (x + 0.0447 * x ** 3)))",
        "0.5 * x * (1 + tanh(0.79788 * (x + CUBE * x ** 3)))",
        "0.5 * x * (1 + tanh(SLOPE * (x + CUBE * x ** 2)))",
        "0.5 * x * (1 + tanh(SLOPE * (x + CUBE * x ** 4)))",
        "0.5 * x * (1 + tanh(SLOPE * (x + CUBE * other ** 3)))",
        "0.5 * x * (1 + tanh(SLOPE * (x + CUBE * x ** other)))",
        "0.5 * x * (1 + tanh(SLOPE * (x - -CUBE * x ** 3)))",
        "0.5 * other * (1 + tanh(SLOPE * (x + CUBE * x ** 3)))",
        "0.5 * x * (1 + erf(SLOPE * (x + CUBE * x ** 3)))",
        "0.5 * x * (2 + tanh(SLOPE * (x + CUBE * x ** 3)))",
        "x * (1 + tanh(SLOPE * (x + CUBE * x ** 3)))",
        "0.5 * x * x * (1 + tanh(SLOPE * (x + CUBE * x ** 3)))",
        "0.5 * x * (1 + tanh(tanh(x)))",
        "x * (1 + erf(x / 1.414)) * 0.5",
        "x * (1 + erf(1.4142135 / x)) * 0.5",
        "x * (1 + erf(x)) * 0.5",
        "x * (erf(x / ROOT) + (1 + 1e8) + -1e8) * 0.5",
        "other * sigmoid(x)",
        "2 * x * sigmoid(x)",
        "x * sigmoid(x + 1)",
        "x * sigmoid(-1.702 * x)",
        "x * sigmoid(x * x)",
        "x * sigmoid(x * 1e38 * 1e38)",
        "sigmoid(x) * tanh(x)",
        "((((((x ** 3) ** 3) ** 3) ** 3) ** 3) ** 3) * (1 + tanh(x))",
        "x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * sigmoid(x)",
    ],
)
def test_what_is_something_else_stays(text: str) -> None:
    proto = decomposed(text)
    model = irc.compile(proto)
    assert not {"onnx::Gelu", "onnx::Swish"}.intersection(kinds(model))
    x = RNG.uniform(0.5, 2, (3, 4)).astype(np.float32)
    np.testing.assert_allclose(run(model, x), run(irc.compile(proto, "none"), x), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (SWISH["plain"], {"dtype": np.float16}),  # rounded in between
        (GELU["PyTorch"], {"dtype": np.float16}),
        (GELU["PyTorch"], {"numbers": (1, 1, 1)}),  # the result has more axes
        (GELU["PyTorch"], {"numbers": (1,), "axes": ()}),
    ],
)
def test_other_element_types_and_shapes_stay(text: str, options: dict[str, Any]) -> None:
    proto = decomposed(text, **options)
    model = irc.compile(proto)
    assert not {"onnx::Gelu", "onnx::Swish"}.intersection(kinds(model))
    x = RNG.standard_normal((2, 3)[: len(options.get("axes", "nm"))]).astype(options.get("dtype", np.float32))
    x = np.asarray(x)
    found, expected = run(model, x), run(irc.compile(proto, "none"), x)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_what_is_written_in_between_stays() -> None:
    text = typed_ir("g: Float(3)", "x = Abs(g); s = Sigmoid(x); w = Neg_(x); y = Mul(x, s)", "y")
    graph = irc.ir.parse_graph(text)
    model = irc.compile(graph, "canonicalize")
    assert "onnx::Swish" not in kinds(model)
    (found,) = model.run({"g": np.ones(3, np.float32)}).values()
    np.testing.assert_allclose(found, np.full(3, -1 / (1 + math.exp(-1))), rtol=1e-6)
