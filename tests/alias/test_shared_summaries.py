"""What a pass is told of functions is what they do now, though the analyses of all graphs share their summaries."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Any, ClassVar

import pytest

from irc.alias import summaries
from irc.ir import Builder, Graph, Module, parse_module
from irc.passes import PassContext, PassManager
from tests.effort import Tune

HEAD = "graph {name}(%x : Tensor):\n"
CALL = """  %{f} : Function = prim::Constant[name="{f}"]()
  %y{i} : Tensor = prim::CallFunction(%{f}, %{x})
"""

GROUP = """  %y{i} : Tensor = prim::FusionGroup_{i}(%{x})
"""
SECTION = """with prim::FusionGroup_{i} = graph(%x : Tensor):
  %{f} : Function = prim::Constant[name="{f}"]()
  %y : Tensor = prim::CallFunction(%{f}, %x)
  return (%y)
"""

CALLS = {
    "a chain": {"main": "f", "f": "g", "g": "h", "h": ""},
    "a diamond": {"main": "fg", "f": "h", "g": "h", "h": ""},
    "a cycle": {"main": "f", "f": "g", "g": "fh", "h": ""},
    "two cycles": {"main": "fh", "f": "g", "g": "f", "h": "hf"},
}


def module(calls: dict[str, Any], grouped: bool = False) -> Module:
    """Graphs that call others, or let groups do so, each result the next one's argument."""
    parts: list[str] = []
    for name, callees in calls.items():
        lines = HEAD.format(name=name if name != "main" else "")
        made = ["x", *(f"y{i}" for i in range(len(callees)))]
        lines += "".join((GROUP if grouped else CALL).format(f=f, i=i, x=made[i]) for i, f in enumerate(callees))
        lines += f"  %r : Tensor = aten::relu(%{made[-1]})\n  return (%r)\n"
        parts.append(lines + "".join(SECTION.format(f=f, i=i) for i, f in enumerate(callees) if grouped))
    return parse_module("\n".join(parts).replace("graph (", "graph("))


@dataclass(frozen=True)
class Change:
    """Let one graph do what it did not; look at what is known of each before and after."""

    name: ClassVar[str] = "change"
    of: str
    told: bool

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        ctx.alias_db(graph).check()
        if graph.name != self.of:
            return False
        node = Builder.before(graph.block.return_node).node("aten::relu_", [graph.inputs[0]], [graph.inputs[0].type])
        if self.told:
            ctx.alias_db(graph).add_node(node)
        else:
            name = graph.outputs[0].name
            graph.set_outputs([node.output])  # which is the input's memory
            node.output.name = name
            ctx.drop_alias_db(graph)
            ctx.alias_db(graph).check()
        return True


@pytest.mark.covering(2)
@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("longest", [summaries._LONGEST_CYCLE, 1])
@pytest.mark.parametrize("calls", CALLS)
def test_changes_are_seen(calls: str, longest: int, told: bool, grouped: bool, part: int, tune: Tune) -> None:
    """In each order, a sixth of them at a time."""
    tune("irc.alias.summaries._LONGEST_CYCLE", longest)
    for order in islice(permutations(CALLS[calls]), part, None, 6):
        changed = module(CALLS[calls], grouped)
        changed.verify()
        PassManager([Change(name, told) for name in (*order, "")]).run(changed)


def test_a_function_that_is_another_now_is_analysed() -> None:
    @dataclass(frozen=True)
    class Exchange:
        name: ClassVar[str] = "exchange"

        def run(self, graph: Graph, ctx: PassContext) -> bool:
            ctx.alias_db(graph)
            assert ctx.module is not None
            del ctx.module.graphs["h"]
            other = ctx.module.add_graph("h")
            x = other.add_input(graph.inputs[0].type, "x")
            other.set_outputs([Builder(other).op("aten::relu_", x)])
            ctx.drop_alias_db(graph)
            ctx.alias_db(graph).check()
            return True

    PassManager([Exchange()]).run(module(CALLS["a chain"]).main)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that are recorded, each as often as it is."""
    found: list[str] = []
    record: Callable[..., None] = summaries._Body.__init__

    def counting(body: Any, functions: Any, names: list[str], graphs: Any) -> None:
        found.extend(names)
        record(body, functions, names, graphs)

    monkeypatch.setattr(summaries._Body, "__init__", counting)
    return found


@dataclass(frozen=True)
class ChangeAll:
    """Let every function do what it did not."""

    name: ClassVar[str] = "change-all"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        db = ctx.alias_db(graph)
        node = Builder.before(graph.block.return_node).node("aten::relu_", [graph.inputs[0]], [graph.inputs[0].type])
        db.add_node(node)
        return True


def test_functions_of_a_long_cycle_are_not_all_recorded_for_each(recorded: list[str]) -> None:
    n = 3 * summaries._LONGEST_CYCLE
    calls: dict[str, Any] = {"main": ("f0",), **{f"f{i}": (f"f{(i + 1) % n}",) for i in range(n)}}
    for passes in (["cse", "dce", "in-place"], [ChangeAll(), "cse", ChangeAll()]):
        recorded.clear()
        PassManager(passes).run(module(calls))
        assert n <= len(recorded) <= 2 * n


@pytest.mark.parametrize("p", ["cse", "dce", "in-place"])
def test_functions_that_call_themselves_are_recorded_once_while_nothing_changes(p: str, recorded: list[str]) -> None:
    names = [f"f{i}" for i in range(9)]
    calls = {"main": names, **{name: [name, names[i - 1]] for i, name in enumerate(names)}}
    PassManager(p).run(module(calls))
    assert sorted(recorded) == names
