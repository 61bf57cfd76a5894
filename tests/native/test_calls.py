"""Kernels that are called again with whatever comes next: they look at it, and refuse what they were not made for."""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.graphs import typed_ir

pytest.importorskip("llvmlite")

import irc
from irc.ir import Graph, parse_graph
from irc.native.calls import Expected, call_of
from irc.native.groups import Group
from irc.runtime.backends import ArrayType

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Own(np.ndarray[Any, Any]):
    """Another class of arrays."""


def test_a_call_takes_what_it_expects() -> None:
    looks = call_of(0, [Expected(X.dtype, X.shape)], (), 0, releases=False)
    strided = call_of(0, [Expected(X.dtype, (4, 3), X.T.strides)], (), 0, releases=False)
    assert looks(X) is looks(X.copy()) is True
    assert strided(X.T) is True
    wrong: list[Any] = [
        X.astype(np.int32),
        X.astype(">f4"),
        X.reshape(4, 3),
        X.reshape(12),
        X[None],
        X[:2],
        X[:, ::-1],
        np.asfortranarray(X),
        X.view(Own),
        X.tolist(),
        None,
        np.float32(1),
    ]
    for x in wrong:
        assert looks(x) is False
    for x in (X, X.reshape(4, 3), X.T.copy(), X.T[:3], X.T.astype(np.int32)):
        assert strided(x) is False
    assert looks() is looks(X, X) is False


def test_an_array_without_axes_and_one_without_elements() -> None:
    for x in (np.array(1.5), np.zeros((0, 3)), np.zeros((2, 0))):
        looks = call_of(0, [Expected(x.dtype, x.shape)], (), 0, releases=False)
        assert looks(x) is True
        assert looks(np.zeros((2, 3))) is False


POINTWISE = """
graph(%x : Tensor, %y : Tensor):
  %a = onnx::Mul(%x, %y)
  %b = onnx::Add(%a, %y)
  return (%b)
"""
ROWS = typed_ir("x, y: Tensor", "a = Add(x, y); b = Softmax(a, axis=-1)", "a, b")


def compiled(graph: Graph, *operands: np.ndarray[Any, Any]) -> Any:
    made = Group(list(graph.nodes), list(graph.inputs), list(graph.outputs))
    return made.kernel([ArrayType(x.dtype, x.shape) for x in operands])


def test_rows_of_operands_without_axes_and_across() -> None:
    graph, y = parse_graph(ROWS), np.array(2, np.float32)
    kernel = compiled(graph, X, y)
    wanted = irc.compile(graph, "", backend="numpy").run({"x": X, "y": y})
    for found, result in zip(kernel(np.asfortranarray(X), y), wanted.values(), strict=True):
        np.testing.assert_allclose(found, result, rtol=1e-6)


def test_a_group_without_results() -> None:
    graph = parse_graph(POINTWISE.replace("return (%b)", "return ()"))
    kernel = compiled(graph, X, X)
    assert kernel(X, X) == kernel(X, X, out=[]) == ()
    assert kernel(X, X[:2]) is NotImplemented


@pytest.mark.parametrize("first", ["q", "l"])
def test_both_integers_of_64_bits_are_one_type(first: str) -> None:
    x = np.arange(6)
    kernel = compiled(parse_graph(POINTWISE), x.astype(first), x.astype(first))
    for one, other, out in itertools.product("ql", "ql", ["", "q", "l"]):
        given = None if not out else np.empty(6, out)
        made = kernel(x.astype(one), x.astype(other), out=given)
        assert np.array_equal(made, x * x + x)
        assert given is None or made is given


PROMOTED = typed_ir("x, y: Tensor", "a = aten.add(x, y, 1); b = aten.gt(a, x)", "b")


def test_what_is_between_may_have_another_type() -> None:
    """A number without axes does not widen float32, one with axes does; operands and result are of the same types."""
    graph, x = parse_graph(PROMOTED), np.ones(3, np.float32)
    made = Group(list(graph.nodes), list(graph.inputs), list(graph.outputs))
    y = np.array(1e-9)
    for given, wanted in ((y, False), (y[None], True), (y, False)):
        kernel = made.kernel([ArrayType(each.dtype, each.shape) for each in (x, given)])
        assert kernel(x, given).tolist() == [wanted] * 3


MODEL = typed_ir(
    "x, w, y: Tensor",
    "g = Sigmoid(MatMul(x, w)); p = Add(g, y); s = Softmax(Sub(p, ReduceMean(p, axes=[-1], since_version=13)))",
    "g, s",
)


@pytest.mark.parametrize("passes", ["", "default"])
def test_operands_of_other_types_from_run_to_run(passes: str) -> None:
    rng = np.random.default_rng(0)
    models = [irc.compile(parse_graph(MODEL), passes, backend=backend) for backend in ("native", "numpy")]

    def feeds(rows: int, columns: int, others: int, dtype: Any) -> dict[str, Any]:
        shapes = {"x": (rows, 4), "w": (4, columns), "y": (others, columns)}
        return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}

    kinds = [(1, 3, 1), (1, 3, 5), (5, 3, 5), (5, 1, 5), (2, 40, 1), (1, 1, 1), (5, 3, 1)]
    runs = [feeds(*kind, dtype) for kind in kinds for dtype in (np.float32, np.float64)]
    order = [*runs, *runs, *reversed(runs), *(each for run in runs for each in (run, runs[0], run))]
    for given in order:
        found, wanted = (model.run(given) for model in models)
        for name, result in wanted.items():
            assert found[name].dtype == result.dtype
            np.testing.assert_allclose(found[name], result, rtol=1e-5, atol=1e-6)


def test_memory_that_a_call_cannot_have() -> None:
    looks = call_of(1, [Expected(X.dtype, X.shape)], (), 0, releases=False, scratch=1 << 62)
    with pytest.raises(MemoryError):
        looks(X)


def test_groups_that_are_alike_share_code() -> None:
    """Groups that differ in weights alone: a model with a hundred like blocks reads and links one."""
    text = "graph(%x : Float(3, 4)):\n  %w : Float(4) = prim::Constant[value=tensor({})]()\n"
    text += "  %a = onnx::Mul(%x, %w)\n  %b = onnx::Softmax[axis=-1](%a)\n  return (%b)"
    graphs = [parse_graph(text.format(weights)) for weights in ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0])]
    groups = [Group(list(graph.nodes), list(graph.inputs), list(graph.outputs)) for graph in graphs]
    kernels = [group.kernel([ArrayType(X.dtype, X.shape)]) for group in groups]
    codes = [group._latest[1][0].ordered.code for group in groups]
    assert codes[0] is codes[1]
    for graph, kernel in zip(graphs, kernels):
        np.testing.assert_allclose(kernel(X), irc.compile(graph, "", backend="numpy").run({"x": X})["b"], rtol=1e-5)
