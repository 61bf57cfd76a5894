"""Where rewritten nodes come from: the names of the model's nodes and their metadata, through every pass."""

import numpy as np
import pytest

import irc
from irc.frontend.onnx_export import export_model
from irc.ir import CONSTANT, Graph, Module, Node, Tensor, parse_graph, parse_module
from irc.ir.metadata import MOST_SOURCES, SOURCE
from irc.passes import PassManager
from tests.passes.helpers import run_passes


def ran(text: str, pipeline: str = "default", **weights: np.ndarray) -> Graph:
    module = parse_module(text, weights={name: Tensor.of(array, name) for name, array in weights.items()})
    for graph in module.graphs.values():
        describe(graph)
    PassManager(pipeline).run(module)
    return module.main


def describe(graph: Graph) -> None:
    """Let each node say which it is, and all the same of the model."""
    for node in graph.walk():
        if node.kind != CONSTANT:
            node.metadata = {"own": f"/{node.name or node.outputs[0].name}", "all": "model"}


def found(graph: Graph) -> dict[str, str | None]:
    """The source of each operator, those in groups included, by the names of their results."""
    inside = [graph, *(node.attributes["Subgraph"] for node in graph.walk() if "Subgraph" in node.attributes)]
    nodes = [node for each in inside for node in each.walk() if node.kind != "prim::FusionGroup"]
    return {node.output.name: node.metadata.get(SOURCE) for node in nodes if node.kind != CONSTANT}


def operators(graph: Graph) -> list[Node]:
    return [node for node in graph.walk() if node.kind != CONSTANT]


CONV = """graph(%x : Float(1, 1, 4, 4)):
  %w : Float(2, 1, 3, 3) = prim::Constant[value=@"w"]()
  %one : Float(2) = prim::Constant[value=tensor([1., 2.])]()
  %c : Float(1, 2, 2, 2) = onnx::Conv(%x, %w) # conv
  %n : Float(1, 2, 2, 2) = onnx::BatchNormalization(%c, %one, %one, %one, %one) # bn
  %y : Float(1, 2, 2, 2) = onnx::Relu(%n) # relu
  return (%y)
"""


def test_folded_normalisation():
    graph = ran(CONV, w=np.arange(18, dtype=np.float32).reshape(2, 1, 3, 3))
    assert found(graph) == {"n": "conv, bn", "y": None}
    conv = next(node for each in (graph, *_groups(graph)) for node in each.walk() if node.kind == "onnx::Conv")
    assert conv.metadata == {"own": "/conv; /bn", "all": "model", SOURCE: "conv, bn"}


def _groups(graph: Graph) -> list[Graph]:
    return [node.attributes["Subgraph"] for node in graph.walk() if "Subgraph" in node.attributes]


GELU = """graph(%x : Float(n, 4)):
  %root : Float() = prim::Constant[value=splat(1.4142135)]()
  %one : Float() = prim::Constant[value=splat(1.)]()
  %half : Float() = prim::Constant[value=splat(0.5)]()
  %d : Float(n, 4) = onnx::Div(%x, %root) # div
  %e : Float(n, 4) = onnx::Erf(%d)
  %a : Float(n, 4) = onnx::Add(%e, %one) # add
  %m : Float(n, 4) = onnx::Mul(%x, %a) # mul
  %y : Float(n, 4) = onnx::Mul(%m, %half) # half
  return (%y)
"""


def test_several_operators_that_become_one_and_are_written_as_several_again():
    graph = ran(GELU, "canonicalize")
    (node,) = [each for each in graph.walk() if each.kind == "onnx::Gelu"]
    assert node.metadata[SOURCE] == "div, e, add, mul, half"
    graph = ran(GELU)
    module = Module(graph.copy())
    module.metadata["opset_import.ai.onnx"] = "17"
    written = export_model(module).graph.node
    assert len(written) == 5
    assert {p.value for node in written for p in node.metadata_props if p.key == SOURCE} == {"div, e, add, mul, half"}
    assert written[-1].name == "half"


def test_what_is_merged_has_both_names_and_stays_as_it_is():
    text = """graph(%x : Float(2)):
  %a : Float(2) = onnx::Exp(%x) # first
  %b : Float(2) = onnx::Exp(%x)
  %c : Float(2) = onnx::Exp(%x) # third
  %d : Float(2) = onnx::Sum(%a, %b, %c) # sum
  return (%d)
"""
    graph = ran(text, "cse")
    assert found(graph) == {"a": "first, b, third", "d": None}
    printed = str(graph)
    PassManager("cse,dce").run(graph)
    assert str(graph) == printed


def test_shape_arithmetic_that_becomes_a_constant():
    text = """graph(%x : Float(n, 4, 6)):
  %one : Long(1) = prim::Constant[value=tensor([1])]()
  %two : Long(1) = prim::Constant[value=tensor([2])]()
  %rest : Long(1) = prim::Constant[value=tensor([-1])]()
  %s : Long(3) = onnx::Shape(%x) # shape
  %g : Long(1) = onnx::Gather(%s, %two) # gather
  %h : Long(1) = onnx::Div(%g, %two) # halve
  %t : Long(3) = onnx::Concat[axis=0](%rest, %h, %two) # concat
  %y : Float(*, 3, 2) = onnx::Reshape(%x, %t) # reshape
  return (%y)
"""
    graph = ran(text)
    (reshape,) = operators(graph)
    assert SOURCE not in reshape.metadata  # only its operand is another one
    constant = reshape.inputs[1].node
    assert constant is not None and constant.metadata[SOURCE].endswith("concat")
    assert "shape" in constant.metadata[SOURCE].split(", ")
    initializer = export_model(Module(graph.copy())).graph.initializer[0]
    assert {p.key: p.value for p in initializer.metadata_props}[SOURCE] == constant.metadata[SOURCE]


