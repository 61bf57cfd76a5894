"""Passes keep how tensors lie in memory where something sees it."""

import numpy as np
import pytest

import irc
from irc.alias import analyze
from irc.ir import parse_graph, parse_module
from irc.passes.layouts import Contiguity, Layouts
from irc.runtime.plan import lower
from tests.graphs import ir
from tests.passes.helpers import kinds, run_passes
from tests.programs.interpreter import interpret

HEAD = """graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %last : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %sizes : int[] = prim::Constant[value=[3]]()
  %steps : int[] = prim::Constant[value=[2]]()
  %t : Tensor = aten::t(%x)
  %y : Tensor = aten::add(%t, %one, %one)
  %m : Tensor = aten::gt(%y, %two)
  %w : Tensor = aten::masked_fill_(%y, %m, %last)
"""


def graph(body: str):
    return parse_graph(HEAD + "".join(f"  {line}\n" for line in body.strip().splitlines()))


SEEN = {
    "stride": "%s : int[] = aten::stride(%y)\nreturn (%y)",
    "is_contiguous": "%s : bool = aten::is_contiguous(%y, %zero)\nreturn (%y)",
    "as_strided": "%s : Tensor = aten::as_strided(%y, %sizes, %steps, %none)\nreturn (%s)",
    "view": "%s : Tensor = aten::view(%y, %sizes)\nreturn (%s)",
    "of a view": "%v : Tensor = aten::select(%y, %zero, %one)\n%s : int[] = aten::stride(%v)\nreturn (%y)",
    "of a copy": "%c : Tensor = aten::clone(%y, %none)\n%s : int[] = aten::stride(%c)\nreturn (%y)",
    "of a result": "%c : Tensor = aten::mul(%y, %x)\n%d : Tensor = aten::neg(%c)\n%s : int[] = aten::stride(%d)\n"
    "return (%y)",
    "in a list": "%l : Tensor[] = prim::ListConstruct(%x, %y)\n%e : Tensor = aten::__getitem__(%l, %zero)\n"
    "%s : int[] = aten::stride(%e)\nreturn (%y)",
    "put into a list": "%l : Tensor[] = prim::ListConstruct()\n%a : Tensor[] = aten::append(%l, %y)\n"
    "%e : Tensor = aten::__getitem__(%l, %zero)\n%s : int[] = aten::stride(%e)\nreturn (%y)",
    "of a branch": "%q : bool = aten::is_complex(%x)\n%r : Tensor = prim::If(%q)\n  block0():\n    -> (%x)\n"
    "  block1():\n    %n : Tensor = aten::neg(%y)\n    -> (%n)\n%s : int[] = aten::stride(%r)\nreturn (%y)",
    "unknown code": "%s : Tensor = somebodys::operator(%y)\nreturn (%y)",
    "a copy that is written": "%f : Tensor = aten::flatten(%y, %zero, %last)\n"
    "%u : Tensor = aten::add_(%f, %one, %one)\nreturn (%y, %f)",
}
NOT_SEEN = {
    "a copy that nothing writes": "%f : Tensor = aten::flatten(%y, %zero, %last)\nreturn (%y, %f)",
    "another tensor": "%s : int[] = aten::stride(%x)\nreturn (%y)",
    "what is laid out anew": "%p : Tensor = aten::mm(%y, %y)\n%s : int[] = aten::stride(%p)\nreturn (%y)",
    "what is contiguous": "%p : Tensor = aten::clone(%y, %zero)\n%s : int[] = aten::stride(%p)\nreturn (%y)",
    "sizes": "%s : int[] = aten::size(%y)\nreturn (%y)",
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen(name):
    g = graph(SEEN[name])
    assert Layouts(g, analyze(g), {}).is_seen([g.value("y")])


@pytest.mark.parametrize("name", NOT_SEEN)
def test_what_is_not_seen(name):
    g = graph(NOT_SEEN[name])
    assert not Layouts(g, analyze(g), {}).is_seen([g.value("y")])
    run_passes(g, "remove-mutation")
    assert "masked_fill" in kinds(g) and "overwrite" not in kinds(g)


@pytest.mark.parametrize("caller", ["%s : int[] = aten::stride(%y)", "%s : Tensor = aten::neg(%y)"])
def test_functions_whose_callers_look(caller):
    module = parse_module(f"""
graph(%x : Tensor):
  %f : Function = prim::Constant[name="f"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  {caller}
  return (%y)

{HEAD.replace("graph(", "graph f(")}  return (%y)
""")
    f = module.graphs["f"]
    assert Layouts(f, analyze(f, module), {}).is_seen([f.value("y")]) is ("stride" in caller)


CERTAIN = {
    "aten::clone(%y, %zero)": True,
    "aten::clone(%y, %none)": False,
    "aten::mm(%y, %y)": False,
    "aten::contiguous(%y, %zero)": True,
    "aten::add(%c, %two, %one)": True,
    "aten::add(%c, %c, %one)": True,
    "aten::add(%c, %y, %one)": False,
    "aten::t(%c)": False,
    "aten::flatten(%c, %zero, %last)": True,
    "aten::select(%c, %zero, %one)": True,
    "aten::select(%c, %one, %one)": False,
    "aten::slice(%c, %zero, %one, %none, %one)": True,
    "aten::slice(%c, %zero, %one, %none, %two)": False,
    "aten::zeros_like(%c, %none, %none, %none, %none, %none)": True,
    "aten::zeros_like(%y, %none, %none, %none, %none, %none)": False,
    "aten::zeros_like(%y, %none, %none, %none, %none, %zero)": True,
    "aten::relu_(%c)": True,
    "aten::tril(%y, %zero)": True,
}


@pytest.mark.parametrize("made", CERTAIN)
def test_what_is_certainly_contiguous(made):
    g = graph(f"%c : Tensor = aten::clone(%x, %zero)\n%v : Tensor = {made}\nreturn (%v)")
    assert Contiguity(lambda value: False).is_certain(g.value("v")) is CERTAIN[made]
    assert not Contiguity(lambda value: True).is_certain(g.value("v"))
    if CERTAIN[made]:
        (found,) = lower(g).run([np.asfortranarray(np.arange(9, dtype=np.float32).reshape(3, 3))])
        assert found.flags.c_contiguous


def test_contiguity_of_deep_chains_is_found_without_recursion():
    lines = "".join(f"%c{i + 1} : Tensor = aten::neg(%c{i})\n" for i in range(5000))
    g = graph(f"%c0 : Tensor = aten::clone(%x, %zero)\n{lines}return (%c5000)")
    assert Contiguity(lambda value: False).is_certain(g.value("c5000"))


@pytest.mark.covering(2)
@pytest.mark.parametrize("pipeline", ["constant-fold", "default", "remove-mutation,default"])
@pytest.mark.parametrize(
    "look",
    [
        "%s : int[] = aten::stride(%v)",
        "%s : bool = aten::is_contiguous(%v, %zero)",
        "%s : Tensor = aten::as_strided(%v, %sizes, %one_step, %none)",
        "%n : Tensor = aten::neg(%v)\n  %s : int[] = aten::stride(%n)",
        "%s : int = aten::storage_offset(%v)",
    ],
)
@pytest.mark.parametrize("view", ["aten::t(%c)", "aten::select(%c, %one, %one)", "aten::slice(%c, %zero, %one, %two)"])
def test_constants_that_are_looked_at_are_not_folded_into_others(view, look, pipeline):
    text = f"""
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %sizes : int[] = prim::Constant[value=[2]]()
  %one_step : int[] = prim::Constant[value=[1]]()
  %c : Float(3, 2) = prim::Constant[value=tensor([1., 2., 3., 4., 5., 6.])]()
  %v : Tensor = {view}
  {look}
  return (%s)
"""
    x = {"x": np.zeros(1, np.float32)}
    wanted = irc.compile(parse_module(text), passes="").run(x)["s"]
    found = irc.compile(parse_module(text), passes=pipeline).run(x)["s"]
    np.testing.assert_array_equal(found, wanted)


def test_tensors_with_gaps_are_not_written_instead_of_new_ones():
    text = ir("""
        x: Float(6); s: Float(3) -> c, b
        a: Float(3) = as_strided_scatter(as_strided(x, [3], [2], None), s, [3], [2], None); b: Float(3) = neg(a)
        c: "int[]" = stride(b)
    """)
    before, after = parse_graph(text), parse_graph(text)
    run_passes(after, "in-place")
    given = [np.arange(6, dtype=np.float32), np.ones(3, np.float32)]
    assert lower(after).run(given)[0] == lower(before).run(given)[0] == [1]


OPERANDS = """
graph(%x : Float(6, 4), %w : Float(4, 6)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %last : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %sizes : int[] = prim::Constant[value=[6]]()
  %steps : int[] = prim::Constant[value=[1]]()
  %square : int[] = prim::Constant[value=[2, 3]]()
  %gaps : int[] = prim::Constant[value=[1, 2]]()
  %shape : Long(2) = prim::Constant[value=tensor([2, 3])]()
  %all : Long(1) = prim::Constant[value=tensor([2])]()
  %start : Long(1) = prim::Constant[value=tensor([0])]()
  %ones : Long(2) = prim::Constant[value=tensor([1, 1])]()
  %pads : Long(4) = prim::Constant[value=tensor([0, 0, 0, 0])]()
  %number : Float() = prim::Constant[value=tensor([1.])]()
  %negative : Float() = prim::Constant[value=tensor([-0.])]()
  %yes : Bool(1, 1) = prim::Constant[value=tensor([True])]()
  %a : Float(6, 4) = aten::neg(%x)
  %s : Float(4, 3) = aten::slice(%x, %zero, %one, %last, %one)
  %h : Float(2, 4) = aten::slice(%a, %zero, %two, %last, %two)
  %c : Float(2, 3) = aten::slice(%h, %one, %one, %none, %one)
  %t : Float(4, 6) = aten::t(%x)
  %u : Float(4, 6) = aten::neg(%t)
  %d : Float(2, 3) = aten::as_strided(%a, %square, %gaps, %none)
  %e : Float(2, 3) = aten::neg(%c)
  %half : float = prim::Constant[value=0.5]()
  %train : bool = prim::Constant[value=False]()
"""
"""%c is a part of what the graph makes, %d a view of it with gaps and the first axis the fastest one."""

NOTHING_TO_DO = {
    "onnx::Identity": "onnx::Identity(%v)",
    "aten::dropout": "aten::dropout(%v, %half, %train)",
    "onnx::Cast": "onnx::Cast[to=1](%v)",
    "onnx::CastLike": "onnx::CastLike(%v, %number)",
    "onnx::Dropout": "onnx::Dropout(%v)",
    "onnx::Reshape": "onnx::Reshape(%v, %shape)",
    "onnx::Flatten": "onnx::Flatten[axis=1](%v)",
    "onnx::Expand": "onnx::Expand(%v, %shape)",
    "onnx::Tile": "onnx::Tile(%v, %ones)",
    "onnx::Concat": "onnx::Concat[axis=0](%v)",
    "onnx::Sum": "onnx::Sum(%v)",
    "onnx::Max": "onnx::Max(%v)",
    "onnx::Transpose": "onnx::Transpose[perm=[0, 1]](%v)",
    "onnx::Slice": "onnx::Slice(%v, %start, %all)",
    "onnx::Pad": "onnx::Pad(%v, %pads)",
    "onnx::Split": "onnx::Split[num_outputs=1](%v)",
    "onnx::Mul": "onnx::Mul(%v, %number)",
    "onnx::Add": "onnx::Add(%v, %negative)",
    "onnx::Where": "onnx::Where(%yes, %v, %negative)",
}
LOOKS = {
    "stride": "%o : int[] = aten::stride(%r)",
    "stride of a result": "%n : Float(2, 3) = aten::neg(%r)\n  %o : int[] = aten::stride(%n)",
    "is_contiguous": "%o : bool = aten::is_contiguous(%r, %zero)",
    "storage_offset": "%o : int = aten::storage_offset(%r)",
    "as_strided": "%o : Float(6) = aten::as_strided(%r, %sizes, %steps, %none)",
    "as_strided from the beginning": "%o : Float(6) = aten::as_strided(%r, %sizes, %steps, %zero)",
    "a copy that is written": "%f : Tensor = aten::flatten(%r, %zero, %last)\n"
    "  %g : Tensor = aten::add_(%f, %one, %one)\n  %o : Tensor = aten::clone(%r, %none)",
}


def check_seen(body: str, *pipelines: str) -> None:
    """Fail unless ``body``, which returns what it sees of layouts, sees the same after each of ``pipelines``."""
    given = [np.arange(24, dtype=np.float32).reshape(6, 4), np.arange(24, dtype=np.float32).reshape(4, 6)]
    wanted = interpret(parse_graph(body), [x.copy() for x in given])
    for pipeline in pipelines:
        after = parse_graph(body)
        run_passes(after, pipeline)
        for found, expected in zip(lower(after).run([x.copy() for x in given]), wanted, strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=f"{pipeline}: {after}")


@pytest.mark.covering(1)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("kind", NOTHING_TO_DO)
def test_an_operator_that_does_nothing_but_lay_out_stays_where_that_is_seen(kind, look):
    for v in "cd":
        made = NOTHING_TO_DO[kind].replace("%v", f"%{v}")
        body = f"{OPERANDS}  %r : Float(2, 3) = {made}\n  {LOOKS[look]}\n  return (%o)\n"
        check_seen(body, "canonicalize", "default")


@pytest.mark.parametrize("kind", NOTHING_TO_DO)
def test_an_operator_that_does_nothing_goes_where_layouts_are_not_seen(kind):
    made = NOTHING_TO_DO[kind].replace("%v", "%e")
    rest = "  %o : Float(2, 3) = aten::neg(%r)\n  %z : int[] = aten::stride(%x)\n  return (%o, %z)\n"
    graph = parse_graph(f"{OPERANDS}  %r : Float(2, 3) = {made}\n{rest}")
    run_passes(graph, "canonicalize")
    assert kind not in {node.kind for node in graph.nodes}


@pytest.mark.parametrize("kind", ["onnx::Identity", "aten::dropout"])
def test_an_operator_that_gives_its_operand_itself_goes_even_so(kind):
    made = NOTHING_TO_DO[kind].replace("%v", "%d")
    graph = parse_graph(f"{OPERANDS}  %r : Float(2, 3) = {made}\n  {LOOKS['stride']}\n  return (%o)\n")
    run_passes(graph, "canonicalize")
    assert kind not in {node.kind for node in graph.nodes}


def test_a_scale_is_not_folded_into_a_product_whose_layout_is_seen():
    scaled = """
  %weights : Float(6, 2) = prim::Constant[value=tensor([1., 2., 3., 4., 5., 6., 7., 8., 9., 0., 1., 2.])]()
  %factors : Float(2) = prim::Constant[value=tensor([2., 4.])]()
  %p : Float(4, 2) = onnx::Gemm(%w, %weights)
  %r : Float(4, 2) = onnx::Mul(%p, %factors)
"""
    for look, is_folded in (("aten::stride(%x)", True), ("aten::stride(%r)", False)):
        body = f"{OPERANDS}{scaled}  %o : int[] = {look}\n  return (%o, %r)\n"
        graph = parse_graph(body)
        run_passes(graph, "conv-bn-fold")
        assert ("Mul" not in kinds(graph)) is is_folded
        check_seen(body, "conv-bn-fold", "default")


OVERWRITING = {
    "onnx::Add(%u, %w)": "onnx::Add",
    "onnx::Add(%w, %u)": "onnx::Add",
    "onnx::Mul(%u, %number)": "onnx::Mul",
    "onnx::Where(%more, %u, %w)": "onnx::Where",
    "aten::mul(%u, %w)": "aten::mul_",
    "aten::relu(%u)": "aten::relu_",
    "irc::slice_scatter[starts=[0, 0], steps=[1, 1]](%u, %d)": "irc::slice_scatter",
    "irc::overwrite(%u, %w)": "irc::overwrite_",
}
"""Operators whose result lies as %w does, or as %u, which they could write over -> what they are in place."""


@pytest.mark.parametrize("made", OVERWRITING)
def test_a_result_is_written_over_an_operand_only_if_it_lies_so_where_that_is_seen(made):
    more = "  %more : Bool(4, 6) = onnx::Greater(%w, %number)\n"
    body = f"{OPERANDS}{more}  %r : Float(4, 6) = {made}\n  %o : int[] = aten::stride(%r)\n  return (%o, %r)\n"
    check_seen(body, "in-place", "default", "in-place,default")
    graph = parse_graph(body)
    run_passes(graph, "in-place")
    found = graph.value("r").node
    assert found is not None and found.kind == OVERWRITING[made]


@pytest.mark.parametrize("kind", ["aten::relu", "onnx::Relu", "aten::neg", "onnx::Neg"])
@pytest.mark.parametrize("rows", [4, 400])
def test_a_part_of_a_larger_tensor_is_no_place_for_a_result_whose_storage_is_seen(kind, rows):
    body = f"""
graph(%x : Float({rows}, 30)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %sizes : int[] = prim::Constant[value=[6]]()
  %steps : int[] = prim::Constant[value=[1]]()
  %a : Float({rows}, 30) = aten::neg(%x)
  %c : Float({rows - 1}, 30) = aten::slice(%a, %zero, %one, %none, %one)
  %r : Float({rows - 1}, 30) = {kind}(%c)
  %o : int = aten::storage_offset(%r)
  %p : Float(6) = aten::as_strided(%r, %sizes, %steps, %zero)
  return (%o, %p)
"""
    x = np.linspace(-1, 1, rows * 30, dtype=np.float32).reshape(rows, 30)
    wanted = interpret(parse_graph(body), [x.copy()])
    for pipeline in ("", "in-place", "default"):
        (module := parse_module(body)).verify()
        found = irc.compile(module, passes=pipeline).run({"x": x})
        assert found["o"] == wanted[0] == 0
        np.testing.assert_array_equal(found["p"], wanted[1])
