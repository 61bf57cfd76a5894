"""The work of an analysis is linear in the size of the graph: lines executed are counted, not seconds."""

import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest

from benchmarks import families
from irc.alias import AliasDb, analyze
from irc.alias.location_sets import members
from irc.ir import Builder, Graph, ListType, Module, Value, parse_module, types
from tests.alias.helpers import nested
from tests.alias.test_upstream_bugs import chained_branches

TENSORS = ListType(types.TENSOR)


def lines(run: Callable[[], Any]) -> int:
    """How many lines of Python ``run`` executes: the same on every machine."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


class Chain:
    """A graph that grows by steps, each from what the last one made."""

    def __init__(self) -> None:
        self.module = Module()
        self.graph: Graph = self.module.main
        self.b = Builder(self.graph)
        self.cond = self.b.constant(True)
        self.zero = self.b.constant(0)
        self.next_number = count(1).__next__
        self.first = self.b.op("aten::relu", self.graph.add_input(types.TENSOR))
        self.list = self.b.op("prim::ListConstruct", self.first, type=TENSORS)
        function = self.module.add_graph("f")
        inner = function.add_input(types.TENSOR)
        function.set_outputs([Builder(function).op("aten::relu_", inner)])
        self.function = self.b.op("prim::Constant", type=types.FUNCTION, attributes={"name": "f"})


def in_place(c: Chain, value: Value) -> Value:
    return c.b.op("aten::relu_", value)


def views(c: Chain, value: Value) -> Value:
    return c.b.op("aten::t", value)


def written_rows(c: Chain, value: Value) -> Value:
    row = c.b.op("aten::select", c.first, c.zero, c.b.constant(c.next_number()))
    c.b.op("aten::relu", row)
    return c.b.op("aten::relu_", row)


def views_of_parts(c: Chain, value: Value) -> Value:
    part = c.b.op("aten::narrow", value, c.zero, c.b.constant(c.next_number()), c.b.constant(2))
    c.b.op("aten::zero_", part)
    return part


def through_a_list(c: Chain, value: Value) -> Value:
    made = c.b.op("prim::ListConstruct", value, type=TENSORS)
    return c.b.op("aten::__getitem__", made, c.zero, type=types.TENSOR)


def into_one_list(c: Chain, value: Value) -> Value:
    c.b.op("aten::append", c.list, c.b.op("aten::relu", value), type=TENSORS)
    return c.b.op("aten::neg", value)


def through_one_list(c: Chain, value: Value) -> Value:
    c.b.op("aten::append", c.list, c.b.op("aten::relu", value), type=TENSORS)
    return c.b.op("aten::__getitem__", c.list, c.zero, type=types.TENSOR)


def made_unknown(c: Chain, value: Value) -> Value:
    return c.b.op("aten::set_", c.b.op("aten::neg", value), c.b.op("aten::neg", value))


def loops(c: Chain, value: Value) -> Value:
    node = c.b.node("prim::Loop", [c.zero, c.cond, value], [types.TENSOR])
    block = node.add_block()
    block.add_param(types.INT)
    param = block.add_param(types.TENSOR)
    block.set_returns([c.cond, Builder.at_end(block).op("aten::relu_", param)])
    return node.output


def calls(c: Chain, value: Value) -> Value:
    return c.b.node("prim::CallFunction", [c.function, value], [types.TENSOR]).output


def grown(step: Callable[[Chain, Value], Value], count: int) -> tuple[Chain, Value]:
    chain = Chain()
    value = chain.first
    for _ in range(count):
        value = step(chain, value)
    chain.graph.set_outputs([value])
    return chain, value


def ask(chain: Chain, last: Value) -> None:
    """Analyse, and ask a pass's questions: about both ends and about every node."""
    db, first = analyze(chain.graph, chain.module), chain.first
    assert db.may_alias(last, last)
    db.may_alias(first, last)
    db.may_contain_alias(first, last)
    db.has_writers(first)
    for node in db.graph.nodes:
        db.has_writers(node)
        db.is_mutable(node)


SIZES = {made_unknown: (100, 400)}
"""So many that all sets have one leaf, or else none has."""


@pytest.mark.parametrize(
    "step",
    [
        *(in_place, views, written_rows, views_of_parts, through_a_list, into_one_list, through_one_list),
        *(made_unknown, loops, calls),
    ],
)
def test_work_is_linear(step: Callable[[Chain, Value], Value]) -> None:
    counts = []
    for n in SIZES.get(step, (250, 1000)):
        counts.append(lines(partial(ask, *grown(step, n))))
    assert counts[1] <= 4.3 * counts[0], counts


@pytest.mark.parametrize("shape", ["chain", "join", "ring", "tree"])
def test_functions_that_call_functions_are_linear(shape: str) -> None:
    counts = []
    for n in (100, 400):
        main = parse_module("\n".join(nested(shape, n))).main
        counts.append(lines(partial(analyze, main)))
    assert counts[1] <= 4.3 * counts[0], counts


