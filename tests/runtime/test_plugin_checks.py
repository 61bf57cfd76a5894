"""Kernels of other packages: what they return is checked, and they are named where it is wrong."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from onnx import helper

import irc
from irc.errors import Error
from irc.ir import TensorType, parse_graph, parse_module
from irc.ops import Operator, register
from irc.passes import PassManager, shape_rule
from irc.runtime.kernels import registry
from irc.runtime.plan import lower
from tests.graphs import ir
from tests.models import onnx_model
from tests.operators import operator_of, records_for_a_while
from tests.runtime.helpers import f32

X = f32(1, 2, 3)


def other(node: Any) -> Callable[..., Any]:
    return node.attributes["kernel"]


@pytest.fixture(autouse=True)
def registered(own_registries: None) -> Iterator[None]:
    registry.kernel("test::other")(other)
    with records_for_a_while():
        yield


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
        (lambda x: x[:2], ["Float(3)"], "returns float32[2] where Float(3) is promised"),
        (lambda x: x[None], ["Float(N)"], "returns float32[1, 3] where Float(N) is promised"),
        (lambda x: (x, x), ["Float(3)", "Tensor(1, *)"], "returns float32[3] where Tensor(1, *) is promised"),
        (lambda x: [x, x[:2]], ["Float(3)[]"], "where Float(3)[] is promised"),
        (
            lambda x: np.ma.masked_less(x, 2),
            ["Tensor"],
            "MaskedArray float32[3] where Tensor is promised: masked arrays are not supported",
        ),
        (lambda x: x.astype("m8[s]"), ["Tensor"], "NumPy's timedelta64[s] is not an element type of tensors"),
        (lambda x: np.array(["a", None], object), ["Tensor"], "where Tensor is promised: expected strings"),
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
    assert run(lambda x: x[:2], "Float(N)")[0].tolist() == [1, 2]


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
            return [list if isinstance(value, list) else tuple, *map(kinds, value)]
        return [dict, *map(kinds, value), *map(kinds, value.values())] if isinstance(value, dict) else value.__class__

    (found,) = run(kernel, type)
    assert found == expected and kinds(found) == kinds(expected)


def test_a_kernel_of_others_for_an_operator_of_irc_s_may_run_in_place() -> None:
    def double(node: Any) -> Callable[..., Any]:
        return lambda x, out=None: np.add(x, x, out=out)

    graph = parse_graph(
        "graph(%x : Float(3)):\n  %a : Float(3) = onnx::Neg(%x)\n  %y : Float(3) = onnx::Exp_(%a)\n  return (%y)"
    )
    assert registry.find_binder("onnx::Exp", None) is not None  # loaded, so that it is there again afterwards
    with patch.dict(registry._BINDERS, {"onnx::Exp": ([1], [double])}):
        assert lower(graph).run([X])[0].tolist() == [-2, -4, -6]


def wide(node: Any) -> Callable[..., Any]:
    return lambda x, y, out=None: np.add(x, y, out=out)


@pytest.fixture
def pointwise_wide() -> Iterator[None]:
    registry.kernel("test::wide")(wide)
    with records_for_a_while({"test::wide": Operator("test::wide", pointwise=True)}):
        yield


@pytest.mark.usefixtures("pointwise_wide")
@pytest.mark.parametrize("count", [5, 4000])
def test_a_pointwise_kernel_promises_its_shape_wherever_it_writes(count: int) -> None:
    """Into memory of its own, or over an operand that nothing needs any more."""
    text = """graph(%x : Float(1, 64), %y : Float(*, 64)):
      %b : Tensor = onnx::Relu(%y)
      %c : Float({}, 64) = test::wide(%x, %b)
      %d : Tensor = onnx::Neg(%c)
      return (%d)
    """
    x, y = np.ones((1, 64), np.float32), np.ones((count, 64), np.float32)
    wrong = rf"IRC401: test::wide '%c': .*float32\[{count}, 64\] where Float\(1, 64\)"
    for fuse in ("none", "fuse"):
        model, other = (irc.compile(parse_module(text.format(n)), fuse) for n in (count, 1))
        for _ in range(3):
            assert (model.run({"x": x, "y": y})["d"] == -2).all()
            with pytest.raises(Error, match=wrong):
                other.run({"x": x, "y": y})


def test_where_a_kernel_or_its_binder_fails_is_told() -> None:
    def fails(x: Any) -> Any:
        return nowhere(x)  # noqa: F821  # type: ignore[reportUndefinedVariable]

    def binder(node: Any) -> Callable[..., Any]:
        return 1 // len(node.attributes)

    place = re.escape(__file__)
    line = fails.__code__.co_firstlineno + 1
    with pytest.raises(Error, match=rf"IRC401: test::other '%y0': NameError: .*\({place}:{line}\); inputs: "):
        run(fails, "Tensor")
    registry.kernel("test::other")(binder)
    graph = parse_graph("graph(%x : Float(3)):\n  %y : Tensor = test::other(%x)\n  return (%y)")
    line = binder.__code__.co_firstlineno + 1
    with pytest.raises(Error, match=rf"IRC324: test::other '%y': .*ZeroDivisionError: .*\({place}:{line}\)$"):
        lower(graph)


def model_of(row: str, call: str, kernel: Any, pointwise: bool = False) -> irc.CompiledModel:
    """A model of one call of an operator that is registered by ``row``, on ``%x``, with this kernel."""
    kind = row.partition("(")[0]
    register(operator_of(row, pointwise=pointwise))
    registry.kernel(kind)(lambda node: kernel)
    return irc.compile(parse_module(f"graph(%x : Float(3)):\n  %y : Tensor = {kind}{call}\n  return (%y)"))


@pytest.mark.parametrize("bias", ["Tensor? bias", "Tensor? bias=None"])
def test_inputs_that_are_left_out_are_none_where_the_kernel_needs_them(bias: str) -> None:
    row = f"test.given::Bias{bias.count('=')}(Tensor x, {bias}) -> Tensor"
    model = model_of(row, "(%x)", lambda x, bias: x + (1 if bias is None else bias))
    assert model.run({"x": X})["y"].tolist() == [2, 3, 4]
    defaults = model_of(row.replace("Bias", "Default"), "(%x)", lambda x, bias=5: x + bias)
    assert defaults.run({"x": X})["y"].tolist() == [6, 7, 8]


def test_inputs_that_are_left_out_of_pointwise_operators() -> None:
    def kernel(x: Any, y: Any, out: Any = None) -> Any:
        assert y is None
        return np.add(x, np.float32(1), out=out)

    model = model_of("test.given::Next(Tensor x, Tensor? y=None) -> Tensor", "(%x)", kernel, pointwise=True)
    assert model.run({"x": X})["y"].tolist() == [2, 3, 4]


def test_more_inputs_than_the_row_has() -> None:
    with pytest.raises(Error, match=r"IRC213.*the inputs do not fit test.given::One\(Tensor x\) -> Tensor"):
        model_of("test.given::One(Tensor x) -> Tensor", "(%x, %x)", lambda x: x + 1)


@pytest.mark.parametrize("outputs", [["y"], ["y", ""], ["", "y"]])
def test_results_that_a_node_leaves_out(outputs: list[str]) -> None:
    register(operator_of("test.given::Both(Tensor x) -> (Tensor, Tensor)"))
    proto = onnx_model(helper.make_node("Both", ["x"], outputs, domain="test.given"), {"x": [3]}, test_given=1)
    registry.kernel("test.given::Both")(lambda node: lambda x: (x + 1, x + 2))
    assert irc.compile(proto).run({"x": X})["y"].tolist() == ([2, 3, 4] if outputs[0] else [3, 4, 5])
    registry.kernel("test.given::Both")(lambda node: lambda x: x + 1)
    with pytest.raises(Error, match=r"returns float32\[3\], not a tuple of 2"):
        irc.compile(proto).run({"x": X})


def test_operators_of_others_that_write_keep_what_is_known_of_shapes() -> None:
    def write(x: Any, y: Any) -> Any:
        x += y
        return x

    register(operator_of("test.given::Add_(Tensor(a!) x, Tensor y) -> Tensor(a!)"))
    registry.kernel("test.given::Add_")(lambda node: write)
    shape_rule("test.given::Add_")(lambda types: TensorType(types.dtype(0), types.shape(0)))
    text = ir("""
        x: Float(3) -> c
        a = Relu(x); b = test.given.Add_(a, x); c = Exp(b)
    """)
    model = irc.compile(parse_module(text), "shape-inference,default")
    assert [str(model.graph.value(name).type) for name in "bc"] == ["Float(3)", "Float(3)"]
    np.testing.assert_allclose(model.run({"x": X})["c"], np.exp(2 * X), rtol=1e-6)


def test_a_shape_rule_whose_definition_is_run_again_takes_the_place_of_the_first() -> None:
    def definition(size: int) -> None:
        @shape_rule("test.given::Sized")
        def sized(types: Any) -> Any:
            return TensorType(types.dtype(0), (size,))

    register(operator_of("test.given::Sized(Tensor x) -> Tensor"))
    definition(2)
    definition(3)
    graph = parse_graph("graph(%x : Float(3)):\n  %y : Tensor = test.given::Sized(%x)\n  return (%y)")
    PassManager("shape-inference").run(graph)
    assert str(graph.value("y").type) == "Float(3)"
    with pytest.raises(Error, match=r"IRC304: test.given::Sized: two shape rules, of tests\..* and tests\."):
        shape_rule("test.given::Sized")(lambda types: types.type(0))
