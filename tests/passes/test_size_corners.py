"""Where shape arithmetic is not what it seems: optimised programs give what they give as they are."""

from typing import Any

import numpy as np
import onnx
import pytest

import irc
from irc.ir import parse_graph
from irc.ops.onnx import pointwise
from tests.effort import Spy

Array = np.ndarray[Any, Any]


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def onnx_model(text: str) -> onnx.ModelProto:
    """A model of opset 18: its graph, and functions behind that."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18, "loc" : 1]>\n{text}')


def check(model: Any, feeds: dict[str, Array], *pipelines: str) -> dict[str, Array]:
    """What all pipelines make of it."""
    expected = irc.compile(model, "none").run(feeds)
    for pipeline in ("default", *pipelines):
        found = irc.compile(model, pipeline).run(feeds)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, strict=True, err_msg=f"{pipeline}: {name}")
    return expected


ROWS = """
g (float[N,4] x, int64 n) => (float[a,b] y, float[c,d,e] r, int64[k] s) {
  t = Constant<value=bool{1}>()
  rows = Loop (LIMIT, t) <body = b (int64 i, bool c) => (bool c2, float[p,4] q) { c2 = Identity(c)  q = Relu(x) }>
  l = Shape<start=0,end=1>(rows)
  nx = Shape<start=0,end=1>(x)
  four = Constant<value=int64[1]{4}>()
  tr = Transpose<perm=[1,0,2]>(rows)
  shape = Concat<axis=0>(nx, l, four)
  r = Reshape(tr, shape)
  s = Shape(r)
  one = Constant<value=int64[1]{1}>()
  y = ReduceSum<keepdims=0>(r, one)
}
"""


@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_rows_of_which_there_are_none_have_no_named_sizes(iterations: int) -> None:
    check(onnx_model(ROWS.replace("LIMIT", "n")), {"x": ones(2, 4), "n": np.array(iterations)})


@pytest.mark.parametrize("limit", [2, 0])
def test_rows_of_which_some_are_sure_keep_names(limit: int) -> None:
    text = ROWS.replace("t = Constant", f"limit = Constant<value=int64{{{limit}}}>()  t = Constant")
    model = onnx_model(text.replace("LIMIT", "limit").replace(", int64 n", ""))
    check(model, {"x": ones(2, 4)})
    rows = irc.compile(model, "shape-inference").graph.value("rows")
    assert rows.type.shape == (None, "N" if limit else None, 4)


def test_two_sizes_of_which_nothing_is_known_are_two_where_functions_are_called() -> None:
    model = onnx_model("""
        g (float[A,B] x, float[C,D] y) => (float[E,F] r, float[G,H] q) {
          q = loc.f(y)
          ny = NonZero(y)
          one = Constant<value=int64[1]{1}>()
          s = Shape(ny)
          n = Gather<axis=0>(s, one)
          rest = Constant<value=int64[1]{-1}>()
          t = Concat<axis=0>(n, rest)
          nx = NonZero(x)
          nt = Transpose(nx)
          nf = Cast<to=1>(nt)
          r = Reshape(nf, t)
        }
        <opset_import: ["" : 18], domain: "loc"> f (a) => (b) { b = Relu(a) }""")
    assert check(model, {"x": ones(2, 3), "y": ones(1, 4)}, "canonicalize")["r"].shape == (4, 3)


@pytest.mark.filterwarnings("ignore:Setting the strides")
def test_shapes_are_not_told_where_they_are_changed() -> None:
    text = """graph(%x : Float({0}), %z : Float(a, b)):
      %y : Tensor = onnx::Add(%x, %x)
      %before : Tensor = onnx::Shape(%y)
      %t : Tensor = aten::t_(%y)
      %after : Tensor = onnx::Shape(%y)
      %r : Tensor = onnx::Reshape(%z, %after)
      %w : Tensor = onnx::Add(%z, %z)
      return (%before, %after, %t, %r, %w)
    """
    for shape in ("a, b", "1, 4", "*, *"):
        found = check(parse_graph(text.format(shape)), {"x": ones(1, 4), "z": ones(1, 4)})
        assert found["after"].tolist() == [4, 1]


def test_sums_that_wrap_around_are_left_to_the_run() -> None:
    model = onnx_model("""
        g (float[N] x) => (int64 d, bool neg, float[K] y) {
          big = Constant<value=int64{4611686018427387904}>()
          zero = Constant<value=int64{0}>()
          s = Size(x)
          p = Mul(s, big)
          d = Div(p, big)
          neg = Less(p, zero)
          ax = Constant<value=int64[1]{0}>()
          huge = Constant<value=int64[1]{9223372036854775807}>()
          n = Shape(x)
          end = Add(n, huge)
          y = Slice(x, ax, end)
        }""")
    assert check(model, {"x": ones(2)})["d"] == -2


def test_the_least_of_many_sizes_is_found_in_one_walk(spy: Spy) -> None:
    looks = spy(pointwise, "minus")

    def compared(count: int) -> int:
        looks.reset_mock()
        lines = ["%s : Tensor = onnx::Size(%x)"]
        for i in range(count):
            lines.append(f"%c{i} : Long() = prim::Constant[value=tensor([{count - i}])]()")
            lines.append(f"%a{i} : Tensor = onnx::Add(%s, %c{i})")
        operands = ", ".join(f"%a{i}" for i in range(count))
        lines += [f"%y : Tensor = onnx::Min({operands})", f"%z : Tensor = onnx::Max({operands})"]
        graph = parse_graph("graph(%x : Float(N)):\n  " + "\n  ".join(lines) + "\n  return (%y, %z)\n")
        found = irc.compile(graph, "canonicalize").run({"x": ones(3)})
        assert (found["y"], found["z"]) == (4, count + 3)
        return looks.call_count

    assert compared(80) < 2.5 * compared(40)


def test_what_is_left_of_nothing_is_not_told() -> None:
    model = onnx_model("""
        g (float[B,2,3,8] v) => (float[a,b,c,d] y, int64[k] s, float[e,f,h] z) {
          m1 = Constant<value=int64[1]{-1}>()
          sb = Shape<start=0,end=1>(v)
          sd = Shape<start=2,end=4>(v)
          two = Constant<value=int64[1]{2}>()
          bh = Mul(sb, two)
          t1 = Concat<axis=0>(bh, sd)
          a0 = Reshape(v, t1)
          t2 = Concat<axis=0>(sb, m1, sd)
          y = Reshape(a0, t2)
          s = Shape(y)
          z0 = Constant<value=int64[1]{0}>()
          z = ReduceSum<keepdims=0>(y, z0)
        }""")
    for batch in (0, 1, 3):
        check(model, {"v": ones(batch, 2, 3, 8)})


def test_a_branch_that_never_runs_may_make_no_sense() -> None:
    model = onnx_model("""
        g (float[N,4] x, bool c) => (int64[K] r) {
          s = Shape(x)
          r = If (c) <then_branch = a () => (int64[A] p) { p = Identity(s) },
                      else_branch = b () => (int64[B] q) { i = Constant<value=int64[1]{5}>() q = Gather(s, i) }>
        }""")
    assert check(model, {"x": ones(2, 4), "c": np.array(True)})["r"].tolist() == [2, 4]
    with pytest.raises(irc.Error, match="IRC4"):
        irc.compile(model).run({"x": ones(2, 4), "c": np.array(False)})


SQUEEZED = """
        g (float[N,4] x) => (float[...] y) {
          s = Shape<start=0,end=1>(x)  one = Constant<value=int64[1]{1}>()  zero = Constant<value=int64[1]{0}>()
          c = Equal(s, one)
          y = If (c) <then_branch = a () => (float[...] p) { p = Squeeze(x, zero) },
                      else_branch = b () => (float[...] q) { q = Relu(x) }>
        }"""
"""What PyTorch's exporter makes of ``squeeze`` along an axis of a size that it does not know."""

