"""The core: order, use lists, names, iteration while nodes change, nesting, cloning."""

import itertools
import math
import random
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.ir import (
    Block,
    Builder,
    DType,
    Graph,
    Module,
    Node,
    Value,
    parse_graph,
    structurally_equal,
    types,
    with_subgraphs,
)
from irc.ir.node import WIDE
from irc.ir.tensor import Tensor
from tests.effort import Spy, examples
from tests.graphs import ir, ir_graph
from tests.ir import strategies

NESTED = ir("""
    x: Tensor; c: bool -> z
    a = relu(x); r = prim.If(c)
    with block():
        i = relu(a); s = prim.If(c)
        with block(): yield i
        with block(): j = relu(i); yield j
        yield s
    with block(): k = relu(x); yield k
    z = relu(r)
""")


def fresh(graph: Graph) -> Node:
    return graph.create("my::op", (), [types.INT])


# -- order -------------------------------------------------------------------


def check_order(block: Block, expected: list[Node]) -> None:
    assert list(block.nodes) == expected
    assert list(reversed(block.nodes)) == expected[::-1]
    assert len(block.nodes) == len(expected)
    assert bool(block.nodes) == bool(expected)
    labels = [node._order for node in expected]
    assert labels == sorted(set(labels))
    for before, after in itertools.pairwise(expected):
        assert before.next is after
        assert after.prev is before
        assert before.is_before(after)
        assert not after.is_before(before)
    if expected:
        assert expected[0].prev is None
        assert expected[-1].next is None
        assert expected[-1].is_before(block.return_node)
        assert block.nodes[0] is expected[0]
        assert block.nodes[-1] is expected[-1]


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 99), st.integers(0, 99)), max_size=40))
def test_order_is_that_of_a_list(steps: list[tuple[int, int, int]]) -> None:
    graph = Graph()
    block = graph.block
    model: list[Node] = []
    for what, i, j in steps:
        if not model or what == 0:
            model.append(block.append(fresh(graph)))
        elif what == 1:
            model.insert(0, block.prepend(fresh(graph)))
        elif what == 2:
            point = i % len(model)
            model.insert(point, fresh(graph).insert_before(model[point]))
        elif what == 3:
            point = i % len(model)
            model.insert(point + 1, fresh(graph).insert_after(model[point]))
        elif what == 4:
            model.pop(i % len(model)).erase()
        else:
            node, point = model[i % len(model)], model[j % len(model)]
            (node.move_before if what == 5 else node.move_after)(point)
            if node is not point:
                model.remove(node)
                model.insert(model.index(point) + (what == 6), node)
    check_order(block, model)
    graph.verify()


@pytest.mark.parametrize("where", ["front", "back", "middle", "random"])
def test_labels_never_run_out(where: str) -> None:
    graph = Graph()
    model = [graph.block.append(fresh(graph)) for _ in range(2)]
    draw = random.Random(1)
    for _ in range(3000):
        at = {"front": 0, "back": len(model), "middle": 1, "random": draw.randrange(len(model) + 1)}[where]
        point = model[at] if at < len(model) else graph.block.return_node
        model.insert(at, fresh(graph).insert_before(point))
    check_order(graph.block, model)


@pytest.mark.parametrize("count", [250, 1000])
def test_inserting_at_one_point_relabels_little(count: int) -> None:
    # Amortised O(log n) labels an insertion: counted, not timed.
    graph = Graph()
    point = graph.block.append(fresh(graph))
    labels: dict[Node, int] = {}
    changed = 0
    for _ in range(count):
        fresh(graph).insert_before(point)
        now = {node: node._order for node in graph.nodes}
        changed += sum(now[node] != label for node, label in labels.items())
        labels = now
    assert 0 < changed < 2 * count * math.log2(count)


def test_is_before_across_blocks() -> None:
    graph = parse_graph(NESTED)
    names = ["a", "r", "i", "s", "j", "k", "z"]  # pre-order
    nodes = [graph.value(name).node for name in names]
    for x, first in enumerate(nodes):
        for y, second in enumerate(nodes):
            assert first.is_before(second) == (x < y), (names[x], names[y])
    assert sorted(set(nodes), key=Node.place) == nodes
    assert graph.value("j").node.ancestor_in(graph.block) is graph.value("r").node
    assert graph.value("z").node.ancestor_in(graph.value("k").node.block) is None
    assert [n.outputs[0].name for n in graph.walk()] == names


