"""Attention reads keys and values where they are: nothing of a cache's size is made, and results are the same."""

import numpy as np
import onnx
import pytest
from onnx import helper

import irc
from irc.ir import parse_graph
from tests.elsewhere import run_onnxruntime
from tests.models import onnx_model

BATCH, NEW, SIZE = 2, 2, 256
HEADS = [(4, 4), (4, 2), (4, 1)]
"""Of queries, of keys and values: for each a head of its own, shared by some, shared by all."""


def attention(
    heads: tuple[int, int], past: int, dtype: str = "float32", mask: str = "", flat: bool = False, **attributes: object
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one node with caches of ``past`` positions, whose length is open, and its inputs."""
    random = np.random.default_rng(0)
    queries, others = heads

    def new(count: int) -> np.ndarray:
        array = random.standard_normal((BATCH, count, NEW, SIZE))
        return array.swapaxes(1, 2).reshape(BATCH, NEW, -1) if flat else array

    feeds = {"q": new(queries), "k": new(others), "v": new(others)}
    if mask:
        feeds["mask"] = random.standard_normal((BATCH, 1, NEW, past + NEW))
    feeds["past_key"], feeds["past_value"] = random.standard_normal((2, BATCH, others, past, SIZE))
    feeds = {name: array.astype(dtype) for name, array in feeds.items()}
    if mask == "bool":
        feeds["mask"] = feeds["mask"] > 0
    if flat:
        attributes |= {"q_num_heads": queries, "kv_num_heads": others}
    inputs = ["q", "k", "v", "mask" if mask else "", "past_key", "past_value"]
    node = helper.make_node("Attention", inputs, ["y", "present_key", "present_value", "scores"], **attributes)
    types = {
        name: (
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}_{i}" if n in (past, past + NEW) else n for i, n in enumerate(array.shape)],
        )
        for name, array in feeds.items()
    }
    return onnx_model(node, types, node.output, opset=23), feeds


@pytest.mark.parametrize(("heads", "mask"), [*zip(HEADS, ["", "bool", "float"])])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(
    ("dtype", "attributes"),
    [
        ("float32", {}),
        ("float32", {"is_causal": 1, "softcap": 2.0, "qk_matmul_output_mode": 1}),
        ("float32", {"scale": 3.0}),
        ("float32", {"scale": 0.5, "qk_matmul_output_mode": 3}),
        ("float16", {"softmax_precision": 1}),
    ],
)
def test_results_are_the_operators(heads, mask, flat, dtype, attributes):
    model, feeds = attention(heads, 5, dtype, mask, flat, **attributes)
    expected = run_onnxruntime(model, feeds)
    tolerance = 1e-4 if dtype == "float32" else 1e-2
    for passes in ("none", "default"):
        found = irc.compile(model, passes).run(feeds)
        for name, array in zip(found, expected, strict=True):
            np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance, err_msg=name)


def test_heads_that_cannot_be_shared_are_refused():
    """4 heads of queries of 3 rows are as many rows as 3 heads of 4, but mean something else."""
    model, feeds = attention((4, 3), 3)
    feeds["q"] = np.ones((BATCH, 4, 3, SIZE), np.float32)
    feeds["k"] = feeds["v"] = np.ones((BATCH, 3, 3, SIZE), np.float32)
    for value in model.graph.input:
        for size in value.type.tensor_type.shape.dim:
            size.Clear()
    with pytest.raises(irc.Error, match=r"^IRC421: "):
        irc.compile(model).run(feeds)


@pytest.mark.parametrize("order", ["scale, transpose", "transpose, scale"])
def test_queries_alone_are_scaled_where_exporters_scale_both(order):
    """No result but the caches themselves grows by as much as the keys do."""
    root = "%root : Float(1) = prim::Constant[value=splat(0.7071)]()"
    scaled = {
        "scale, transpose": "%s = onnx::Mul(%k, %root)\n%t = onnx::Transpose[perm=[0, 1, 3, 2]](%s)",
        "transpose, scale": "%s = onnx::Transpose[perm=[0, 1, 3, 2]](%k)\n%t = onnx::Mul(%s, %root)",
    }[order]
    text = f"""graph(%x : Float(b, 2, s, 64), %past : Float(b, 2, p, 64)):
      {root}
      %k : Float(b, 2, *, 64) = onnx::Concat[axis=2](%past, %x)
      %r = onnx::Relu(%x)
      %q = onnx::Mul(%r, %root)
      {scaled}
      %scores = onnx::MatMul(%q, %t)
      %w = onnx::Softmax(%scores)
      %y = onnx::MatMul(%w, %k)
      return (%y, %k)"""
    x = np.random.default_rng(0).standard_normal((2, 2, 1, 64), np.float32)
    made: list[int] = []
    for past in (100, 200):
        feeds = {"x": x, "past": np.full((2, 2, past, 64), 0.1, np.float32)}
        compiled = irc.compile(parse_graph(text))
        expected = irc.compile(parse_graph(text), "none").run(feeds)
        for name, array in compiled.run(feeds).items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)
        operators = compiled.profile(feeds).by_operator()
        made.append(sum(o.bytes for o in operators if o.kind != "irc::append_"))
    assert made[1] - made[0] <= 2 * 100 * 4 * x.itemsize  # scores and weights
