"""Kernels of other packages: what they return is checked, and they are named where it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.ir import parse_graph
from irc.runtime import kernels
from irc.runtime.binding import bind
from irc.runtime.kernels import registry
from irc.runtime.plan import lower
from tests.runtime.helpers import f32

X = f32(1, 2, 3)


def other(node: Any) -> Callable[..., Any]:
    return node.attributes["kernel"]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._BINDERS, "test::other", ([1], [other]))


def run(kernel: Callable[..., Any], *types: str) -> list[Any]:
    """What a graph gives whose one operator of others, with results of ``types``, has this kernel."""
    results = ", ".join(f"%y{i} : {type}" for i, type in enumerate(types))
    names = ", ".join(f"%y{i}" for i in range(len(types)))
    graph = parse_graph(f"graph(%x : Float(3)):\n  {results} = test::other(%x)\n  return ({names})")
    next(iter(graph.nodes)).attributes["kernel"] = kernel
    return lower(graph).run([X])


@pytest.mark.parametrize(
    ("kernel", "types", "message"),
    [
        (lambda x: None, ["Tensor"], "returns absent where Tensor is promised"),
        (lambda x: 3.0, ["Tensor"], "returns float 3.0 where Tensor is promised"),
        (lambda x: [x], ["Tensor"], "returns list of 1 (float32[3], ...) where Tensor is promised"),
        (lambda x: x.astype(float), ["Float(3)"], "returns float64[3] where Float(3) is promised"),
        (lambda x: x.mean(dtype=float), ["Float()"], "returns float64 np.float64(2.0) where Float() is promised"),
        (lambda x: x, ["Tensor", "Tensor"], "returns float32[3], not a tuple of 2"),
        (lambda x: (x,), ["Tensor", "Tensor"], "returns tuple of 1 (float32[3], ...), not a tuple of 2"),
        (lambda x: (x, None), ["Tensor", "Tensor"], "returns absent where Tensor is promised"),
        (lambda x: x, ["Tensor[]"], "returns float32[3] where Tensor[] is promised"),
        (lambda x: [x, 1], ["Tensor[]"], "where Tensor[] is promised"),
        (lambda x: [x.astype(float)], ["Float(3)?[]"], "where Float(3)?[] is promised"),
        (
            lambda x: [x, x],
            ["(Tensor, Tensor)"],
            "returns list of 2 (float32[3], ...) where (Tensor, Tensor) is promised",
        ),
        (lambda x: (x,), ["(Tensor, Tensor)"], "where (Tensor, Tensor) is promised"),
        (lambda x: {"a": None}, ["Dict(str, Tensor)"], "where Dict(str, Tensor) is promised"),
        (lambda x: x, ["Dict(str, Tensor)"], "returns float32[3] where Dict(str, Tensor) is promised"),
    ],
)
def test_what_is_not_promised_is_the_kernel_s_fault(kernel: Any, types: list[str], message: str) -> None:
    with pytest.raises(Error) as caught:
        run(kernel, *types)
    assert (caught.value.code, caught.value.where) == ("IRC401", "test::other '%y0'")
    assert f"its kernel, by {__name__}.other, " in caught.value.message
    assert message in caught.value.message


def test_what_is_promised_passes() -> None:
    (total,) = run(lambda x: x.sum(), "Float()")
    assert isinstance(total, np.ndarray) and (total.dtype, total.shape, float(total)) == (np.float32, (), 6)
    assert run(lambda x: (x.max(), 2), "Tensor", "int") == [np.float32(3), 2]
    assert run(lambda x: None, "Tensor?") == [None]
    (pair,) = run(lambda x: [x, x], "Tensor[]")
    assert [part.tolist() for part in pair] == [[1, 2, 3]] * 2
    (count,) = run(lambda x: x.size * np.int64(1), "int")
    assert type(count) is int and count == 3


@pytest.mark.parametrize(
    ("kernel", "type", "expected"),
    [
        (lambda x: x.sum(), "Tensor?", np.array(6, np.float32)),
        (lambda x: [x.sum()], "Tensor[]", [np.array(6, np.float32)]),
        (lambda x: (x.sum(), x.size * np.int64(1)), "(Tensor, int)", (np.array(6, np.float32), 3)),
        (lambda x: ([(np.int64(3), None)],), "((int, Tensor?)[])", ([(3, None)],)),
        (lambda x: {np.str_("a"): x.max()}, "Dict(str, float)", {"a": 3.0}),
    ],
)
def test_scalars_of_numpy_are_converted_where_they_stand(kernel: Any, type: str, expected: Any) -> None:
    def kinds(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [value.__class__, *map(kinds, value)]
        return [dict, *map(kinds, value), *map(kinds, value.values())] if isinstance(value, dict) else value.__class__

    (found,) = run(kernel, type)
    assert found == expected and kinds(found) == kinds(expected)


def test_what_needs_no_conversion_is_not_copied() -> None:
    rows, table = [X, X], {"a": [X]}
    found = run(lambda x: (rows, table), "Tensor[]", "Dict(str, Tensor[])")
    assert found[0] is rows and found[1] is table


def test_irc_s_own_kernels_are_called_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse_graph("graph(%x : Float(3)):\n  %y : Float(3) = onnx::Exp(%x)\n  return (%y)")
    made: list[Any] = []
    plain = kernels.bind
    monkeypatch.setattr(kernels, "bind", lambda node: made.append(plain(node)) or made[-1])
    assert [bind(node) for node in graph.nodes] == made
    assert len(made) == 1


def test_a_kernel_of_others_for_an_operator_of_irc_s_may_run_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(node: Any) -> Callable[..., Any]:
        return lambda x, out=None: np.add(x, x, out=out)

    graph = parse_graph(
        "graph(%x : Float(3)):\n  %a : Float(3) = onnx::Neg(%x)\n  %y : Float(3) = onnx::Exp_(%a)\n  return (%y)"
    )
    assert registry.find_binder("onnx::Exp", None) is not None  # loaded, so that what follows is undone
    monkeypatch.setitem(registry._BINDERS, "onnx::Exp", ([1], [double]))
    assert lower(graph).run([X])[0].tolist() == [-2, -4, -6]
