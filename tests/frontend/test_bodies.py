"""Operators that import as their function body."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.frontend.onnx import import_model
from irc.frontend.onnx_export import export_model

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
        import_model(model(bad), refuse_unknown=True)
    assert caught.value.code == code


def test_types_that_are_not_known() -> None:
    """A node without graphs waits for its types until it runs; graphs must be in a body."""
    unknown = model(element=TensorProto.UNDEFINED)
    assert [n.kind for n in import_model(unknown).main.nodes] == ["ai.onnx.preview::FlexAttention"]
    with pytest.raises(irc.Error, match=r"^IRC131: "):
        import_model(model(modifier(helper.make_node("Tanh", ["s"], ["t"])), TensorProto.UNDEFINED))


def test_graphs_that_no_body_is_made_for() -> None:
    bad = model(modifier(helper.make_node("Tanh", ["s"], ["t"])))
    bad.graph.node[0].attribute.append(helper.make_attribute("softmax_precision", 7))
    with pytest.raises(irc.Error, match=r"^IRC134: .*no function body"):
        import_model(bad)


def fed(op_type: str, version: int, arrays: list[np.ndarray | None], outputs: str, **attributes: object):
    """A model of one node, whose inputs have the types and shapes of ``arrays``, and its inputs."""
    feeds = {f"x{i}": a for i, a in enumerate(arrays) if a is not None}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()
    ]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs]
    inputs = [f"x{i}" if a is not None else "" for i, a in enumerate(arrays)]
    graph = helper.make_graph([helper.make_node(op_type, inputs, list(outputs), **attributes)], "g", infos, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)]), feeds


def heads(seed: int, length: int = 3, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((1, 2, length, 4)).astype(dtype)


@pytest.mark.parametrize(("narrow", "wide"), [(np.float16, np.float32), (np.float32, np.float16)])
def test_values_of_attention_of_another_type_than_its_keys(narrow: type, wide: type) -> None:
    """What was there of them is handed out as it is; the product is of the type of the queries."""
    q, k, past = heads(0, 3, narrow), heads(1, 3, narrow), heads(3, 1, narrow)
    v, past_v = heads(2, 3, wide), heads(4, 1, wide)
    model, feeds = fed("Attention", 23, [q, k, v, None, past, past_v], "ykvs", is_causal=1)
    same, others = fed(
        "Attention", 23, [q, k, v.astype(narrow), None, past, past_v.astype(narrow)], "ykvs", is_causal=1
    )
    found, expected = irc.compile(model).run(feeds), irc.compile(same).run(others)
    for name in "yks":
        assert found[name].dtype == narrow
        np.testing.assert_array_equal(found[name], expected[name])
    np.testing.assert_array_equal(found["v"], np.concatenate([past_v, v], axis=2))
    written = export_model(irc.compile(model).module)
    onnx.checker.check_model(written, full_check=True)
    assert [v.type.tensor_type.elem_type for v in written.graph.output] == [
        helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in (narrow, narrow, wide, narrow)
    ]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize(
    ("version", "rest", "attributes"),
    [(23, [], {"is_causal": 1}), (24, [None, None, np.array([2])], {}), (25, [], {"left_window_size": 1})],
)
def test_a_mask_of_integers_does_not_let_through_what_else_is_masked(dtype, version, rest, attributes) -> None:
    arrays = [heads(0), heads(1), heads(2)]
    mask = np.arange(9).reshape(3, 3) % 4
    model, feeds = fed("Attention", version, [*arrays, mask.astype(dtype), *rest], "y", **attributes)
    of_floats, others = fed("Attention", version, [*arrays, mask.astype(np.float32), *rest], "y", **attributes)
    unmasked, _ = fed("Attention", 23, [*arrays, mask.astype(np.float32)], "y")
    found, expected = irc.compile(model).run(feeds)["y"], irc.compile(of_floats).run(others)["y"]
    np.testing.assert_array_equal(found, expected)
    assert not np.allclose(expected, irc.compile(unmasked).run({k: others[k] for k in ("x0", "x1", "x2", "x3")})["y"])


def test_sizes_of_32_bits_to_crop_and_pad_to() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    model, feeds = fed("CenterCropPad", 18, [x, np.array([2, 6], np.int32)], "y")
    assert irc.compile(model).run(feeds)["y"].tolist() == [[0, 0, 1, 2, 3, 0], [0, 4, 5, 6, 7, 0]]
