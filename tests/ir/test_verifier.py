"""The verifier: what it refuses, and how it says where."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from irc.errors import Error
from irc.ir import Builder, DType, Graph, Tensor, Value, parse_graph, structurally_equal, types
from irc.ir.limits import MAX_BLOCK_DEPTH, MAX_BLOCKS, MAX_SUBGRAPH_DEPTH, MAX_TYPE_DEPTH
from tests.ir import strategies
from tests.ir.helpers import marked, refused

BASE = """\
graph(%x : Float(2, 3),
      %c : bool,
      %n : int):
  %a : Float(2, 3) = onnx::Relu[since_version=14](%x) # first
  %b : Float(2, 3) = onnx::Add(%a, %a)
  %r : Float(2, 3) = prim::If(%c)
    block0():
      %i : Float(2, 3) = onnx::Tanh(%a)
      -> (%i)
    block1():
      -> (%b)
  %l : Float(2, 3) = prim::Loop(%n, %c, %r)
    block0(%k : int, %z : Float(2, 3)):
      %y : Float(2, 3) = aten::relu_(%z)
      -> (%c, %y)
  %w : Float(2, 3) = prim::Constant[value=@"w"]()
  %g : Float(2, 3) = prim::FusionGroup_0(%l, %w)
  return (%g)
with prim::FusionGroup_0 = graph(%p : Float(2, 3),
      %q : Float(2, 3)):
  %s : Float(2, 3) = onnx::Mul(%p, %q)
  return (%s)
