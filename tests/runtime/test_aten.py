"""Torch operators: element types, views and copies, writes in place. Expected results are those of torch 2.13."""

from types import SimpleNamespace

import numpy as np
import pytest

import irc
from irc.alias import analyze
from irc.errors import Error
from irc.ir import parse_graph, parse_module
from irc.runtime.kernels.registry import find_binder
from tests.graphs import ir
from tests.operators import COPIED
from tests.runtime.helpers import f32


def op(kind: str, *arguments, outputs: int = 1):
    name = kind if "::" in kind else f"aten::{kind}"
    node = SimpleNamespace(kind=name, version=None, attributes={}, inputs=(), outputs=[None] * outputs)
    return find_binder(name, None)(node)(*arguments)


def zeros(dtype: str, *shape: int) -> np.ndarray:
    return np.ones(shape, dtype)


def test_alpha_scales_in_the_type_of_the_result():
    assert op("add", f32(1), np.array([3]), 0.5).tolist() == [2.5]
    assert op("sub", np.array([10]), np.array([3]), 2).tolist() == [4]
    assert op("add", f32(1), 2, 3).tolist() == [7]
    x = f32(1)
    assert op("add_", x, f32(2), 10) is x and x.tolist() == [21]


def test_operators_on_python_values():
    assert op("add", 2, 3) == 5 and op("div", 7, 2) == 3.5 and op("floordiv", -7, 2) == -4
    assert op("add", "a", "b") == "ab"
    assert op("add", (1, 2), [3]) == [1, 2, 3]
    assert op("mul", [1], 3) == [1, 1, 1]
    assert op("lt", 1, 2) is True and op("eq", [1, 2], (1, 2)) is True and op("ne", "a", "a") is False
    assert op("__getitem__", (5, 6), -1) == 6 and op("__getitem__", {"k": 1}, "k") == 1
    assert op("__not__", True) is False and op("__is__", None, None) is True and op("__isnot__", 1, None) is True
    assert op("Int", np.array([3.7])) == 3 and op("Bool", np.array(0)) is False and op("item", f32(2.5)) == 2.5
    assert op("floor", 2.7) == 2 and op("round", 2.5) == 2 and op("floor", f32(2.7)).tolist() == [2]
    assert op("lt", f32(1, 3), 2).tolist() == [True, False]
    assert op("size", np.ones((2, 3))) == [2, 3] and op("size", np.ones((2, 3)), -1) == 3
    assert op("len", np.ones((2, 3))) == 2 and op("len", [1]) == 1
    assert op("prim::NumToTensor", 3).tolist() == 3 and op("prim::min", 3, 2) == 2


VIEWS = [
    ("view", ([6, 2],)),
    ("reshape", ([2, -1],)),
    ("select", (0, 1)),
    ("select", (-1, -2)),
    ("slice", (1, 1, None, 2)),
    ("slice", (0, -2, 100)),
    ("transpose", (0, -1)),
    ("permute", ([1, 0],)),
    ("t", ()),
    ("unsqueeze", (-1,)),
    ("squeeze", ()),
    ("expand", ([2, 3, -1],)),
]


@pytest.mark.parametrize(("name", "arguments"), [v for v in VIEWS if v[0] in COPIED])
def test_copied_views_are_what_the_views_show_elsewhere(name, arguments):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    view, copy = op(name, x, *arguments), op(f"{name}_copy", x, *arguments)
    np.testing.assert_array_equal(copy, view, strict=True)
    assert copy.flags.c_contiguous and copy.flags.writeable and not np.shares_memory(copy, x)


def test_writes_do_not_reach_copied_views():
    text = ir(
        "x: Float(2, 3)",
        "y = aten.mul(x, x); c = aten.select_copy(y, 0, 1); s: 'Tensor[]' = aten.split_copy(y, 1, 0); "
        "p, q = prim.ListUnpack(s); z = aten.add_(y, 1, 1)",
        "c, p, q, z",
    )
    module = parse_module(text)
    db = analyze(module.main)
    copies, z = [module.main.value(name) for name in "cpq"], module.main.value("z")
    assert not any(db.may_alias(copy, z) for copy in copies)
    model = irc.compile(module, "shape-inference,default")
    assert str(model.graph.value("c").type) == "Float(3)"
    found = model.run({"x": f32(1, 2, 3, 4, 5, 6).reshape(2, 3)})
    assert [found[name].tolist() for name in "cpqz"] == [
        [16, 25, 36], [[1, 4, 9]], [[16, 25, 36]], [[2, 5, 10], [17, 26, 37]]
    ]  # fmt: skip


def test_view_refuses_what_reshape_copies():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with pytest.raises(Error, match="use reshape"):
        op("view", x.T, [12])
    assert not np.shares_memory(op("reshape", x.T, [12]), x)
    assert np.shares_memory(op("view", x.T, [2, 2, 3]), x)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("clone", ()),
        ("relu", ()),
        ("neg", ()),
        ("channel_shuffle", (1,)),
        ("channel_shuffle", (4,)),
        ("pixel_shuffle", (1,)),
        ("pixel_unshuffle", (1,)),
        ("add", (0,)),
        ("mul", (1,)),
        ("__and__", (True,)),
    ],
)
def test_functional_operators_share_nothing(name, arguments):
    x = np.ones((2, 4, 3), np.bool_ if name == "__and__" else np.float32)
    assert not np.shares_memory(op(name, x, *arguments), x)


