"""Overloads with ``out=``."""

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.frontend.torchscript import import_torchscript
from irc.ir import parse_graph
from tests.graphs import ir

TEXT = ir("x, y, out: Tensor", "q = div(x, y, out); r = relu(q)", "r, out, q")


@pytest.mark.parametrize(
    "passes", ["none", "default", "default,in-place", "default,remove-mutation,dce", "remove-mutation,in-place"]
)
@pytest.mark.parametrize("shape", [(3, 2), (1, 2, 3), (2, 3, 1), (6,), (7,), (0,), (2, 1), ()])
def test_tensors_of_another_shape_are_refused(shape: tuple[int, ...], passes: str) -> None:
    model = irc.compile(import_torchscript(TEXT), passes)
    with pytest.raises(irc.Error, match="cannot be written into a tensor of shape"):
        model.run({"x": np.ones((2, 3)), "y": np.ones((2, 3)), "out": np.zeros(shape)})


ONE = """
graph(%x : Tensor, %out : Tensor):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %off : bool = prim::Constant[value=0]()
  %dims : int[] = prim::ListConstruct(%zero)
  %parts : Tensor[] = prim::ListConstruct(%x)
  %r : Tensor = aten::CALL
  return (%r)
"""


@pytest.mark.parametrize("passes", ["none", "default,remove-mutation,dce", "remove-mutation,in-place"])
@pytest.mark.parametrize(
    ("call", "dtype", "out"),
    [
        ("div(%x, %x, %out)", "float32", "int64"),
        ("div(%x, %x, %out)", "int64", "int64"),
        ("ceil(%x, %out)", "float32", "int64"),
        ("ceil(%x, %out)", "float16", "float32"),
        ("cat(%parts, %zero, %out)", "float32", "bool"),
        ("add(%x, %x, %zero, %out)", "complex64", "float32"),
        ("add(%x, %x, %zero, %out)", "int64", "bool"),
        ("add(%x, %zero, %zero, %out)", "float16", "float32"),
        ("mm(%x, %x, %out)", "float16", "float32"),
        ("mm(%x, %x, %out)", "float32", "float16"),
        ("relu(%x, %out)", "int32", "int64"),
    ],
)
def test_tensors_of_another_element_type_are_refused(call: str, dtype: str, out: str, passes: str) -> None:
    model = irc.compile(import_torchscript(ONE.replace("CALL", call)), passes)
    model.run({"x": np.ones((3, 3), dtype), "out": np.zeros((3, 3), "float32" if "div" in call else dtype)})
    with pytest.raises(irc.Error, match="cannot be written into"):
        model.run({"x": np.ones((3, 3), dtype), "out": np.zeros((3, 3), out)})


@pytest.mark.parametrize(
    "passes", ["none", "default", "default,in-place", "default,remove-mutation,dce", "remove-mutation,in-place"]
)
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("sum(%x, %dims, %off, %none, %out)", [81920, 81920]),
        ("mean(%x, %dims, %off, %none, %out)", [2048, 2048]),
        ("cumsum(%x, %zero, %none, %out)", 2048 * np.arange(1, 41)[:, None].repeat(2, 1)),
    ],
)
def test_sums_are_made_in_the_element_type_of_the_tensor(call: str, expected: object, passes: str) -> None:
    model = irc.compile(import_torchscript(ONE.replace("CALL", call)), passes)
    feeds = {"x": np.full((40, 2), 2048, "float16"), "out": np.zeros(np.shape(expected), "float32")}
    (found,) = model.run(feeds).values()
    np.testing.assert_array_equal(found, np.float32(expected), strict=True)


@pytest.mark.parametrize(
    "call",
    ["relu_(%x, %y)", "detach(%x, %y)", "contiguous(%x, %y)", "add_(%x, %y, %one, %y)", "dim(%x, %y)", "selu(%x, %y)"],
)
def test_what_has_no_out_has_an_argument_too_many(call: str) -> None:
    kind = "int" if "dim" in call else "Tensor"
    graph = parse_graph(f"""
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %r : {kind} = aten::{call}
  return (%y)
""")
    y = np.zeros(2)
    try:
        found = irc.compile(graph, "none").run({"x": np.ones(2), "y": y})["y"]
    except Error:
        return
    np.testing.assert_array_equal(found, y)


@pytest.mark.parametrize("passes", ["none", "default"])
def test_groups_have_them_too(passes: str) -> None:
    module = import_torchscript("""
graph(%x : Tensor, %out : Tensor):
  %r : Tensor = prim::FusionGroup_0(%x, %out)
  return (%r, %out)
with prim::FusionGroup_0 = graph(%x : Tensor, %out : Tensor):
  %q : Tensor = aten::neg(%x, %out)
  %r : Tensor = aten::relu(%q)
  return (%r)
""")
    module.verify()
    r, out = irc.compile(module, passes).run({"x": np.array([1.0, -4]), "out": np.zeros(2)}).values()
    np.testing.assert_array_equal(out, [-1, 4])
    np.testing.assert_array_equal(r, [0, 4])
