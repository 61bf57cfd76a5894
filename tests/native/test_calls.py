"""Kernels that are called again with whatever comes next: they look at it, and refuse what they were not made for."""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.graphs import ir, typed_ir

pytest.importorskip("llvmlite")

import irc
from irc.ir import Graph, parse_graph
from irc.native.groups import Group
from irc.runtime.backends import ArrayType

X = np.arange(12, dtype=np.float32).reshape(3, 4)


POINTWISE = ir("""
    x, y: Tensor -> b
    a = Mul(x, y); b = Add(a, y)
""")


def compiled(graph: Graph, *operands: np.ndarray[Any, Any]) -> Any:
    made = Group(list(graph.nodes), list(graph.inputs), list(graph.outputs))
    return made.kernel([ArrayType(x.dtype, x.shape) for x in operands])


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