NO_TRIP = """
        g (float[N,4] x) => (float[p,q] y) {
          t = Constant<value=bool{1}>()  three = Constant<value=int64{3}>()
          w = Constant<value=float[1,7]{0,0,0,0,0,0,0}>()
          n = Shape<start=0,end=1>(x)  n0 = Squeeze(n)  k = Sub(n0, three)
          y = Loop (k, t, x) <body = b (int64 i, bool c, float[P,Q] xi) => (bool c2, float[R,S] xo) {
            c2 = Identity(c)  xo = Concat<axis=1>(xi, w) }>
        }"""


@pytest.mark.parametrize("text", [SQUEEZED, NO_TRIP])
def test_what_no_run_of_these_sizes_comes_to_may_make_no_sense(text: str) -> None:
    model, feeds = onnx_model(text.replace("float[...]", "float")), {"x": ones(3, 4)}
    (expected,) = check(model, feeds).values()
    for pipeline in ("none", "shape-inference", "default"):
        (found,) = irc.compile(model, pipeline, sizes={"N": 3}).run(feeds).values()
        np.testing.assert_array_equal(found, expected, strict=True)


def test_where_every_run_comes_sizes_must_fit() -> None:
    zero = "Constant<value=int64[1]{0}>()"
    model = onnx_model(f"g (float[N,4] x) => (float[4] y) {{ zero = {zero}  y = Squeeze(x, zero) }}")
    assert check(model, {"x": ones(1, 4)})["y"].shape == (4,)
    with pytest.raises(irc.Error, match=r"IRC310.*axis 0 of size 3 cannot be squeezed"):
        irc.compile(model, sizes={"N": 3})


def test_a_group_in_a_branch_that_never_runs_may_make_no_sense() -> None:
    graph = parse_graph("""
        graph(%x : Float(3, 4), %w : Float(1, 4), %c : bool):
          %y : Tensor = prim::If(%c)
            block0():
              %g : Tensor = prim::FusionGroup_0(%x)
              -> (%g)
            block1():
              %r : Tensor = onnx::Relu(%w)
              -> (%r)
          return (%y)
        with prim::FusionGroup_0 = graph(%a : Tensor):
          %z : Long(1) = prim::Constant[value=tensor<Long(1)>([0])]()
          %s : Tensor = onnx::Squeeze(%a, %z)
          %t : Tensor = onnx::Relu(%s)
          return (%t)
        """)
    model = irc.compile(graph, "shape-inference")
    feeds: dict[str, Any] = {"x": ones(3, 4), "w": ones(1, 4)}
    assert model.run({**feeds, "c": False})["y"].shape == (1, 4)
    with pytest.raises(irc.Error, match="IRC4"):
        model.run({**feeds, "c": True})