# -- iteration while nodes change --------------------------------------------


@examples(80)
@given(st.data())
def test_iteration_survives_any_change(data: st.DataObject) -> None:
    graph = Graph()
    block = graph.block
    original = [block.append(fresh(graph)) for _ in range(data.draw(st.integers(0, 6)))]
    backwards = data.draw(st.booleans())
    untouched = dict.fromkeys(original)
    visited: list[Node] = []
    for node in reversed(block.nodes) if backwards else block.nodes:
        assert node.block is block
        visited.append(node)
        for _ in range(data.draw(st.integers(0, 2)) if len(visited) < 12 else 0):
            present = list(block.nodes)
            if not present:
                break
            victim, point = data.draw(st.sampled_from(present)), data.draw(st.sampled_from(present))
            what = data.draw(st.sampled_from(["erase", "before", "after", "insert"]))
            if what == "erase":
                victim.erase()
            elif what == "before":
                victim.move_before(point)
            elif what == "after":
                victim.move_after(point)
            else:
                fresh(graph).insert_after(point)
            if what != "insert":
                untouched.pop(victim, None)
    # What nobody touched is visited once, in order, whatever happened around it.
    expected = list(untouched)[::-1] if backwards else list(untouched)
    assert [n for n in visited if n in untouched] == expected
    assert not block._cursors
    graph.verify()


def test_iteration_goes_on_from_where_the_node_stood() -> None:
    graph = Graph()
    a, b, c = (graph.block.append(fresh(graph)) for _ in range(3))
    seen: list[Node] = []
    for node in graph.nodes:
        seen.append(node)
        if node is a:
            new = fresh(graph).insert_after(a)
            a.erase()
        if node is b and b.is_before(c):
            b.move_after(c)
    assert seen == [a, new, b, c, b]


# -- uses --------------------------------------------------------------------


def check_uses(graph: Graph) -> None:
    """Recount the uses of every value from the inputs of all nodes."""
    users = [*graph.walk(), *(block.return_node for block in graph.blocks())]
    counted = Counter((value, user) for user in users for value in user.inputs)
    for value in graph.values():
        mine = {user: n for (v, user), n in counted.items() if v is value}
        assert value.use_count == sum(mine.values())
        assert set(value.users) == set(mine)
        assert value.has_uses == bool(mine)
        assert sorted(u.index for u in value.uses) == sorted(
            i for user in mine for i, v in enumerate(user.inputs) if v is value
        )
        assert all(u.node.inputs[u.index] is value for u in value.uses)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), max_size=40))
def test_uses_are_those_of_the_inputs(steps: list[tuple[int, int, int, int]]) -> None:
    graph = Graph()
    values: list[Value] = [graph.add_input(types.INT) for _ in range(3)]
    for what, i, j, k in steps:
        nodes: list[Node] = list(graph.nodes)
        value, other = values[i % len(values)], values[j % len(values)]
        node = nodes[k % len(nodes)] if nodes else None
        earlier = [v for v in values if node is None or v.node is None or v.node.is_before(node)]
        value_before = earlier[i % len(earlier)]
        if node is None or what == 0:
            values.append(Builder(graph).op("my::op", value, other, value, type=types.INT))
        elif what == 1 and node.inputs:
            node.replace_input(j % len(node.inputs), value_before)
        elif what == 2:
            node.append_input(value_before)
        elif what == 3:
            node.insert_input(j % (len(node.inputs) + 1), value_before)
        elif what == 4 and node.inputs:
            node.erase_inputs([j % len(node.inputs)])
        elif what == 5:
            node.set_inputs([value_before, value_before])
        elif what == 6:
            first, second = sorted((value, other), key=values.index)
            second.replace_all_uses_with(first)
            assert first is second or not second.has_uses
        graph.set_outputs([value, value])
        check_uses(graph)
    graph.verify()


