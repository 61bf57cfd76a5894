"""Results that are made where they are copied to: what is made there, and what must not be."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.ir import parse_graph
from irc.runtime import destinations
from tests.effort import Tune

HEAD = """graph(%x : Float(6, 8), %y : Float(6, 8)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %5 : int = prim::Constant[value=5]()
  %7 : int = prim::Constant[value=7]()
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %out : Float(6, 8) = aten::clone(%x, %none)
  prim::Loop(%5, %true)
    block0(%i : int):
      %j : int = aten::add(%i, %1)
"""
TAIL = """      -> (%true)
  return (%out{})
"""
ROW = "%a : Tensor = aten::select(%y, %0, %i)"
INTO = "%d : Tensor = aten::select(%out, %0, %i)"


def graph_of(*lines: str, more: str = "") -> irc.ir.Graph:
    return parse_graph(HEAD + "".join(f"      {line}\n" for line in lines) + TAIL.format(more))


def run(graph: irc.ir.Graph, backend: str, passes: str) -> tuple[list[np.ndarray], int]:
    """The outputs of a second run, and how many results were made over or in others."""
    rng = np.random.default_rng(0)
    feeds = {name: rng.random((6, 8), np.float32) for name in "xy"}
    model = irc.compile(graph, backend=backend, passes=passes)
    model.run(feeds)
    return [*model.run(feeds).values()], model.counters.in_place


def expected(change) -> np.ndarray:
    rng = np.random.default_rng(0)
    x, y = (rng.random((6, 8), np.float32) for _ in "xy")
    out = x.copy()
    for i in range(5):
        change(out, x, y, i)
    return out


def assign(at, value):
    def change(out, x, y, i):
        out[at(i)] = value(out, x, y, i)

    return change


MADE_THERE = {
    "a row": (
        [ROW, "%t : Tensor = aten::mul(%a, %2)", INTO, "%w : Tensor = aten::copy_(%d, %t, %false)"],
        assign(lambda i: i, lambda out, x, y, i: y[i] * 2),
    ),
    "a row of a function of two": (
        [
            ROW,
            "%b : Tensor = aten::select(%x, %0, %j)",
            "%m : Tensor = aten::mul(%a, %b)",
            "%t : Tensor = aten::add(%m, %a, %1)",
            INTO,
            "%w : Tensor = aten::copy_(%d, %t, %false)",
        ],
        assign(lambda i: i, lambda out, x, y, i: y[i] * x[i + 1] + y[i]),
    ),
    "what is made of constants alone": (
        [
            "%k : Float(8) = prim::Constant[value=tensor([1., 2., 3., 4., 5., 6., 7., 8.])]()",
            "%t : Tensor = aten::mul(%k, %2)",
            INTO,
            "%w : Tensor = aten::copy_(%d, %t, %false)",
            "%v : Tensor = aten::neg_(%d)",
        ],
        assign(lambda i: i, lambda out, x, y, i: -2 * np.arange(1, 9, dtype=np.float32)),
    ),
}
COPIED = {
    "what reads the row before": (
        [
            "%a : Tensor = aten::slice(%out, %0, %i, %none, %1)",
            "%b : Tensor = aten::slice(%a, %0, %0, %1, %1)",
            "%t : Tensor = aten::mul(%b, %2)",
            "%d : Tensor = aten::slice(%out, %0, %1, %2, %1)",
            "%w : Tensor = aten::copy_(%d, %t, %false)",
        ],
        assign(lambda i: slice(1, 2), lambda out, x, y, i: out[i : i + 1] * 2),
    ),
    "what is read again": (
        [
            ROW,
            "%t : Tensor = aten::mul(%a, %2)",
            INTO,
            "%w : Tensor = aten::copy_(%d, %t, %false)",
            "%v : Tensor = aten::neg_(%d)",
            "%e : Tensor = aten::select(%out, %0, %j)",
            "%u : Tensor = aten::add_(%e, %t, %1)",
        ],
        lambda out, x, y, i: (out.__setitem__(i, -(y[i] * 2)), out.__setitem__(i + 1, out[i + 1] + y[i] * 2)),
    ),
    "what reads something that is written before the copy": (
        [
            "%a : Tensor = aten::clone(%y, %none)",
            "%b : Tensor = aten::select(%a, %0, %i)",
            "%t : Tensor = aten::mul(%b, %2)",
            "%z : Tensor = aten::zero_(%a)",
            INTO,
            "%w : Tensor = aten::copy_(%d, %t, %false)",
        ],
        assign(lambda i: i, lambda out, x, y, i: y[i] * 2),
    ),
    "an element, for a row": (
        [
            ROW,
            "%b : Tensor = aten::select(%a, %0, %0)",
            "%t : Tensor = aten::mul(%b, %2)",
            INTO,
            "%w : Tensor = aten::copy_(%d, %t, %false)",
        ],
        assign(lambda i: i, lambda out, x, y, i: y[i, 0] * 2),
    ),
    "another element type": (
        [
            ROW,
            "%b : Tensor = aten::to(%a, %7, %false, %false, %none)",
            "%t : Tensor = aten::mul(%b, %2)",
            INTO,
            "%w : Tensor = aten::copy_(%d, %t, %false)",
        ],
        assign(lambda i: i, lambda out, x, y, i: y[i] * 2),
    ),
    "a column": (
        [
            "%a : Tensor = aten::select(%y, %1, %i)",
            "%t : Tensor = aten::mul(%a, %2)",
            "%d : Tensor = aten::select(%out, %1, %i)",
            "%w : Tensor = aten::copy_(%d, %t, %false)",
        ],
        assign(lambda i: (slice(None), i), lambda out, x, y, i: y[:, i] * 2),
    ),
    "more rows in each iteration": (
        [
            "%a : Tensor = aten::slice(%y, %0, %0, %j, %1)",
            "%t : Tensor = aten::mul(%a, %2)",
            "%d : Tensor = aten::slice(%out, %0, %0, %j, %1)",
            "%w : Tensor = aten::copy_(%d, %t, %false)",
        ],
        assign(lambda i: slice(0, i + 1), lambda out, x, y, i: y[: i + 1] * 2),
    ),
    "one row, for more in each iteration": (
        [
            ROW,
            "%t : Tensor = aten::mul(%a, %2)",
            "%d : Tensor = aten::slice(%out, %0, %0, %j, %1)",
            "%w : Tensor = aten::copy_(%d, %t, %false)",
        ],
        assign(lambda i: slice(0, i + 1), lambda out, x, y, i: y[i] * 2),
    ),
}


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("case", [*MADE_THERE, *COPIED])
def test_copies_of_results_are_what_they_are_without(case: str, backend: str, passes: str) -> None:
    lines, change = {**MADE_THERE, **COPIED}[case]
    (out,), in_place = run(graph_of(*lines), backend, passes)
    np.testing.assert_allclose(out, expected(change), rtol=1e-6)
    if passes == "none":
        written = sum("_(" in line for line in lines)
        assert in_place == 5 * (written + (case in MADE_THERE))


def stacking(body_nodes: list[onnx.NodeProto], state: str, row: str) -> onnx.ModelProto:
    """A Scan over the rows of `xs` that carries `s`."""

    def value(name: str, *shape: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    body = helper.make_graph(body_nodes, "body", [value("s", 8), value("x", 8)], [value(state, 8), value(row, 8)])
    scan = helper.make_node("Scan", ["s0", "xs"], ["last", "rows"], body=body, num_scan_inputs=1)
    graph = helper.make_graph(
        [scan], "g", [value("s0", 8), value("xs", 20, 8)], [value("last", 8), value("rows", 20, 8)]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


STACKS = {
    "a row alone": (["Add s x t", "Mul t x r"], "t", "r", lambda s, x: (s + x, (s + x) * x)),
    "a row that is carried, too": (["Add s x t", "Identity t r"], "t", "r", lambda s, x: (s + x, s + x)),
    "a row that is read in the iteration": (["Add s x r", "Neg r t"], "t", "r", lambda s, x: (-(s + x), s + x)),
    "a row that is a view of what is carried": (
        ["Add s x t", "Reshape t shape r"],
        "t",
        "r",
        lambda s, x: (s + x, s + x),
    ),
}


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("case", STACKS)
def test_rows_that_loops_stack(case: str, backend: str, passes: str) -> None:
    lines, state, row, step = STACKS[case]
    nodes = [helper.make_node(kind, ins, [out]) for kind, *ins, out in map(str.split, lines)]
    shape = helper.make_tensor("v", TensorProto.INT64, [1], [8])
    nodes.insert(0, helper.make_node("Constant", [], ["shape"], value=shape))
    model = irc.compile(stacking(nodes, state, row), backend=backend, passes=passes)
    rng = np.random.default_rng(0)
    feeds = {"s0": rng.random(8, np.float32), "xs": rng.random((20, 8), np.float32)}
    last, rows = feeds["s0"], []
    for x in feeds["xs"]:
        last, made = step(last, x)
        rows.append(made)
    for _ in range(3):
        found = model.run(feeds)
        np.testing.assert_allclose(found["rows"], np.stack(rows), rtol=1e-5)
        np.testing.assert_allclose(found["last"], last, rtol=1e-5)


CACHE = """graph(%x : Float(6, 8), %y : Float(6, 8)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %first : Float(6, 8) = aten::clone(%x, %none)
  %out : Tensor = prim::Loop(%3, %true, %first)
    block0(%i : int, %c : Tensor):
      %j : int = aten::add(%i, %1)
      %row : Tensor = aten::slice(%y, %0, %i, %j, %1)
      %k : Tensor = aten::relu(%row)
      LINES
      %l : Tensor[] = prim::ListConstruct(PARTS)
      %r : Tensor = aten::cat(%l, %0)
      -> (%true, RETURNED)
  return (%out)
"""
CUT = "%a : Tensor = aten::slice(%c, %0, %none, %i, %1)\n      %b : Tensor = aten::slice(%c, %0, %j, %none, %1)"


def written(c: np.ndarray, y: np.ndarray, i: int) -> np.ndarray:
    return np.concatenate([c[:i], y[i : i + 1], c[i + 1 :]])


CACHES = {  # lines, parts, what is returned, what an iteration makes, and how many iterations write in place
    "a row between what is before and behind": (CUT, "%a, %k, %b", "%r", written, 3),
    "what is read again": (CUT, "%a, %k, %b", "%s", lambda c, y, i: written(c, y, i) + c, 0),
    "a part of the cache itself": (
        CUT.replace("%a :", "%k2 : Tensor = aten::slice(%c, %0, %3, %none, %1)\n      %a :"),
        "%a, %k2",
        "%r",
        lambda c, y, i: np.concatenate([c[:i], c[3:]]),
        1,  # the last, of what is behind its end
    ),
    "halves that change places": (
        "%a : Tensor = aten::slice(%c, %0, %none, %3, %1)\n      %b : Tensor = aten::slice(%c, %0, %3, %none, %1)",
        "%b, %a",
        "%r",
        lambda c, y, i: np.concatenate([c[3:], c[:3]]),
        0,
    ),
    "two rows that change places": (
        "%a : Tensor = aten::slice(%c, %0, %none, %3, %1)\n      %p : Tensor = aten::slice(%a, %0, %1, %2, %1)\n"
        "      %q : Tensor = aten::slice(%a, %0, %0, %1, %1)\n      %b : Tensor = aten::slice(%c, %0, %2, %none, %1)",
        "%p, %q, %b",
        "%r",
        lambda c, y, i: np.concatenate([c[1:2], c[0:1], c[2:]]),
        0,
    ),
    "more rows than there were": (
        "%a : Tensor = aten::slice(%c, %0, %none, %i, %1)\n      %b : Tensor = aten::slice(%c, %0, %i, %none, %1)",
        "%a, %k, %b",
        "%r",
        lambda c, y, i: np.concatenate([c[:i], y[i : i + 1], c[i:]]),
        0,
    ),
}


@pytest.mark.parametrize("least", [0, destinations.LEAST])
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("case", CACHES)
def test_rows_are_written_between_parts_that_lie_in_their_places(
    case: str, backend: str, least: int, tune: Tune
) -> None:
    tune("irc.runtime.destinations.LEAST", least)
    lines, parts, returned, step, count = CACHES[case]
    text = CACHE.replace("LINES", lines).replace("PARTS", parts).replace("RETURNED", returned)
    if returned == "%s":
        text = text.replace("      -> (%true", "      %s : Tensor = aten::add(%r, %c, %1)\n      -> (%true")
    (out,), in_place = run(parse_graph(text), backend, "none")
    rng = np.random.default_rng(0)
    cache, y = (rng.random((6, 8), np.float32) for _ in "xy")
    for i in range(3):
        cache = step(cache, y, i)
    np.testing.assert_array_equal(out, cache)
    assert in_place == count


@pytest.mark.parametrize("donate", [[], ["cache"]])
def test_a_cache_that_is_given_up_is_written_where_it_is(donate: list[str]) -> None:
    def numbers(name: str, value: int) -> onnx.TensorProto:
        return helper.make_tensor(name, TensorProto.INT64, [1], [value])

    values = [numbers("0", 0), numbers("2", 2), numbers("3", 3), numbers("9", 9)]
    nodes = [
        helper.make_node("Slice", ["cache", "0", "2"], ["head"]),
        helper.make_node("Slice", ["cache", "3", "9"], ["tail"]),
        helper.make_node("Concat", ["head", "row", "tail"], ["out"], axis=0),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [n, 8]) for name, n in (("cache", 6), ("row", 1))]
    made = helper.make_tensor_value_info("out", TensorProto.FLOAT, [6, 8])
    graph = helper.make_graph(nodes, "g", inputs, [made], values)
    model = irc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    for _ in range(3):
        cache, row = np.ones((6, 8), np.float32), np.zeros((1, 8), np.float32)
        out = model.run({"cache": cache, "row": row}, donate=donate)["out"]
        np.testing.assert_array_equal(out[:, 0], [1, 1, 0, 1, 1, 1])
        assert np.shares_memory(out, cache) == bool(donate) and (donate or cache.all())
