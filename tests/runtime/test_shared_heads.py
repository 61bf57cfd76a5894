"""Keys and values that heads share, as exporters repeat them: no copy of a cache is made, and results are the same."""

from itertools import product

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.tools.check.peers import onnxruntime_session
from tests.effort import examples
from tests.elsewhere import run_onnxruntime

SIZE = 8
PRESENT = ["present_0", "present_1"]

FORMS = ("constant", "computed", "summed", "one axis")


def decoder(kv: int, group: int, form: str, scale: float | None, batch: int | None = None) -> onnx.ModelProto:
    """One layer of attention with two caches, whose length is open."""
    heads = kv * group
    numbers = {"zero": [0], "one": [1], "two": [2], "kv": [kv], "group": [group], "heads": [heads], "size": [SIZE]}
    constants = [numpy_helper.from_array(np.array(n), name) for name, n in numbers.items()]
    constants += [
        numpy_helper.from_array(np.array([batch or 1, kv, group, 1, SIZE]), "fixed"),
        numpy_helper.from_array(np.array([0, heads, -1, SIZE]), "rest"),
        numpy_helper.from_array(np.full(5, -1), "minus"),
        numpy_helper.from_array(np.array([-1]), "any"),
        numpy_helper.from_array(np.float32(scale or 1), "scale"),
    ]
    make = helper.make_node
    nodes: list[onnx.NodeProto] = []

    def sizes(i: int) -> tuple[str, str]:
        """The shapes that are expanded to, and reshaped to then."""
        if form == "constant":
            return "fixed", "rest"
        b, n, wide, flat = (f"{name}_{i}" for name in ("b", "n", "wide", "flat"))
        if form == "summed":
            nodes.extend(
                [
                    make("Shape", [f"past_{i}"], [f"old_{i}"], start=2, end=3),
                    make("Shape", [f"new_{i}"], [f"more_{i}"], start=2, end=3),
                    make("Add", [f"old_{i}", f"more_{i}"], [n]),
                    make("Shape", [f"past_{i}"], [b], start=0, end=1),
                ]
            )
        else:
            nodes.append(make("Shape", [f"present_{i}"], [f"whole_{i}"]))
            nodes.append(make("Gather", [f"whole_{i}", "zero"], [b]))
            nodes.append(make("Gather", [f"whole_{i}", "two"], [n]))
        nodes.append(make("Concat", [b, "kv", "group", n, "size"], [wide], axis=0))
        nodes.append(make("Concat", [b, "heads", n, "size"], [flat], axis=0))
        if form != "computed":
            return wide, flat
        nodes.append(make("Equal", [wide, "minus"], [f"open_{i}"]))
        nodes.append(make("Abs", ["minus"], [f"ones_{i}"]))
        nodes.append(make("Where", [f"open_{i}", f"ones_{i}", wide], [f"target_{i}"]))
        return f"target_{i}", flat

    for i in (0, 1):
        nodes.append(make("Concat", [f"past_{i}", f"new_{i}"], [f"present_{i}"], axis=2))
        target, flat = sizes(i)
        nodes.append(make("Unsqueeze", [f"present_{i}", "two"], [f"u_{i}"]))
        nodes.append(make("Expand", [f"u_{i}", target], [f"e_{i}"]))
        nodes.append(make("Reshape", [f"e_{i}", flat], [f"r_{i}"], allowzero=int(form == "one axis")))
    if form == "one axis":  # as torch.export decomposes scaled_dot_product_attention
        nodes += [
            make("Shape", ["r_0"], ["s"]),
            make("Gather", ["s", "two"], ["n"]),
            make("Slice", ["s", "zero", "two"], ["front"]),
            make("Concat", ["any", "n", "size"], ["merged"], axis=0),
            make("Reshape", ["r_0", "merged"], ["m"]),
            make("Transpose", ["m"], ["mt"], perm=[0, 2, 1]),
            make("Concat", ["front", "size", "n"], ["apart"], axis=0),
            make("Reshape", ["mt", "apart"], ["t"]),
        ]
    else:
        nodes.append(make("Transpose", ["r_0"], ["t"], perm=[0, 1, 3, 2]))
    keys = "t"
    if scale is not None:
        nodes.append(make("Mul", ["t", "scale"], [keys := "scaled"]))
    nodes += [
        make("MatMul", ["q", keys], ["scores"]),
        make("Softmax", ["scores"], ["weights"], axis=-1),
        make("MatMul", ["weights", "r_1"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    inputs = [info("q", TensorProto.FLOAT, [batch or "batch", heads, "rows", SIZE])]
    for i in (0, 1):
        inputs.append(info(f"new_{i}", TensorProto.FLOAT, [batch or "batch", kv, "new", SIZE]))
        inputs.append(info(f"past_{i}", TensorProto.FLOAT, [batch or "batch", kv, "past", SIZE]))
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("y", *PRESENT)]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


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


def test_what_others_need_is_still_repeated():
    model = decoder(2, 2, "computed", None)
    model.graph.output.append(helper.make_empty_tensor_value_info("r_0"))
    given_ = feeds(model, 2, 3, 4)
    same(irc.compile(model).run(given_), irc.compile(model, "none").run(given_))


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


def test_a_batch_of_none_and_of_one_for_all():
    model = decoder(2, 2, "computed", 0.25)
    same(irc.compile(model).run(feeds(model, 0, 2, 3)), irc.compile(model, "none").run(feeds(model, 0, 2, 3)))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "others"
    compiled, plain = irc.compile(model), irc.compile(model, "none")
    many, one = feeds(model, 3, 2, 4), feeds(model, 1, 2, 4)
    for given_ in ({**many, "q": many["q"][:1]}, {**one, "q": many["q"]}):
        same(compiled.run(given_), plain.run(given_))


@pytest.mark.parametrize("form", FORMS)
def test_steps_of_a_session(form):
    model = decoder(2, 4, form, 0.25, 1)
    session, plain = irc.Session(irc.compile(model), capacity=32), irc.compile(model, "none")
    caches = {f"past_{i}": np.zeros((1, 2, 0, SIZE), np.float32) for i in (0, 1)}
    for step, new in enumerate([5, 1, 1, 2, 1]):
        given_ = {k: v for k, v in feeds(model, 1, new, 0, step).items() if k not in caches}
        expected = plain.run({**given_, **caches})
        found = session.run({**given_, **caches} if step == 0 else given_)
        same({name: found[name] for name in expected}, expected)
        caches = {f"past_{i}": expected[name] for i, name in enumerate(PRESENT)}


def test_a_cache_of_fixed_size():
    """Which is repeated after a step has written into it."""
    model = decoder(2, 2, "computed", 0.25, 1)
    for i in (0, 1):
        (join,) = [node for node in model.graph.node if node.output[0] == f"present_{i}"]
        join.CopyFrom(helper.make_node("TensorScatter", [f"past_{i}", f"new_{i}", "at"], [f"present_{i}"], axis=2))
        model.graph.input[2 * i + 2].type.tensor_type.shape.dim[2].dim_value = 6
    model.graph.input.append(helper.make_tensor_value_info("at", TensorProto.INT64, [1]))
    model.opset_import[0].version = 24
    compiled, plain = irc.compile(model), irc.compile(model, "none")
    session = irc.Session(compiled)
    assert compiled.report.stats.get("canonicalize.attention_of_shared_heads", 0) == 1
    caches = {f"past_{i}": np.zeros((1, 2, 6, SIZE), np.float32) for i in (0, 1)}
    for step in range(5):
        given_ = {k: v for k, v in feeds(model, 1, 1, 6, step).items() if k not in caches} | {"at": np.array([step])}
        expected = plain.run({**given_, **caches})
        found = session.run({**given_, **caches} if step == 0 else given_)
        same({name: found[name] for name in expected}, expected)
        caches = {f"past_{i}": expected[name] for i, name in enumerate(PRESENT)}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_exported_runs_elsewhere(form, tmp_path):
    model = decoder(2, 2, form, 0.25, 2)
    given_ = feeds(model, 2, 2, 3)
    irc.export(irc.compile(model), path := tmp_path / "model.onnx")
    expected = irc.compile(model, "none").run(given_)
    found = run_onnxruntime(path, given_)
    same(dict(zip(expected, found, strict=True)), expected)
