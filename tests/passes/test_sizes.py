"""Sizes as sums and products of others, where types have no name for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.ir import Graph, parse_graph
from irc.ir.polynomials import (
    Polynomial,
    Size,
    is_positive,
    is_size,
    minus,
    plus,
    product,
    quotient,
    surely_differ,
    times,
    unknown_size,
)
from irc.passes.shapes import Inference
from tests.graphs import ir

VALUES = {"a": 0, "b": 3, "c": 5}


def sizes() -> st.SearchStrategy[Size]:
    return st.recursive(
        st.integers(-4, 4) | st.sampled_from(sorted(VALUES)),
        lambda inner: st.builds(plus, inner, inner) | st.builds(minus, inner, inner) | st.builds(times, inner, inner),
        max_leaves=6,
    )


def worth(size: Size, values: dict[str, int]) -> int:
    """What ``size`` comes to."""
    if isinstance(size, Polynomial):
        terms = ((n, [values[of] ** power for of, power in term]) for term, n in size.terms)
        return sum(n * product(factors) for n, factors in terms)
    return values[size] if isinstance(size, str) else size


@given(sizes(), sizes(), st.fixed_dictionaries(dict.fromkeys(VALUES, st.integers(0, 6))))
def test_polynomials_are_what_they_come_to(a: Size, b: Size, values: dict[str, int]) -> None:
    if a is None or b is None:
        return
    x, y = worth(a, values), worth(b, values)
    for made, wanted in ((plus(a, b), x + y), (minus(a, b), x - y), (times(a, b), x * y)):
        assert made is None or worth(made, values) == wanted
    assert not is_size(a) or x >= 0
    assert not is_positive(a) or x >= 1
    assert not surely_differ(a, b) or x != y
    assert a != b or x == y
    whole = quotient(a, b)
    assert whole is None or worth(whole, values) * y == x


def test_there_is_one_way_to_write_a_size() -> None:
    a, b = "a", "b"
    assert times(plus(a, b), plus(a, 1)) == plus(plus(times(a, a), times(a, b)), plus(a, b))
    assert minus(plus(a, b), b) == "a"
    assert minus(plus(a, 3), a) == 3
    assert quotient(product([a, b, 12]), product([4, b])) == times(3, a)
    assert quotient(plus(a, 1), 2) is None
    assert quotient(times(a, 3), 2) is None
    assert str(plus(times(2, times(a, b)), 1)) == "1 + 2*a*b"


@pytest.mark.parametrize(("scale", "size"), [(2.0, times(2, "n")), (1.0, "n"), (1.5, None), (0.5, None), (1e30, None)])
def test_resized_by_whole_numbers(scale: float, size: Size) -> None:
    inference, graph = sizes_of(f"""graph(%x : Float(1, 1, n, 4)):
      %none : NoneType = prim::Constant()
      %s : Float(4) = prim::Constant[value=tensor([1., 1., {scale}, 1.])]()
      %y = onnx::Resize[mode="nearest"](%x, %none, %s)
      return (%y)""")
    found = size_of(inference, "y", 2)
    assert found == (unknown_size(graph.value("y"), 2) if size is None else size)


def sizes_of(text: str) -> tuple[Inference, Graph]:
    graph = parse_graph(text)
    return Inference(graph).run(), graph


def size_of(inference: Inference, name: str, axis: int) -> Size:
    shape = inference.type_of(inference.graph.value(name)).shape
    return None if shape is None else shape[axis]


def axis_of_join(first: str, second: str, axis: int) -> Size:
    inference, _ = sizes_of(f"""graph(%a : Float({first}), %b : Float({second})):
      %y = onnx::Concat[axis=1](%a, %b)
      return (%y)""")
    return size_of(inference, "y", axis)


def test_what_is_joined_fits_unless_it_has_no_positions() -> None:
    unknown = axis_of_join("N, P, 3", "M, Q, 4", 0)
    assert isinstance(unknown, Polynomial)
    assert "N" not in str(unknown)
    assert axis_of_join("N, P", "N, Q", 0) == "N"
    assert axis_of_join("N, P", "M, 2", 0) == "M"
    assert axis_of_join("N, 0", "M, 2", 0) == "M"
    assert axis_of_join("N, P", "M, 2", 1) == plus("P", 2)


def test_long_sums_are_terms_of_their_own() -> None:
    """Else each of a chain of joins would copy all terms of those before it."""
    count = 100
    inputs = ", ".join(f"%x{i} : Float(P{i})" for i in range(count))
    nodes = "\n".join(f"%y{i} = onnx::Concat[axis=0](%{'y' if i > 1 else 'x'}{i - 1}, %x{i})" for i in range(1, count))
    inference, _ = sizes_of(f"graph({inputs}):\n{nodes}\nreturn (%y{count - 1})")
    found = [size_of(inference, f"y{i}", 0) for i in range(1, count)]
    assert all(isinstance(size, Polynomial) and len(size.terms) <= 20 for size in found)
    assert len(set(found)) == len(found)


def test_slices_and_reshapes_of_all_and_fills() -> None:
    inference, _ = sizes_of(
        ir("""
            a: Float(N, 3); few: Long(1) -> all, part, late, long
            rows = Shape(a, start=0, end=1); all = Slice(a, [0], rows, [0]); part = Slice(a, [0], few, [0])
            late = Slice(a, [1], rows, [0]); twice = Concat(a, a, axis=0); count = Shape(twice, start=0, end=1)
            second = Slice(twice, rows, count, [0]); fill = ConstantOfShape(count); long = Reshape(fill, [-1, 1])
        """)
    )
    assert size_of(inference, "all", 0) == size_of(inference, "second", 0) == "N"
    assert "N" not in (size_of(inference, "part", 0), size_of(inference, "late", 0))
    assert size_of(inference, "fill", 0) == size_of(inference, "long", 0) == times(2, "N")


def test_a_rest_behind_all_that_is_reshaped() -> None:
    inference, graph = sizes_of(ir("x: Float(*)", "y = Reshape(x, Concat(Shape(x), [-1], axis=0))", "y"))
    assert size_of(inference, "y", 0) == unknown_size(graph.value("x"), 0)
    assert size_of(inference, "y", 1) == 1


@pytest.mark.parametrize(
    ("whole", "start", "end", "size"),
    [
        ("both", "n", "both", "m"),
        ("both", "n", "large", "m"),
        ("both", "zero", "n", "n"),
        ("both", "both", "n", 0),
        ("both", "more", "large", 0),
        ("both", "m", "n", None),
        ("both", "zero", "minus", None),  # there may be none before the last one
        ("more", "zero", "minus", plus("n", "m")),
        ("more", "one", "more", plus("n", "m")),
        ("more", "minus", "large", 1),
    ],
)
def test_parts_of_what_is_joined(whole: str, start: str, end: str, size: Size) -> None:
    inference, graph = sizes_of(f"""graph(%a : Float(n), %b : Float(m), %last : Float(1)):
      %zero : Long(1) = prim::Constant[value=tensor([0])]()
      %one : Long(1) = prim::Constant[value=tensor([1])]()
      %minus : Long(1) = prim::Constant[value=tensor([-1])]()
      %large : Long(1) = prim::Constant[value=tensor([9223372036854775807])]()
      %n = onnx::Shape(%a)
      %m = onnx::Shape(%b)
      %both = onnx::Add(%n, %m)
      %more = onnx::Add(%both, %one)
      %x = onnx::Concat[axis=0](%a, %b{", %last" if whole == "more" else ""})
      %y = onnx::Slice(%x, %{start}, %{end})
      return (%y)""")
    found = size_of(inference, "y", 0)
    assert found == (unknown_size(graph.value("y"), 0) if size is None else size)