"""


def base() -> Graph:
    return parse_graph(BASE)


@given(strategies.graphs())
def test_random_graphs_verify_and_so_do_their_copies(graph: Graph) -> None:
    graph.verify()
    graph.copy().verify()
    parse_graph(str(graph)).verify()


# -- visibility --------------------------------------------------------------


def use(user: str, index: int, value: str) -> Callable[[Graph], None]:
    return lambda g: g.value(user).node.replace_input(index, g.value(value))


@pytest.mark.parametrize(
    ("damage", "message", "caret"),
    [
        (use("b", 1, "r"), "%r is used before it is defined", "%r"),
        (use("b", 0, "b"), "%b is used before it is defined", "%b"),
        (use("l", 2, "i"), "%i is defined in a block that is not around its use", "%i"),
        (use("i", 0, "r"), "%r is used inside its own node", "%r"),
        (use("y", 0, "i"), "%i is defined in a block that is not around its use", "%i"),
        (lambda g: g.set_outputs([g.value("k")]), "%k is defined in a block that is not around its use", "%k"),
        (lambda g: g.value("r").node.blocks[1].set_returns([g.value("i")]), "%i is defined in a block", "%i"),
        (lambda g: g.value("b").node.move_after(g.value("l").node), "%b is used before it is defined", "%b"),
        (lambda g: g.value("b").node._unlink(), "%b comes from a node that is in no block", "%b"),
        (lambda g: g.set_outputs([base().value("g")]), "%g belongs to another graph", "%g"),
    ],
)
def test_values_must_be_visible(damage: Callable[[Graph], None], message: str, caret: str) -> None:
    graph = base()
    damage(graph)
    error = refused(graph)
    assert error.code == "IRC212"
    assert message in error.message
    assert marked(error) == caret


# -- structure ---------------------------------------------------------------


def stale_user(g: Graph) -> None:
    g.value("x")._users[g.value("b").node] = 1


def stale_name(g: Graph) -> None:
    g._values["ghost"] = g.value("x")


def lost_name(g: Graph) -> None:
    del g._values["a"]


def swapped_labels(g: Graph) -> None:
    a, b = g.value("a").node, g.value("b").node
    a._order, b._order = b._order, a._order


def broken_ring(g: Graph) -> None:
    g.value("b").node._prev = g.value("w").node


def shared_subgraph(g: Graph) -> None:
    node = g.value("g").node
    copy = Builder(g).node(node.kind, node.inputs, [node.output.type], attributes=dict(node.attributes))
    assert copy.attributes["Subgraph"] is node.attributes["Subgraph"]


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (lambda g: setattr(g.value("a").node, "inputs", (g.value("x"), g.value("x"))), "IRC210", "counts 1 use"),
        (lambda g: g.value("x")._users.clear(), "IRC210", "%x counts 0 uses"),
        (lambda g: g.value("a")._users.update({g.value("b").node: 1}), "IRC210", "counts 1 uses by this node"),
        (stale_user, "IRC210", "%x has a user that does not use it"),
        (lambda g: setattr(g.value("a"), "index", 1), "IRC210", "%a does not know that it is output 0"),
        (lambda g: setattr(g.value("a"), "node", g.value("b").node), "IRC210", "%a does not know"),
        (lambda g: setattr(g.value("x"), "index", 1), "IRC210", "%x does not know that it is parameter 0"),
        (lambda g: setattr(g.value("i").node, "graph", Graph()), "IRC210", "does not belong to the graph"),
        (lambda g: setattr(g.value("i").node.block, "node", None), "IRC210", "graph or enclosing node is wrong"),
        (lambda g: setattr(g.value("a").node, "kind", "prim::Return"), "IRC210", "does not belong to the graph"),
        (lambda g: setattr(g.block, "_size", 3), "IRC210", "count of nodes is wrong"),
        (swapped_labels, "IRC210", "position label"),
        (broken_ring, "IRC210", "links between the nodes"),
        (shared_subgraph, "IRC210", "belongs to another node as well"),
        (lambda g: setattr(g.value("a"), "_name", "b"), "IRC211", "not the value that the graph knows by this name"),
        (lost_name, "IRC211", "not the value that the graph knows"),
        (stale_name, "IRC211", "names of values that are gone"),
    ],
)
def test_structure_must_hold_together(damage: Callable[[Graph], None], code: str, message: str) -> None:
    graph = base()
    damage(graph)
    error = refused(graph)
    assert error.code == code
    assert message in error.message


def test_faults_in_subgraphs_are_found() -> None:
    graph = base()
    sub = graph.value("g").node.attributes["Subgraph"]
    sub.value("s").node.replace_input(0, sub.value("s"))
    assert refused(graph).code == "IRC212"


# -- attributes and nesting --------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.float32(1), "holds a numpy.float32"),
        ([np.int64(1)], "holds a numpy.int64"),
        (np.zeros(3), "holds a numpy.ndarray"),
        ({1, 2}, "holds a builtins.set"),
        (Tensor.of([1.0, 2.0], "w"), "weight 'w', which is not in the graph's weight table"),
        (2**64, "an integer that does not fit into 64 bits"),
        ([1, -(2**63) - 1], "an integer that does not fit into 64 bits"),
        ({"a": (10**5000,)}, "an integer that does not fit into 64 bits"),
        (Tensor.splat(DType.FLOAT, (2, -1), 0), "a size is 0 or more"),
        (types.ListType(types.TensorType(DType.FLOAT, (2**63,))), "below 2**63"),
    ],
)
def test_attributes_hold_what_the_ir_knows(value: Any, message: str) -> None:
    graph = Graph()
    Builder(graph).node("my::op", attributes={"a": value})
    error = refused(graph)
    assert error.code == "IRC215"
    assert message in error.message


SIZES = [-1, 1.5, 2**63, 10**5000, True, np.int64(3), 1e300]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: type(size).__name__)
def test_sizes_are_such_as_text_can_say(size: Any) -> None:
    for shape in ((size,), (2, "n", None, size)):
        with pytest.raises(Error, match=r"^IRC214: .*a size is "):
            types.tensor(DType.FLOAT, shape)
        wrong = types.TensorType(DType.FLOAT, shape)
        for type in (wrong, types.ListType(wrong), types.DictType(types.STR, types.TupleType((types.INT, wrong)))):
            graph = Graph()
            graph.add_input(type, "x")
            error = refused(graph)
            assert error.code == "IRC214" and "%x has a wrong type: a size is " in error.message
            graph = Graph()
            Builder(graph).op("my::op", name="y").type = type
            error = refused(graph)
            assert error.code == "IRC214" and marked(error) == "%y"


@pytest.mark.parametrize(
    ("type", "message"),
    [
        (types.TensorType("float32", (2,)), "the element type of a tensor is a DType"),
        (types.TensorType(DType.FLOAT, [2, 3]), "the shape of a tensor is a tuple"),
    ],
)
def test_tensors_have_element_types_and_shapes(type: types.TensorType, message: str) -> None:
    graph = Graph()
    graph.add_input(type, "x")
    assert refused(graph).code == "IRC214" and message in refused(graph).message


def nested_types(depth: int) -> Graph:
    graph, type = Graph(), types.INT
    for _ in range(depth - 1):
        type = types.ListType(type)
    graph.add_input(type, "x")
    return graph


def test_depth_of_types_is_bounded() -> None:
    graph = nested_types(MAX_TYPE_DEPTH)
    graph.verify()
    assert structurally_equal(parse_graph(str(graph)), graph) is None
    assert refused(nested_types(MAX_TYPE_DEPTH + 1)).code == "IRC214"


def test_largest_numbers_read_back() -> None:
    graph = Graph()
    graph.add_input(types.tensor(DType.FLOAT, (0, 2**63 - 1)), "x")
    Builder(graph).node("my::op", attributes={"a": -(2**63), "b": [2**64 - 1]}, version=2**63 - 1)
    graph.verify()
    assert structurally_equal(parse_graph(str(graph)), graph) is None


@pytest.mark.parametrize("kind", ["onnx::Relu", "my::op"])
@pytest.mark.parametrize("version", [1.0, "13", True, 2**64])
def test_versions_are_whole_numbers(kind: str, version: Any) -> None:
    graph = Graph()
    x = graph.add_input(types.tensor(DType.FLOAT), "x")
    Builder(graph).op(kind, x, type=x.type, version=version)
    error = refused(graph)
    assert error.code == "IRC215" and "the version of a node is an integer" in error.message


def test_constants_have_no_graph_to_run() -> None:
    """Text could not tell it from a fusion group."""
    graph = Graph()
    Builder(graph).node("prim::Constant", outputs=[types.INT], attributes={"value": 1, "Subgraph": Graph()})
    error = refused(graph)
    assert error.code == "IRC215"
    assert "a constant holds no Subgraph" in error.message


def nested_blocks(depth: int) -> Graph:
    graph = Graph()
    block = graph.block
    for _ in range(depth - 1):
        block = Builder(graph, block).node("my::op").add_block()
    return graph


def test_depth_of_blocks_is_bounded() -> None:
    nested_blocks(MAX_BLOCK_DEPTH).verify()
    error = refused(nested_blocks(MAX_BLOCK_DEPTH + 1))
    assert error.code == "IRC216"


def test_number_of_blocks_is_bounded() -> None:
    graph = Graph()
    node = Builder(graph).node("my::op")
    for _ in range(MAX_BLOCKS):
        node.add_block()
    graph.verify()
    assert structurally_equal(parse_graph(str(graph)), graph) is None
    node.add_block()
    assert refused(graph).code == "IRC216"


def nested_graphs(depth: int) -> Graph:
    graph = Graph()
    for _ in range(depth - 1):
        outer = Graph()
        Builder(outer).node("my::op", attributes={"body": graph})
        graph = outer
    return graph


def test_depth_of_subgraphs_is_bounded() -> None:
    nested_graphs(MAX_SUBGRAPH_DEPTH).verify()
    assert refused(nested_graphs(MAX_SUBGRAPH_DEPTH + 1)).code == "IRC216"


# -- messages ----------------------------------------------------------------


def test_error_in_a_block_says_which() -> None:
    graph = base()
    use("y", 0, "g")(graph)
    error = refused(graph)
    assert "in block0 of %l = prim::Loop, graph main:" in error.message


def test_error_in_a_long_line_shows_the_part_at_fault() -> None:
    graph = Graph()
    values: list[Value] = [graph.add_input(types.tensor(DType.FLOAT), f"input_{i}") for i in range(100)]
    values[70].type = types.tensor(DType.DOUBLE)
    Builder(graph).op("onnx::Concat", *values, attributes={"axis": 0}, name="y")
    error = refused(graph)
    assert marked(error) == "%input_70"
    assert max(map(len, error.message.split("\n"))) < 140


def test_a_node_that_was_never_inserted_is_named() -> None:
    graph = parse_graph("graph(%x : Tensor):\n  %y : Tensor = onnx::Relu(%x)\n  return (%y)\n")
    node = graph.create("onnx::Neg", [graph.value("y")], [types.TENSOR])
    with pytest.raises(Error, match=r"%y has a user that is in no block: insert or erase it: .*onnx::Neg"):
        graph.verify()
    node.erase()
    graph.verify()


@pytest.mark.parametrize("type", ["Float", None, DType.FLOAT, types.ListType("Float"), types.TensorType])  # type: ignore[arg-type]
def test_types_are_of_the_ir(type: Any) -> None:
    graph = Graph()
    graph.add_input(types.TENSOR, "x").type = type
    error = refused(graph)
    assert error.code == "IRC214" and "%x has a wrong type: a type is one of irc.ir.types, not " in error.message