def test_a_constant_that_takes_several_operators():
    text = """graph(%x : Float(3)):
  %a : Float(3) = prim::Constant[value=tensor([1., 2., 3.])]()
  %b : Float(3) = onnx::Exp(%a) # exp
  %c : Float(3) = onnx::Neg(%b) # neg
  %y : Float(3) = onnx::Add(%x, %c) # add
  return (%y)
"""
    graph = ran(text)
    (add,) = operators(graph)
    assert SOURCE not in add.metadata
    assert add.inputs[1].node is not None
    assert add.inputs[1].node.metadata == {"own": "/exp; /neg", "all": "model", SOURCE: "exp, neg"}


def test_operators_that_vanish_leave_nothing():
    text = """graph(%x : Float(2)):
  %a : Float(2) = onnx::Exp(%x) # exp
  %b : Float(2) = onnx::Identity(%a) # identity
  %c : Float(2) = onnx::Neg(%b) # neg
  return (%c)
"""
    assert found(ran(text)) == {"a": None, "c": None}


def test_overwriting_and_its_reverse_leave_no_trace():
    text = """graph(%x : Float(2), %past : Float(1, n)):
  %a : Float(2) = onnx::Exp(%x) # exp
  %c : Float(2) = onnx::Neg(%a) # neg
  return (%c)
"""
    graph = ran(text, "in-place")
    assert [node.kind for node in operators(graph)] == ["onnx::Exp", "onnx::Neg_"]
    assert found(graph) == {"a": None, "c": None}
    PassManager("remove-mutation").run(graph)
    assert [(node.kind, node.metadata["own"]) for node in operators(graph)] == [
        ("onnx::Exp", "/exp"),
        ("onnx::Neg", "/neg"),
    ]
    assert found(graph) == {"a": None, "c": None}


def test_calls_within_calls():
    text = """graph(%x : Float(2)):
  %f : Function = prim::Constant[name="outer"]()
  %a : Float(2) = prim::CallFunction(%f, %x) # call
  %b : Float(2) = prim::CallFunction(%f, %a)
  return (%b)

graph outer(%v : Float(2)):
  %g : Function = prim::Constant[name="inner"]()
  %w : Float(2) = prim::CallFunction(%g, %v) # within
  %u : Float(2) = onnx::Exp(%w) # exp
  return (%u)

graph inner(%p : Float(2)):
  %q : Float(2) = onnx::Neg(%p) # neg
  %r : Float(2) = onnx::Sin(%q)
  return (%r)
"""
    sources = [node.metadata[SOURCE] for node in operators(ran(text, "inline"))]
    assert sources == ["call/within/neg", "call/within", "call/exp", "b/within/neg", "b/within", "b/exp"]


def test_unused_operators_are_not_merged_and_leave_nothing():
    text = """graph(%x : Float(2, 3)):
  %s : Long(2) = onnx::Shape(%x) # used
  %t : Long(2) = onnx::Shape(%x) # unused
  %f : Float(2) = onnx::Cast[to=1](%s)
  return (%f)
"""
    graph = parse_graph(text.replace("2, 3", "n, m"))
    run_passes(graph, "canonicalize,cse,constant-pool")
    (used, *_) = operators(graph)
    assert used.name == "used" and used.metadata.get(SOURCE) in (None, "used, unused")


def test_what_keeps_the_name_of_an_output_tells_whose_it_was():
    text = """graph(%x : Float(2)):
  %a : Float(2) = onnx::Exp(%x) # first
  %b : Float(2) = onnx::Exp(%x) # second
  return (%a, %b)
"""
    graph = ran(text, "cse")
    assert [node.kind for node in operators(graph)] == ["onnx::Exp", "onnx::Identity"]
    assert found(graph) == {"a": "first, second", "b": "second"}


def test_very_many_that_become_one():
    lines = "".join(f"  %a{i} : Float(2) = onnx::Exp(%x) # node {i}\n" for i in range(3_000))
    sums = ", ".join(f"%a{i}" for i in range(3_000))
    graph = ran(f"graph(%x : Float(2)):\n{lines}  %y : Float(2) = onnx::Sum({sums})\n  return (%y)\n", "cse")
    (exp, _) = operators(graph)
    assert exp.metadata[SOURCE].split(", ") == [*(f"node {i}" for i in range(MOST_SOURCES)), "..."]
    assert len(exp.metadata["own"]) < 5_000


def test_results_keep_what_is_said_of_them():
    text = """graph(%x : Float(2)):
  %a : Float(2) = onnx::Exp(%x)
  %b : Float(2) = onnx::Identity(%a)
  %c : Float(2) = onnx::Exp(%x)
  %d : Float(2) = onnx::Abs(%x)
  %z : Float(2) = onnx::Abs(%d)
  return (%b, %c, %z)
# metadata %b {"irc.doc_string": "first"}
# metadata %c {"irc.doc_string": "second"}
# metadata %z {"irc.doc_string": "third"}
"""
    for passes in ("", "cse", "default", "in-place", "default,in-place,remove-mutation"):
        model = irc.compile(parse_graph(text), passes)
        said = [value.metadata.get("irc.doc_string") for value in model.graph.outputs]
        assert said == ["first", "second", "third"], passes


@pytest.mark.parametrize("passes", ["default", "default,in-place", "default,reorder,remove-mutation"])
def test_everything_compiled_is_read_back_with_it(passes, tmp_path):
    model = irc.compile(parse_graph(GELU), passes)
    model.save(tmp_path / "m.irc")
    assert str(irc.load(tmp_path / "m.irc").graph) == str(model.graph)
    assert SOURCE in str(model.graph)
