"""Structural equality: every kind of difference is found, and nothing else is."""

from collections.abc import Callable

import numpy as np
import pytest

from irc.ir import Builder, DType, Graph, Module, Tensor, parse_graph, structurally_equal, types

TEXT = """\
graph(%x : Float(2),
      %c : bool):
  %a : Float(2) = onnx::Elu[alpha=0.5, since_version=6](%x), scope: S # first
  %w : Float(2) = prim::Constant[value=tensor([0., nan])]()
  %r : Float(2) = prim::If(%c)
    block0():
      %i : Float(2) = onnx::Add(%a, %w)
      -> (%i)
    block1():
      -> (%a)
  %g : Float(2) = prim::FusionGroup_0(%r)
  return (%g, %a)
with prim::FusionGroup_0 = graph(%p : Float(2)):
  return (%p)
"""


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda g: g.set_outputs([g.value("g")]), "inputs"),
        (lambda g: g.set_outputs([g.value("a"), g.value("g")]), "inputs"),
        (lambda g: g.value("i").node.replace_input(0, g.value("w")), "inputs"),
        (lambda g: g.value("i").node.append_input(g.value("w")), "inputs"),
        (lambda g: g.value("r").node.blocks[0].set_returns([g.value("a")]), "inputs"),
        (lambda g: g.add_input(types.INT), "parameters"),
        (lambda g: setattr(g.value("x"), "type", types.INT), "parameters"),
        (lambda g: setattr(g.value("i"), "type", types.INT), "outputs: %i : Float(2)"),
        (lambda g: g.value("i").node.add_output(types.INT), "outputs"),
        (lambda g: setattr(g.value("a").node, "kind", "onnx::Selu"), "operators"),
        (lambda g: setattr(g.value("a").node, "version", 22), "operators"),
        (lambda g: g.value("a").node.attributes.update(alpha=0.25), "attributes"),
        (lambda g: g.value("a").node.attributes.update(alpha=1), "attributes"),
        (lambda g: g.value("a").node.attributes.clear(), "attributes"),
        (lambda g: g.value("w").node.attributes.update(value=Tensor.of(np.float32([-0.0, np.nan]))), "attributes"),
        (lambda g: g.value("r").node.add_block(), "operators"),
        (lambda g: g.value("w").node.move_before(g.value("a").node), "operators"),
        (lambda g: Builder(g).node("my::op"), "nodes of blocks: 4"),
        (lambda g: g.value("g").node.attributes["Subgraph"].set_outputs([]), "inputs"),
        # names
        (lambda g: setattr(g.value("i"), "name", "j"), "outputs: %i : Float(2)"),
        (lambda g: setattr(g.value("a").node, "name", "second"), "node names or scopes"),
        (lambda g: setattr(g.value("a").node, "scope", ""), "node names or scopes"),
        (lambda g: setattr(g, "name", "f"), "graphs called: main  and  f"),
    ],
)
def test_differences_are_found(change: Callable[[Graph], object], difference: str) -> None:
    graph, other = parse_graph(TEXT), parse_graph(TEXT)
    assert structurally_equal(graph, other) is None
    change(other)
    found = structurally_equal(graph, other)
    assert found is not None
    assert difference in found
    assert structurally_equal(other, graph) is not None


def weight(tensor: Tensor, name: str = "w") -> Graph:
    graph = Graph()
    Builder(graph).constant(graph.weights.add(name, tensor), name="v")
    return graph


def test_huge_splats_are_compared_without_writing_them_out() -> None:
    huge = [weight(Tensor.splat(DType.FLOAT, (2**40,), value)) for value in (1.0, 1.0, 2.0)]
    assert structurally_equal(huge[0], huge[1]) is None
    assert structurally_equal(huge[0], huge[2]) is not None


def test_modules() -> None:
    module, other = Module(), Module()
    assert structurally_equal(module, other) is None
    function = module.add_graph("f")
    assert structurally_equal(module, other) is not None
    other.add_graph("f")
    assert structurally_equal(module, other) is None
    function.add_input(types.INT)
    assert structurally_equal(module, other) is not None
    assert structurally_equal(module, module.main) is not None