def test_lists_in_a_list_take_a_pointer_for_each_that_may_be_meant() -> None:
    """Quadratic, not cubic: which of n lists an operator reads and extends only the solution tells."""
    counts = []
    for n in (25, 100):
        c = Chain()
        made = [c.b.op("prim::ListConstruct", c.b.op("aten::relu", c.first), type=TENSORS) for _ in range(n)]
        outer = c.b.op("prim::ListConstruct", *made, type=ListType(TENSORS))
        for _ in made:
            one = c.b.op("aten::__getitem__", outer, c.zero, type=TENSORS)
            c.b.op("aten::append", one, c.b.op("aten::__getitem__", one, c.zero, type=types.TENSOR), type=TENSORS)
        counts.append(lines(partial(analyze, c.graph)))
    assert counts[1] <= 16 * counts[0], counts


def test_to_follow_views_takes_a_step_for_each() -> None:
    counts = []
    for n in (250, 1000):
        chain, last = grown(views, n)
        db = analyze(chain.graph)
        counts.append(lines(lambda db=db, first=chain.first, last=last: db.must_alias(first, last)))
        assert db.must_alias(chain.first, last)
    assert counts[1] <= 4.3 * counts[0], counts


def linked(n: int) -> AliasDb:
    """Of n lists, each holds the one before it and a tensor."""
    text = ["graph(%x : Tensor):", "  %l0 : Any[] = prim::ListConstruct(%x)"]
    for i in range(n):
        text += [f"  %v{i} : Tensor = aten::neg(%x)", f"  %l{i + 1} : Any[] = prim::ListConstruct(%l{i}, %v{i})"]
    return analyze(parse_module("\n".join([*text, f"  return (%l{n})", ""])).main)


def test_what_lists_hold_is_found_from_what_lists_in_them_do() -> None:
    counts = []
    for n in (100, 400):
        db = linked(n)
        values = list(db.graph.values())
        counts.append(lines(lambda db=db, values=values: [db.reach_set(v) for v in values]))
        assert len(list(members(db.reach_set(db.graph.outputs[0])))) == 2 * n + 2
    assert counts[1] <= 4.3 * counts[0], counts


@pytest.mark.parametrize("family", ["in-turn", "parts", "views", "lists", "in-place", "branches"])
def test_of_values_that_are_in_the_same_places_one_is_checked_for_all(family: str) -> None:
    """Nor is each node that writes compared with each value."""
    counts = []
    for n in (200, 800):
        db = analyze(parse_module(families.text(family, n)).main)
        counts.append(lines(db.check))
    assert counts[1] <= 4.4 * counts[0], counts


READS = {
    "list": "",
    "either list": """  %either : Tensor[] = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%y)
""",
    "list in a list": "  %either : Tensor[] = aten::__getitem__(%z, %zero)\n",
}


@pytest.mark.parametrize("read", READS)
def test_functions_that_read_the_same_list_are_linear(read: str) -> None:
    """What each of those that it calls takes out of the list is the same."""
    params = "(%x : Tensor[], %y : Tensor[], %z : Tensor[][], %c : bool)"
    end = "  return (%x)\n"
    counts = []
    for n in (50, 200):
        text = ""
        for i in range(n):
            call = f'  %f : Function = prim::Constant[name="f{i}"]()\n'
            call += "  %r : Tensor[] = prim::CallFunction(%f, %x, %y, %z, %c)\n"
            text += f"{call}{end}graph f{i}{params}:\n  %zero : int = prim::Constant[value=0]()\n{READS[read]}"
            text += f"  %g : Tensor = aten::__getitem__(%{'either' if READS[read] else 'x'}, %zero)\n"
            text += "  %w : Tensor = aten::relu_(%g)\n"
        main = parse_module(f"graph main{params}:\n{text}{end}").main
        counts.append(lines(partial(analyze, main)))
    assert counts[1] <= 4.3 * counts[0], counts


def test_functions_that_are_called_one_after_the_other_are_looked_at_once() -> None:
    """Callees first: whoever calls them next finds what is known of them."""
    counts = []
    for n in (100, 400):
        main = parse_module("\n".join(nested("chain", n))).main
        b = Builder(main)
        for i in reversed(range(n)):
            function = b.op("prim::Constant", type=types.FUNCTION, attributes={"name": f"f{i}"})
            b.node("prim::CallFunction", [function, main.inputs[0]], [types.TENSOR])
        first = next(n for n in main.nodes if n.kind == "prim::CallFunction")
        first.output.replace_all_uses_with(main.inputs[0])
        first.erase()
        counts.append(lines(partial(analyze, main)))
    assert counts[1] <= 4.3 * counts[0], counts


def test_building_chained_branches_is_linear() -> None:
    counts = []
    for n in (250, 1000):
        graph = Graph()
        x = graph.add_input(types.TENSOR)
        value = chained_branches(graph, x, n)

        def run(graph: Graph = graph, x: Value = x, value: Value = value) -> None:
            db = analyze(graph)
            assert db.may_alias(x, value)
            assert not db.has_writers(value)

        counts.append(lines(run))
    assert counts[1] <= 4.3 * counts[0], counts


@pytest.mark.parametrize("times", [3, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("step", [in_place, through_a_list, loops])
def test_deep_chains_need_no_deep_stack(step: Callable[[Chain, Value], Value], times: int) -> None:
    """Nothing recurses over values: far more of them than Python has frames."""
    chain, last = grown(step, times * sys.getrecursionlimit())
    db = analyze(chain.graph, chain.module)
    assert db.may_alias(chain.first, last)
    assert db.may_contain_alias(chain.first, last)
    assert db.has_writers(chain.first) == (step is not through_a_list)
