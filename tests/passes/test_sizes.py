"""Sizes as sums of others."""

from __future__ import annotations

from irc.ir import Graph, parse_graph
from irc.passes.canonicalize.sizes import Size, Sizes, number
from irc.passes.shapes import Inference


def sizes_of(text: str) -> tuple[Sizes, Graph]:
    graph = parse_graph(text)
    return Sizes(Inference(graph).run()), graph


def axis_of_join(first: str, second: str, axis: int) -> Size | None:
    sizes, graph = sizes_of(f"""graph(%a : Float({first}), %b : Float({second})):
      %y = onnx::Concat[axis=1](%a, %b)
      return (%y)""")
    return sizes.axis(graph.value("y"), axis)


def test_what_is_joined_fits_unless_it_has_no_positions() -> None:
    unknown = axis_of_join("N, P, 3", "M, Q, 4", 0)
    assert unknown not in (None, number(1))
    assert "N" not in dict(unknown)
    assert axis_of_join("N, P", "N, Q", 0) == frozenset({("N", 1)})
    assert axis_of_join("N, P", "M, 2", 0) == frozenset({("M", 1)})
    assert axis_of_join("N, 0", "M, 2", 0) == frozenset({("M", 1)})
    assert axis_of_join("N, P", "M, 2", 1) == frozenset({("P", 1), (1, 2)})


def test_long_sums_are_terms_of_their_own() -> None:
    """Else each of a chain of joins would copy all terms of those before it."""
    count = 100
    inputs = ", ".join(f"%x{i} : Float(P{i})" for i in range(count))
    nodes = "\n".join(f"%y{i} = onnx::Concat[axis=0](%{'y' if i > 1 else 'x'}{i - 1}, %x{i})" for i in range(1, count))
    sizes, graph = sizes_of(f"graph({inputs}):\n{nodes}\nreturn (%y{count - 1})")
    found = [sizes.axis(graph.value(f"y{i}"), 0) for i in range(1, count)]
    assert all(size is not None and len(size) <= 20 for size in found)
    assert len(set(found)) == len(found)


def test_slices_and_reshapes_of_all_and_fills() -> None:
    sizes, graph = sizes_of("""graph(%a : Float(N, 3), %few : Long(1)):
      %none : Long(1) = prim::Constant[value=tensor([0])]()
      %one : Long(1) = prim::Constant[value=tensor([1])]()
      %flat : Long(2) = prim::Constant[value=tensor([-1, 1])]()
      %rows = onnx::Shape[start=0, end=1](%a)
      %all = onnx::Slice(%a, %none, %rows, %none)
      %part = onnx::Slice(%a, %none, %few, %none)
      %late = onnx::Slice(%a, %one, %rows, %none)
      %twice = onnx::Concat[axis=0](%a, %a)
      %count = onnx::Shape[start=0, end=1](%twice)
      %fill = onnx::ConstantOfShape(%count)
      %long = onnx::Reshape(%fill, %flat)
      return (%all, %part, %late, %long)""")
    n = frozenset({("N", 1)})
    assert sizes.axis(graph.value("all"), 0) == n
    assert n not in (sizes.axis(graph.value("part"), 0), sizes.axis(graph.value("late"), 0))
    assert sizes.axis(graph.value("fill"), 0) == sizes.axis(graph.value("long"), 0) == frozenset({("N", 2)})


def test_a_rest_behind_all_that_is_reshaped() -> None:
    sizes, graph = sizes_of("""graph(%x : Float(*)):
      %one : Long(1) = prim::Constant[value=tensor([1])]()
      %any : Long(1) = prim::Constant[value=tensor([-1])]()
      %n = onnx::Shape(%x)
      %first = onnx::Concat[axis=0](%n, %any)
      %second = onnx::Concat[axis=0](%n, %one, %any)
      %y = onnx::Reshape(%x, %first)
      %z = onnx::Reshape(%x, %second)
      return (%y, %z)""")
    assert sizes.axis(graph.value("y"), 1) == number(1)
    assert sizes.axis(graph.value("z"), 2) == frozenset({((graph.value("z"), 2), 1)})
