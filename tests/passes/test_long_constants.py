"""Constants that grow when they are folded, strings and lists too, grow no further than models may."""

import tracemalloc

import pytest

import irc
from irc.ir import parse_graph
from irc.passes import PassManager
from tests.passes.helpers import kinds

CONSTANTS = """
  %a : str = prim::Constant[value="ab"]()
  %blank : str = prim::Constant[value=" "]()
  %none : str = prim::Constant[value=""]()
  %l : int[] = prim::Constant[value=[1, 2]]()
  %s : str[] = prim::Constant[value=["a", "b"]]()
  %n : int = prim::Constant[value=1073741824]()
  %few : int = prim::Constant[value=3]()
  %t : Float(2) = prim::Constant[value=tensor<Float(2)>([1., 2.])]()
"""


@pytest.mark.parametrize(
    "node",
    [
        *(f"%r : str = aten::{way}(%a, %n, %blank)" for way in ("ljust", "rjust", "center")),
        "%r : str = aten::zfill(%a, %n)",
        "%r : int[] = aten::mul(%l, %n)",
        "%r : str[] = aten::mul(%s, %n)",
        "%r : int[] = prim::rangelist(%n)",
    ],
)
def test_no_long_string_or_list_is_made_to_find_that_it_is_too_long(node):
    def graph(node: str):
        return parse_graph(f"graph():{CONSTANTS}  {node}\n  return (%r)\n")

    long, short = graph(node), graph(node.replace("%n", "%few"))
    tracemalloc.start()
    try:
        report = PassManager("constant-fold").run(long)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert "the limit of 67108864" in report.remarks[0].reason
    PassManager("constant-fold").run(short)
    assert (len(kinds(long)), kinds(short)) == (1, [])


@pytest.mark.parametrize(
    ("first", "step"),
    [
        ('%r0 : str = prim::Constant[value="ab"]()', "str = aten::add(%r{i}, %r{i})"),
        ('%r0 : str = prim::Constant[value="ab"]()', "str = aten::replace(%r{i}, %none, %r{i})"),
        ('%r0 : str = prim::Constant[value="ab"]()', "str = aten::replace(%r{i}, %a, %abab)"),
        ("%r0 : int[] = prim::Constant[value=[1, 2]]()", "int[] = aten::add(%r{i}, %r{i})"),
        (
            '%r0 : String(1) = prim::Constant[value=tensor<String(1)>(["ab"])]()',
            "String(1) = onnx::StringConcat(%r{i}, %r{i})",
        ),
        (
            "%r0 : Float(2) = prim::Constant[value=tensor<Float(2)>([1., 2.])]()",
            "Tensor = onnx::Concat[axis=0](%r{i}, %r{i})",
        ),
    ],
)
def test_what_doubles_grows_no_more_than_models_may(first, step):
    text = f'graph():{CONSTANTS}  %abab : str = prim::Constant[value="abab"]()\n  {first}\n'
    steps = [f"  %r{i + 1} : {step.format(i=i)}" for i in range(40)]
    graph = parse_graph("\n".join([text, *steps, "  return (%r40)\n"]))
    report = PassManager("constant-fold{max-growth=4096}").run(graph)
    assert 20 < len(kinds(graph)) < 40
    assert "(option max-growth)" in report.remarks[0].reason


def test_strings_as_short_as_the_nodes_that_make_them_fold_all():
    lines = ['  %r0 : str = prim::Constant[value="ab"]()', '  %x : str = prim::Constant[value="c"]()']
    lines += [f"  %r{i + 1} : str = aten::add(%r0, %x)" for i in range(99)]
    names = ", ".join(f"%r{i + 1}" for i in range(99))
    graph = parse_graph("\n".join(["graph():", *lines, f"  return ({names})\n"]))
    PassManager("constant-fold{max-growth=1}").run(graph)
    assert kinds(graph) == []


def test_repeated_strings_are_as_long_as_they_are() -> None:
    graph = parse_graph("graph(%x : str, %n : int):\n  %s : str = aten::mul(%x, %n)\n  return (%s)\n")
    found = irc.compile(graph).run({"x": "-", "n": 1_000_000}, limits=irc.Limits(bytes=16 << 20))
    assert found["s"] == "-" * 1_000_000