def test_a_node_that_uses_a_value_many_times_is_changed_once(spy: Spy) -> None:
    calls = spy(Node, "replace_input")
    graph = parse_graph(f"graph(%x : Tensor, %y : Tensor):\n  return ({', '.join(['%x', '%y'] * 20)})\n")
    x, y = graph.inputs
    x.replace_all_uses_with(y)
    assert graph.outputs == (y,) * 40
    assert (x.use_count, y.use_count) == (0, 40)
    assert y.users == [graph.block.return_node]
    assert calls.call_count <= 1


def test_replace_all_uses_reaches_nested_blocks_and_returns() -> None:
    graph = parse_graph(NESTED)
    graph.value("i").replace_all_uses_with(graph.value("x"))
    assert not graph.value("i").has_uses
    assert graph.value("s").node.blocks[0].returns == (graph.value("x"),)
    assert graph.value("j").node.inputs == (graph.value("x"),)
    graph.value("x").replace_all_uses_with(graph.value("x"))
    check_uses(graph)
    graph.verify()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=12), st.randoms())
def test_inputs_of_wide_nodes_are_those_that_took_their_places(
    steps: list[tuple[int, int, bool]], rng: random.Random
) -> None:
    """Each step replaces one value by another, which may have been replaced before; some look at the inputs."""
    graph = Graph()
    values = [graph.add_input(types.INT) for _ in range(6)]
    expected = [rng.choice(values[:4]) for _ in range(WIDE)]
    node = Builder(graph).node("my::op", expected)
    for i, j, looks in steps:
        old, new = values[i], values[j]
        node.replace_uses(old, new)
        expected = [new if value is old else value for value in expected]
        assert [value.uses_by(node) for value in values] == [expected.count(value) for value in values]
        if looks:
            assert node.inputs == tuple(expected)
            check_uses(graph)
    assert node.inputs == tuple(expected)
    check_uses(graph)
    node.append_input(values[0])
    node.erase()
    assert not any(value.has_uses for value in values)


def test_what_is_used_cannot_be_erased() -> None:
    graph = parse_graph(NESTED)
    with pytest.raises(ValueError, match="%a is used by aten::relu"):
        graph.value("a").node.erase()
    with pytest.raises(ValueError, match="%a still has uses"):
        graph.value("a").node.erase_outputs([0])
    with pytest.raises(ValueError, match="%x still has uses"):
        graph.block.erase_params([0])
    graph.verify()


# -- names -------------------------------------------------------------------


def test_names_are_unique_and_follow_one_rule() -> None:
    graph = Graph()
    names = [graph.add_input(types.INT, name).name for name in ("x", "x", "x.1", "x", "", "0", "", "a.b", "a.b", ".1")]
    assert names == ["x", "x.1", "x.2", "x.3", "0", "0.1", "1", "a.b", "a.b.1", ".1"]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), strategies.names), max_size=20))
def test_every_value_is_found_by_its_name(steps: list[tuple[bool, int, str]]) -> None:
    graph = Graph()
    for rename, i, name in steps:
        if rename and graph.inputs:
            if name:
                graph.inputs[i % len(graph.inputs)].name = name
                assert graph.inputs[i % len(graph.inputs)].name == name
        else:
            graph.add_input(types.INT, name)
    assert len({v.name for v in graph.inputs}) == len(graph.inputs)
    for value in graph.inputs:
        assert graph.value(value.name) is value
    graph.verify()


def test_functions_of_a_module_have_names_of_their_own() -> None:
    module = Module()
    function = module.add_graph("f")
    assert function.weights is module.weights
    assert function.module is module
    with pytest.raises(Exception, match="IRC202"):
        module.add_graph("f")


# -- cloning -----------------------------------------------------------------


@given(strategies.graphs())
def test_copies_share_no_part(graph: Graph) -> None:
    copy = graph.copy()
    mine = {id(v) for v in graph.values()} | {id(n) for n in graph.walk()}
    others = {id(v) for v in copy.values()} | {id(n) for n in copy.walk()}
    assert not mine & others
    for node in copy.walk():
        assert node.graph is copy
        assert all(v.graph is copy for v in (*node.inputs, *node.outputs))
    text = str(graph)
    for node in reversed(list(copy.nodes)):
        for value in node.outputs:
            value.replace_all_uses_with(copy.add_input(value.type))
        node.erase()
    copy.verify()
    assert str(graph) == text
    graph.verify()


