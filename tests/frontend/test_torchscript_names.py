"""What inputs, results and objects of TorchScript's graphs are called."""

import numpy as np

import irc
from irc.frontend.torchscript import import_torchscript
from irc.ir import parse_module
from tests.graphs import ir


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
