"""Operators that change some elements of an operand write those over it where nothing else needs it."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.ir import parse_graph
from tests.programs.interpreter import interpret

INPUTS = "%past : Float(2, 8, 3), %x : Float(2, 1, 3)"
SCATTERS = {
    "TensorScatter": ("%i : Long(2)", "onnx::TensorScatter[axis=1](%past, %x, %i)", np.array([5, 1])),
    "ScatterElements": (
        "%i : Long(2, 1, 3)",
        "onnx::ScatterElements[axis=1](%past, %i, %x)",
        np.array([5, -1, 0, 7, 7, 2]).reshape(2, 1, 3),
    ),
    "ScatterND": ("%i : Long(2, 1, 2)", "onnx::ScatterND(%past, %i, %x)", np.array([[0, 5], [1, -2]]).reshape(2, 1, 2)),
    "slice_scatter": ("%i : Long()", "irc::slice_scatter[starts=[0, 5, 0], steps=[1, 1, 1]](%past, %x)", np.array(0)),
}


def compiled(kind: str, before: str = "", after: str = "", returned: str = "%y", passes: str = "default"):
    """A model that scatters %x into %past by %i, and inputs."""
    indices, scatter, array = SCATTERS[kind]
    text = f"graph({INPUTS}, {indices}):\n{before}\n%y : Float(2, 8, 3) = {scatter}\n{after}\nreturn ({returned})"
    random = np.random.default_rng(0)
    feeds = {
        "past": random.standard_normal((2, 8, 3), np.float32),
        "x": random.standard_normal((2, 1, 3), np.float32),
        "i": array,
    }
    return irc.compile(parse_graph(text), passes), feeds


def changes(kind: str, past: np.ndarray, x: np.ndarray, i: np.ndarray) -> np.ndarray:
    """A copy of ``past`` that is changed as the operator says, sample by sample."""
    y = past.copy()
    for sample in range(2):
        if kind == "TensorScatter":
            y[sample, i[sample]] = x[sample]
        elif kind == "ScatterElements":
            for k in range(3):
                y[sample, i[sample, 0, k], k] = x[sample, 0, k]
        elif kind == "ScatterND":
            y[tuple(i[sample, 0])] = x[sample]
        else:
            y[sample, 5] = x[sample]
    return y


@pytest.mark.parametrize("kind", SCATTERS)
def test_a_donated_cache_is_written_where_it_is(kind):
    model, feeds = compiled(kind)
    expected = changes(kind, **feeds)
    past = feeds["past"]
    for _ in range(3):  # the third run has a plan of memory
        y = model.run(feeds, donate=["past"])["y"]
        assert np.shares_memory(y, past)
        assert model.counters.in_place == 1
        np.testing.assert_array_equal(y, expected)
        feeds["past"] = y


@pytest.mark.parametrize(
    ("kind", "reduction"),
    [
        ("TensorScatter", "none"),
        *itertools.product(["ScatterElements", "ScatterND"], ["none", "add", "mul", "max", "min"]),
    ],
)
def test_errors_are_found_before_anything_is_written(kind, reduction):
    indices, scatter, array = SCATTERS[kind]
    if reduction != "none":
        spelt = f'reduction="{reduction}"'
        scatter = scatter.replace("[", f"[{spelt}, ") if "[" in scatter else scatter.replace("(", f"[{spelt}](")
    text = f"graph({INPUTS}, {indices}):\n%y : Float(2, 8, 3) = {scatter}\nreturn (%y)"
    _, feeds = compiled(kind)
    feeds["i"] = array.copy()
    feeds["i"].flat[-1] = 8  # the last one
    before = feeds["past"].copy()
    with pytest.raises(irc.Error, match=r"^IRC423: "):
        irc.compile(parse_graph(text)).run(feeds, donate=["past"])
    np.testing.assert_array_equal(feeds["past"], before)


@given(st.data())
def test_in_place_and_copying_do_the_same(data):
    """Whatever the indices, those out of range and those that come twice too."""
    draw = data.draw
    kind = draw(st.sampled_from(["TensorScatter", "ScatterElements", "ScatterND"]))
    shape = draw(st.lists(st.integers(1, 4), min_size=1 + (kind == "TensorScatter"), max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    dtype, name = draw(st.sampled_from([(np.float32, "Float"), (np.int64, "Long"), (np.float16, "Half")]))
    axis = draw(st.integers(1 if kind == "TensorScatter" else 0, len(shape) - 1))
    attributes: dict[str, Any] = {}
    worst = 0 if draw(st.booleans()) else 1  # indices may be out of range by so much
    if kind == "TensorScatter":
        sizes = [draw(st.integers(0, d)) if at == axis else d for at, d in enumerate(shape)]
        attributes = {"axis": axis, "mode": draw(st.sampled_from(['"linear"', '"circular"']))}
        indices = random.integers(0, shape[axis] + worst, shape[0])
    else:
        if draw(st.booleans()):
            attributes["reduction"] = draw(st.sampled_from(['"add"', '"mul"', '"max"', '"min"']))
        if kind == "ScatterElements":
            sizes = [draw(st.integers(0, d)) for d in shape]
            attributes["axis"] = axis
            indices = random.integers(-shape[axis] - worst, shape[axis] + worst, sizes)
        else:
            depth, rows = draw(st.integers(1, len(shape))), draw(st.integers(0, 4))
            sizes = [rows, *shape[depth:]]
            indices = np.stack([random.integers(-d - worst, d + worst, rows) for d in shape[:depth]], -1)
    spelt = f"[{', '.join(f'{key}={value}' for key, value in attributes.items())}]" if attributes else ""
    operands = "%past, %x, %i" if kind == "TensorScatter" else "%past, %i, %x"
    types = ", ".join(
        f"%{n} : {t}({', '.join('*' * r)})" for n, t, r in (("past", name, len(shape)), ("x", name, len(sizes)))
    )
    text = f"""graph({types}, %i : Long({", ".join("*" * indices.ndim)})):
      %y : {name}({", ".join("*" * len(shape))}) = onnx::{kind}{spelt}({operands})
      return (%y)"""
    model = irc.compile(parse_graph(text))
    feeds = {
        "past": random.integers(-9, 9, shape).astype(dtype),
        "x": random.integers(-9, 9, sizes).astype(dtype),
        "i": indices.astype(np.int64),
    }
    before, wrong = feeds["past"].copy(), None
    try:
        expected = model.run(feeds)["y"]
    except irc.Error as error:
        wrong = error.message
    assert model.counters.in_place == 0
    if wrong is None:
        found = model.run(feeds, donate=["past"])["y"]
        assert np.shares_memory(found, feeds["past"]) or not found.size
        np.testing.assert_array_equal(found, expected)
    else:
        with pytest.raises(irc.Error) as caught:
            model.run(feeds, donate=["past"])
        assert caught.value.message == wrong
        np.testing.assert_array_equal(feeds["past"], before)


TORCH = {
    "select_scatter": "aten::select_scatter(%past, %part, %c1, %i)",
    "slice_scatter": "aten::slice_scatter(%past, %x, %c1, %i, %end, %c1)",
}


def of_torch(kind: str, *, loop: bool):
    """A graph that scatters by TorchScript's operator, once or in each of three iterations; and inputs."""
    steps = f"""%end : int = aten::add(%i, %c1)
      %part : Tensor = aten::select(%x, %c1, %c0)
      %y : Float(3, 4, 2) = {TORCH[kind]}"""
    if loop:
        steps = f"""%go : bool = prim::Constant[value=1]()
      %r : Float(3, 4, 2) = prim::Loop(%n, %go, %given)
        block0(%i : int, %past : Float(3, 4, 2)):
          {steps}
          -> (%go, %y)"""
    names = ("given", "n") if loop else ("past", "i")
    graph = parse_graph(f"""graph(%{names[0]} : Float(3, 4, 2), %x : Float(3, 1, 2), %{names[1]} : int):
      %c0 : int = prim::Constant[value=0]()
      %c1 : int = prim::Constant[value=1]()
      {steps}
      return (%{"r" if loop else "y"})""")
    random = np.random.default_rng(0)
    arrays = (random.standard_normal((3, n, 2), np.float32) for n in (4, 1))
    return graph, dict(zip([v.name for v in graph.inputs], [*arrays, 3]))


@pytest.mark.parametrize("kind", TORCH)
def test_torch_operators_write_into_arrays_in_c_order_only(kind: str):
    graph, feeds = of_torch(kind, loop=False)
    (expected,) = interpret(graph, list(feeds.values()))
    model = irc.compile(graph)
    lies = np.ascontiguousarray(feeds["past"].swapaxes(0, 1)).swapaxes(0, 1)
    (y,) = model.run({**feeds, "past": lies}, donate=["past"]).values()
    np.testing.assert_array_equal(y, expected)
    assert model.counters.in_place == 0


@pytest.mark.parametrize("kind", TORCH)
def test_errors_of_torch_operators_are_found_before_anything_is_written(kind: str):
    graph, feeds = of_torch(kind, loop=False)
    before = feeds["past"].copy()
    for wrong in ({"x": feeds["x"][:2]}, {"i": 9}):
        with pytest.raises(irc.Error):
            irc.compile(graph).run({**feeds, **wrong}, donate=["past"])
        np.testing.assert_array_equal(feeds["past"], before)