def test_deep_nesting_does_not_overflow_the_stack() -> None:
    graph = Graph()
    block = graph.block
    for _ in range(3000):
        block = Builder(graph, block).node("my::op").add_block()
    copy = graph.copy()
    assert len(list(copy.walk())) == 3000
    assert structurally_equal(graph, copy) is None
    copy.nodes[0].erase()
    assert not copy.nodes


def test_builders_take_arrays_as_constants() -> None:
    graph = Graph()
    small, large = (Builder(graph).constant(np.arange(n, dtype=np.float32), name="w") for n in (3, 40))
    assert str(small.type) == "Float(3)"
    assert [*graph.weights] == ["w"]
    assert large.node is not None and large.node.attributes["value"] is graph.weights["w"]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.array([1, 2], object), "element [0] is 1"),
        (np.array([["a", None]], object), "element [0, 1] is None"),
        (np.array([b"ab"], object), "element [0] is b'ab'"),
        (np.array([b"\xff"]), "these bytes are none"),
        (np.zeros(2, np.longdouble), "no element type for"),
        (np.zeros(2, "M8[D]"), "no element type for datetime64[D]"),
        (np.zeros(2, "f4,i4"), "no element type for"),
        (np.ma.masked_array(np.ones(2, np.float32), [True, False]), "masked arrays are not supported"),
    ],
)
def test_arrays_that_are_no_tensors_are_no_constants(array: Any, says: str) -> None:
    with pytest.raises(Error, match=rf"IRC143: .*{re.escape(says)}"):
        Builder(Graph()).constant(array, name="w")


@pytest.mark.parametrize("array", [np.array(["a", "é"]), np.array(["a", "é"], object), np.array([b"a", "é".encode()])])
def test_constant_strings_are_python_s(array: Any) -> None:
    tensor = Tensor.of(array)
    assert tensor.dtype is types.DType.STRING and tensor.numpy().dtype == object
    assert tensor.numpy().tolist() == ["a", "é"]


def test_constants_are_in_native_byte_order() -> None:
    tensor = Tensor.of(np.arange(3).astype(">i2"))
    assert tensor.numpy().dtype.isnative and tensor.same_contents(Tensor.of(np.arange(3, dtype=np.int16)))


def test_graphs_in_attributes_are_walked_once() -> None:
    module = Module()
    innermost, inner, other = Graph("innermost"), Graph("inner"), module.add_graph("other")
    for graph, held in ((innermost, []), (inner, [innermost]), (other, [inner]), (module.main, [inner, innermost])):
        for each in held:
            Builder(graph).node("mine::runs", attributes={"body": each})
        Builder(graph).node("mine::in", name=graph.name)
    named = [node.name for node in with_subgraphs(*module.graphs.values()) if node.name]
    assert named == ["main", "other", "inner", "innermost"]


def test_captures_are_what_blocks_use_and_return_from_outside() -> None:
    graph = ir_graph("""
        x: Float(2); c: Bool(); z: Float(2) -> y
        k: Float(2) = Relu(x); y: Float(2) = prim.If(c)
        with block(): a: Float(2) = Exp(k); b: Float(2) = a if c else z; yield b
        with block(): yield x
    """)
    outer, inner = (graph.value(name).node for name in "yb")
    assert outer is not None and inner is not None
    assert sorted(value.name for value in outer.captures()) == ["c", "k", "x", "z"]
    assert sorted(value.name for value in inner.captures()) == ["a", "z"]
    made = graph.value("k").node
    assert made is not None and made.captures() == []


def test_contents_are_plain_arrays() -> None:
    class Subclass(np.ndarray):
        pass

    given = np.ones((2, 3), np.float32).view(Subclass)
    for tensor in (
        Tensor(DType.FLOAT, (2, 3), array=given),
        Tensor.lazy(DType.FLOAT, (2, 3), lambda: given),
        Tensor.lazy(DType.FLOAT, (2, 3), lambda: given, transient=True),
    ):
        assert type(tensor.numpy()) is np.ndarray and not tensor.numpy().flags.writeable
