"""Keys and values that heads share, as exporters repeat them: no copy of a cache is made, and results are the same."""

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.tools.check.peers import onnxruntime_session
from tests.effort import examples
from tests.elsewhere import run_onnxruntime
from tests.models import Nodes, onnx_model

SIZE = 8
PRESENT = ["present_0", "present_1"]

FORMS = ("constant", "computed", "summed", "one axis")


def decoder(kv: int, group: int, form: str, scale: float | None, batch: int | None = None) -> onnx.ModelProto:
    """One layer of attention with two caches, whose length is open."""
    heads = kv * group
    numbers = {"zero": [0], "one": [1], "two": [2], "kv": [kv], "group": [group], "heads": [heads], "size": [SIZE]}
    constants: dict[str, Any] = {**numbers, "fixed": [batch or 1, kv, group, 1, SIZE], "rest": [0, heads, -1, SIZE]}
    constants |= {"minus": [-1] * 5, "any": [-1], "scale": np.float32(scale or 1)}
    make = Nodes()

    def sizes(i: int) -> tuple[str, str]:
        """The shapes that are expanded to, and reshaped to then."""
        if form == "constant":
            return "fixed", "rest"
        if form == "summed":
            n = make("Add", *(make("Shape", f"{which}_{i}", start=2, end=3) for which in ("past", "new")))
            b = make("Shape", f"past_{i}", start=0, end=1)
        else:
            whole = make("Shape", f"present_{i}")
            b, n = (make("Gather", whole, at) for at in ("zero", "two"))
        wide = make("Concat", b, "kv", "group", n, "size", axis=0)
        flat = make("Concat", b, "heads", n, "size", axis=0, output=f"flat_{i}")
        if form != "computed":
            return wide, flat
        return make("Where", make("Equal", wide, "minus"), make("Abs", "minus"), wide), flat

    repeated: list[str] = []
    for i in (0, 1):
        present = make("Concat", f"past_{i}", f"new_{i}", output=f"present_{i}", axis=2)
        target, flat = sizes(i)
        expanded = make("Expand", make("Unsqueeze", present, "two"), target)
        repeated.append(make("Reshape", expanded, flat, output=f"r_{i}", allowzero=int(form == "one axis")))
    keys, others = repeated
    if form == "one axis":  # as torch.export decomposes scaled_dot_product_attention
        shape = make("Shape", keys)
        n = make("Gather", shape, "two")
        front = make("Slice", shape, "zero", "two")
        turned = make("Transpose", make("Reshape", keys, make("Concat", "any", n, "size", axis=0)), perm=[0, 2, 1])
        keys = make("Reshape", turned, make("Concat", front, "size", n, axis=0))
    else:
        keys = make("Transpose", keys, perm=[0, 1, 3, 2])
    if scale is not None:
        keys = make("Mul", keys, "scale")
    make("MatMul", make("Softmax", make("MatMul", "q", keys), axis=-1), others, output="y")
    inputs: dict[str, list[Any]] = {"q": [batch or "batch", heads, "rows", SIZE]}
    for i, length in product((0, 1), ("new", "past")):
        inputs[f"{length}_{i}"] = [batch or "batch", kv, length, SIZE]
    weights = {name: np.array(value) for name, value in constants.items()}
    return onnx_model(make, inputs, ["y", *PRESENT], weights, 18)


def feeds(model: onnx.ModelProto, batch: int, new: int, past: int, seed: int = 0) -> dict[str, np.ndarray]:
    random, sizes = (
        np.random.default_rng(seed),
        {"batch": batch, "others": batch, "rows": new, "new": new, "past": past},
    )
    return {
        value.name: random.standard_normal(
            [sizes.get(d.dim_param, d.dim_value) for d in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
    }


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


@examples(40)
@given(
    kv=st.sampled_from([1, 2, 4]),
    group=st.sampled_from([1, 2, 4]),
    form=st.sampled_from(FORMS),
    scale=st.sampled_from([None, 0.25, 3.0]),
    fixed=st.booleans(),
    runs=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=4),
)
def test_results_are_those_of_repeated_heads(kv, group, form, scale, fixed, runs):
    batch = runs[0][0] if fixed or form == "constant" else None
    model = decoder(kv, group, form, scale, batch)
    others = onnxruntime_session(model)
    plain, found = irc.compile(model, "none"), irc.compile(model)
    assert found.report.stats.get("canonicalize.attention_of_shared_heads", 0) == (group > 1)
    for run in runs:
        given_ = feeds(model, batch or run[0], *run[1:])
        expected = plain.run(given_)
        same(found.run(given_), expected)
        same(dict(zip(expected, others.run(None, given_), strict=True)), expected)


@pytest.mark.parametrize(("form", "scale"), list(product(FORMS, [None, 0.25])))
def test_no_copy_of_keys_and_values_is_made(form, scale):
    """Not even of scores."""
    made: list[int] = []
    model = decoder(2, 2, form, scale, 1)
    for past in (100, 200):
        operators = irc.compile(model).profile(feeds(model, 1, 1, past)).by_operator()
        made.append(sum(o.bytes for o in operators if o.kind != "irc::append_"))
    assert made[1] == made[0]


@pytest.mark.parametrize("new", [0, 2])
def test_a_shape_that_means_something_else_where_there_are_no_keys(new):
    """A 0 copies the size of the group, which the -1 lets pass."""
    model = decoder(2, 2, "summed", None)
    for node in model.graph.node:
        if node.output[0].startswith("flat_"):
            node.input[0] = "any"
    given_ = feeds(model, 1, new, 0)
    same(irc.compile(model).run(given_), irc.compile(model, "none").run(given_))


def test_a_cache_without_positions_has_any_width():
    """``Concat`` takes it, and ``Expand`` widens what is new."""
    model = decoder(2, 2, "constant", None, 1)
    given_ = feeds(model, 1, 3, 0)
    for value in model.graph.input:
        if value.name.startswith("new"):
            value.type.tensor_type.shape.dim[3].dim_param = "width"
            given_[value.name] = given_[value.name][..., :1]
    same(irc.compile(model).run(given_), irc.compile(model, "none").run(given_))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_exported_runs_elsewhere(form, tmp_path):
    model = decoder(2, 2, form, 0.25, 2)
    given_ = feeds(model, 2, 2, 3)
    irc.export(irc.compile(model), path := tmp_path / "model.onnx")
    expected = irc.compile(model, "none").run(given_)
    found = run_onnxruntime(path, given_)
    same(dict(zip(expected, found, strict=True)), expected)
