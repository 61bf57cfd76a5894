"""Operators that import as their function body."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.frontend.onnx import import_model

FLOAT = TensorProto.FLOAT


def model(modifier: onnx.GraphProto | None = None, element: int = FLOAT) -> onnx.ModelProto:
    attributes = {} if modifier is None else {"score_mod": modifier}
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", **attributes)
    infos = [helper.make_tensor_value_info(name, element, ("n", h, "s", 8)) for name, h in zip("qkv", (4, 2, 2))]
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid("ai.onnx.preview", 1)]
    return helper.make_model(graph, opset_imports=opsets)


def modifier(*nodes: onnx.NodeProto, inputs: str = "s", outputs: str = "t") -> onnx.GraphProto:
    def infos(names: str) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, FLOAT, ("a", "b", "c", "d")) for name in names]

    return helper.make_graph(list(nodes), "m", infos(inputs), infos(outputs))


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, cap: float) -> np.ndarray:
    k, v = (np.repeat(x, 2, axis=1) for x in (k, v))
    scores = np.tanh(q @ k.swapaxes(-1, -2) / np.sqrt(8)) * cap
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("length", [1, 5])
def test_grouped_heads_and_a_modifier(passes: str, length: int) -> None:
    cap = helper.make_node("Constant", [], ["c"], value_float=2.0)
    capped = modifier(cap, helper.make_node("Tanh", ["s"], ["u"]), helper.make_node("Mul", ["u", "c"], ["t"]))
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, h, length, 8)).astype(np.float32) for h in (4, 2, 2))
    found = irc.compile(model(capped), passes=passes).run({"q": q, "k": k, "v": v})["y"]
    np.testing.assert_allclose(found, expected(q, k, v, 2.0), rtol=1e-4, atol=1e-6)


def test_the_body_is_optimised_with_the_rest() -> None:
    kinds = {node.kind for node in irc.compile(model(), passes="inline").graph.walk()}
    assert "onnx::MatMul" in kinds
    assert "ai.onnx.preview::FlexAttention" not in kinds


@pytest.mark.parametrize(
    ("bad", "code", "words"),
    [
        (modifier(helper.make_node("Add", ["s", "q"], ["t"])), "IRC134", "must not use 'q' from outside"),
        (modifier(helper.make_node("Add", ["s", "r"], ["t"]), inputs="sr"), "IRC134", "one input and one output"),
        (modifier(helper.make_node("Nonsense", ["s"], ["t"])), "IRC123", "Nonsense"),
        (modifier(helper.make_node("Tanh", ["s"], ["t"]), outputs="tt"), "IRC134", "one input and one output"),
    ],
)
def test_graphs_that_do_not_fit(bad: onnx.GraphProto, code: str, words: str) -> None:
    with pytest.raises(irc.Error, match=words) as caught:
        import_model(model(bad))
    assert caught.value.code == code


def test_types_that_are_not_known() -> None:
    with pytest.raises(irc.Error) as caught:
        import_model(model(element=TensorProto.UNDEFINED))
    assert caught.value.code == "IRC131"
