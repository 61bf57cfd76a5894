"""What inputs, results and objects of TorchScript's graphs are called."""

import numpy as np
import pytest

import irc
from irc.frontend.torchscript import import_torchscript
from irc.ir import Builder, parse_graph, parse_module
from tests.graphs import ir


@pytest.mark.parametrize(
    ("inputs", "nodes", "results", "names"),
    [
        ("%x.1, %y.2", "", "%x.1", "x y -> x"),
        ("%x.1, %x.2", "", "%x.1", "x.1 x.2 -> x.1"),
        ("%x.1, %x", "", "%x.1", "x.1 x -> x.1"),
        ("%x.1.1, %x.1", "", "%x.1", "x.1.1 x -> x"),
        ("%x.1", "%x : Tensor = aten::relu(%x.1)", "%x", "x.1 -> x"),
        ("%x.1", "%x : Tensor = aten::relu(%x.1)\n  %y : Tensor = aten::neg(%x)", "%y", "x -> y"),
        ("%x", "%1 : Tensor = aten::neg(%x)", "%1", "x -> output"),
        ("%x", "%1 : Tensor = aten::neg(%x)", "%1, %1", "x -> output output"),
        ("%output", "%1 : Tensor = aten::neg(%output)", "%1", "output -> 1"),
        ("%output.1", "%1 : Tensor = aten::neg(%output.1)", "%1", "output -> 1"),
        ("%x", "%1 : Tensor = aten::neg(%x)\n  %2 : Tensor = aten::neg(%1)", "%1, %2", "x -> output 2"),
        ("%x", "%1 : Tensor = aten::neg(%x)\n  %output : Tensor = aten::neg(%1)", "%1, %output", "x -> 1 output"),
        ("%x", "%output : Tensor = aten::neg(%x)\n  %1 : Tensor = aten::neg(%output)", "%1", "x -> output"),
    ],
)
def test_names_of_inputs_and_results(inputs: str, nodes: str, results: str, names: str) -> None:
    inputs = ", ".join(f"{name} : Tensor" for name in inputs.split(", "))
    graph = import_torchscript(f"graph({inputs}):\n  {nodes}\n  return ({results})\n").main
    assert " ".join([*(v.name for v in graph.inputs), "->", *(v.name for v in graph.outputs)]) == names


def test_objects_of_one_stem_keep_their_attributes() -> None:
    text = """
    graph(%s.1 : __torch__.A, %s.2 : __torch__.B, %t.1 : __torch__.C):
      %a : Tensor = prim::GetAttr[name="a"](%s.1)
      %b : Tensor = prim::GetAttr[name="b"](%s.2)
      %c : Tensor = prim::GetAttr[name="c"](%t.1)
      %one : int = prim::Constant[value=1]()
      %ab : Tensor = aten::add(%a, %b, %one)
      %abc : Tensor = aten::add(%ab, %c, %one)
      return (%abc)
    """
    module = import_torchscript(text, {"a": np.array([1]), "b": np.array([20]), "c": np.array([300])})
    assert {name: list(object.attributes) for name, object in module.objects.items()} == {
        "s.1": ["a"],
        "s.2": ["b"],
        "t": ["c"],
    }
    np.testing.assert_array_equal(irc.compile(module).run({})["abc"], [321])


def test_operators_have_the_name_that_pytorch_compiles_to() -> None:
    text = ir("""
        x: Tensor -> z
        f: Function = prim.Constant(name="f"); z = prim.CallFunction(f, clip_(x, x, x))

        f | x: Tensor -> y
        y = special_expit(x)
    """)
    module = import_torchscript(text)
    kinds = {name: [node.kind for node in graph.walk()] for name, graph in module.graphs.items()}
    assert kinds == {"main": ["prim::Constant", "aten::clamp_", "prim::CallFunction"], "f": ["aten::sigmoid"]}
    assert str(module) == str(parse_module(text)), "whoever reads the text"


def test_operators_have_one_name_however_they_are_made() -> None:
    text = """graph(%x : Float(2),
      %y : Float(2)):
  %a : Tensor = aten::greater(%x, %y)
  return (%a)
"""
    graph = parse_graph(text)
    assert str(graph) == text.replace("greater", "gt")
    x, y = graph.inputs
    made = Builder(graph).op("aten::true_divide", x, y, type=x.type)
    assert made.node is not None and made.node.kind == "aten::div"
    graph.set_outputs([*graph.outputs, made])
    graph.verify()
    found = irc.compile(graph, "none").run({"x": np.float32([1, 4]), "y": np.float32([2, 2])})
    np.testing.assert_array_equal(found["a"], [False, True])
    np.testing.assert_array_equal(found[made.name], [0.5, 2])