@pytest.mark.parametrize(("name", "by"), [("channel_shuffle", 2), ("pixel_shuffle", 1), ("pixel_unshuffle", 2)])
def test_shuffles_keep_channels_last(name, by):
    x = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    plain, kept = op(name, x, by), op(name, last, by)
    assert plain.tolist() == kept.tolist() and plain.flags.c_contiguous
    assert kept.transpose(0, 2, 3, 1).flags.c_contiguous and not np.shares_memory(kept, last)


def test_joining():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert op("cat", [x, x], -1).shape == (2, 6) and op("stack", [x, x], -1).shape == (2, 3, 2)
    assert op("cat", [x.T, x.T], 1).flags.c_contiguous
    assert op("cat", [f32(), np.array([1])]).dtype == np.float32
    assert op("cat", [np.zeros(0, np.float32), x], 1).shape == (2, 3)
    assert not np.shares_memory(op("cat", [x], 0), x)
    with pytest.raises(Error, match="at least one"):
        op("cat", [], 0)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("aten::stack", ([f32(1)[0:1].reshape(()), np.array(2)], 0)),
        ("prim::VarStack", (f32(1).reshape(()), np.array(2), -1)),
    ],
)
def test_stacking_tensors_without_dimensions(kind, more):
    joined = op(kind, *more)
    assert joined.tolist() == [1, 2] and joined.dtype == np.float32


@pytest.mark.parametrize(("chosen", "expected"), [(True, [[5, 5], [5, 5]]), (False, [[1, 2], [3, 4]])])
def test_a_mask_without_dimensions_chooses_all_or_nothing(chosen, expected):
    for mask in (np.array(chosen), np.array(chosen, np.uint8)):
        x = f32(1, 2, 3, 4).reshape(2, 2)
        assert op("index_put_", x, [mask], f32(5).reshape(())) is x and x.tolist() == expected
        assert op("index", x, [mask]).tolist() == [expected][: int(chosen)]
        assert op("index", x, [None, mask]).shape == (2, int(chosen), 2)
    assert op("index", x, [np.array(True), np.array([1, 0])]).tolist() == expected[::-1]
    assert op("index_put", f32(0, 0), [np.array(chosen)], f32(1, 2), True).tolist() == [chosen * 1, chosen * 2]


@pytest.mark.parametrize(
    ("name", "x", "arguments", "message"),
    [
        ("add_", np.zeros(2, np.int64), (1.5,), "float32 cannot be written into a tensor of int64"),
        ("div_", np.zeros(2, np.int64), (2,), "float32 cannot be written"),
        ("add_", np.broadcast_to(f32(1), 3), (1,), "may not be changed"),
        ("select", np.ones((2, 3)), (1, 3), "out of range"),
        ("select", np.ones((2, 3)), (2, 0), "axis 2 is out of range"),
        ("slice", np.ones(3), (0, 0, 3, 0), "step"),
        ("view", np.ones(3), ([2, 2],), r"cannot take the shape \[2, 2\]"),
        ("permute", np.ones((2, 3)), ([0],), "no order"),
        ("permute", np.ones((2, 3)), ([0, 0],), "twice"),
        ("t", np.ones((2, 3, 4)), (), "at most 2 dimensions"),
        ("expand", np.ones((2, 3)), ([3, 3],), "cannot expand"),
        ("expand", np.ones(1), ([1 << 60],), "GiB"),
        ("pixel_shuffle", np.ones((1, 0, 3, 3)), (1 << 32,), "GiB"),
        ("pixel_unshuffle", np.ones((1, 4, 0, 0)), (1 << 32,), "GiB"),
        ("copy_", np.ones(3), (np.ones((1, 3)),), "does not fit"),
        ("append", (1,), (2,), "constant"),
        ("__getitem__", [1], (1,), "no element 1"),
        ("pop", [], (), "no element"),
        ("item", np.ones(2), (), "one element"),
        ("prim::TupleIndex", (1,), (3,), "no element 3"),
        ("prim::RaiseException", "on purpose", (), "on purpose"),
    ],
)
def test_errors(name, x, arguments, message):
    with pytest.raises(Error, match=message):
        op(name, x, *arguments)


def test_expanded_tensors_may_be_filled_but_not_written():
    wide = op("expand", f32(1), [3])
    with pytest.raises(Error, match="clone it first"):
        op("add_", wide, 1)
    op("fill_", wide, 4)
    assert wide.tolist() == [4, 4, 4]


def test_lists_change_in_place():
    xs = [1, 2]
    assert op("append", xs, 3) is xs and op("extend", xs, [4]) is xs and op("_set_item", xs, 0, 9) is xs
    assert op("insert", xs, 1, 8) is xs and op("pop", xs) == 4 and xs == [9, 8, 2, 3]
    assert op("list", xs) == xs and op("list", xs) is not xs
    assert op("clear", xs) == []


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize(("element", "numbers"), [("int", "2, 3"), ("float", "2.5, 3.5"), ("bool", "True, False")])
def test_what_reduces_tensors_also_takes_lists_of_numbers(element: str, numbers: str, passes: str) -> None:
    result = "float" if element == "float" else "int"
    text = f"""
    graph(%x : Float(2)):
      %l : {element}[] = prim::Constant[value=[{numbers}]]()
      %c : {element}[] = aten::list(%l)
      %s : {result} = aten::sum(%c)
      %one : int = prim::Constant[value=1]()
      %y : Tensor = aten::add(%x, %s, %one)
      return (%y)
    """
    model = irc.compile(parse_graph(text), passes)
    expected = float(sum(float(n) if n[0] not in "TF" else n == "True" for n in numbers.split(", ")))
    assert model.run({"x": np.zeros(2, np.float32)})["y"].tolist() == [expected] * 2
