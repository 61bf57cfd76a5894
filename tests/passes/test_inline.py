import numpy as np
import pytest

from irc.errors import Error
from irc.ir import callee, parse_module
from irc.passes import PassManager
from tests.graphs import ir
from tests.passes.helpers import assert_same_results, run_passes, transform_module

X = np.array([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]], np.float32)


def test_calls_inside_calls_and_blocks():
    text = ir("""
        c: Bool(); x: Float(2, 3) -> y
        outer: Function = prim.Constant(name="outer"); y: Float(2, 3) = prim.If(c)
        with block(): r = prim.CallFunction(outer, x); yield r
        with block(): yield x

        outer | x: Tensor -> z
        inner: Function = prim.Constant(name="inner"); z = prim.CallFunction(inner, prim.CallFunction(inner, x))

        inner | x: Tensor -> y
        y = Add(x, [1.0])
    """)
    module = transform_module(text, "inline")
    assert list(module.graphs) == [module.main.name]
    assert [n.kind for n in module.main.walk() if n.kind == "onnx::Add"] == ["onnx::Add"] * 2
    for c in (True, False):
        assert_same_results(parse_module(text), module, np.array(c), X)


def test_names_of_sizes_in_a_function_s_groups_are_its_own():
    text = """
graph(%x : Float(n), %y : Float(m), %c : Bool(m)):
  %f : Function = prim::Constant[name="f"]()
  %z : Float(*) = prim::CallFunction(%f, %y, %c)
  %s : Long(1) = onnx::Shape(%x)
  %r : Float(*) = onnx::Expand(%z, %s)
  return (%r)

graph f(%y : Float(k), %c : Bool(k)):
  %z : Float(n) = prim::FusionGroup_0(%y, %c)
  return (%z)
with prim::FusionGroup_0 = graph(%y : Float(k), %c : Bool(k)):
  %z : Float(n) = prim::FusionGroup_0(%y, %c)
  return (%z)
with prim::FusionGroup_0 = graph(%y : Float(k), %c : Bool(k)):
  %z : Float(n) = onnx::Compress(%y, %c)
  return (%z)
"""
    module = transform_module(text, "inline,canonicalize")
    x, first = np.ones(2, np.float32), np.array([True, False])
    assert_same_results(parse_module(text), module, x, x, first)


RECURSIVE = ir("""
    x: Float(2, 3) -> z
    f: Function = prim.Constant(name="f"); g: Function = prim.Constant(name="g")
    y: Float(2, 3) = prim.CallFunction(f, x); z: Float(2, 3) = prim.CallFunction(g, y)

    f | x: Tensor -> z
    f: Function = prim.Constant(name="f"); g: Function = prim.Constant(name="g"); y = prim.CallFunction(g, x)
    z = prim.CallFunction(f, y)

    g | x: Tensor -> y
    y = Neg(x)
""")


def test_recursive_functions_stay():
    module = parse_module(RECURSIVE)
    report = run_passes(module, "inline")
    assert list(module.graphs) == ["main", "f"]
    assert [n.kind for n in module.main.nodes] == ["prim::Constant", "prim::CallFunction", "onnx::Neg"]
    assert [n.kind for n in module.graphs["f"].nodes][1:] == ["onnx::Neg", "prim::CallFunction"]
    (note, *_) = report.remarks
    assert str(note) == "inline: %y = prim::CallFunction: function 'f' calls itself, directly or not: the call stays"


def doubling(levels: int) -> str:
    parts = [
        ir("""
            x: Float(3) -> y
            f: Function = prim.Constant(name="f0"); y: Float(3) = prim.CallFunction(f, x)
        """)
    ]
    parts += [
        f"""
graph f{i}(%x : Float(3)):
  %f : Function = prim::Constant[name="f{i + 1}"]()
  %a : Float(3) = prim::CallFunction(%f, %x)
  %b : Float(3) = prim::CallFunction(%f, %a)
  return (%b)
"""
        for i in range(levels)
    ]
    return "".join(parts) + f"graph f{levels}(%x : Float(3)):\n  %y : Float(3) = onnx::Neg(%x)\n  return (%y)\n"


@pytest.mark.parametrize("levels", [30, 3000])
def test_functions_that_double_each_other_fail_before_they_are_expanded(levels):
    module = parse_module(doubling(levels))
    before = str(module)
    with pytest.raises(Error, match=r"IRC308: main: inlining would make \d+ nodes, .* for one call of 'f0'; the limit"):
        PassManager("inline").run(module)
    assert str(module) == before


def test_what_groups_hold_is_counted():
    group = "with prim::FusionGroup_0 = graph(%a : Float(3)):\n"
    group += "".join(f"  %a{i + 1} : Float(3) = onnx::Neg(%a{i or ''})\n" for i in range(50)) + "  return (%a50)\n"
    text = doubling(3).replace("onnx::Neg(%x)", "prim::FusionGroup_0(%x)") + group
    PassManager("inline{max-nodes=500}").run(parse_module(text))
    with pytest.raises(Error, match="IRC308"):
        PassManager("inline{max-nodes=400}").run(parse_module(text))


@pytest.mark.parametrize("first", ["r", "k"])
def test_functions_are_dropped_as_soon_as_no_function_that_calls_itself_needs_them(first: str) -> None:
    """``r`` calls itself, ``h`` (which calls ``k``) and ``k``; ``q``, which calls itself too, calls ``k``."""
    functions = {"r": ["h", "k", "r", "q"], "h": ["k"], "k": [], "q": ["k", "q"]}
    order = [first, *(name for name in functions if name != first)]
    parts = [_calling("", ["r"]), *(_calling(name, functions[name]) for name in order)]
    module = transform_module("\n".join(parts), "inline")
    assert [name for name in module.graphs if name != module.main.name] == [n for n in order if n in ("r", "q")]
    assert {callee(node) for graph in module.graphs.values() for node in graph.walk()} == {None, "r", "q"}


def _calling(name: str, called: list[str]) -> str:
    """A function that calls others on what it is given, one after the other."""
    lines = [f"graph {name}(%x : Tensor):" if name else "graph(%x : Tensor):", "  %v0 : Tensor = aten::relu(%x)"]
    for i, each in enumerate(called):
        lines.append(f'  %f{i} : Function = prim::Constant[name="{each}"]()')
        lines.append(f"  %v{i + 1} : Tensor = prim::CallFunction(%f{i}, %v{i})")
    return "\n".join([*lines, f"  return (%v{len(called)})", ""])
